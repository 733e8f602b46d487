from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks_at_work import free_port, run_ranks
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset

from boxcar.shared.errors import InputError
from boxcar.training.cache.latent_cache import Fingerprint, LatentCache
from boxcar.training.data.loader import RankAwareDataLoader
from boxcar.training.ranks import ranks

torch.set_num_threads(1)
MIB = 1 << 20


@pytest.fixture(autouse=True)
def out(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("out")
    monkeypatch.setenv("BOXCAR_OUT", str(folder))
    return folder


class Raw(Dataset[Any]):
    def __len__(self) -> int:
        return 30

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return torch.full((8,), float(number)), number


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(8, 8, bias=False), nn.Dropout(0.5)
        self.drop.eval()
        nn.init.eye_(self.linear.weight)

    def forward(self, batch: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        assert not self.training and not torch.is_grad_enabled()
        return {"z": self.drop(self.linear(batch[0])), "y": batch[1]}


def cache(folder: Path, encoder: Any = None, raw: Any = None, **more: Any) -> LatentCache:
    encoder = encoder or Encoder()
    return LatentCache(
        folder / "cache",
        dataset=Raw() if raw is None else raw,
        encoder=encoder,
        fingerprint=Fingerprint(encoder="e", transform="t", data="d"),
        **({"batch_size": 4, "shard_bytes": 400} | more),
    )


def plain(samples: Any) -> list[tuple[list[float], int]]:
    return [(sample["z"].tolist(), int(sample["y"])) for sample in samples]


EXPECTED = [([float(number)] * 8, number) for number in range(30)]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("mode", ["auto", "preloaded", "on-the-fly"])
def test_each_mode_gives_the_same_samples(tmp_path: Path, mode: str, num_workers: int) -> None:
    filled = cache(tmp_path, mode=mode, num_workers=num_workers).fill()
    data: Any = filled.dataset()
    assert plain(data) == EXPECTED
    assert plain(data.__getitems__([29, 3, 3, -1])) == [EXPECTED[n] for n in (29, 3, 3, 29)]
    with pytest.raises(IndexError):
        data[30]
    assert filled.choice is not None
    assert filled.choice.mode == ("mapped" if mode == "auto" else mode)
    assert any((tmp_path / "cache").rglob("*.safetensors")) == (mode != "on-the-fly")


def test_the_choice_is_printed_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache(tmp_path).fill()
    said = capsys.readouterr().err
    assert "mapped: 1.2 kB in the page cache once, for all ranks" in said


def test_the_manifest_of_the_training_has_every_cache(tmp_path: Path, out: Path) -> None:
    first = cache(tmp_path).fill()
    second = LatentCache(
        tmp_path / "cache",
        dataset=Raw(),
        encoder=Encoder(),
        fingerprint=Fingerprint(encoder="e", transform="t", data="other"),
        batch_size=4,
        mode="on-the-fly",
    ).fill()
    facts = json.loads((out / "training.json").read_text())["cache"]
    assert facts[first.folder.name]["mode"] == "mapped"
    assert facts[first.folder.name]["fingerprint"]["data"] == "d"
    assert facts[second.folder.name]["mode"] == "on-the-fly"


def test_filling_leaves_the_encoder_and_the_random_numbers_as_they_were(tmp_path: Path) -> None:
    encoder = Encoder()
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    for mode in ("mapped", "on-the-fly"):
        cache(tmp_path, encoder, mode=mode).fill().dataset()[0]
    assert torch.equal(torch.random.get_rng_state(), before)
    assert (encoder.training, encoder.linear.training, encoder.drop.training) == (True, True, False)
    assert torch.is_grad_enabled()


def test_a_method_of_a_module_finds_it_in_eval_mode(tmp_path: Path) -> None:
    encoder = Encoder()
    cache(tmp_path, encoder.forward).fill()
    assert encoder.training


def test_a_spawned_worker_maps_the_files_itself(tmp_path: Path) -> None:
    for mode in ("mapped", "preloaded"):
        data = cache(tmp_path, mode=mode).fill().dataset()
        assert plain(data)[7] == EXPECTED[7]
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.apply(plain, (data,)) == EXPECTED


class Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(3))


class DistributedDataParallel(nn.Module):
    """By its name; the real one needs a process group."""


class Nothing(Raw):
    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"raw": Stream()}, "samples by number"),
        ({"raw": Nothing()}, "no samples"),
        ({"batch_size": 0}, "batch_size"),
        ({"shard_bytes": 0}, "shard_bytes"),
        ({"mode": "fast"}, "mode"),
        ({"folder": Path("/dev/shm/x")}, "shared memory"),
        ({"encoder": nn.Sequential(DistributedDataParallel())}, "pass the unwrapped module"),
    ],
)
def test_what_cannot_be_cached_is_refused_before_anything_is_done(
    tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        cache(**({"folder": tmp_path} | wrong))
    assert not any(tmp_path.iterdir())


def test_a_dataset_before_fill_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fill\(\) has not been called"):
        cache(tmp_path).dataset()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_encoder_works_on_the_gpu_and_the_latents_come_to_the_cpu(tmp_path: Path) -> None:
    encoder = Encoder()
    data = cache(tmp_path, encoder).fill().dataset()
    assert plain(data) == EXPECTED
    assert data[0]["z"].device.type == "cpu"
    assert encoder.linear.weight.device.type == "cpu", "it is put back where it was"
    fly = cache(tmp_path, encoder, mode="on-the-fly").fill().dataset()
    assert plain(fly) == EXPECTED
    with pytest.raises(InputError, match="num_workers=0"):
        next(iter(DataLoader(fly, batch_size=2, num_workers=1)))


# --- two tasks, two ranks, six workers, and a /dev/shm that is smaller than the cache

SHM_MIB, SAMPLES, TASKS = 64, 100, ("advection1d", "darcy2d")
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x00020000, 0x4000, 1 << 18


class Field(Dataset[Any]):
    """A task whose samples are one MiB."""

    def __init__(self, task: int) -> None:
        self.task = task

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, number: int) -> torch.Tensor:
        return torch.full((16, 128, 128), float(self.task * SAMPLES + number))


def identity(batch: torch.Tensor) -> torch.Tensor:
    return batch


def boxcars_way(folder: Path) -> ConcatDataset[Any]:
    return ConcatDataset(
        LatentCache(
            folder,
            dataset=Field(number),
            encoder=identity,
            fingerprint=Fingerprint(encoder="identity", transform="none", data=task),
            batch_size=10,
            num_workers=2,
            shard_bytes=32 * MIB,
        )
        .fill()
        .dataset()
        for number, task in enumerate(TASKS)
    )


class Shared(Dataset[Any]):
    """The way that failed: everything is preloaded into shared memory."""

    def __init__(self, task: int) -> None:
        self.samples = [
            sample.share_memory_() for sample in map(Field(task).__getitem__, range(SAMPLES))
        ]

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, number: int) -> torch.Tensor:
        return self.samples[number]


def the_way_that_failed(folder: Path) -> ConcatDataset[Any]:
    return ConcatDataset([Shared(number) for number in range(len(TASKS))])


def train(rank: int, port: int, dataset_of: Callable[[Path], Dataset[Any]], folder: Path) -> None:
    """One rank: what it saw goes to a file, what went wrong to another."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"BOXCAR_OUT": str(folder)}
    os.environ |= {"LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    try:
        ranks.join()
        data = dataset_of(folder / "cache")
        loader = RankAwareDataLoader(data, batch_size=5, num_workers=6)
        seen = [
            float(v) for batch in loader for v in (batch.amin((1, 2, 3)) + batch[:, -1, -1, -1])
        ]
        (folder / f"seen_{rank}").write_text(" ".join(str(value / 2) for value in seen))
    except BaseException as error:
        (folder / f"failed_{rank}").write_text(f"{type(error).__name__}: {error}")
        os._exit(1)
    os._exit(0)


def train_in_a_small_shm(dataset_of: Callable[[Path], Dataset[Any]], folder: Path) -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    size = f"size={SHM_MIB}m".encode()
    is_allowed = (
        libc.unshare(CLONE_NEWNS) == 0
        and libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
        and libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, size) == 0
    )
    if not is_allowed:
        return None
    context, port = multiprocessing.get_context("fork"), free_port()
    both = [context.Process(target=train, args=(rank, port, dataset_of, folder)) for rank in (0, 1)]
    for one in both:
        one.start()
    peak_bytes = 0
    while any(one.is_alive() for one in both):
        disk = os.statvfs("/dev/shm")
        peak_bytes = max(peak_bytes, (disk.f_blocks - disk.f_bfree) * disk.f_frsize)
        # One that died would leave the other waiting for it.
        if any(one.exitcode for one in both):
            for one in both:
                one.terminate()
        time.sleep(0.002)
    return [one.exitcode for one in both], peak_bytes


def in_a_small_shm(dataset_of: Callable[[Path], Dataset[Any]], folder: Path) -> Any:
    if sys.platform != "linux":
        pytest.skip("mount namespaces are Linux'")
    [found] = run_ranks(1, train_in_a_small_shm, dataset_of, folder)
    if found is None:
        pytest.skip("this user may not mount a /dev/shm of its own")
    return found


@pytest.mark.faults
def test_two_tasks_two_ranks_and_six_workers_train_beside_a_small_dev_shm(tmp_path: Path) -> None:
    codes, peak_bytes = in_a_small_shm(boxcars_way, tmp_path)
    assert codes == [0, 0], [path.read_text() for path in tmp_path.glob("failed_*")]
    seen = [float(v) for rank in (0, 1) for v in (tmp_path / f"seen_{rank}").read_text().split()]
    assert sorted(seen) == list(range(len(TASKS) * SAMPLES)), "each sample once"
    size_bytes = sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*.safetensors"))
    assert size_bytes > 3 * SHM_MIB * MIB
    assert peak_bytes < 16 * MIB


def test_the_same_training_dies_where_the_cache_is_put_in_shared_memory(tmp_path: Path) -> None:
    codes, _ = in_a_small_shm(the_way_that_failed, tmp_path)
    said = " ".join(path.read_text() for path in tmp_path.glob("failed_*"))
    # torch 2.11 with Python 3.12 says so before it writes: Resource temporarily unavailable (11).
    in_words = ("No space left on device", "unable to allocate shared memory")
    assert -signal.SIGBUS in codes or any(words in said for words in in_words)
