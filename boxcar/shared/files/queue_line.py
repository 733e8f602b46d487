"""The queue file: one cell a line, `<cfg> <task> [epochs]`, written by people.

Complete lines only (a line without its line feed is still being typed). Blank lines and lines that
begin with `#` do not count; a cell that never ran is dropped by a `#` before its line. CRLF and a
byte order mark are taken as what they mean. A field with spaces stands in quotes, as in a shell;
nothing ever passes a shell.

A config's path is spelled here, once: whoever asks whether two paths are one config compares what
`config_path` makes of them. The file is opened under the name that it is stored by, `stored_names`.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from boxcar.shared.message import counted

LONGEST_LINE_BYTES = 4096
LONGEST_NAME_BYTES = 200  # 255 is the most that a disk takes, and endings come after it
_MARK = b"\xef\xbb\xbf"
LARGEST_FILE_BYTES = 8 * 1024 * 1024
# A cell's name becomes a folder on three machines, a claim, a log and a webhook field.
CELL_NAME = re.compile(r"[^\W_][\w.+=@,-]{0,99}")


@dataclass(frozen=True)
class CellLine:
    """One cell as it stands in a queue. `index` counts complete, non-comment lines from 0.

    `cfg` is spelled by `config_path`.
    """

    index: int
    number: int  # the line of the file, from 1, for messages
    name: str
    cfg: str
    task: str
    epochs: int | None


@dataclass(frozen=True)
class BadLine:
    """A complete, non-comment line that is no cell. It keeps its index; it is never run."""

    index: int
    number: int
    reason: str


@dataclass(frozen=True)
class Queue:
    """What a queue file says. `unfinished` is a last line that has no line feed yet, or ''."""

    lines: tuple[CellLine | BadLine, ...]
    unfinished: str = ""

    @property
    def cells(self) -> list[CellLine]:
        return [line for line in self.lines if isinstance(line, CellLine)]

    @property
    def bad(self) -> list[BadLine]:
        return [line for line in self.lines if isinstance(line, BadLine)]


def parse(data: bytes) -> Queue:
    """Read a queue file's bytes. Never raises: what is wrong with a line stands in its BadLine."""
    text = normalise(data[:LARGEST_FILE_BYTES])
    complete, _, rest = text.rpartition(b"\n")
    lines: list[CellLine | BadLine] = []
    first_use: dict[str, int] = {}
    for number, raw in enumerate(complete.split(b"\n"), start=1):
        if raw.strip() and not _is_comment(raw):
            lines.append(_parse_line(raw, len(lines), number, first_use))
    if len(data) > LARGEST_FILE_BYTES:
        reason = f"the queue file is larger than {LARGEST_FILE_BYTES} bytes; the rest is not read"
        lines.append(BadLine(len(lines), text.count(b"\n") + 1, reason))
    return Queue(tuple(lines), rest[:LONGEST_LINE_BYTES].decode("utf-8", "replace").strip())


def commented_out(data: bytes) -> tuple[CellLine, ...]:
    """The lines that would be cells without the `#` before them. Their index is -1.

    A remark may read like one: only who knows the cell from elsewhere can tell.
    """
    complete = normalise(data[:LARGEST_FILE_BYTES]).rpartition(b"\n")[0]
    found = (
        _parse_line(_uncommented(raw), -1, number, {})
        for number, raw in enumerate(complete.split(b"\n"), start=1)
        if _is_comment(raw) and _may_be_a_cell(raw)
    )
    return tuple(line for line in found if isinstance(line, CellLine))


def is_commented_out(before: bytes, after: bytes) -> bool:
    """Whether `after` has all lines of `before`, some of them with a `#`, and maybe more below.

    Both as `normalise` makes them, and complete.
    """
    old, new = before.split(b"\n")[:-1], after.split(b"\n")[:-1]
    return len(old) <= len(new) and all(
        then == now or (_is_comment(now) and _uncommented(now) == then.strip())
        for then, now in zip(old, new, strict=False)
    )


def normalise(data: bytes) -> bytes:
    """Without byte order mark, with LF line ends: how a queue stands on the durable tier."""
    # All of them, in one pass: a file that went through two editors has two marks.
    start = 0
    while data.startswith(_MARK, start):
        start += len(_MARK)
    *lines, rest = data[start:].split(b"\n")
    return b"".join(line.rstrip(b"\r") + b"\n" for line in lines) + rest


def nfc(text: str) -> str:
    """A Mac may store `ü` as two characters: one form for all that is compared."""
    return unicodedata.normalize("NFC", text)


def config_path(text: str) -> str:
    """The one spelling of a config's path: in NFC, without `.` and without empty parts."""
    return "/".join(part for part in nfc(text).split("/") if part not in ("", "."))


def stored_names(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of files by their one spelling. Two of one spelling differ only in their form."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(config_path(name), []).append(name)
    return found


def cell_name(cfg: str) -> str:
    """The isolation key of a cell: the basename of its config without the last suffix, in NFC."""
    return nfc(PurePosixPath(cfg).stem)


def same_name_key(name: str) -> str:
    """Two names with one key are one folder on some file system (macOS folds case)."""
    return nfc(name).casefold()


def _is_comment(raw: bytes) -> bool:
    return raw.lstrip().startswith(b"#")


def _uncommented(raw: bytes) -> bytes:
    return raw.lstrip().lstrip(b"#").strip()


def _may_be_a_cell(raw: bytes) -> bool:
    """Cheap, because a file may have a hundred thousand comments."""
    return len(_uncommented(raw).split()) in (2, 3) or b'"' in raw or b"'" in raw


def _parse_line(
    raw: bytes, index: int, number: int, first_use: dict[str, int]
) -> CellLine | BadLine:
    try:
        text, task, epochs = _split(raw)
        cfg, name = config_path(text), cell_name(text)
        _check_cfg(text, cfg, name)
        key = same_name_key(name)
        if key in first_use:
            raise ValueError(
                f"the cell {name!r} is already on line {first_use[key]}; two cells cannot share "
                "a name: rename one config"
            )
    except ValueError as error:
        return BadLine(index, number, str(error))
    first_use[key] = number
    return CellLine(index, number, name, cfg, task, epochs)


def _split(raw: bytes) -> tuple[str, str, int | None]:
    if len(raw) > LONGEST_LINE_BYTES:
        raise ValueError(
            f"the line is {len(raw)} bytes long; at most {LONGEST_LINE_BYTES} are allowed"
        )
    text = raw.decode("utf-8")  # UnicodeDecodeError is a ValueError
    control = [char for char in text if unicodedata.category(char) == "Cc" and char != "\t"]
    if control:
        raise ValueError(f"the line holds the control character {control[0]!r}")
    fields = shlex.split(text, comments=False)
    if len(fields) not in (2, 3):
        raise ValueError(
            f"expected <cfg> <task> [epochs], found {counted(len(fields), 'field')}; "
            "put a field with spaces in quotes"
        )
    if not fields[1] or fields[1].startswith("-"):
        raise ValueError(f"expected a plain word as the task, found {fields[1]!r}")
    return fields[0], fields[1], _epochs(fields[2]) if len(fields) == 3 else None


def _epochs(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < 1:
        raise ValueError(f"epochs must be a whole number of at least 1, found {text!r}")
    return int(text)


def _check_cfg(text: str, cfg: str, name: str) -> None:
    if text.startswith("/") or ".." in cfg.split("/"):
        raise ValueError(f"the config {text!r} must be a path inside the code folder, without '..'")
    if cfg.startswith("-"):
        raise ValueError(f"the config {cfg!r} begins with '-', which a script would read as a flag")
    if len(name.encode()) > LONGEST_NAME_BYTES:
        raise ValueError(f"the cell's name is longer than {LONGEST_NAME_BYTES} bytes: {name!r}")
    if not CELL_NAME.fullmatch(name) or name.endswith("."):
        raise ValueError(
            f"the cell's name {name!r} (the config's file name) may hold letters, digits and "
            "._+=@,- and begins with a letter or digit: rename the config"
        )
