from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from ranks_at_work import run_ranks
from torch import nn

from boxcar.shared.errors import DamagedError, InputError
from boxcar.training.cache import cache_index
from boxcar.training.cache.cache_index import Fingerprint, Index, ShardRecord, TensorSpec

PRINT = Fingerprint(encoder="e", transform="t", data="d")


def index(samples: int = 10) -> Index:
    return Index(
        fingerprint=PRINT,
        samples=samples,
        samples_per_shard=4,
        structure="tensor",
        sample_bytes=12,
        tensors=(TensorSpec("value", "float32", (3,)),),
    )


def record(number: int, samples: int = 4) -> ShardRecord:
    return ShardRecord(number, samples, 100, "f" * 64)


def written(folder: Path, value: Index) -> Path:
    home = folder / value.fingerprint.digest
    home.mkdir()
    cache_index.write(home, value)
    return home


def test_an_index_comes_back_as_it_was_written(tmp_path: Path) -> None:
    full = index().having(record(1)).having(record(0)).having(record(2, samples=2))
    home = written(tmp_path, full)
    assert cache_index.read(home) == full
    assert [shard.number for shard in full.shards] == [0, 1, 2]
    assert json.loads((home / "index.json").read_text())["format"] == "boxcar.latent-cache/1"


def test_an_index_says_which_shards_are_missing_and_what_they_weigh() -> None:
    some = index().having(record(1))
    assert (some.shard_count, some.missing, some.missing_bytes) == (3, [0, 2], 6 * 12)
    assert some.lacking([1]).missing == [0, 1, 2]
    assert list(some.span(2)) == [8, 9]


@pytest.mark.parametrize(
    "change",
    [
        {"samples_per_shard": 0},
        {"shards": [{"number": 9, "samples": 4, "size_bytes": 1, "sha256": "x"}]},
        {"shards": [{"number": 0, "samples": 3, "size_bytes": 1, "sha256": "x"}]},
        {"samples": "10"},
        {"fingerprint": {"encoder": "other", "transform": "t", "data": "d"}},
    ],
)
def test_an_index_that_contradicts_itself_is_damaged(tmp_path: Path, change: dict) -> None:
    home = written(tmp_path, index().having(record(0)))
    path = home / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DamagedError, match=r"index\.json"):
        cache_index.read(home)


def test_half_an_index_is_damaged(tmp_path: Path) -> None:
    home = written(tmp_path, index())
    path = home / "index.json"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DamagedError):
        cache_index.read(home)


def encoder(seed: int = 0, stride: int = 1, kind: type[nn.Module] = nn.ReLU) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 4, 3, stride=stride), kind(), nn.BatchNorm2d(4))


def of(module: nn.Module) -> str:
    return Fingerprint.of(encoder=module, transform="t", data="d").encoder


def test_the_fingerprint_of_an_encoder_is_its_weights_classes_and_settings() -> None:
    base = of(encoder())
    assert of(encoder()) == base
    assert of(encoder(stride=2)) != base, "the weights are the same, the latents are not"
    assert of(encoder(kind=nn.GELU)) != base
    one_bit = encoder()
    with torch.no_grad():
        one_bit[0].bias.view(torch.int32)[0] ^= 1
    assert of(one_bit) != base
    half = encoder().half()
    assert of(half) != base


class Compiled(nn.Module):
    """As torch.compile wraps; the real one takes seconds to import."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._orig_mod = module


def fingerprint_elsewhere() -> str:
    return of(encoder(kind=Odd))


class Odd(nn.ReLU):
    def extra_repr(self) -> str:
        return f"{object()}"


def test_the_fingerprint_is_the_same_in_another_process_and_under_compile() -> None:
    assert run_ranks(1, fingerprint_elsewhere) == [fingerprint_elsewhere()]
    assert of(Compiled(encoder())) == of(encoder())


def test_the_fingerprint_of_files_is_their_names_and_bytes_wherever_they_lie(
    tmp_path: Path,
) -> None:
    for place in ("a", "b"):
        (tmp_path / place / "inner").mkdir(parents=True)
        (tmp_path / place / "inner/train.h5").write_bytes(b"1")
        (tmp_path / place / "val.h5").write_bytes(b"2")

    def of_files(data: object) -> str:
        return Fingerprint.of(encoder="e", transform="t", data=data).data

    base = of_files(tmp_path / "a")
    assert of_files(tmp_path / "b") == base
    assert of_files([tmp_path / "a/val.h5"]) == of_files(tmp_path / "b/val.h5") != base
    (tmp_path / "b/inner/train.h5").write_bytes(b"3")
    assert of_files(tmp_path / "b") != base
    with pytest.raises(InputError, match="no such file"):
        of_files(tmp_path / "gone.h5")


def test_parameters_of_a_transform_count_in_any_order_and_code_is_refused() -> None:
    def of_transform(value: object) -> str:
        return Fingerprint.of(encoder="e", transform=value, data="d").transform

    assert of_transform({"size": 64, "crop": [1, 2]}) == of_transform({"crop": [1, 2], "size": 64})
    assert of_transform({"size": 64}) != of_transform({"size": 65})
    with pytest.raises(InputError, match="source or a version"):
        of_transform(lambda x: x)


@pytest.mark.parametrize("part", ["encoder", "transform", "data"])
def test_an_empty_part_is_no_fingerprint(part: str) -> None:
    with pytest.raises(InputError, match=f"fingerprint's {part}"):
        _ = dataclasses.replace(PRINT, **{part: " "}).digest


def test_each_part_gives_another_folder() -> None:
    others = [dataclasses.replace(PRINT, **{p: "x"}) for p in ("encoder", "transform", "data")]
    assert len({PRINT.digest, *(other.digest for other in others)}) == 4
