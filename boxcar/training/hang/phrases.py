"""Parts of sentences about ranks: who they are, where they are and what they wait for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from boxcar.training.hang import evidence
from boxcar.training.hang.rank_dump import RankDump


def followers(waiting: Sequence[RankDump]) -> str:
    """`; ranks 1, 2 wait in barrier at train.py:24`, after a sentence about what they wait for."""
    if not waiting:
        return ""
    return "; " + "; ".join(_waits_for_it(group) for group in evidence.by_place(waiting))


def _waits_for_it(group: Sequence[RankDump]) -> str:
    verb = "waits" if len(group) == 1 else "wait"
    return f"{names(group)} {verb} in {group[0].collective} {at_line(group[0])}{at_step(group[0])}"


def doing(dumps: Sequence[RankDump]) -> str:
    """`rank 0 is in barrier at save.py:9; rank 1 is at data.py:7`: a part for each line."""
    return "; ".join(_doing(group) for group in evidence.by_place(dumps))


def _doing(group: Sequence[RankDump]) -> str:
    first = group[0]
    verb = "is" if len(group) == 1 else "are"
    what = {"collective": f"in {first.collective} ", "loader": "in the loader "}.get(
        first.waits, ""
    )
    return f"{names(group)} {verb} {what}{at_line(first)}{_under(first)}"


def _under(dump: RankDump) -> str:
    branch = evidence.branch(dump)
    if branch is None or branch.branch is None:
        return ""
    return f", under `{branch.branch[1]}` at {Path(branch.file).name}:{branch.branch[0]}"


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
