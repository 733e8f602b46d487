"""One line of a queue: `<cfg> <task> [epochs] [own ...] [overrides ...]`.

Own words (own_words.py) say something of the cell to Boxcar. Overrides are for the script,
literally: they are never filled, and nothing ever passes a shell.

A field with spaces stands in quotes, as in a shell.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import field

from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.cell import cell_name, own_words, typed_words
from boxcar.shared.cell.cell_name import NO_CONFIG, NO_TASK
from boxcar.shared.cell.own_words import NOTHING_OWN, Own
from boxcar.shared.cell.spelling import config_path, nfc
from boxcar.shared.record import dataclass

LONGEST_BYTES = 4096
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""")
_REMARK = re.compile(r"(?:^|\s)#")


@dataclass(frozen=True)
class CellLine:
    """One cell as it stands in a queue. `index` counts complete, non-comment lines from 0.

    `cfg` is spelled by `config_path`, or is `-` for a cell without a config.
    """

    index: int
    number: int  # the line of the file, from 1, for messages
    name: str
    cfg: str
    task: str
    epochs: int | None
    own: Own = NOTHING_OWN
    overrides: tuple[str, ...] = ()
    # How many of these stand before a `--`, behind which nothing is judged.
    judged: int = field(default=0, compare=False)

    @property
    def has_config(self) -> bool:
        return self.cfg != NO_CONFIG


def parse(raw: bytes, index: int, number: int) -> CellLine:
    """Raises ValueError that says what is wrong with the line."""
    fields = _fields(raw)
    if len(fields) < 2:
        raise ValueError(Sentence("files.few_fields", n=len(fields)))
    cfg, task, *rest = fields
    epochs, behind = taken_epochs(rest)
    said = own_words.divide_words(behind)
    overrides = (*said.judged, *said.unjudged)
    _check_task(task, has_words=bool(said.own or overrides))
    _check_config(cfg)
    given = dict(word.split("=", 1) for word in said.own)
    cfg = cfg if cfg == NO_CONFIG else config_path(cfg)
    name = nfc(given["name"]) if "name" in given else cell_name.name_of_line(cfg, task, overrides)
    cell_name.check_name(name)
    own, judged = own_words.read_own_words(given), len(said.judged)
    # Many lines have the same, and a long queue's are kept.
    name, cfg, task = sys.intern(name), sys.intern(cfg), sys.intern(task)
    return CellLine(index, number, name, cfg, task, epochs, own, overrides, judged)


# --- the fields


def _fields(raw: bytes) -> list[str]:
    if len(raw) > LONGEST_BYTES:
        raise ValueError(f"the line is {len(raw)} bytes long; at most {LONGEST_BYTES} are allowed")
    text = _decoded(raw)
    # The plain look first: a queue may have ten thousand lines.
    if not text.isprintable() and (control := _control_characters(text)):
        raise ValueError(f"the line holds the control character {control[0]!r}")
    fields = typed_words.split_words(text)
    if "#" in text and _REMARK.search(_QUOTED.sub("x", text)):
        raise ValueError(
            "a remark stands on a line of its own; a word for the script that begins with # "
            "stands in quotes"
        )
    return fields


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"the line is no UTF-8 text (byte {error.start + 1} is 0x{raw[error.start]:02x}): save "
            "the file as UTF-8"
        ) from None


def _control_characters(text: str) -> list[str]:
    return [char for char in text if unicodedata.category(char) == "Cc" and char != "\t"]


def taken_epochs(rest: Sequence[str]) -> tuple[int | None, Sequence[str]]:
    """The third field, where it gives epochs, and what follows. Raises ValueError."""
    if not rest or "=" in rest[0] or rest[0].startswith("-"):
        return None, rest
    text = rest[0]
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < 1:
        raise ValueError(Sentence("files.epochs", found=repr(text)))
    return int(text), rest[1:]


def _check_task(task: str, *, has_words: bool) -> None:
    if not task or (task.startswith("-") and task != NO_TASK):
        raise ValueError(f"expected a plain word as the task, found {task!r}")
    if has_words and "=" in task:
        raise ValueError(
            f"the second field is the task, and {task!r} is none: write - where the script takes "
            "no task"
        )


def _check_config(text: str) -> None:
    if text == NO_CONFIG:
        return
    cfg = config_path(text)
    if text.startswith("/") or ".." in cfg.split("/"):
        raise ValueError(f"the config {text!r} must be a path inside the code folder, without '..'")
    if cfg.startswith("-"):
        raise ValueError(f"the config {cfg!r} begins with '-', which a script would read as a flag")
