"""The saying of a cell: the digest of what its line asks for, so that a name means one thing.

It stands in the claim, the event `cell.started`, the pointer to the live checkpoint and the
manifest. What was begun under another saying is neither resumed nor taken for this cell.
"""

from __future__ import annotations

from boxcar.shared.cell import said
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import digest
from boxcar.shared.files.plan import Cell, Plan


def saying_of(plan: Plan, line: CellLine | Cell, config_sha256: str | None) -> str:
    """Config, task, epochs, overrides and own variables; not where or with how many ranks it runs.

    `config_sha256` is of the config's bytes; None where there is no config.
    """
    return digest.of_json(
        {
            "cfg": line.cfg,
            "config_sha256": config_sha256,
            "task": line.task,
            "epochs": said.epochs(plan, line),
            "overrides": list(line.overrides),
            "env": dict(line.own.env),
        }
    )


def sayings_differ(one: str | None, other: str | None) -> bool:
    """Whether both are known, and not the same: what is older has none, and is taken."""
    return bool(one and other and one != other)
