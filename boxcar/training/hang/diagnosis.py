"""Which rank is to blame for a hang, in which collective, at which line. Pure.

    found = diagnose(dumps, world)
    print(report(found, dumps))

The surest evidence comes first: a rank's own error, a rank that is not there, one that has left,
and only then where the living ones stand. What is not known is said as not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boxcar.shared.process.exit_codes import NO_RETRY, TEMPORARY
from boxcar.training.hang import evidence
from boxcar.training.hang.evidence import (
    at_line,
    at_step,
    doing,
    followers,
    names,
    nodes,
    one_line,
    ranks_text,
)
from boxcar.training.hang.rank_dump import RankDump
from boxcar.training.hang.stacks import CodeLine

RANK_CONDITIONAL = "rank-conditional-collective"
UNEVEN_LOADER = "uneven-loader"
EARLY_RETURN = "early-return"
DIVERGED = "one-rank-diverged"
ALL_RAISED = "every-rank-raised"
STUCK_LOADER = "stuck-loader"
STUCK_LINK = "stuck-link"
OTHER_SIZE = "collective-of-another-size"
ABORTED = "one-rank-aborted"
SLOW = "slow"

# The same script would hang at the same place again; the rest may go well another time.
_RC_OF_KIND = {
    **dict.fromkeys((RANK_CONDITIONAL, UNEVEN_LOADER, OTHER_SIZE), NO_RETRY),
    **dict.fromkeys((ALL_RAISED, ABORTED), 1),
    SLOW: 0,
}

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
    OTHER_SIZE: "Every rank must give the same shape to the same collective: look at a last batch "
    "that is smaller, at what only some ranks compute, and at collectives that only some call.",
    ABORTED: "The words above its stack say why. gloo aborts a rank that gets more than it asked "
    "for: then another rank's collective has another size.",
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
    found = (
        _own_error(dumps, world)
        or _silent(dumps, silent)
        or _uneven(dumps)
        or _left(dumps)
        or _of_another_size(dumps)
        or _aborted(dumps)
        or _patient(dumps)
        or _all_wait_in_collectives(dumps)
        or _some_wait(dumps)
        or _nobody_waits(dumps)
    )
    return replace(found, sentence=found.sentence + nodes(found.ranks, dumps))


# --- one kind each, from the surest evidence down


def _own_error(dumps: Sequence[RankDump], world: int) -> Diagnosis | None:
    causes = [dump for dump in dumps if dump.error and not dump.is_follower]
    if not causes:
        return None
    first = causes[0]
    what = f"raised {one_line(first.error)} {at_line(first)}{at_step(first)}"
    if len(causes) == world:
        sentence = f"all {world} ranks raised; {names(causes[:1])} {what}"
        return _of(ALL_RAISED, causes, dumps, sentence)
    others = "" if len(causes) == 1 else f", and {names(causes[1:])} raised too"
    sentence = f"{names([first])} {what}{others}{followers(evidence.waiting(dumps))}"
    return _of(DIVERGED, causes, dumps, sentence, exit_code=1)


def _of_another_size(dumps: Sequence[RankDump]) -> Diagnosis | None:
    """Ranks gave different sizes to one collective, whether it was aborted, or hangs for it."""
    by_size = evidence.by_size(dumps)
    if not by_size or not evidence.waiting(dumps):
        return None
    parts = [f"{names(group)} called {size}" for size, group in by_size.items()]
    odd = min(by_size.values(), key=len)
    conditional = [dump for dump in dumps if evidence.branch(dump)]
    kind = RANK_CONDITIONAL if conditional else OTHER_SIZE
    sentence = f"{', '.join(parts)}: {doing(dumps)}{at_step(odd[0])}"
    return _of(kind, conditional or odd, dumps, sentence)


def _aborted(dumps: Sequence[RankDump]) -> Diagnosis | None:
    aborted = [dump for dump in dumps if dump.state == "aborted"]
    if not aborted:
        return None
    others = [dump for dump in evidence.waiting(dumps) if dump not in aborted]
    where = f"{doing(aborted)}{at_step(aborted[0])}"
    sentence = f"{names(aborted)} {'was' if len(aborted) == 1 else 'were'} aborted in C++: {where}"
    return _of(ABORTED, aborted, dumps, sentence + followers(others))


def _silent(dumps: Sequence[RankDump], silent: list[int]) -> Diagnosis | None:
    if not silent or not evidence.waiting(dumps):
        return None
    why = (
        "wrote nothing in this folder: killed (SIGKILL, out of memory), crashed in C++, stopped, "
        "or on a node that does not share the folder"
    )
    sentence = f"{ranks_text(silent)} {why}{followers(evidence.waiting(dumps))}"
    return _of(DIVERGED, [], dumps, sentence, ranks=silent)


def _uneven(dumps: Sequence[RankDump]) -> Diagnosis | None:
    """Some ranks have run out of batches while others wait for their gradients."""
    waiting = [dump for dump in evidence.waiting(dumps) if evidence.in_step(dump)]
    done = [dump for dump in dumps if dump not in waiting and evidence.is_done_with(dump, waiting)]
    if not waiting or not done:
        return None
    counts = sorted({*evidence.loader_lengths(done), *evidence.loader_lengths(waiting)})
    lengths = f" (loaders of {' and '.join(map(str, counts))} batches)" if len(counts) > 1 else ""
    where = "has left" if done[0].state == "left" else f"is beyond its loop, {at_line(done[0])}"
    sentence = f"{names(done)} ran out of batches{at_step(done[0])}{lengths} and {where}"
    return _of(UNEVEN_LOADER, done, dumps, sentence + followers(waiting), at=waiting[0].place)


def _left(dumps: Sequence[RankDump]) -> Diagnosis | None:
    waiting = evidence.waiting(dumps)
    left = [dump for dump in dumps if dump.state == "left" and dump not in waiting]
    if not left or not waiting:
        return None
    first = left[0]
    if evidence.is_ahead(first, waiting):
        sentence = f"{names(left)} left{at_step(first)}, ahead of the others, and so has left out a"
        sentence += " collective before (a step without its backward pass, a NaN that was skipped)"
        return _of(DIVERGED, left, dumps, sentence + followers(waiting), at=first.last_step_at)
    place = first.last_step_at or first.place
    ways = ", ".join(str(line) for line in place.ways_out) if place else ""
    maybe = (
        f"; its loop is left at line {ways} of {Path(place.file).name}" if place and ways else ""
    )
    seen = f", last seen at {place}" if place else ""
    sentence = f"{names(left)} left without an error{at_step(first)}{seen}{maybe}"
    at = evidence.way_out(place) if place else None
    return _of(EARLY_RETURN, left, dumps, sentence + followers(waiting), at=at)


def _patient(dumps: Sequence[RankDump]) -> Diagnosis | None:
    """One rank measures or saves for long, and the others were told to expect that."""
    waiting = evidence.waiting(dumps)
    busy = [dump for dump in dumps if dump.waits != "nothing" and dump not in waiting]
    if not waiting or not busy or not all(dump.is_patient for dump in waiting):
        return None
    silent = max(dump.silent_s for dump in dumps)
    sentence = f"no step for {silent:.0f} s: {doing(busy)}{followers(waiting)}, as is expected"
    return _of(SLOW, busy, dumps, sentence)


def _all_wait_in_collectives(dumps: Sequence[RankDump]) -> Diagnosis | None:
    alive = evidence.waiting(dumps)
    if not alive or len(alive) < len([dump for dump in dumps if dump.waits != "nothing"]):
        return None
    groups = evidence.by_place(alive)
    if len(groups) > 1:
        odd = evidence.odd_ones(groups)
        rest = [dump for dump in alive if dump not in odd]
        sentence = f"{doing(odd)}, while {doing(rest)}"
        return _of(RANK_CONDITIONAL, odd, dumps, sentence, at=odd[0].place)
    steps = {dump.step for dump in alive}
    if len(steps) > 1:
        behind = [dump for dump in alive if dump.step == min(s for s in steps if s is not None)]
        said = ", ".join(f"rank {dump.rank}: step {dump.step}" for dump in alive)
        sentence = f"{doing(alive)} at different steps ({said}): one left out a collective before"
        return _of(RANK_CONDITIONAL, behind, dumps, sentence)
    if len(alive) == 1:
        return None
    return _of(
        STUCK_LINK,
        alive,
        dumps,
        f"{doing(alive)}{at_step(alive[0])}, and nothing comes",
    )


def _some_wait(dumps: Sequence[RankDump]) -> Diagnosis | None:
    waiting = evidence.waiting(dumps)
    others = [dump for dump in dumps if dump.waits != "nothing" and dump not in waiting]
    if not waiting:
        return None
    if not others:
        return _of(STUCK_LINK, waiting, dumps, f"{doing(waiting)}, and no other rank is known")
    conditional = [dump for dump in waiting if evidence.branch(dump)]
    if conditional:
        sentence = f"{doing(conditional)}, which {names(others)} did not enter: {doing(others)}"
        return _of(RANK_CONDITIONAL, conditional, dumps, sentence)
    sentence = f"{doing(others)}{at_step(others[0])}{followers(waiting)}"
    return _of(DIVERGED, others, dumps, sentence)


def _nobody_waits(dumps: Sequence[RankDump]) -> Diagnosis:
    alive = [dump for dump in dumps if dump.state != "left"] or list(dumps)
    in_loader = [dump for dump in alive if dump.waits == "loader"]
    if in_loader and len(in_loader) == len(alive):
        return _of(STUCK_LOADER, alive, dumps, f"{doing(alive)}{at_step(alive[0])}")
    silent = max(dump.silent_s for dump in alive)
    sentence = f"no step for {silent:.0f} s, and no rank waits for another: {doing(alive)}"
    return _of(SLOW, alive, dumps, sentence)


def _of(
    kind: str,
    causes: Sequence[RankDump],
    dumps: Sequence[RankDump],
    sentence: str,
    *,
    ranks: Sequence[int] | None = None,
    at: CodeLine | None = None,
    exit_code: int | None = None,
) -> Diagnosis:
    waiting = evidence.waiting(dumps)
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


# --- The report of a hang for a person: the sentence, what to do, and a line for each rank. Pure.


def report(diagnosis: Diagnosis, dumps: Sequence[RankDump], folder: Path | None = None) -> str:
    """The report for a person: the sentence, what to do, and a line for each rank."""
    head = f"boxcar: {diagnosis.kind}: {diagnosis.sentence}"
    rows = [f"  {named}: {_row(dump)}" for dump, named in zip(dumps, _named(dumps), strict=True)]
    tail = [f"  stacks of all ranks: {folder}/rank_*.json"] if folder else []
    return "\n".join([head, f"  {diagnosis.advice}", *rows, *tail])


def _named(dumps: Sequence[RankDump]) -> list[str]:
    """With its node where there are several."""
    is_over_nodes = len({dump.host for dump in dumps}) > 1
    return [f"rank {dump.rank}" + f" on {dump.host}" * is_over_nodes for dump in dumps]


def _row(dump: RankDump) -> str:
    state = dump.state if dump.state != "running" else f"waits: {dump.waits}"
    inside = f" in {dump.collective}" if dump.collective else ""
    error = f" ({one_line(dump.error)})" if dump.error else ""
    step = "" if dump.step is None else f"step {dump.step}, "
    return f"{step}{state}{inside} {at_line(dump)}{error}"
