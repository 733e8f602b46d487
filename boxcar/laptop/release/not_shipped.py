"""Which configs would not travel with the code: only the box would miss them."""

from __future__ import annotations

from boxcar.laptop.release.code_files import Snapshot
from boxcar.shared.cell.cell_name import NO_CONFIG
from boxcar.shared.cell.spelling import config_path, stored_names
from boxcar.shared.files.plan import Plan


def not_shipped(plan: Plan, shipped: Snapshot) -> list[str]:
    """A sentence on each config that an ignore file leaves out."""
    names = stored_names(file.path for file in shipped.files)
    return [
        f"{cell.cfg}: the config of {cell.name} would not be sent: an ignore file leaves it out"
        for cell in plan.cells
        if cell.cfg != NO_CONFIG and config_path(cell.cfg) not in names
    ]
