"""Names that people typed: which known one was meant, and what is said of one that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from boxcar.shared.errors import Command, InputError, Message, some
from boxcar.shared.sentence import Sentence, _, known_word, mark

_MOST_LISTED = 12
_NEAR = 0.74  # of difflib: of two words of four letters, three in the same order
_LEAST = 3  # letters by which a longer name is known
# Shows every cell, queue and box that can be named.
_ALL = Command("plan")
_KINDS = (
    mark("cell"),
    mark("queue"),
    mark("queue file"),
    mark("box"),
    mark("cell or task"),
    mark("metric"),
    mark("endpoint"),
    mark("credential to rotate"),
    mark("run"),
)


def did_you_mean(word: str, known: Iterable[str], spelled: Mapping[str, str] | None = None) -> str:
    """` (did you mean 'artifacts'?)`, or '' where nothing is near. `spelled`: how a known name is
    shown, where it is typed otherwise.
    """
    near = nearest(word, known)
    if not near:
        return ""
    return _(" (did you mean {name!r}?)", name=(spelled or {}).get(near[0], near[0]))


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The one that was meant, or none: a wrong hint is worse than none. `seg` is near `seg_large`,
    `code_dir` near `code`, `q3` near `q2`; `profile` is not near `price`.
    """
    there, typed = {name.lower(): name for name in known}, word.lower()
    near = difflib.get_close_matches(typed, there, n=1, cutoff=_NEAR)
    begun = [name for name in there if _begins(typed, name) or _begins(name, typed)]
    found = [*near, *begun, *(name for name in there if _is_one_letter_off(typed, name))]
    return [there[name] for name in found[:1]]


def _begins(short: str, long: str) -> bool:
    return len(short) >= _LEAST and long.startswith(short)


def _is_one_letter_off(word: str, name: str) -> bool:
    """Another letter, or two of them the other way round."""
    if len(word) != len(name) or len(word) < 2:
        return False
    off = sum(map(str.__ne__, word, name))
    return off == 1 or (off == 2 and sorted(word) == sorted(name))


def no_such(name: str, known: Iterable[str], *, what: str, of: str) -> str:
    """`the run digits has no cell 'recom' (did you mean 'recon'?); it has: class, recon`."""
    there = list(dict.fromkeys(known))
    return _(
        "{of} has no {what} {name!r}{near}; it has: {there}",
        of=of,
        what=known_word(what, _KINDS),
        name=name,
        near=did_you_mean(name, there),
        there=_listed(there),
    )


def unknown_of(name: str, known: Iterable[str], *, what: str, of: str) -> Message:
    """The same with the command that shows all that can be named."""
    said = no_such(name, known, what=what, of=of)
    return Message(_("{text}. For all of them", text=said), _ALL)


def no_choice(flag: str, known: Iterable[str], found: str) -> str:
    """`--to: expected html, md, found 'pdf'`."""
    there = list(known)
    if not found:
        return _("name one with {flag}: {known}", flag=flag, known=", ".join(there))
    return _(
        "{flag}: expected {known}, found {found!r}. For example: {flag} {first}",
        flag=flag,
        known=", ".join(there),
        found=found,
        first=(nearest(found, there) or there)[0],
    )


def the_run(name: str) -> Sentence:
    """What has cells, queues and boxes, for `no_such` and `pick`."""
    return _("the run {run}", run=name)


def _listed(names: Sequence[str]) -> str:
    return some(names, _MOST_LISTED) or _("none")


def pick(names: Sequence[str], known: Iterable[str], *, what: str, of: str) -> list[str]:
    """`names`, each once. Raises InputError with a sentence for each that is not known."""
    there = list(known)
    if unknown := [name for name in names if name not in there]:
        raise InputError([unknown_of(name, there, what=what, of=of) for name in unknown])
    return list(dict.fromkeys(names))
