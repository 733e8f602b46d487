"""What a look saw of one checkpoint, and whether that is all of it, as far as one look tells.

Whole is a file that is not empty and, where it is a zip as torch.save writes it, has its end. Whole
is a folder with its index, or one that was unchanged for a minute; shards always need their index.
"""

from __future__ import annotations

import re
from pathlib import Path

from boxcar.shared.artifacts.file_kinds import SHARD_SUFFIX, SHARDED_INDEX
from boxcar.shared.record import dataclass

# Without an index nothing says that a folder is complete, but that nobody writes into it any more.
UNCHANGED_S = 60.0
# What a sharded model and the transformers' Trainer write last.
_INDEX = re.compile(r"trainer_state\.json|.+\.index\.json")


@dataclass(frozen=True)
class SeenFile:
    """One file of a checkpoint. What was replaced has another inode, what was changed a time."""

    name: str
    size_bytes: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True)
class Seen:
    """What lay there at one look; after any change it is unequal.

    `name` is below {out}, `path` where its links end. A file is the only one of its `files`.
    `opens`: it is read without an error, and a zip has its end.
    """

    name: str
    path: Path
    files: tuple[SeenFile, ...]
    is_folder: bool = False
    opens: bool = True

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def mtime_ns(self) -> int:
        return max((file.mtime_ns for file in self.files), default=0)

    def is_whole(self, at_ns: int) -> bool:
        """As far as one look tells; `at_ns` is its time, as files have it."""
        if not self.size_bytes:
            return False
        if not self.is_folder:
            return self.opens
        if any(not self._is_vouched_for(shard) for shard in self._shards):
            return False
        # What is of a time ahead was written before the clock was set back.
        return self._is_indexed or abs(at_ns - self.mtime_ns) >= UNCHANGED_S * 1e9

    @property
    def _shards(self) -> list[SeenFile]:
        return [file for file in self.files if file.name.endswith(SHARD_SUFFIX)]

    def _is_vouched_for(self, shard: SeenFile) -> bool:
        """DCP writes the index last: a shard that is newer belongs to a save that goes on."""
        index = f"{shard.name.rpartition('/')[0]}/{SHARDED_INDEX}".removeprefix("/")
        return any(
            file.name == index and file.size_bytes and file.mtime_ns >= shard.mtime_ns
            for file in self.files
        )

    @property
    def _is_indexed(self) -> bool:
        """Whether an index is there that is as new as what it stands for."""
        if any(file.name == SHARDED_INDEX for file in self.files):
            # What others write beside the shards says nothing of them.
            return bool(self._shards)
        others = [file.mtime_ns for file in self.files if not _INDEX.fullmatch(file.name)]
        index = [
            file.mtime_ns for file in self.files if _INDEX.fullmatch(file.name) and file.size_bytes
        ]
        return bool(others and index) and max(index) >= max(others)
