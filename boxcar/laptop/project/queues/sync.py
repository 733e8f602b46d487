"""Queue files and the durable tier: lines are appended to the shared one, or commented out there.

A person edits the local file on the laptop, or the shared one right on the tier. `reconcile`
decides from the bytes of both, and `push` has the box append. The shared file may get lines from an
editor at the same moment: the box refuses then, or what is wrong shows next time, as Diverged.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator
from pathlib import Path

from boxcar.shared.errors import InputError
from boxcar.shared.files import queue_line
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, chained, mark


@dataclass(frozen=True)
class Append:
    """The shared file lacks this at its end (all of it, where the file is not there yet)."""

    data: bytes


@dataclass(frozen=True)
class Same:
    """Nothing to do."""


@dataclass(frozen=True)
class CommentOut:
    """The local file has a `#` before these lines. `data` is all that the shared one holds then."""

    data: bytes
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Ahead:
    """Somebody appended to the shared file; the local one lacks these lines."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class CommentedThere:
    """Only the shared file has a `#` before these lines, by number; it stays. `change` is what is
    to be done besides.
    """

    lines: tuple[tuple[int, str], ...]
    change: Append | CommentOut | Same | Ahead


@dataclass(frozen=True)
class Diverged:
    """Neither goes on from the other. `diff` leads from the shared file to the local one."""

    diff: tuple[str, ...]


Change = Append | CommentOut | CommentedThere | Same | Ahead
_DIFF_SHOWN = 20


def reconcile(local: bytes, shared: bytes | None) -> Change | Diverged:
    """What is to be done so that the shared file holds the local one's lines."""
    wanted = complete(local)
    if shared is None:
        return Append(wanted)
    # The bytes as they stand, so that a line that was torn by a crash is completed, not repeated.
    there = queue_line.normalise(shared)
    if wanted == there:
        return Same()
    if wanted.startswith(there):
        return Append(wanted[len(there) :])
    if complete(shared).startswith(wanted):
        return Ahead(tuple(_lines(complete(shared)[len(wanted) :])))
    after = _with_the_rest(wanted, there)
    # A last line that somebody is typing is not touched.
    if there.endswith(b"\n") and queue_line.is_commented_out(there, after):
        return CommentOut(after, tuple(_lost(there, after)))
    if taken := _with_their_comments(wanted, there):
        change = reconcile(taken, shared)
        if isinstance(change, Append | CommentOut | Same | Ahead):
            return CommentedThere(tuple(_differing(wanted, taken)), change)
    lines = difflib.unified_diff(
        _lines(complete(shared)), _lines(wanted), fromfile="shared", tofile="local", lineterm=""
    )
    return Diverged(tuple(lines))


def joined(local: bytes, shared: bytes | None) -> bytes:
    """What the shared file holds once the local one was pushed; as it is, where that is refused."""
    change = reconcile(local, shared)
    match change.change if isinstance(change, CommentedThere) else change:
        case Append(data):
            return queue_line.normalise(shared or b"") + data
        case CommentOut(data):
            return data
    return complete(shared or b"")


def check(local: Path, shared: Path) -> None:
    """Raise InputError, with the diff, where the two diverged. Touches nothing."""
    decide(local, shared, read_tier_queue(shared))


def decide(local: Path, shared: Path, there: bytes | None) -> Change:
    """What is to be done so that the shared file, which holds `there`, has the local one's lines.

    Raises InputError, with the diff, where the two diverged.
    """
    change = reconcile(local.read_bytes(), there)
    if isinstance(change, Diverged):
        raise InputError(_diverged(local, shared, change))
    return change


def anew(local: Path, known: bytes | None) -> Append:
    """All lines for a box that has none of them: the local file's, or the more that it once had."""
    wanted = complete(local.read_bytes())
    there = complete(known or b"")
    return Append(there if there.startswith(wanted) else wanted)


def read_tier_queue(shared: Path) -> bytes | None:
    """What the shared file holds; None where it is not there yet."""
    try:
        return shared.read_bytes()
    except FileNotFoundError:
        return None


def complete(data: bytes) -> bytes:
    """A queue as it stands on the tier: no byte order mark, LF, and a line feed at the end.

    On the laptop the last line counts as finished: many editors leave its line feed out.
    """
    return queue_line.normalise(data if not data or data.endswith(b"\n") else data + b"\n")


def to_comment_out(local: Path, lines: tuple[tuple[int, str], ...]) -> str:
    """The command that puts a `#` before these lines of the local file."""
    edits = " ".join(f"-e '{number}s/^/# /'" for number, _ in lines)
    return f"sed -i.bak {edits} {shlex.quote(str(local))}"


def _with_their_comments(wanted: bytes, there: bytes) -> bytes | None:
    """What is wanted, with the `#` that only the shared file has; None where there are none."""
    lines, theirs = wanted.split(b"\n")[:-1], there.split(b"\n")
    taken = [
        their + b"\n" if queue_line.is_commented_out(line + b"\n", their + b"\n") else line + b"\n"
        for line, their in zip(lines, theirs, strict=False)
    ]
    found = b"".join([*taken, *(line + b"\n" for line in lines[len(taken) :])])
    return found if found != wanted else None


def _differing(before: bytes, after: bytes) -> Iterator[tuple[int, str]]:
    pairs = zip(_lines(before), _lines(after), strict=True)
    yield from ((n, old) for n, (old, new) in enumerate(pairs, start=1) if old != new)


def _with_the_rest(wanted: bytes, there: bytes) -> bytes:
    """What is wanted, and below it what the shared file has more."""
    return wanted + b"\n".join(there.split(b"\n")[wanted.count(b"\n") :])


def _lost(there: bytes, after: bytes) -> Iterator[str]:
    """The lines that get their `#`."""
    for old, new in zip(_lines(there), _lines(after), strict=False):
        if old != new:
            yield old


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").split("\n")[: data.count(b"\n")]


def _diverged(local: Path, shared: Path, change: Diverged) -> str:
    there, here = shlex.quote(str(shared)), shlex.quote(str(local))
    more = len(change.diff) - _DIFF_SHOWN
    return chained(
        mark("{first}\n{second}"),
        (
            _(
                "{local}: does not continue {shared}. Queue lines can only be appended or "
                "commented out:",
                local=local,
                shared=shared,
            ),
            *change.diff[:_DIFF_SHOWN],
            *([_("and {n:,} more {n:line|lines}", n=more)] if more > 0 else []),
            _(
                "To correct a line, put a # before the old one and write the new one as the last "
                "line, with name=... to keep its name"
            ),
            _(
                "Or take the shared file and put your new lines below it: cp {here} {here}.mine "
                "&& cp {there} {here}",
                here=here,
                there=there,
            ),
        ),
    )
