"""Which rank is to blame for a hang, in which collective, at which line. Pure.

    diagnosis = diagnose(dumps, world)
    print(text(diagnosis, dumps))

The surest evidence comes first: a rank's own error, a rank that is not there, one that has left,
and only then where the living ones stand. What is not known is said as not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from boxcar.shared.exit_codes import NO_RETRY, TEMPORARY
from boxcar.training.hang.rank_dump import Place, RankDump
from boxcar.training.hang.stacks import GRADIENTS

RANK_CONDITIONAL = "rank-conditional-collective"
UNEVEN_LOADER = "uneven-loader"
EARLY_RETURN = "early-return"
DIVERGED = "one-rank-diverged"
ALL_RAISED = "every-rank-raised"
STUCK_LOADER = "stuck-loader"
STUCK_LINK = "stuck-link"
SLOW = "slow"

# The same script would hang at the same place again; the rest may go well another time.
_RC_OF_KIND = {RANK_CONDITIONAL: NO_RETRY, UNEVEN_LOADER: NO_RETRY, SLOW: 0, ALL_RAISED: 1}

ADVICE = {
    RANK_CONDITIONAL: "Every rank must call the same collectives in the same order: take the "
    "collective out of what only some ranks run, and leave only printing and writing in there.",
    UNEVEN_LOADER: "Give every rank the same number of batches: RankAwareDataLoader does so "
    '(uneven="drop", "join" or "pad"), or DistributedSampler with drop_last=True.',
    EARLY_RETURN: "Let all ranks leave at the same step: ranks.agree_any(flag) gives every rank "
    "the same answer.",
    DIVERGED: "Look at that rank: the others did what they should and waited for it.",
    ALL_RAISED: "All ranks failed; the first error above is as good as any.",
    STUCK_LOADER: "The workers gave no batch: look for a full /dev/shm, a data tier that does not "
    "answer, or a lock held at the fork; num_workers=0 shows the line. A larger timeout_s waits "
    "longer.",
    STUCK_LINK: "The ranks agree, so look below Python: shapes that differ between ranks, the "
    "network card (NCCL_SOCKET_IFNAME), P2P (NCCL_P2P_DISABLE=1 as a test). BOXCAR_DEBUG_HANGS=1 "
    "compares shapes before each collective.",
    SLOW: "Not a hang, so the run goes on: wait, raise timeout_s, or call stall.beat() in this "
    "loop.",
}


@dataclass(frozen=True)
class Diagnosis:
    """`ranks` are those to look at; `collective` is what the others wait in; `line` is
    `file.py:12` of the ranks to look at, or, where they have none, of those who wait."""

    kind: str
    ranks: tuple[int, ...]
    collective: str | None
    line: str
    sentence: str
    exit_code: int

    @property
    def advice(self) -> str:
        return ADVICE[self.kind]


def diagnose(dumps: Sequence[RankDump], world: int | None = None) -> Diagnosis:
    """The cause. `world`: how many ranks there are; those without a dump are silent.

    Raises ValueError where there is no dump at all.
    """
    if not dumps:
        raise ValueError("a diagnosis needs the dump of at least one rank, found none")
    world = world or dumps[0].world
    silent = sorted(set(range(world)) - {dump.rank for dump in dumps})
    return (
        _own_error(dumps, world)
        or _silent(dumps, silent)
        or _uneven(dumps)
        or _left(dumps)
        or _patient(dumps)
        or _all_wait_in_collectives(dumps)
        or _some_wait(dumps)
        or _nobody_waits(dumps)
    )


def text(diagnosis: Diagnosis, dumps: Sequence[RankDump], folder: Path | None = None) -> str:
    """The report for a person: the sentence, what to do, and a line for each rank."""
    head = f"boxcar: {diagnosis.kind}: {diagnosis.sentence}"
    rows = [f"  rank {dump.rank}: {_row(dump)}" for dump in dumps]
    tail = [f"  stacks of all ranks: {folder}/rank_*.json"] if folder else []
    return "\n".join([head, f"  {diagnosis.advice}", *rows, *tail])


# --- one kind each, from the surest evidence down


def _own_error(dumps: Sequence[RankDump], world: int) -> Diagnosis | None:
    causes = [dump for dump in dumps if dump.error and not dump.is_follower]
    if not causes:
        return None
    first = causes[0]
    what = f"raised {_one_line(first.error)} {_at(first)}{_step(first)}"
    if len(causes) == world:
        sentence = f"all {world} ranks raised; {_names(causes[:1])} {what}"
        return _of(ALL_RAISED, causes, dumps, sentence)
    others = "" if len(causes) == 1 else f", and {_names(causes[1:])} raised too"
    sentence = f"{_names([first])} {what}{others}{_followers(_waiting(dumps))}"
    return _of(DIVERGED, causes, dumps, sentence, exit_code=1)


def _silent(dumps: Sequence[RankDump], silent: list[int]) -> Diagnosis | None:
    if not silent or not _waiting(dumps):
        return None
    why = (
        "wrote nothing in this folder: killed (SIGKILL, out of memory), crashed in C++, stopped, "
        "or on a node that does not share the folder"
    )
    sentence = f"{_ranks(silent)} {why}{_followers(_waiting(dumps))}"
    return _of(DIVERGED, [], dumps, sentence, ranks=silent)


def _uneven(dumps: Sequence[RankDump]) -> Diagnosis | None:
    """Some ranks have run out of batches while others wait for their gradients."""
    waiting = [dump for dump in _waiting(dumps) if _in_step(dump)]
    done = [dump for dump in dumps if dump not in waiting and _is_done_with(dump, waiting)]
    if not waiting or not done:
        return None
    counts = sorted({*_lengths(done), *_lengths(waiting)})
    lengths = f" (loaders of {' and '.join(map(str, counts))} batches)" if len(counts) > 1 else ""
    where = "has left" if done[0].state == "left" else f"is beyond its loop, {_at(done[0])}"
    sentence = f"{_names(done)} ran out of batches{_step(done[0])}{lengths} and {where}"
    return _of(UNEVEN_LOADER, done, dumps, sentence + _followers(waiting), at=waiting[0].place)


def _left(dumps: Sequence[RankDump]) -> Diagnosis | None:
    waiting = _waiting(dumps)
    left = [dump for dump in dumps if dump.state == "left" and dump not in waiting]
    if not left or not waiting:
        return None
    first = left[0]
    if _is_ahead(first, waiting):
        sentence = f"{_names(left)} left{_step(first)}, ahead of the others, and so has left out a"
        sentence += " collective before (a step without its backward pass, a NaN that was skipped)"
        return _of(DIVERGED, left, dumps, sentence + _followers(waiting), at=first.last_step_at)
    place = first.last_step_at or first.place
    ways = ", ".join(str(line) for line in place.ways_out) if place else ""
    maybe = (
        f"; its loop is left at line {ways} of {Path(place.file).name}" if place and ways else ""
    )
    seen = f", last seen at {place}" if place else ""
    sentence = f"{_names(left)} left without an error{_step(first)}{seen}{maybe}"
    at = _way_out(place) if place else None
    return _of(EARLY_RETURN, left, dumps, sentence + _followers(waiting), at=at)


def _patient(dumps: Sequence[RankDump]) -> Diagnosis | None:
    """One rank measures or saves for long, and the others were told to expect that."""
    waiting = _waiting(dumps)
    busy = [dump for dump in dumps if dump.waits != "nothing" and dump not in waiting]
    if not waiting or not busy or not all(dump.is_patient for dump in waiting):
        return None
    silent = max(dump.silent_s for dump in dumps)
    sentence = f"no step for {silent:.0f} s: {_does(busy)}{_followers(waiting)}, as is expected"
    return _of(SLOW, busy, dumps, sentence)


def _all_wait_in_collectives(dumps: Sequence[RankDump]) -> Diagnosis | None:
    alive = _waiting(dumps)
    if not alive or len(alive) < len([dump for dump in dumps if dump.waits != "nothing"]):
        return None
    groups = _by_place(alive)
    if len(groups) > 1:
        odd = _odd(groups)
        rest = [dump for dump in alive if dump not in odd]
        sentence = f"{_does(odd)}, while {_does(rest)}"
        return _of(RANK_CONDITIONAL, odd, dumps, sentence, at=odd[0].place)
    steps = {dump.step for dump in alive}
    if len(steps) > 1:
        behind = [dump for dump in alive if dump.step == min(s for s in steps if s is not None)]
        said = ", ".join(f"rank {dump.rank}: step {dump.step}" for dump in alive)
        sentence = f"{_does(alive)} at different steps ({said}): one left out a collective before"
        return _of(RANK_CONDITIONAL, behind, dumps, sentence)
    if len(alive) == 1:
        return None
    return _of(STUCK_LINK, alive, dumps, f"{_does(alive)}{_step(alive[0])}, and nothing comes")


def _some_wait(dumps: Sequence[RankDump]) -> Diagnosis | None:
    waiting = _waiting(dumps)
    others = [dump for dump in dumps if dump.waits != "nothing" and dump not in waiting]
    if not waiting:
        return None
    if not others:
        return _of(STUCK_LINK, waiting, dumps, f"{_does(waiting)}, and no other rank is known")
    conditional = [dump for dump in waiting if _branch(dump)]
    if conditional:
        sentence = f"{_does(conditional)}, which {_names(others)} did not enter: {_does(others)}"
        return _of(RANK_CONDITIONAL, conditional, dumps, sentence)
    sentence = f"{_does(others)}{_step(others[0])}{_followers(waiting)}"
    return _of(DIVERGED, others, dumps, sentence)


def _nobody_waits(dumps: Sequence[RankDump]) -> Diagnosis:
    alive = [dump for dump in dumps if dump.state != "left"] or list(dumps)
    in_loader = [dump for dump in alive if dump.waits == "loader"]
    if in_loader and len(in_loader) == len(alive):
        return _of(STUCK_LOADER, alive, dumps, f"{_does(alive)}{_step(alive[0])}")
    silent = max(dump.silent_s for dump in alive)
    sentence = f"no step for {silent:.0f} s, and no rank waits for another: {_does(alive)}"
    return _of(SLOW, alive, dumps, sentence)


# --- evidence


def _waiting(dumps: Iterable[RankDump]) -> list[RankDump]:
    """In a collective, or thrown out of one by an error of the backend."""
    in_one = [dump for dump in dumps if dump.waits == "collective"]
    return [dump for dump in in_one if dump.is_follower or not dump.error]


def _is_ahead(dump: RankDump, waiting: Sequence[RankDump]) -> bool:
    steps = [other.step for other in waiting if other.step is not None]
    return dump.step is not None and bool(steps) and dump.step > max(steps)


def _in_step(dump: RankDump) -> bool:
    """In the collectives of a training step, rather than in one that the script calls itself."""
    return dump.place is not None and (dump.collective == GRADIENTS or bool(_loop(dump)))


def _loop(dump: RankDump) -> tuple[int, int] | None:
    return dump.place.loop if dump.place else None


def _is_done_with(dump: RankDump, waiting: Sequence[RankDump]) -> bool:
    """Whether `dump`'s rank has ended the loop in which the others still are."""
    if _branch(dump):
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


def _branch(dump: RankDump) -> Place | None:
    """The innermost frame that stands under an `if` which only some ranks enter."""
    return next((place for place in reversed(dump.places) if place.branch), None)


def _by_place(dumps: Sequence[RankDump]) -> list[list[RankDump]]:
    groups: dict[tuple[str | None, str, int], list[RankDump]] = {}
    for dump in dumps:
        place = dump.place
        key = (dump.collective, place.file if place else "", place.line if place else 0)
        groups.setdefault(key, []).append(dump)
    return list(groups.values())


def _odd(groups: list[list[RankDump]]) -> list[RankDump]:
    """The ranks that stand where not all would come: under a branch, else the fewest."""
    under_branch = [group for group in groups if _branch(group[0])]
    return min(under_branch or groups, key=len)


def _way_out(place: Place) -> Place:
    """The one line at which the loop can be left; with several, the line that was last seen."""
    if len(place.ways_out) != 1:
        return place
    return Place(place.file, place.ways_out[0], place.function)


# --- words


def _of(
    kind: str,
    causes: Sequence[RankDump],
    dumps: Sequence[RankDump],
    sentence: str,
    *,
    ranks: Sequence[int] | None = None,
    at: Place | None = None,
    exit_code: int | None = None,
) -> Diagnosis:
    waiting = _waiting(dumps)
    spots = [at, *(dump.place for dump in causes), *(dump.place for dump in waiting)]
    place = next((spot for spot in spots if spot), None)
    waited = Counter(dump.collective for dump in waiting)
    own = causes[0].collective if causes and kind == RANK_CONDITIONAL else None
    return Diagnosis(
        kind,
        tuple(ranks if ranks is not None else (dump.rank for dump in causes)),
        own or (waited.most_common(1)[0][0] if waited else None),
        str(place) if place else "",
        sentence,
        exit_code if exit_code is not None else _RC_OF_KIND.get(kind, TEMPORARY),
    )


def _followers(waiting: Sequence[RankDump]) -> str:
    if not waiting:
        return ""
    return "; " + "; ".join(_waits_for_it(group) for group in _by_place(waiting))


def _waits_for_it(group: Sequence[RankDump]) -> str:
    verb = "waits" if len(group) == 1 else "wait"
    return f"{_names(group)} {verb} in {group[0].collective} {_at(group[0])}{_step(group[0])}"


def _does(dumps: Sequence[RankDump]) -> str:
    return "; ".join(_doing(group) for group in _by_place(dumps))


def _doing(group: Sequence[RankDump]) -> str:
    first = group[0]
    verb = "is" if len(group) == 1 else "are"
    what = {"collective": f"in {first.collective} ", "loader": "in the loader "}.get(
        first.waits, ""
    )
    return f"{_names(group)} {verb} {what}{_at(first)}{_under(first)}"


def _under(dump: RankDump) -> str:
    branch = _branch(dump)
    if branch is None or branch.branch is None:
        return ""
    return f", under `{branch.branch[1]}` at {Path(branch.file).name}:{branch.branch[0]}"


def _at(dump: RankDump) -> str:
    place = dump.place
    if place is None:
        return "at a line that is not known"
    return f"at {place}" + (f" `{place.text[:80]}`" if place.text else "")


def _step(dump: RankDump) -> str:
    return "" if dump.step is None else f", step {dump.step}"


def _names(dumps: Sequence[RankDump]) -> str:
    return _ranks([dump.rank for dump in dumps])


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) > 8:
        return f"{len(ranks)} ranks ({', '.join(map(str, ranks[:4]))}, ...)"
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"


def _lengths(dumps: Sequence[RankDump]) -> set[int]:
    return {length for dump in dumps for length in dump.loader_lengths}


def _one_line(error: str) -> str:
    return error.strip().splitlines()[0][:160] if error.strip() else "an error"


def _row(dump: RankDump) -> str:
    state = dump.state if dump.state != "running" else f"waits: {dump.waits}"
    inside = f" in {dump.collective}" if dump.collective else ""
    error = f" ({_one_line(dump.error)})" if dump.error else ""
    return f"step {dump.step}, {state}{inside} {_at(dump)}{error}"
