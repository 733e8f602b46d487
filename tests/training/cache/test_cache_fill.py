from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks_at_work import RanksFailed, run_ranks
from torch.utils.data import Dataset

from boxcar.shared.disk import lock
from boxcar.shared.errors import InputError, NoRoomError
from boxcar.training.cache import cache_fill, cache_index
from boxcar.training.cache.cache_index import Fingerprint, shard_name
from boxcar.training.cache.latent_cache import LatentCache

torch.set_num_threads(1)
SAMPLES, PER_SHARD = 40, 8
PRINT = Fingerprint(encoder="noise", transform="t", data="d")


@pytest.fixture(autouse=True)
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOXCAR_OUT", str(tmp_path))


def in_ranks(world: int, body: Any, folder: Path, *more: Any) -> list[Any]:
    return run_ranks(world, body, folder, *more, env={"BOXCAR_OUT": str(folder)})


class Raw(Dataset[torch.Tensor]):
    def __init__(self, samples: int = SAMPLES) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, number: int) -> torch.Tensor:
        return torch.full((64,), float(number))


class Noisy:
    """Writes down each sample that it encodes; with `dies_at` it is killed there."""

    def __init__(self, folder: Path, dies_at: int | None = None) -> None:
        self.seen, self.dies_at = folder / "seen.txt", dies_at

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        numbers = [int(number) for number in batch[:, 0]]
        with self.seen.open("a") as file:
            file.write("".join(f"{number}\n" for number in numbers))
        if self.dies_at in numbers:
            os.kill(os.getpid(), signal.SIGKILL)
        # As an encoder that samples: resumed, it must give what it would have given.
        return batch + torch.rand_like(batch)

    def numbers(self) -> list[int]:
        found = [int(line) for line in self.seen.read_text().split()] if self.seen.exists() else []
        self.seen.unlink(missing_ok=True)
        return found


def cache(folder: Path, encoder: Any, raw: Dataset[Any] | None = None, **more: Any) -> LatentCache:
    settings = {"batch_size": 4, "shard_bytes": PER_SHARD * 256} | more
    return LatentCache(
        folder / "cache",
        dataset=raw or Raw(),
        encoder=encoder,
        fingerprint=PRINT,
        **settings,
    )


def fill(folder: Path, dies_at: int | None = None) -> None:
    cache(folder, Noisy(folder, dies_at)).fill()


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "cache").rglob("*.safetensors")}


def home(folder: Path) -> Path:
    return folder / "cache" / PRINT.digest


def test_a_killed_fill_goes_on_at_the_first_missing_shard(tmp_path: Path) -> None:
    with pytest.raises(RanksFailed) as failed:
        in_ranks(1, fill, tmp_path, 21)
    assert failed.value.codes == [-signal.SIGKILL]
    assert cache_index.read(home(tmp_path)).missing == [2, 3, 4]
    encoder = Noisy(tmp_path)
    encoder.numbers()
    cache(tmp_path, encoder).fill()
    assert encoder.numbers() == list(range(16, 40))


def test_a_fill_that_was_killed_gives_the_same_bytes_as_one_that_was_not(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for dies_at in (2, 21, 39):
        with contextlib.suppress(RanksFailed):
            in_ranks(1, fill, tmp_path / "a", dies_at)
    fill(tmp_path / "a")
    torch.rand(3)
    fill(tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert len(content(tmp_path / "a")) == 5


def test_what_a_killed_writer_left_half_is_removed(tmp_path: Path) -> None:
    fill(tmp_path)
    half = home(tmp_path) / ".shard-00001.safetensors.abcd1234.part"
    half.write_bytes(b"half")
    fill(tmp_path)
    assert not half.exists()


def fill_and_read(folder: Path) -> list[int]:
    torch.distributed.init_process_group("gloo")
    filled = cache(folder, Noisy(folder)).fill()
    data = filled.dataset()
    assert filled.choice is not None
    return [int(data[number][0]) for number in range(SAMPLES)]


def test_of_four_ranks_one_encodes_and_all_read(tmp_path: Path) -> None:
    assert in_ranks(4, fill_and_read, tmp_path) == [list(range(SAMPLES))] * 4
    # The first batch is encoded once more, to learn what a sample looks like.
    assert Noisy(tmp_path).numbers() == [0, 1, 2, 3, *range(SAMPLES)]


def test_who_waits_says_how_far_the_writer_is_and_takes_its_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    monkeypatch.setattr(cache_fill, "QUIET_S", 0.0)
    fd = lock.try_hold(home(tmp_path) / cache_fill.LOCK)
    assert fd is not None
    word = cache_fill.Choice("mapped", "said by the writer")

    def settle_and_let_go(_: float) -> None:
        cache_fill._leave_word(fd, json.dumps(dataclasses.asdict(word)).encode())
        with contextlib.suppress(OSError):
            os.close(fd)

    monkeypatch.setattr(cache_fill.time, "sleep", settle_and_let_go)
    waited = cache(tmp_path, Noisy(tmp_path)).fill()
    assert waited.choice == word
    assert "waiting for the process that fills" in (said := capsys.readouterr().err)
    assert "5 of 5 shards" in said


@pytest.mark.parametrize("how", ["flipped", "short", "gone"])
def test_a_damaged_shard_is_named_and_encoded_again_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    fill(tmp_path)
    before, encoder = content(tmp_path), Noisy(tmp_path)
    encoder.numbers()
    path = home(tmp_path) / shard_name(3)
    data = bytearray(path.read_bytes())
    data[-1] ^= 128
    # In place, so that size and, but for a tick, time stay as they were.
    path.write_bytes(data if how == "flipped" else data[:-9])
    if how == "gone":
        path.unlink()
    cache(tmp_path, encoder).fill()
    assert encoder.numbers() == list(range(24, 32))
    assert content(tmp_path) == before
    assert f"{path} is damaged" in capsys.readouterr().err


def test_a_flipped_bit_is_found_also_when_an_older_check_was_good(tmp_path: Path) -> None:
    fill(tmp_path)
    fill(tmp_path)
    path = home(tmp_path) / shard_name(0)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))
    encoder = Noisy(tmp_path)
    encoder.numbers()
    cache(tmp_path, encoder).fill()
    assert encoder.numbers() == list(range(8))


@pytest.mark.parametrize("text", [b"{", b"", b"{}"])
def test_a_damaged_index_is_named_and_everything_is_encoded_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes
) -> None:
    fill(tmp_path)
    before = content(tmp_path)
    (home(tmp_path) / cache_index.FILE).write_bytes(text)
    fill(tmp_path)
    assert "all shards are encoded again" in capsys.readouterr().err
    assert content(tmp_path) == before


def test_shards_keep_their_size_when_a_fill_goes_on_with_other_settings(tmp_path: Path) -> None:
    with contextlib.suppress(RanksFailed):
        in_ranks(1, fill, tmp_path, 21)
    filled = cache(tmp_path, Noisy(tmp_path), batch_size=3, shard_bytes=1).fill()
    assert [int(sample[0]) for sample in filled.dataset()] == list(range(SAMPLES))
    assert len(content(tmp_path)) == 5


def test_a_dataset_of_another_length_under_one_fingerprint_is_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(InputError, match="holds 40 samples and the dataset has 41"):
        cache(tmp_path, Noisy(tmp_path), Raw(41)).fill()


def shrinking(batch: torch.Tensor) -> torch.Tensor:
    return batch[:, :32] if batch[0, 0] >= 20 else batch


def test_samples_of_unequal_shapes_are_refused_with_both_shapes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Sample 0: .*\[64\]; sample 20: .*\[32\]"):
        cache(tmp_path, shrinking).fill()


class Ragged(Raw):
    def __getitem__(self, number: int) -> torch.Tensor:
        return torch.zeros(number)


@pytest.mark.parametrize("num_workers", [0, 1])
def test_raw_samples_of_unequal_shapes_are_refused(tmp_path: Path, num_workers: int) -> None:
    with pytest.raises(InputError, match="raw samples cannot be made a batch"):
        cache(tmp_path, Noisy(tmp_path), Ragged(), num_workers=num_workers).fill()


def test_an_encoder_that_raises_leaves_what_is_whole_and_the_lock_free(tmp_path: Path) -> None:
    def fails_later(batch: torch.Tensor) -> torch.Tensor:
        if batch[0, 0] >= 20:
            raise ZeroDivisionError
        return batch

    with pytest.raises(ZeroDivisionError) as failed:
        cache(tmp_path, fails_later, num_workers=1).fill()
    assert failed.tb, "the frames are alive, and so are the workers"
    assert cache_index.read(home(tmp_path)).missing == [2, 3, 4]
    assert not lock.is_held(home(tmp_path) / cache_fill.LOCK)


CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x00020000, 0x4000, 1 << 18


def mount_small(where: str, size: str) -> bool:
    """A tmpfs that only this process and its children see; False where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    return (
        libc.unshare(CLONE_NEWNS) == 0
        and libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
        and libc.mount(b"tmpfs", where.encode(), b"tmpfs", 0, f"size={size}".encode()) == 0
    )


def fill_a_small_disk(folder: Path, mode: str) -> Any:
    disk = folder / "disk"
    disk.mkdir()
    if not mount_small(str(disk), "256k"):
        return None
    filler = disk / "filler"

    class Greedy(Noisy):
        """Somebody else takes the rest of the disk while we fill."""

        def __call__(self, batch: torch.Tensor) -> torch.Tensor:
            if batch[0, 0] == 20 and not filler.exists():
                with contextlib.suppress(OSError), filler.open("wb") as file:
                    file.write(bytes(1 << 20))
            return super().__call__(batch)

    wide = Raw() if mode == "auto" else Raw(4000)
    try:
        choice = cache(disk, Greedy(folder), wide, mode=mode).fill().choice
    except NoRoomError as error:
        missing = (
            cache_index.read(home(disk)).missing if (home(disk) / "index.json").exists() else []
        )
        filler.unlink(missing_ok=True)
        cache(disk, Noisy(folder)).fill()
        return str(error), missing, len(content(disk))
    return choice


def on_small_disk(folder: Path, mode: str) -> Any:
    if sys.platform != "linux":
        pytest.skip("mount namespaces are Linux'")
    [found] = in_ranks(1, fill_a_small_disk, folder, mode)
    if found is None:
        pytest.skip("this user may not mount a file system of its own")
    return found


def test_a_disk_that_gets_full_keeps_what_is_whole_and_says_what_is_needed(tmp_path: Path) -> None:
    said, missing, shards = on_small_disk(tmp_path, "auto")
    assert missing == [2, 3, 4]
    assert "6144 bytes are needed for the 3 of 5 shards" in said
    assert shards == 5, "with room again it went on"


def test_a_disk_without_room_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    said, missing, _ = on_small_disk(tmp_path, "mapped")
    assert "1024000 bytes are needed for the 500 of 500 shards" in said
    assert missing == []


def test_progress_has_rate_and_time_left() -> None:
    line = cache_fill.progress_line("encoding", 1200, 8000, "samples", 3.0)
    assert line == "encoding: 1200 of 8000 samples, 400/s, 17 s left"
    assert cache_fill.progress_line("encoding", 0, 8000, "samples", 3.0) == (
        "encoding: 0 of 8000 samples"
    )


def test_nothing_is_said_before_the_quiet_time_is_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.9, 2.1, 3.0, 5.2])
    monkeypatch.setattr(cache_fill.time, "monotonic", lambda: next(clock))
    ticker = cache_fill.Ticker()
    for done in (1, 2, 3, 4):
        ticker.tick("checking", done, 10, "shards")
    said = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in said] == [
        "boxcar: checking: 2 of 10 shards",
        "boxcar: checking: 4 of 10 shards",
    ]


def test_a_word_that_was_cut_or_that_nobody_waited_for_does_not_count(tmp_path: Path) -> None:
    fill(tmp_path)
    path, word = home(tmp_path) / cache_fill.LOCK, cache_fill.Choice("mapped", "said before")
    path.write_text(json.dumps(dataclasses.asdict(word)))
    assert cache(tmp_path, Noisy(tmp_path)).fill().choice != word
    fd = os.open(path, os.O_RDWR)
    cache_fill._leave_word(fd, b'{"mode": "mapped", "rea')
    assert cache_fill._word_of_another(fd) is None
    os.close(fd)
