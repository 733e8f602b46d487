"""What a question of the laptop says, checked field by field before it becomes a path or a word.

Every method raises InputError with the field's name; a value is shown only where it is a name.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxcar.shared import names, paths
from boxcar.shared.errors import InputError
from boxcar.shared.files.queue_line import CELL_NAME, LONGEST_NAME_BYTES
from boxcar.shared.paths import DurablePaths, ScratchPaths


@dataclass(frozen=True)
class Request:
    words: dict[str, Any]

    @property
    def run(self) -> str:
        return self._named("run", names.RUN)

    @property
    def tier(self) -> DurablePaths:
        return DurablePaths(self.path("durable_dir"), self.run)

    @property
    def scratch(self) -> ScratchPaths:
        return ScratchPaths(self.path("data_dir"), self.run)

    @property
    def queue(self) -> str:
        return self._named("queue", names.PLACE)

    @property
    def queues(self) -> list[str]:
        found = self.value("queues", list)
        return [Request({"queue": name}).queue for name in found]

    @property
    def cell(self) -> str:
        name = self._named("cell", CELL_NAME)
        if len(name.encode()) > LONGEST_NAME_BYTES or name.endswith("."):
            raise InputError(f"cell: expected the name of a cell, found {name!r}")
        return name

    @property
    def digest(self) -> str:
        return self._named("digest", names.DIGEST)

    def path(self, name: str) -> Path:
        """A path of this box, as the plan spells it. Raises DamagedError where it is none."""
        return paths.on_box(self.text(name))

    def data(self, name: str) -> bytes:
        try:
            return base64.b64decode(self.text(name), validate=True)
        except ValueError:
            raise InputError(f"{name}: expected base64") from None

    def text(self, name: str) -> str:
        return str(self.value(name, str))

    def count(self, name: str) -> int:
        number = int(self.value(name, int))
        if number < 0:
            raise InputError(f"{name}: expected 0 or more, found {number}")
        return number

    def value(self, name: str, kind: type) -> Any:
        found = self.words.get(name)
        # `type(...) is`, because True would pass as an int.
        if type(found) is not kind:
            raise InputError(f"{name}: expected {kind.__name__}, found {type(found).__name__}")
        return found

    def _named(self, name: str, rule: re.Pattern[str]) -> str:
        text = self.text(name)
        if not rule.fullmatch(text):
            raise InputError(f"{name}: {text!r} is no such name; expected {rule.pattern}")
        return text


def prefix(value: Any, name: str) -> tuple[int, str]:
    """The size in bytes and the SHA-256 of what the laptop has of a file."""
    match value:
        case [int(size_bytes), str(sha256)] if size_bytes >= 0 and names.DIGEST.fullmatch(sha256):
            return size_bytes, sha256
    raise InputError(f"{name}: expected a size in bytes and a SHA-256")
