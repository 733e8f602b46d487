"""The files of all cells under one roof, as `<cell>/<path>`: which `verify` loads, and whose each
finding is. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from boxcar.laptop.results import trusted
from boxcar.laptop.results.judge import CellFacts
from boxcar.shared.cell import terms
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Artifact, Plan
from boxcar.shared.files.receipt import Finding
from boxcar.shared.to_load import said_as, to_load


def to_be_loaded(plan: Plan, facts: Iterable[CellFacts]) -> tuple[list[Artifact], dict[str, str]]:
    """The files of the cells whose bytes are right; and what job.yaml calls each."""
    files: list[Artifact] = []
    said: dict[str, str] = {}
    for cell in facts:
        if cell.pulled and cell.is_whole:
            artifacts, made = terms.terms_of_cell(plan, cell.cell).artifacts, cell.pulled.manifest
            found, names = to_load(artifacts, made), said_as(artifacts, made)
            files += [replace(file, path=f"{cell.cell}/{file.path}") for file in found]
            said |= {f"{cell.cell}/{f.path}": names.get(f.path, f.path) for f in found}
    return files, said


def allowed(paths: Sequence[str], names: Sequence[str]) -> list[str]:
    """Those that a person named, as `<cell>/<path>` or as `<path>` for every cell.

    Raises InputError for a name that fits nothing.
    """
    fits = {
        name: [path for path in paths if name in (path, path.partition("/")[2])] for name in names
    }
    if unknown := [name for name, found in fits.items() if not found]:
        raise InputError(
            [f"--allow-pickle {name}: no artifact here has this name" for name in unknown]
        )
    return sorted({path for found in fits.values() for path in found})


def by_cell(findings: Mapping[str, Finding]) -> dict[str, list[Finding]]:
    """Each cell's own, with the paths of its manifest; they are given by `<cell>/<path>`."""
    found: dict[str, list[Finding]] = {}
    for where, finding in findings.items():
        cell, _, path = where.partition("/")
        found.setdefault(cell, []).append(replace(finding, path=path))
    return found


def vouched_by_box(facts: CellFacts, findings: Sequence[Finding]) -> list[Finding]:
    """A cell's findings; what its box alone may load, by that box's word."""
    pulled = facts.pulled
    if pulled is None:
        return list(findings)
    return trusted.vouched_by_receipt(findings, pulled.manifest, pulled.sha256, pulled.receipt)
