from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks_at_work import run_ranks

from boxcar.training.checkpoint import dcp_files
from boxcar.training.checkpoint.archive_sum import ArchiveSum
from boxcar.training.ranks import ranks


def save(folder: Path, publish: Any) -> None:
    state = {"all": torch.ones(3), f"of {ranks.current().rank}": torch.ones(2), "step": 7}
    dcp.save(state, storage_writer=dcp_files.Writer(folder, publish))


def publish_and_tell(folder: Path) -> list[list[Any]]:
    ranks.join()
    published: list[Any] = []
    save(folder, published.append)
    # Whoever is told that all went well is told after it was published.
    held = [None, None]
    dist.all_gather_object(held, len(published))
    ranks.leave()
    return [[tuple(one) for of in published for one in of], held]


def test_rank_0_publishes_what_all_ranks_wrote_with_sizes_and_checksums(tmp_path: Path) -> None:
    (published, held), (others, _) = run_ranks(2, publish_and_tell, tmp_path)
    assert (held, others) == ([1, 0], [])
    assert sorted(published) == sorted(
        (path.name, path.stat().st_size, zlib.crc32(path.read_bytes()))
        for path in tmp_path.iterdir()
    )
    assert [name for name, _, _ in published] == ["__0_0.distcp", "__1_0.distcp", ".metadata"]
    # What is sent between ranks only stays out of what is kept.
    assert b"boxcar" not in (tmp_path / ".metadata").read_bytes()


def test_a_file_of_which_torch_told_no_sum_is_read_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ArchiveSum, "crc32", None)
    published: list[Any] = []
    save(tmp_path, published.extend)
    assert len(published) == len(list(tmp_path.iterdir()))
    for name, _, crc32 in published:
        assert crc32 == zlib.crc32((tmp_path / name).read_bytes())


def test_what_cannot_be_published_is_raised(tmp_path: Path) -> None:
    def publish(_: Any) -> None:
        raise OSError(5, "Input/output error")

    with pytest.raises(dcp.api.CheckpointException, match="Input/output error"):
        save(tmp_path, publish)
