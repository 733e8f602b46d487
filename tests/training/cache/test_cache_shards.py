from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError, InputError
from boxcar.training.cache.cache_index import (
    Fingerprint,
    Index,
    ShardReader,
    ShardRecord,
    problem_of,
    rows_of,
    sample_bytes,
    shard_name,
    specs_of,
    take_apart,
    to_bytes,
)

torch.set_num_threads(1)
PRINT = Fingerprint(encoder="e", transform="t", data="d")


def cache(folder: Path, batch: object, samples: int, per_shard: int) -> Index:
    """A whole cache of one batch."""
    structure, tensors = take_apart(batch, samples)
    index = Index(PRINT, samples, per_shard, structure, sample_bytes(tensors), specs_of(tensors))
    for number in range(index.shard_count):
        rows = index.span(number)
        part = {name: value[rows.start : rows.stop] for name, value in tensors.items()}
        data = to_bytes(part)
        (folder / shard_name(number)).write_bytes(data)
        index = index.having(ShardRecord(number, len(rows), len(data), digest.of_bytes(data)))
    return index


@pytest.mark.parametrize(
    "batch",
    [
        torch.arange(6.0).reshape(3, 2),
        (torch.arange(3), torch.rand(3, 4).bfloat16()),
        [torch.tensor([True, False, True])],
        {"z": torch.rand(3, 1, 2), "a": torch.arange(3, dtype=torch.uint8)},
    ],
    ids=["tensor", "tuple", "list", "dict"],
)
def test_samples_come_back_in_the_structure_that_the_encoder_gave(
    tmp_path: Path, batch: object
) -> None:
    reader = ShardReader(tmp_path, cache(tmp_path, batch, samples=3, per_shard=2))
    for number, sample in zip([2, 0], reader.samples([2, 0]), strict=True):
        structure, tensors = take_apart(batch, 3)
        [expected] = rows_of(structure, list(tensors), [[v[number]] for v in tensors.values()])
        assert type(sample) is type(batch)
        assert take_apart_sample(sample) == take_apart_sample(expected)


def take_apart_sample(sample: object) -> object:
    if isinstance(sample, torch.Tensor):
        return sample.dtype, sample.tolist()
    if isinstance(sample, dict):
        return [(name, take_apart_sample(value)) for name, value in sample.items()]
    return [take_apart_sample(value) for value in sample]


def test_any_order_over_many_shards_is_given_as_asked(tmp_path: Path) -> None:
    values = torch.arange(50)
    reader = ShardReader(tmp_path, cache(tmp_path, (values, values * 2), 50, per_shard=7))
    asked = [49, 0, 13, 13, 48, 7, 6, 20]
    assert [int(one) for one, _ in reader.samples(asked)] == asked
    assert [int(two) for _, two in reader.samples(asked)] == [2 * number for number in asked]
    assert [int(reader.sample(number)[1]) for number in asked] == [2 * number for number in asked]
    assert reader.samples([]) == []


@pytest.mark.parametrize("asked", [[1, 2], [1, 9]], ids=["one shard", "two shards"])
def test_a_sample_that_is_changed_in_place_is_not_changed_in_the_cache(
    tmp_path: Path, asked: list[int]
) -> None:
    reader = ShardReader(tmp_path, cache(tmp_path, torch.ones(10, 3), 10, per_shard=5))
    for sample in reader.samples(asked):
        sample.mul_(7)
    reader.sample(asked[0]).mul_(7)
    assert all(sample.sum() == 3 for sample in reader.samples(asked))


@pytest.mark.parametrize(
    "batch",
    [None, torch.zeros(4, 2), torch.tensor(1.0), (torch.zeros(3), 5), {}, {3: torch.zeros(3)}],
)
def test_what_is_not_tensors_of_the_batch_is_refused(batch: object) -> None:
    with pytest.raises(InputError, match="each with 3 samples"):
        take_apart(batch, 3)


def test_a_dtype_that_the_format_does_not_know_is_refused() -> None:
    with pytest.raises(InputError, match="complex128"):
        to_bytes({"z": torch.zeros(2, dtype=torch.complex128)})


def memory_of(word: str, path: str) -> int:
    """Bytes of one kind in the maps of a file, from /proc/self/smaps."""
    total, is_ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            is_ours = path in line
        elif is_ours and line.startswith(f"{word}:"):
            total += int(line.split()[1]) * 1024
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux' /proc")
def test_reading_all_of_it_takes_pages_of_the_file_and_none_of_our_own(tmp_path: Path) -> None:
    size_bytes = 8 << 20
    index = cache(tmp_path, torch.ones(8, size_bytes // 32), 8, per_shard=4)
    reader = ShardReader(tmp_path, index)
    for number in range(8):
        reader.samples([number])
    assert memory_of("Rss", str(tmp_path)) >= size_bytes
    assert memory_of("Anonymous", str(tmp_path)) == 0
    preloaded = ShardReader(tmp_path, index, is_preloaded=True)
    del reader
    assert memory_of("Rss", str(tmp_path)) == 0, "the maps are given back"
    assert preloaded.samples([5])[0].sum() == size_bytes // 32


@pytest.mark.parametrize("is_preloaded", [False, True])
def test_no_tensor_travels_with_a_reader_to_a_worker(tmp_path: Path, is_preloaded: bool) -> None:
    index = cache(tmp_path, torch.arange(1000.0), 1000, per_shard=100)
    reader = ShardReader(tmp_path, index, is_preloaded=is_preloaded)
    assert len(reader.samples(list(range(1000)))) == 1000
    data = pickle.dumps(reader)
    assert b"torch" not in data
    assert pickle.loads(data).samples([999])[0] == 999


def damaged(folder: Path, how: str) -> None:
    path = folder / shard_name(1)
    data = bytearray(path.read_bytes())
    if how == "flipped":
        data[-3] ^= 4
    elif how == "short":
        data = data[:-1]
    path.unlink()
    if how != "gone":
        path.write_bytes(data)


@pytest.mark.parametrize(
    ("how", "said"), [("flipped", "SHA-256"), ("short", "bytes instead of"), ("gone", "not there")]
)
def test_a_damaged_shard_is_told_from_a_whole_one(tmp_path: Path, how: str, said: str) -> None:
    index = cache(tmp_path, torch.rand(10, 3), 10, per_shard=5)
    assert [problem_of(tmp_path, shard) for shard in index.shards] == ["", ""]
    damaged(tmp_path, how)
    assert problem_of(tmp_path, index.shards[0]) == ""
    assert said in problem_of(tmp_path, index.shards[1])


@pytest.mark.parametrize("how", ["short", "gone", "other"])
def test_a_shard_that_went_while_training_is_named(tmp_path: Path, how: str) -> None:
    index = cache(tmp_path, torch.rand(10, 3), 10, per_shard=5)
    damaged(tmp_path, how)
    if how == "other":
        (tmp_path / shard_name(1)).write_bytes(to_bytes({"value": torch.rand(4, 3)}))
    reader = ShardReader(tmp_path, index)
    assert len(reader.samples([4])) == 1
    with pytest.raises(DamagedError, match=shard_name(1)):
        reader.samples([5])
