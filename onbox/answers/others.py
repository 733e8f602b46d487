"""What else is on this box: other runs of ours, and programs on its GPUs that are nobody's run.

A run is seen by the locks of its agents and attempts below the data folder of the one that asks, by
BOXCAR_RUN in the environment of a process wherever its folders are, and by what lies on its tier.
A record that cannot be read hides no other. Nothing here decides anything.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from boxcar.shared import names, paths
from boxcar.shared.cell import visible_gpus
from boxcar.shared.cell.cell_name import CELL_NAME
from boxcar.shared.disk import digest, lock
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files import control, release
from boxcar.shared.files.control import AgentStart
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import DurablePaths, ScratchPaths
from boxcar.shared.record import replace
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.box_asks import AtWork, OtherRun, Stranger
from boxcar.shared.wire.question import RunOnBox
from onbox.machine import gpus, process

# --- Who else is on a box: its other runs, and programs that are no run's.

RUN, CELL = "BOXCAR_RUN", "BOXCAR_CELL"


def answer(question: box_asks.SeeOthers, run: RunOnBox) -> box_asks.OthersSeen:
    runs = {other.run: other for other in at_work_beside(run)}
    if question.stays is not None:
        stays = {paths.on_box(text): is_kept for text, is_kept in question.stays.items()}
        for name, results in _results_beside(run, stays).items():
            known = runs.get(name) or _at_rest(name)
            runs[name] = replace(known, results=results)
    return box_asks.OthersSeen(tuple(runs[name] for name in sorted(runs)), _strangers())


def at_work_beside(run: RunOnBox) -> list[OtherRun]:
    """The other runs of which something works here, by name."""
    found = {scratch.run: _by_locks(scratch, run) for scratch in _scratches(run)}
    for name, cells in _by_process(run.run).items():
        known = found.get(name) or _at_rest(name)
        # What a process sees counts beside what its job asks for: nobody has to read the latter.
        sees = [*([known.devices] if known.is_at_work else []), *cells.values()]
        found[name] = replace(
            known,
            cells=tuple(sorted({*known.cells, *cells})),
            devices=visible_gpus.together(sees),
        )
    return [found[name] for name in sorted(found) if found[name].is_at_work]


def is_at_work(run: RunOnBox) -> bool:
    """Whether this run's own agents or cells work here."""
    return _by_locks(run.scratch, run).is_at_work


def _at_rest(name: str) -> OtherRun:
    return OtherRun(name, (), (), {})


def _scratches(run: RunOnBox) -> list[ScratchPaths]:
    there = paths.scratches(run.scratch.data_dir)
    return [scratch for scratch in there if scratch.run != run.run]


def _by_locks(scratch: ScratchPaths, run: RunOnBox) -> OtherRun:
    """Its queues and cells that are at work, and the GPUs that their jobs ask for."""
    starts = _starts(scratch)
    tiers = {queue: _tier_of(scratch.run, start, run) for queue, start in starts.items()}
    queues = [
        queue
        for queue, tier in tiers.items()
        if any(map(lock.is_held, locks_of_agent(tier, scratch, queue)))
    ]
    cells = [str(of.cell) for path, of in locks_of_attempts(scratch) if lock.is_held(path)]
    plans = [_plan_of(tiers[queue], starts[queue]) for queue in queues or starts]
    devices = visible_gpus.together(visible_gpus.of_plan(plan) if plan else None for plan in plans)
    takes_free = bool(plans) and all(plan and plan.gpus_per_cell for plan in plans)
    return OtherRun(scratch.run, tuple(queues), tuple(cells), {}, devices, takes_free or None)


def _starts(scratch: ScratchPaths) -> dict[str, AgentStart | None]:
    """How its queues were started here; None where that cannot be read."""
    found: dict[str, AgentStart | None] = dict.fromkeys(scratch.started())
    for queue in found:
        with contextlib.suppress(OSError, BoxcarError):
            found[queue] = control.read_agent_start(scratch.start(queue))
    return found


def _tier_of(name: str, start: AgentStart | None, run: RunOnBox) -> DurablePaths:
    with contextlib.suppress(BoxcarError):
        return DurablePaths(paths.on_box(start.durable_dir if start else run.durable_dir), name)
    return DurablePaths(run.tier.durable_dir, name)


def _plan_of(tier: DurablePaths, start: AgentStart | None) -> Plan | None:
    if start is not None:
        with contextlib.suppress(OSError, BoxcarError):
            return release.read_plan(tier.release(start.release))
    return None


def _by_process(own: str) -> dict[str, dict[str, visible_gpus.Devices | None]]:
    """Of each other run the cells whose processes live here, and the GPUs that these see."""
    found: dict[str, dict[str, visible_gpus.Devices | None]] = {}
    for pid, name in process.carrying(RUN).items():
        env = process.environment(pid)
        cell = env.get(CELL, "")
        if name != own and names.RUN.fullmatch(name) and CELL_NAME.fullmatch(cell):
            cells = found.setdefault(name, {})
            sees = visible_gpus.of_env(env)
            cells[cell] = visible_gpus.together([cells.get(cell, sees), sees])
    return found


# --- what lies here and would go with the box


def _results_beside(run: RunOnBox, stays: Mapping[Path, bool]) -> dict[str, dict[str, str | None]]:
    tiers = {(name, run.tier.durable_dir) for name in _names_on(run.tier.durable_dir)}
    for scratch in _scratches(run):
        starts = _starts(scratch).values()
        tiers |= {(scratch.run, _tier_of(scratch.run, one, run).durable_dir) for one in starts}
    found: dict[str, dict[str, str | None]] = {}
    for name, folder in sorted(tiers):
        if name != run.run and not _is_kept(folder, stays):
            found.setdefault(name, {}).update(_results_on(DurablePaths(folder, name)))
    return {name: results for name, results in found.items() if results}


def _names_on(durable_dir: Path) -> list[str]:
    found = (durable_dir / "boxcar").glob("*/")
    return [path.name for path in found if names.RUN.fullmatch(path.name)]


def _is_kept(folder: Path, stays: Mapping[Path, bool]) -> bool:
    """As the tier says that it lies in: the innermost of them."""
    around = [tier for tier in stays if folder.is_relative_to(tier)]
    return bool(around) and stays[max(around, key=lambda tier: len(tier.parts))]


def _results_on(tier: DurablePaths) -> dict[str, str | None]:
    """The cells that were begun or published there, with the digests of their manifests."""
    begun = {path.stem for path in tier.claims.glob("*.json")}
    begun |= {path.name for path in tier.cells.glob("*/")}
    return {name: _digest(tier.manifest(name)) for name in begun if CELL_NAME.fullmatch(name)}


def _digest(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return digest.of_bytes(path.read_bytes())
    return None


# --- what is on the GPUs


def _strangers() -> tuple[Stranger, ...]:
    """Programs that compute on a GPU and belong to no run."""
    return tuple(_stranger(pid) for pid in gpus.pids_on_gpus() if not _is_of_a_run(pid))


def _is_of_a_run(pid: int) -> bool:
    return RUN in process.environment(pid)


def _stranger(pid: int) -> Stranger:
    sees = visible_gpus.of_env(process.environment(pid))
    return Stranger(pid, process.program(pid), _user_of(pid), sees)


def _user_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116
        with contextlib.suppress(KeyError):
            return pwd.getpwuid(uid).pw_name
        return str(uid)
    return "?"


# --- What is held while a run works on this box: its agents' locks, its attempts' logs.


def locks_of_agents(
    tier: DurablePaths, scratch: ScratchPaths, queues: Iterable[str]
) -> Iterator[tuple[Path, AtWork]]:
    """What is held while an agent runs, and while one is being started."""
    for queue in sorted({*queues, *scratch.started()}):
        for path in locks_of_agent(tier, scratch, queue):
            yield path, AtWork(queue=queue)


def locks_of_agent(tier: DurablePaths, scratch: ScratchPaths, queue: str) -> tuple[Path, Path]:
    return tier.lock(queue), scratch.agent_log(queue)


def locks_of_attempts(scratch: ScratchPaths) -> Iterator[tuple[Path, AtWork]]:
    for folder in sorted(scratch.cells.glob("*/")):
        if CELL_NAME.fullmatch(folder.name) and scratch.log(folder.name).is_file():
            yield scratch.log(folder.name), AtWork(cell=folder.name)
