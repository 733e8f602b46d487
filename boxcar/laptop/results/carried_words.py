"""What `collect` brought along, in words: carried, not proven. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from boxcar.laptop.common import units
from boxcar.laptop.results.judge import Pulled
from boxcar.shared.sentence import _


def carried_sentences(cells: Sequence[Pulled]) -> list[str]:
    """Of all cells of a run together; none where nothing was to be carried."""
    with_files = [cell for cell in cells if cell.manifest.carried.files]
    files = sum(len(cell.manifest.carried.files) for cell in with_files)
    size = units.size(sum(cell.manifest.carried.size_bytes for cell in with_files))
    found: list[str] = []
    if files:
        of = {"cells": len(with_files), "all": len(cells)}
        found.append(
            _(
                "{n:,} unverified extra {n:file|files} ({size}) in {cells} of {all} "
                "{all:cell|cells}",
                n=files,
                size=size,
                **of,
            )
        )
    lost = sum(len(cell.carried_differences) for cell in cells)
    if lost:
        found.append(
            _(
                "{n:,} extra {n:file differs|files differ} from what was published, or "
                "{n:is|are} missing",
                n=lost,
            )
        )
    left_out = Counter(
        why.partition(": ")[0] for cell in cells for why in cell.manifest.carried.left_out
    )
    return found + [
        _(
            "extra files left out ({why}): in {n} {n:cell|cells}; explain --cell CELL lists them",
            n=count,
            why=why,
        )
        for why, count in left_out.items()
    ]


def carried_document(pulled: Pulled | None) -> dict[str, Any]:
    """What `--json` prints of a cell."""
    if pulled is None:
        return {"files": 0, "size_bytes": 0, "left_out": [], "lacks": []}
    carried = pulled.manifest.carried
    return {
        "files": len(carried.files),
        "size_bytes": carried.size_bytes,
        "left_out": list(carried.left_out),
        "lacks": [difference.path for difference in pulled.carried_differences],
    }
