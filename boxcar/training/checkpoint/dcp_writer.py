"""DCP's writer, whose files are on the disk when it ends, and which knows their checksums by then.

What each rank wrote goes to rank 0 with what DCP itself sends there, and the checkpoint gets its
name before DCP tells the ranks that all went well: no message more than DCP needs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.filesystem import FileSystem
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from boxcar.shared.disk import digest
from boxcar.training.checkpoint import checkpoint_file
from boxcar.training.checkpoint.archive_sum import ArchiveSum


class Written(NamedTuple):
    """A file of the checkpoint."""

    name: str
    size_bytes: int
    crc32: int


class Writer(FileSystemWriter):
    """Calls `publish` with all files on rank 0, when all of them are on the disk."""

    def __init__(self, folder: Path, publish: Callable[[list[Written]], None]) -> None:
        # No copying ahead: in the thread it would open a CUDA context on GPU 0.
        super().__init__(folder, per_thread_copy_ahead=0, sync_files=False)
        self._folder, self._publish = folder, publish
        self.fs = self._files = _Files()

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        results = super().write_data(plan, planner).wait()
        ended: Future[list[WriteResult]] = Future()
        ended.set_result([*results, *map(_as_result, self._files.written)])
        return ended

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        files = [one.storage_data for of_rank in results for one in of_rank if _is_file(one)]
        known = len(self._files.written)
        of_dcp = [[one for one in of_rank if not _is_file(one)] for of_rank in results]
        super().finish(metadata, of_dcp)
        # Written under another name first.
        [index] = self._files.written[known:]
        self._publish([*files, index._replace(name=".metadata")])


class _Files(FileSystem):
    def __init__(self) -> None:
        self.written: list[Written] = []

    @contextlib.contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        archive = ArchiveSum()
        with checkpoint_file.create_torch_file(path, archive.add) as file:
            yield file
        crc32 = digest.crc32_of_file(Path(path)) if archive.crc32 is None else archive.crc32
        self.written.append(Written(Path(path).name, file.size_bytes, crc32))


def _as_result(written: Written) -> WriteResult:
    return WriteResult(MetadataIndex(written.name), written.size_bytes, written)


def _is_file(result: WriteResult) -> bool:
    return isinstance(result.storage_data, Written)
