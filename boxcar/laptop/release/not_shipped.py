"""Which configs and linked folders would not travel with the code: only the box would miss them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxcar.laptop.release.code_files import Snapshot
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.cell.cell_name import NO_CONFIG
from boxcar.shared.cell.spelling import config_path, stored_names
from boxcar.shared.files.plan import Plan


def not_shipped(plan: Plan, shipped: Snapshot) -> list[str]:
    """A sentence on each config, and on each folder of `links`, that an ignore file leaves out."""
    names = stored_names(file.path for file in shipped.files)
    empty = [
        Sentence("files.link_stays", name=folder)
        for folder in plan.links.values()
        if not any(file.path.startswith(f"{folder}/") for file in shipped.files)
    ]
    return [
        *empty,
        *_configs(plan, names),
    ]


def _configs(plan: Plan, names: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        f"{cell.cfg}: the config of {cell.name} would not be sent: an ignore file leaves it out"
        for cell in plan.cells
        if cell.cfg != NO_CONFIG and config_path(cell.cfg) not in names
    ]
