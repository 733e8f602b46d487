"""The words that run_one.sh is started with: all that it has to know of a cell, filled already."""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.shared.cell.said import SaidCell

BEFORE_WORDS = "--"
_HEAD = 8
NODES = "BOXCAR_NODES"


def of_attempt(box: str, cell: str, number: int, what: SaidCell, ranks: int) -> list[str]:
    """BOX CELL ATTEMPT LAUNCHER RANKS TIME_S WORKDIR RESUME [NAME=VALUE ...] -- WORD ...

    TIME_S is 0 for an attempt that may take as long as it does. RANKS are one node's; how many
    nodes there are stands among the variables.
    """
    head = [box, cell, str(number), what.launcher, str(ranks), str(what.time_s or 0)]
    pairs = [f"{name}={value}" for name, value in what.env.items()]
    pairs += [f"{NODES}={what.nodes}"] if what.nodes > 1 else []
    return [*head, what.workdir, what.resume, *pairs, BEFORE_WORDS, *what.words]


def of_no_cell(words: Sequence[str]) -> list[str]:
    """What of an attempt's words is alike for all cells that are launched in the same way."""
    box, _, number, launcher, ranks, _, workdir, _ = words[:_HEAD]
    return [box, "", number, launcher, ranks, "0", workdir, "", BEFORE_WORDS]
