"""A cell's name: a folder on three machines, a claim, a log and a field of a webhook.

It comes from the cell's own line alone, because an agent reads a queue that grows.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from boxcar.shared.disk import digest
from boxcar.shared.sentence import _

# The one spelling of names and paths: whoever asks whether two are the same compares this.
#
# A file is opened under the name that it is stored by, `stored_names`.


def nfc(text: str) -> str:
    """A Mac may store `ü` as two characters: one form for all that is compared."""
    return unicodedata.normalize("NFC", text)


@functools.lru_cache(maxsize=4096)  # the lines of a queue mostly name few configs
def config_path(text: str) -> str:
    """The one spelling of a config's path: in NFC, without `.` and without empty parts."""
    return "/".join(part for part in nfc(text).split("/") if part not in ("", "."))


def stored_names(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of files by their one spelling. Two of one spelling differ only in their form."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(config_path(name), []).append(name)
    return found


def same_name_key(name: str) -> str:
    """Two names with one key are one folder on some file system (macOS folds case)."""
    return nfc(name).casefold()


def is_one_edit(one: str, other: str) -> bool:
    """Whether one letter was left out, put in or mistyped."""
    short, long = sorted((one, other), key=len)
    if short == long or len(long) - len(short) > 1:
        return False
    same = (at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b)
    at = next(same, len(short))
    return long[at + 1 :] in (short[at:], short[at + 1 :])


NO_CONFIG, NO_TASK = "-", "-"
LONGEST_BYTES = 200  # 255 is the most that a disk takes, and endings come after it
LONGEST_DERIVED_BYTES = 80
CELL_NAME = re.compile(r"[^\W_][\w.+=@,-]{0,99}")
_DIGEST_CHARS = 8
# What stands before a key says how a script takes it, and not which one it is.
_BEFORE_A_KEY = re.compile(r"[+~-]+")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")  # an `=` in {out} breaks Hydra
_UNFIT_HEAD = re.compile(r"[^\w.-]+")  # a config's own letters tell it from others


def name_of_line(cfg: str, task: str, overrides: Sequence[str]) -> str:
    """The name of a line that gives none: `recon`, or `recon_lr1e-3_seed2`.

    Without a config the task takes its place, and without a task nothing does. What is too long is
    cut, and ends in a digest.
    """
    return _derived(cfg, task, overrides, _UNFIT)


def in_any_script(cfg: str, task: str, overrides: Sequence[str]) -> str:
    """The same with the letters of every script, for a line that is given its name."""
    return _derived(cfg, task, [nfc(word) for word in overrides], _UNFIT_HEAD)


def _derived(cfg: str, task: str, overrides: Sequence[str], unfit: re.Pattern[str]) -> str:
    head = nfc(PurePosixPath(cfg).stem if cfg != NO_CONFIG else task.removeprefix(NO_TASK))
    if cfg != NO_CONFIG and not overrides:
        return head
    words = (_UNFIT_HEAD.sub("-", head), *_parts(overrides, unfit))
    whole = "_".join(filter(None, words)).rstrip(".")
    if len(whole.encode()) <= LONGEST_DERIVED_BYTES:
        return whole
    mark = digest.of_json([head, *overrides])[:_DIGEST_CHARS]
    kept = whole.encode()[: LONGEST_DERIVED_BYTES - _DIGEST_CHARS - 1]
    return f"{kept.decode(errors='ignore')}-{mark}"


def check_name(name: str) -> None:
    """Raises ValueError for what cannot be a cell's name."""
    if len(name.encode()) > LONGEST_BYTES:
        raise ValueError(
            _(
                "the cell's name is longer than {longest_bytes} bytes: {name!r}",
                longest_bytes=LONGEST_BYTES,
                name=name,
            )
        )
    if not CELL_NAME.fullmatch(name) or name.endswith("."):
        raise ValueError(
            _(
                "invalid cell name {name!r}: use letters, digits and ._+=@,- (at most 100), "
                "starting with a letter or digit. Rename the config, or give the cell a name=...",
                name=name,
            )
        )


def _parts(overrides: Sequence[str], unfit: re.Pattern[str]) -> list[str]:
    """One for each override: a bare word belongs to the flag before it."""
    parts: list[str] = []
    for before, word in itertools.pairwise(("", *overrides)):
        is_value = not _BEFORE_A_KEY.match(word) and "=" not in word
        if is_value and before.startswith("-") and "=" not in before:
            parts[-1] += _plain(word, unfit)
        else:
            parts.append(_plain(key_of(word), unfit) + _plain(word.partition("=")[2], unfit))
    return parts


def key_of(word: str) -> str:
    """`lr` of `lr=1`, `+lr=1`, `~lr` and `--lr=1`."""
    key = word.partition("=")[0]
    return key[match.end() :] if (match := _BEFORE_A_KEY.match(key)) else key


def _plain(text: str, unfit: re.Pattern[str]) -> str:
    ends = rf"^{unfit.pattern}|{unfit.pattern}$"
    return unfit.sub("-", re.sub(ends, "", text))
