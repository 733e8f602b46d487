"""Own words, which a line says to Boxcar, and overrides, which go to the script as they are.

`name= nproc= gpus= after= time= env.NAME=` come first, each once. Overrides begin at the first
other word, or after a `--`, behind which nothing is judged.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from boxcar.shared.cell import duration
from boxcar.shared.cell.cell_name import is_one_edit, key_of, nfc
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

REST = "--"
OWN_KEYS = ("name", "nproc", "gpus", "after", "time")
# What scripts take themselves, one letter from a key of ours.
_SCRIPTS_OWN = ("gpu",)
ENV = "env."
# What else spells a variable, such as `env.id=CartPole`, is the script's.
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_MOST_RANKS = 9999
# How an override begins that is no plain `key=value`: a flag, or Hydra's `+key`, `~key`.
MARKS = ("-", "+", "~")
_SAY = _("; if your script takes it, put it after {rest}", rest=REST)


@dataclass(frozen=True)
class Own:
    """What a line says to Boxcar. `nproc`: the ranks; `gpus`: how many it has for itself; `after`:
    cells that are to be done before; `time_s`: for one attempt; `env`: variables of the attempt.
    """

    nproc: int | None = None
    gpus: int | None = field(default=None, metadata=codec.LATER)
    after: tuple[str, ...] = ()
    time_s: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)


NOTHING_OWN = Own()


@dataclass(frozen=True)
class Divided:
    """Own words, and the overrides before and behind a `--`."""

    own: tuple[str, ...]
    judged: tuple[str, ...]
    unjudged: tuple[str, ...]


def is_own(word: str) -> bool:
    """Whether a word says something to Boxcar, where own words stand."""
    key, is_assigned, _ = word.partition("=")
    if not is_assigned:
        return False
    return key in OWN_KEYS or (key.startswith(ENV) and _is_variable(key))


def _is_variable(key: str) -> bool:
    return bool(_VARIABLE.fullmatch(key.removeprefix(ENV)))


def divide_words(words: Sequence[str]) -> Divided:
    """What stands behind task and epochs. Raises ValueError."""
    count = next((at for at, word in enumerate(words) if not is_own(word)), len(words))
    own, rest = words[:count], words[count:]
    judged = rest[: rest.index(REST)] if REST in rest else rest
    _check_own(own)
    _check_overrides(judged)
    return Divided(tuple(own), tuple(judged), tuple(rest[len(judged) + 1 :]))


def _check_own(words: Sequence[str]) -> None:
    keys = [word.partition("=")[0] for word in words]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(_("{key}= is given twice", key=key))


def _check_overrides(words: Sequence[str]) -> None:
    """What a slip of the fingers may be is refused; behind a `--` it is meant."""
    before = ""
    for word in words:
        if is_own(word):
            raise ValueError(
                _(
                    "{word!r} comes after an override, but Boxcar's options come first{say}",
                    word=word,
                    say=_SAY,
                )
            )
        is_bare = not word.startswith(MARKS) and "=" not in word
        if is_bare and not before.startswith("-"):
            raise ValueError(
                _("{word!r} is neither key=value nor the value of a flag{say}", word=word, say=_SAY)
            )
        before = word
    if words and (near := _nearly_own(words[0])):
        raise ValueError(
            _(
                "{words!r} looks like Boxcar's option {near}= misspelled{say}",
                words=words[0],
                near=near,
                say=_SAY,
            )
        )
    keys = [key_of(word) for word in words if "=" in word]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(_("{key}= is given twice{say}", key=key, say=_SAY))


def _nearly_own(word: str) -> str | None:
    """The own key that an assignment's key is one edit away from."""
    key, is_assigned, _ = word.partition("=")
    if not is_assigned or word.startswith(MARKS) or key in _SCRIPTS_OWN:
        return None
    return _own_near(key)


@functools.lru_cache(maxsize=1024)  # the lines of a queue differ in the values of a few keys
def _own_near(key: str) -> str | None:
    near_env = (
        f"{ENV}{key[size:]}"
        for size in range(len(ENV) - 1, len(ENV) + 2)
        if is_one_edit(key[:size], ENV) and _is_variable(key[size:])
    )
    return next((own for own in OWN_KEYS if is_one_edit(key, own)), next(near_env, None))


def read_own_words(given: Mapping[str, str]) -> Own:
    if not given.keys() - {"name"}:
        return NOTHING_OWN  # one for all of a long queue's lines
    env = {key.removeprefix(ENV): value for key, value in given.items() if key.startswith(ENV)}
    for name in env:
        _check_variable(name)
    return Own(
        nproc=_count("nproc", given["nproc"]) if "nproc" in given else None,
        gpus=_count("gpus", given["gpus"]) if "gpus" in given else None,
        after=_after(given["after"]) if "after" in given else (),
        time_s=_time_s(given["time"]) if "time" in given else None,
        env=env,
    )


def _check_variable(name: str) -> None:
    if name.startswith("BOXCAR_"):
        raise ValueError(
            _(
                "{env}{name}: names that begin with BOXCAR_ are reserved",
                env=ENV,
                name=name,
            )
        )
    if name == "PYTHONPATH":
        raise ValueError(
            _(
                "{env}{name}: Boxcar adds to it, so set it under env: in job.yaml",
                env=ENV,
                name=name,
            )
        )


def _time_s(text: str) -> int:
    try:
        return duration.parse_duration(text)
    except ValueError as error:
        raise ValueError(_("time=: {error}", error=error)) from None


def _count(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= _MOST_RANKS:
        raise ValueError(
            _("{key}= must be a number of at least 1; found {text!r}", key=key, text=text)
        )
    return int(text)


def _after(text: str) -> tuple[str, ...]:
    cells = tuple(nfc(name) for name in text.split(","))
    if not all(cells):
        raise ValueError(
            _("after= takes cell names separated by commas; found {text!r}", text=text)
        )
    return cells
