"""What the dumps of the ranks show, as answers to single questions and parts of sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from boxcar.training.hang.rank_dump import RankDump
from boxcar.training.hang.stacks import GRADIENTS, CodeLine

# Others, such as a gather, may be given different sizes by intent.
_OF_ONE_SIZE = ("all_reduce", "broadcast", "reduce")


def waiting(dumps: Iterable[RankDump]) -> list[RankDump]:
    """In a collective, or thrown out of one by an error of the backend."""
    in_one = [dump for dump in dumps if dump.waits == "collective"]
    return [dump for dump in in_one if dump.is_follower or not dump.error]


def is_ahead(dump: RankDump, waiting: Sequence[RankDump]) -> bool:
    steps = [other.step for other in waiting if other.step is not None]
    return dump.step is not None and bool(steps) and dump.step > max(steps)


def in_step(dump: RankDump) -> bool:
    """In the collectives of a training step, rather than in one that the script calls itself."""
    return dump.place is not None and (dump.collective == GRADIENTS or bool(_loop(dump)))


def _loop(dump: RankDump) -> tuple[int, int] | None:
    return dump.place.loop if dump.place else None


def is_done_with(dump: RankDump, waiting: Sequence[RankDump]) -> bool:
    """Whether `dump`'s rank has ended the loop in which the others still are."""
    if branch(dump):
        return False
    return any(_is_shorter(dump, other) and _is_beyond(dump, other) for other in waiting)


def _is_shorter(dump: RankDump, other: RankDump) -> bool:
    """Loaders of unequal length are proof; without a length, fewer steps are a sign."""
    mine, theirs = dump.loader_lengths, other.loader_lengths
    if mine and theirs:
        return len(mine) == len(theirs) and any(m < t for m, t in zip(mine, theirs, strict=True))
    if dump.step is None or other.step is None:
        return dump.state != "left"
    return dump.state != "left" and dump.step <= other.step


def _is_beyond(dump: RankDump, other: RankDump) -> bool:
    """It has left, or it stands in the same function behind the loop, or in a later round of it."""
    if dump.state == "left":
        return True
    loops = [(p.file, p.function, p.loop) for p in other.places if p.loop]
    return any(
        (place.file, place.function) == (file, function) and place.line > loop[1]
        for place in dump.places
        for file, function, loop in loops
    )


def branch(dump: RankDump) -> CodeLine | None:
    """The innermost frame that stands under an `if` which only some ranks enter."""
    return next((place for place in reversed(dump.places) if place.branch), None)


def by_place(dumps: Sequence[RankDump]) -> list[list[RankDump]]:
    groups: dict[tuple[str | None, str, int], list[RankDump]] = {}
    for dump in dumps:
        place = dump.place
        key = (dump.collective, place.file if place else "", place.line if place else 0)
        groups.setdefault(key, []).append(dump)
    return list(groups.values())


def odd_ones(groups: list[list[RankDump]]) -> list[RankDump]:
    """The ranks that stand where not all would come: under a branch, else the fewest."""
    under_branch = [group for group in groups if branch(group[0])]
    return min(under_branch or groups, key=len)


def by_size(dumps: Sequence[RankDump]) -> dict[str, list[RankDump]]:
    """The ranks by what they gave to the first collective that must be of one size, and is not.

    Empty where nothing of the kind was recorded.
    """
    calls: dict[tuple[int, str, str], dict[str, list[RankDump]]] = {}
    for dump in dumps:
        for entry in dump.collectives:
            name, seq = str(entry.get("collective")), entry.get("seq")
            if isinstance(seq, int) and name in _OF_ONE_SIZE:
                sizes = calls.setdefault((seq, str(entry.get("group")), name), {})
                sizes.setdefault(f"{name} of {_size(entry.get('sizes'))}", []).append(dump)
    return next((sizes for _, sizes in sorted(calls.items()) if len(sizes) > 1), {})


def _size(sizes: object) -> str:
    lists = sizes if isinstance(sizes, list) else []
    return " and ".join(str(size) for size in lists) or "no size"


def way_out(place: CodeLine) -> CodeLine:
    """The one line at which the loop can be left; with several, the line that was last seen."""
    if len(place.ways_out) != 1:
        return place
    return CodeLine(place.file, place.ways_out[0], place.function)


def loader_lengths(dumps: Sequence[RankDump]) -> set[int]:
    return {length for dump in dumps for length in dump.loader_lengths}


# --- Parts of sentences about ranks: who they are, where they are and what they wait for. Pure.


def followers(waiting: Sequence[RankDump]) -> str:
    """`; ranks 1, 2 wait in barrier at train.py:24`, after a sentence about what they wait for."""
    if not waiting:
        return ""
    return "; " + "; ".join(_waits_for_it(group) for group in by_place(waiting))


def _waits_for_it(group: Sequence[RankDump]) -> str:
    verb = "waits" if len(group) == 1 else "wait"
    return f"{names(group)} {verb} in {group[0].collective} {at_line(group[0])}{at_step(group[0])}"


def doing(dumps: Sequence[RankDump]) -> str:
    """`rank 0 is in barrier at save.py:9; rank 1 is at data.py:7`: a part for each line."""
    return "; ".join(_doing(group) for group in by_place(dumps))


def _doing(group: Sequence[RankDump]) -> str:
    first = group[0]
    verb = "is" if len(group) == 1 else "are"
    what = {"collective": f"in {first.collective} ", "loader": "in the loader "}.get(
        first.waits, ""
    )
    return f"{names(group)} {verb} {what}{at_line(first)}{_under(first)}"


def _under(dump: RankDump) -> str:
    found = branch(dump)
    if found is None or found.branch is None:
        return ""
    return f", under `{found.branch[1]}` at {Path(found.file).name}:{found.branch[0]}"


def at_line(dump: RankDump) -> str:
    """`at train.py:24 `dist.barrier()``, the user's own line."""
    place = dump.place
    if place is None:
        return "at a line that is not known"
    return f"at {place}" + (f" `{place.text[:80]}`" if place.text else "")


def at_step(dump: RankDump) -> str:
    """`, step 7`, or nothing where it is not known."""
    return "" if dump.step is None else f", step {dump.step}"


def names(dumps: Sequence[RankDump]) -> str:
    """`ranks 0, 1`."""
    return ranks_text([dump.rank for dump in dumps])


def ranks_text(ranks: Sequence[int]) -> str:
    """`rank 0`, `ranks 0, 1`, or the number of ranks and the first few."""
    if len(ranks) > 8:
        return f"{len(ranks)} ranks ({', '.join(map(str, ranks[:4]))}, ...)"
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"


def nodes(ranks: Sequence[int], dumps: Sequence[RankDump]) -> str:
    """`; rank 1 is on gpu07`, of the ranks to look at, where the ranks are on several nodes."""
    on = [dump for dump in dumps if dump.rank in ranks]
    if len({dump.host for dump in dumps}) < 2 or not on:
        return ""
    by_host: dict[str, list[RankDump]] = {}
    for dump in on:
        by_host.setdefault(dump.host, []).append(dump)
    verbs = {host: "is" if len(group) == 1 else "are" for host, group in by_host.items()}
    return "; " + ", ".join(f"{names(by_host[h])} {verbs[h]} on {h}" for h in by_host)


def one_line(error: str) -> str:
    """The first line of an error, cut where it is long."""
    return error.strip().splitlines()[0][:160] if error.strip() else "an error"
