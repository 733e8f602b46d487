"""The second home as the laptop sees it: whether each box reaches it, and results and live
checkpoints from there, where box and tier are out of reach.

They go where a pull and `watch` put them, so whatever is done with results or with a checkpoint
that is lent to another box goes on from there. A result counts by digests only: each file is as its
manifest says, and the manifest is the one that the box had reported; of a result of which nothing
was reported, the release has to be one that was launched from here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxcar.laptop.common import home, side_by_side
from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.fitness.tier_check import Ask
from boxcar.laptop.project import launches
from boxcar.laptop.project.profiles import training_here
from boxcar.laptop.results import bring_cell, bring_checkpoint, compare, results_folder
from boxcar.laptop.results.bring_cell import Published
from boxcar.laptop.results.bring_checkpoint import Due
from boxcar.laptop.run.open_run import OpenRun
from boxcar.laptop.run.view import CellView
from boxcar.shared import paths
from boxcar.shared.disk import checked_copy, digest
from boxcar.shared.errors import BoxcarError, DamagedError, NoRoomError, TemporaryError, words_of
from boxcar.shared.files import manifest, resume_pointer
from boxcar.shared.files.plan import Plan
from boxcar.shared.files.resume_pointer import Resume
from boxcar.shared.paths import DurablePaths
from boxcar.shared.process import second_home_child
from boxcar.shared.process.second_home_child import Child
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, chained, mark
from boxcar.shared.state import Synced, Verified
from boxcar.shared.wire import box_asks

WHAT = "second home"
TRY_TIMEOUT_S = 150.0


@dataclass(frozen=True)
class Lying:
    """What the second home has of a cell. None: nothing. `problem`: why that is not known."""

    published: Published | None = None
    pointer: Resume | None = None
    problem: str | None = None


def check(
    ask: Ask, plan: Plan, boxes: Sequence[str], hook: str, secrets: Mapping[str, str]
) -> list[Row]:
    """A row for each box; none where no second home is named. `ask` is as `OpenRun.ask`."""
    url = plan.second
    if url is None:
        return []
    tier = DurablePaths(Path(plan.durable_dir), plan.run)
    question = box_asks.TrySecondHome(
        second_home_child.url_of(url, tier, tier.root),
        plan.training_python,
        hook,
        home.training_program("second_home"),
        second_home_child.variables(plan),
        dict(secrets),
    )

    def of_box(box: str) -> Row:
        try:
            problem = ask(box, question, timeout_s=TRY_TIMEOUT_S).problem
        except (BoxcarError, OSError) as error:
            problem = words_of(error)
        return Row(box, WHAT, "refuse" if problem else "ok", url, problem or "")

    return side_by_side.each(boxes, of_box)


def is_needed(run: OpenRun) -> bool:
    """Whether one is named, and what is known of the tier may not be all."""
    if run.plan.second is None:
        return False
    has_lost = any(run.has_lost_its_tier(box.name) for box in run.plan.boxes)
    return has_lost or not run.tier.root.is_dir() or bool(run.doubts())


def look_into_second_home(run: OpenRun, cells: Iterable[str]) -> dict[str, Lying]:
    """What is there of these; what is damaged of one hides no other. Raises TemporaryError where
    nothing can be had.
    """
    folder = run.results.partial / ".second"
    shutil.rmtree(folder, ignore_errors=True)
    names = {cell: (f"{cell}/{paths.MANIFEST}", f"{cell}/{paths.RESUME}") for cell in cells}
    all_names = [name for pair in names.values() for name in pair]
    wrong = _get(run, run.tier.cells, folder, all_names, is_each=True).get("wrong", {})
    found = {cell: _lying(cell, folder, pair, wrong) for cell, pair in names.items()}
    shutil.rmtree(folder, ignore_errors=True)
    return {cell: lying for cell, lying in found.items() if lying != Lying()}


def bring_result(run: OpenRun, cell: CellView, wanted: Published) -> Path | None:
    """Put the result into its place; where an older copy lies now, if there was one.

    Raises DamagedError for what is not what it should be, NoRoomError, TemporaryError, OSError.
    """
    _refuse_other(run, cell, wanted)
    partial = bring_cell.partial_of(run, wanted)
    checked_copy.check_room(partial, [file.size_bytes for file in wanted.manifest.all_files])
    _get(run, run.tier.cell(cell.name), partial, wanted.proven)
    _get_carried(run, partial, wanted)
    if wrong := bring_cell.wrong(partial, wanted):
        raise DamagedError(
            _(
                "{url}: {cell}: {problems}",
                url=run.plan.second,
                cell=cell.name,
                problems=chained(mark("{first}; {second}"), wrong),
            )
        )
    aside = bring_cell.keep_cell(run, partial, wanted)
    results_folder.keep_from_second_home(run.results, cell.name, digest.of_bytes(wanted.data))
    return aside


def bring_live_checkpoint(run: OpenRun, cell: CellView, pointer: Resume) -> bool:
    """Put it where `launch` takes it from; False where the one here is as new. Raises as above."""
    before = bring_checkpoint.here(run, cell.name)
    if before and before.at >= pointer.at:
        return False
    wanted = Due(cell.name, cell.box, pointer)
    partial = bring_checkpoint.partial_of(run, wanted)
    _get(run, run.tier.resume(cell.name), partial, [pointer.file.path])
    bring_checkpoint.keep(run, wanted, partial)
    return True


def _lying(cell: str, folder: Path, names: tuple[str, str], wrong: Mapping[str, str]) -> Lying:
    """As far as its manifest was there, or else its pointer."""
    published, pointer = names
    lies = (folder / published).exists() or published in wrong
    if why := wrong.get(published if lies else pointer):
        return Lying(problem=f"{published if lies else pointer}: {why}")
    try:
        if lies:
            data = (folder / published).read_bytes()
            return Lying(Published(cell, data, manifest.parse_manifest(data, published)))
        return Lying(pointer=resume_pointer.read_file(folder / pointer))
    except (DamagedError, OSError) as error:
        return Lying(problem=words_of(error))


def _refuse_other(run: OpenRun, cell: CellView, wanted: Published) -> None:
    """An earlier run of this name may have left it there, or another attempt."""
    where = Path(f"{run.plan.second} {cell.name}")
    compare.check_manifest(wanted.manifest, run.plan.run, cell.name, where)
    now = cell.record.state if cell.record else None
    found = digest.of_bytes(wanted.data)
    if isinstance(now, (Synced, Verified)) and wanted.manifest.attempt <= now.attempt:
        if found != now.manifest_sha256:
            raise DamagedError(
                _(
                    "{where}: is not the result that the event log names: its manifest {found}",
                    where=where,
                    found=digest.other(found, now.manifest_sha256),
                )
            )
    elif wanted.manifest.release not in _launched(run):
        raise DamagedError(
            _(
                "{where}: belongs to release {release}, which was not launched from here. Is it "
                "from an earlier run of this name?",
                where=where,
                release=digest.short(wanted.manifest.release),
            )
        )


def _launched(run: OpenRun) -> set[str]:
    reported = {path.name for path in run.tier.releases.glob("*")}
    return reported | launches.releases_of(run.results)


def _get(
    run: OpenRun, there: Path, folder: Path, names: Sequence[str], *, is_each: bool = False
) -> dict[str, Any]:
    url = second_home_child.url_of(str(run.plan.second), run.tier, there)
    request = {"do": "get", "url": url, "folder": str(folder.absolute()), "paths": list(names)}
    return second_home_child.ask(_child(run, os.environ), request | {"is_each": is_each})


def _get_carried(run: OpenRun, partial: Path, wanted: Published) -> None:
    """As far as it is there and right: it may cost no result."""
    if not wanted.carried:
        return
    try:
        _get(run, run.tier.cell(wanted.cell), partial, wanted.carried)
    except (TemporaryError, NoRoomError):
        raise
    except BoxcarError:
        pass
    bring_cell.drop_wrong(partial, wanted.manifest.carried.files)


def _child(run: OpenRun, environ: Mapping[str, str]) -> Child:
    """The person's own environment: the way to their storage is in it, and in their home."""
    own = second_home_child.variables(replace(run.plan, env={}))
    secrets = tuple(environ[name] for name in run.plan.secrets if environ.get(name))
    text = home.training_program("second_home")
    return Child(training_here.for_training(), {**environ, **own}, secrets, text)
