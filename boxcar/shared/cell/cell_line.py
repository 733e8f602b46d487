"""One line of a queue: `<cfg> <task> [epochs] [own ...] [overrides ...]`.

Own words say something of the cell to Boxcar: `name= nproc= after= time= env.NAME=`. Overrides are
for the script, literally: they are never filled, and nothing ever passes a shell. They begin at the
first word that is none of Boxcar's own, or after a `--`, behind which nothing is judged.

A field with spaces stands in quotes, as in a shell.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from boxcar.shared.cell import cell_name, duration
from boxcar.shared.cell.cell_name import NO_CONFIG, NO_TASK, key_of
from boxcar.shared.cell.spelling import config_path, is_one_edit, nfc
from boxcar.shared.message import counted
from boxcar.shared.record import dataclass

LONGEST_BYTES = 4096
REST = "--"
OWN_KEYS = ("name", "nproc", "after", "time")
_ENV = "env."
# What else spells a variable, such as `env.id=CartPole`, is the script's.
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""")
_REMARK = re.compile(r"(?:^|\s)#")
_MOST_RANKS = 9999
# How an override begins that is no plain `key=value`: a flag, or Hydra's `+key`, `~key`.
MARKS = ("-", "+", "~")
_SAY = f"; if your script takes it, put it after {REST}"


@dataclass(frozen=True)
class Own:
    """What a line says to Boxcar. `nproc`: the ranks; `after`: cells that are to be done before;
    `time_s`: for one attempt; `env`: variables of the attempt.
    """

    nproc: int | None = None
    after: tuple[str, ...] = ()
    time_s: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)


NOTHING_OWN = Own()


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

    @property
    def has_config(self) -> bool:
        return self.cfg != NO_CONFIG


def parse(raw: bytes, index: int, number: int) -> CellLine:
    """Raises ValueError that says what is wrong with the line."""
    fields = _fields(raw)
    if len(fields) < 2:
        raise ValueError(
            f"expected <cfg> <task> [epochs], found {counted(len(fields), 'field')}; "
            "put a field with spaces in quotes"
        )
    cfg, task, *rest = fields
    epochs, rest = _epochs(rest)
    own_words, overrides = _divided(rest)
    _check_task(task, has_words=bool(own_words or overrides))
    _check_config(cfg)
    given = dict(word.split("=", 1) for word in own_words)
    cfg = cfg if cfg == NO_CONFIG else config_path(cfg)
    name = nfc(given["name"]) if "name" in given else cell_name.of_line(cfg, task, overrides)
    cell_name.check(name)
    return CellLine(index, number, name, cfg, task, epochs, _own(given), overrides)


class Said(Protocol):
    """A cell of a queue file or of a plan: what its line says beyond config, task and epochs."""

    @property
    def own(self) -> Own: ...
    @property
    def overrides(self) -> tuple[str, ...]: ...


def words(line: Said) -> tuple[str, ...]:
    """What else makes it this cell: its own variables, and the overrides."""
    env = (f"{_ENV}{name}={value}" for name, value in line.own.env.items())
    return (*env, *line.overrides)


def spelled(line: CellLine) -> str:
    """The line as its words, for a person; its name only where the words do not give it."""
    own = line.own
    derived = cell_name.of_line(line.cfg, line.task, line.overrides)
    words = [line.cfg, line.task, *([str(line.epochs)] if line.epochs else [])]
    words += [f"name={line.name}"] if line.name != derived else []
    words += [f"nproc={own.nproc}"] if own.nproc else []
    words += [f"after={','.join(own.after)}"] if own.after else []
    words += [f"time={duration.spelled(own.time_s)}"] if own.time_s else []
    words += [f"{_ENV}{name}={value}" for name, value in own.env.items()]
    return shlex.join([*words, *_guarded(line.overrides)])


def _guarded(overrides: Sequence[str]) -> list[str]:
    """The overrides so that they are read as such again."""
    if not overrides:
        return []
    try:
        # Where nothing stands before it, the first is read as a third field.
        is_third = _epochs([overrides[0]]) == (None, [overrides[0]])
        is_plain = is_third and _divided(list(overrides)) == ([], tuple(overrides))
    except ValueError:
        is_plain = False
    return [*([] if is_plain else [REST]), *overrides]


# --- the fields


def _fields(raw: bytes) -> list[str]:
    if len(raw) > LONGEST_BYTES:
        raise ValueError(f"the line is {len(raw)} bytes long; at most {LONGEST_BYTES} are allowed")
    text = raw.decode("utf-8")  # UnicodeDecodeError is a ValueError
    # The plain look first: a queue may have ten thousand lines.
    if not text.isprintable() and (control := _control_characters(text)):
        raise ValueError(f"the line holds the control character {control[0]!r}")
    fields = shlex.split(text, comments=False)
    if "#" in text and _REMARK.search(_QUOTED.sub("x", text)):
        raise ValueError(
            "a remark stands on a line of its own; a word for the script that begins with # "
            "stands in quotes"
        )
    return fields


def _control_characters(text: str) -> list[str]:
    return [char for char in text if unicodedata.category(char) == "Cc" and char != "\t"]


def _epochs(rest: list[str]) -> tuple[int | None, list[str]]:
    """The third field, where it gives epochs, and what follows."""
    if not rest or "=" in rest[0] or rest[0].startswith("-"):
        return None, rest
    text = rest[0]
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) < 1:
        raise ValueError(f"epochs must be a whole number of at least 1, found {text!r}")
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


# --- own words and overrides


def is_own(word: str) -> bool:
    """Whether a word says something to Boxcar, where own words stand."""
    key, is_assigned, _ = word.partition("=")
    if not is_assigned:
        return False
    return key in OWN_KEYS or (key.startswith(_ENV) and _is_variable(key))


def _is_variable(key: str) -> bool:
    return bool(_VARIABLE.fullmatch(key.removeprefix(_ENV)))


def _divided(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Own words, and overrides."""
    count = next((at for at, word in enumerate(words) if not is_own(word)), len(words))
    own, rest = words[:count], words[count:]
    judged = rest[: rest.index(REST)] if REST in rest else rest
    behind = rest[len(judged) + 1 :]
    _check_own(own)
    _check_overrides(judged)
    return own, (*judged, *behind)


def _check_own(words: Sequence[str]) -> None:
    keys = [word.partition("=")[0] for word in words]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"{key}= stands twice")


def _check_overrides(words: Sequence[str]) -> None:
    """What a slip of the fingers may be is refused; behind a `--` it is meant."""
    before = ""
    for word in words:
        if is_own(word):
            raise ValueError(f"{word!r} stands behind an override, and own words come first{_SAY}")
        is_bare = not word.startswith(MARKS) and "=" not in word
        if is_bare and not before.startswith("-"):
            raise ValueError(f"{word!r} is neither key=value nor the value of a flag{_SAY}")
        before = word
    if words and (near := _nearly_own(words[0])):
        raise ValueError(f"{words[0]!r} is nearly {near}=, a word of Boxcar's own{_SAY}")
    keys = [key_of(word) for word in words if "=" in word]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"{key}= stands twice{_SAY}")


def _nearly_own(word: str) -> str | None:
    """The own key that an assignment's key is one edit away from."""
    key, is_assigned, _ = word.partition("=")
    if not is_assigned or word.startswith(MARKS):
        return None
    near_env = (
        f"{_ENV}{key[size:]}"
        for size in range(len(_ENV) - 1, len(_ENV) + 2)
        if is_one_edit(key[:size], _ENV) and _is_variable(key[size:])
    )
    return next((own for own in OWN_KEYS if is_one_edit(key, own)), next(near_env, None))


def _own(given: Mapping[str, str]) -> Own:
    env = {key.removeprefix(_ENV): value for key, value in given.items() if key.startswith(_ENV)}
    for name in env:
        _check_variable(name)
    return Own(
        nproc=_nproc(given["nproc"]) if "nproc" in given else None,
        after=_after(given["after"]) if "after" in given else (),
        time_s=_time_s(given["time"]) if "time" in given else None,
        env=env,
    )


def _check_variable(name: str) -> None:
    if name.startswith("BOXCAR_"):
        raise ValueError(f"{_ENV}{name}: names that begin with BOXCAR_ are set by Boxcar itself")
    if name == "PYTHONPATH":
        raise ValueError(
            f"{_ENV}{name}: is joined with Boxcar's own: write it into env: of job.yaml"
        )


def _time_s(text: str) -> int:
    try:
        return duration.parse(text)
    except ValueError as error:
        raise ValueError(f"time=: {error}") from None


def _nproc(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= _MOST_RANKS:
        raise ValueError(f"nproc= must be a number of ranks, at least 1; found {text!r}")
    return int(text)


def _after(text: str) -> tuple[str, ...]:
    cells = tuple(nfc(name) for name in text.split(","))
    if not all(cells):
        raise ValueError(f"after= names cells, with a comma between two; found {text!r}")
    return cells
