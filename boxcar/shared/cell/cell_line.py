"""One line of a queue: `<cfg> <task> [epochs] [own ...] [overrides ...]`.

Own words (own_words.py) say something of the cell to Boxcar. Overrides are for the script,
literally: they are never filled, and nothing ever passes a shell.

A field with spaces stands in quotes, as in a shell.
"""

from __future__ import annotations

import re
import shlex
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from boxcar.shared.cell import cell_name, duration, own_words
from boxcar.shared.cell.cell_name import NO_CONFIG, NO_TASK, config_path, nfc
from boxcar.shared.cell.own_words import ENV, NOTHING_OWN, REST, Divided, Own
from boxcar.shared.files import codec
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Text that a person typed, split into words as a shell splits them; nothing is expanded.


_MARKS = frozenset("'\"\\")
_TYPED_WORD = re.compile(r"[^ \t\r\n]+")  # what shlex takes as spaces, and no others


def split_words(text: str) -> list[str]:
    """Raises ValueError that says what to do about the text."""
    if _MARKS.isdisjoint(text):  # as shlex would, which reads each character in Python
        return _TYPED_WORD.findall(text)
    try:
        return shlex.split(text, comments=False)
    except ValueError as error:
        raise ValueError(_what_to_do(str(error))) from None


def _what_to_do(why: str) -> str:
    if "quotation" in why:
        return _('a quotation mark is not closed: close it, or write "it\'s" for the mark itself')
    return _("ends with a \\: remove it, or put it in quotes")


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
        raise ValueError(
            _(
                "expected <cfg> <task> [epochs], found {n} {n:field|fields}. The task is any one "
                "word; quote a field that contains spaces",
                n=len(fields),
            )
        )
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
        raise ValueError(
            _(
                "the line is {n} bytes long; at most {longest_bytes} are allowed",
                n=len(raw),
                longest_bytes=LONGEST_BYTES,
            )
        )
    text = _decoded(raw)
    # The plain look first: a queue may have ten thousand lines.
    if not text.isprintable() and (control := _control_characters(text)):
        raise ValueError(
            _("the line contains the control character {control!r}", control=control[0])
        )
    fields = split_words(text)
    if "#" in text and _REMARK.search(_QUOTED.sub("x", text)):
        raise ValueError(_("a comment needs its own line; quote an argument that begins with #"))
    return fields


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            _(
                "the line is not UTF-8 (byte {n} is 0x{raw:02x}): save the file as UTF-8",
                n=error.start + 1,
                raw=raw[error.start],
            )
        ) from None


def _control_characters(text: str) -> list[str]:
    return [char for char in text if unicodedata.category(char) == "Cc" and char != "\t"]


def taken_epochs(rest: Sequence[str]) -> tuple[int | None, Sequence[str]]:
    """The third field, where it gives epochs, and what follows. Raises ValueError."""
    if not rest or "=" in rest[0] or rest[0].startswith("-"):
        return None, rest
    text = rest[0]
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < 1:
        raise ValueError(
            _(
                "epochs must be a whole number, 1 or more; found {found}. Put a path with a blank "
                "in quotes",
                found=repr(text),
            )
            if len(rest) > 1 and ("/" in text or "." in text or rest[1].isdigit())
            else _("epochs must be a whole number, 1 or more; found {found}", found=repr(text))
        )
    return int(text), rest[1:]


def _check_task(task: str, *, has_words: bool) -> None:
    if not task or (task.startswith("-") and task != NO_TASK):
        raise ValueError(_("expected a plain word as the task, found {task!r}", task=task))
    if has_words and "=" in task:
        raise ValueError(
            _(
                "the second field is the task, but {task!r} is not one: write - if the script "
                "takes no task",
                task=task,
            )
        )


def _check_config(text: str) -> None:
    if text == NO_CONFIG:
        return
    cfg = config_path(text)
    if text.startswith("/") or ".." in cfg.split("/"):
        raise ValueError(
            _("the config {text!r} must be a path inside the code folder, without '..'", text=text)
        )
    if cfg.startswith("-"):
        raise ValueError(
            _("the config {cfg!r} begins with '-', which a script would read as a flag", cfg=cfg)
        )


# How a cell is spelled as a line of a queue: a line that can be typed as it is.


_PLAIN = re.compile(r"[\w@%+=:,./-]+")


class HasWords(Protocol):
    """A cell of a queue file or of a plan: what its line says beyond config, task and epochs."""

    @property
    def own(self) -> Own: ...
    @property
    def overrides(self) -> tuple[str, ...]: ...


class HasLine(HasWords, Protocol):
    """All that a line says."""

    @property
    def name(self) -> str: ...
    @property
    def cfg(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def epochs(self) -> int | None: ...


def words_of_line(line: HasWords) -> tuple[str, ...]:
    """What else makes it this cell: its own variables, and the overrides."""
    return (*_variables(line.own), *line.overrides)


def line_of(line: HasLine) -> str:
    """The whole line; its name only where the words do not give it."""
    own = line.own
    derived = cell_name.name_of_line(line.cfg, line.task, line.overrides)
    words = [line.cfg, line.task, *([str(line.epochs)] if line.epochs else [])]
    words += [f"name={line.name}"] if line.name != derived else []
    words += [f"nproc={own.nproc}"] if own.nproc else []
    words += [f"gpus={own.gpus}"] if own.gpus else []
    words += [f"after={','.join(own.after)}"] if own.after else []
    words += [f"time={duration.spell_duration(own.time_s)}"] if own.time_s else []
    return " ".join(map(_quoted, (*words, *_variables(own), *_guarded(line.overrides))))


def _quoted(word: str) -> str:
    """In quotes where that is needed; letters of any script need none."""
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)


def quoted_line(line: HasLine) -> str:
    """The same within a sentence: in quotation marks, and as it is typed between them."""
    text = line_of(line)
    mark = '"' if "'" in text else "'"
    return f"{mark}{text}{mark}"


def _variables(own: Own) -> list[str]:
    return [f"{ENV}{name}={value}" for name, value in own.env.items()]


def _guarded(overrides: Sequence[str]) -> list[str]:
    """The overrides so that they are read as such again."""
    if not overrides:
        return []
    try:
        # Where nothing stands before it, the first is read as a third field.
        is_third = taken_epochs(overrides[:1]) == (None, overrides[:1])
        is_plain = is_third and own_words.divide_words(overrides) == Divided(
            (), tuple(overrides), ()
        )
    except ValueError:
        is_plain = False
    return [*([] if is_plain else [REST]), *overrides]


# A cell as it was begun: the line in its event `cell.started`, whatever the queue says by now.
#
# Of a cell that ran on a lost box, whose result was lent to this one, `cell.verified` says it.


TYPES = ("cell.started", "cell.verified")


def tells_begun(event: Event) -> bool:
    """Whether the event says how its cell was begun."""
    is_lent = event.type == "cell.verified" and "cfg" in event.data
    return event.type == "cell.started" or is_lent


def begun_line(started: Event) -> CellLine:
    """Raises KeyError, DamagedError for an event that says too little."""
    data = started.data
    own = data.get("own")
    return CellLine(
        index=-1,
        number=0,
        name=str(started.cell),
        cfg=data["cfg"],
        task=data["task"],
        epochs=data["epochs"],
        own=codec.decode(Own, own, "cell.started") if own is not None else NOTHING_OWN,
        overrides=tuple(data.get("overrides") or ()),
    )


def begun_fields(line: CellLine) -> dict[str, object]:
    """The fields of the event, but for those that a release decides."""
    return {
        "task": line.task,
        "own": codec.encode(line.own) if line.own != NOTHING_OWN else None,
        "overrides": list(line.overrides) or None,
    }
