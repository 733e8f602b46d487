"""What was asked of a cell, as its result says it: for a report, and for who reuses its name."""

from __future__ import annotations

from pathlib import Path

from boxcar.shared.cell import said, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.said import Places
from boxcar.shared.disk import digest
from boxcar.shared.paths import DurablePaths, inside
from boxcar.shared.record import dataclass
from onbox.machine.place import Place

# A config is a page; what is longer is data.
_LARGEST_CONFIG_BYTES = 64 * 1024


@dataclass(frozen=True)
class Asked:
    """`words` without those of a resume; `config` None where it is no text, or too long."""

    saying: str | None = None
    words: tuple[str, ...] = ()
    config: str | None = None


# Of a release that this agent cannot open.
NOT_KNOWN = Asked()


def of_cell(place: Place, line: CellLine, code: Path, config_sha256: str | None) -> Asked:
    """`code` is the staged code of the release whose record of the config is `config_sha256`."""
    out = str(place.scratch.out(line.name))
    resume = said.resume_place(out, terms.terms_of_cell(place.plan, line.name).resume)
    after = after_folders(place.durable, line)
    places = Places(out, str(code), resume, after=after, data=place.data)
    return Asked(
        said.saying_of(place.plan, line, config_sha256),
        said.say_cell(place.plan, line, places).words,
        _text(inside(code, line.cfg), config_sha256) if config_sha256 else None,
    )


def after_folders(tier: DurablePaths, line: CellLine) -> dict[str, str]:
    """Where the results lie that {after} stands for."""
    return {cell: str(tier.cell(cell)) for cell in line.own.after}


def _text(config: Path, sha256: str) -> str | None:
    try:
        if config.stat().st_size > _LARGEST_CONFIG_BYTES:
            return None
        data = config.read_bytes()
        return data.decode() if digest.of_bytes(data) == sha256 else None
    except (OSError, UnicodeDecodeError):
        return None
