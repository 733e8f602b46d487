"""From a cell that ended well to a result that is proven: publish, verify, prune. In this order.

Publish: every artifact is copied to the durable tier and read back, the manifest last and once.
Verify: the artifacts are loaded where they lie now and looked at; the receipt says what was found.
Prune: only then the declared scratch is removed. Killed anywhere in between and run again, it ends
right; the first result that was published stays, unless its own receipt says that it is bad.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxcar.formats import codec, copy, durable, loading, manifest, paths, receipt, timestamp
from boxcar.formats.attempt import Done
from boxcar.formats.manifest import Manifest
from boxcar.formats.paths import DurablePaths, ScratchPaths
from boxcar.formats.plan import Artifact, Plan
from boxcar.formats.queue_line import CellLine
from boxcar.formats.receipt import CellReceipt
from onbox import progress


@dataclass(frozen=True)
class Place:
    """Where one agent works: the same for every cell of its queue."""

    plan: Plan
    release: Path
    training_zip: str
    queue: str
    box: str
    durable: DurablePaths
    scratch: ScratchPaths


def epochs(place: Place, cell: CellLine) -> int:
    """Of the line, else the job's default; a line without either is not run (Runner.problem)."""
    return cell.epochs or place.plan.epochs or 0


def missing_artifacts(place: Place, cell: str) -> list[str]:
    """The artifacts of the job that the cell has not left, or left empty."""
    out = place.scratch.out(cell)
    return [a.path for a in place.plan.artifacts if not list(_artifact_files(out, a))]


def is_published(place: Place, cell: str) -> bool:
    """Whether a result stands that no later attempt may replace."""
    return place.durable.manifest(cell).exists() and not _is_known_bad(place, cell)


def publish(place: Place, cell: CellLine, done: Done) -> Manifest:
    """Copy the cell's results to the durable tier with proof; the manifest that stands there.

    Raises NoRoomError, DamagedError, OSError; then nothing was published.
    """
    if is_published(place, cell.name):
        return manifest.read(place.durable.manifest(cell.name))
    _set_aside_bad(place, cell.name)
    folder = place.durable.cell(cell.name)
    durable.make_folder(folder)
    durable.remove_unfinished(folder)
    sources = dict(_to_publish(place, cell.name))
    copy.check_room(folder, (source.stat().st_size for source in sources.values()))
    files = tuple(
        copy.checked_copy(source, paths.inside(folder, name), name)
        for name, source in sources.items()
    )
    made = Manifest(
        run=place.plan.run,
        cell=cell.name,
        queue=place.queue,
        box=place.box,
        release=place.release.name,
        attempt=done.attempt,
        task=cell.task,
        cfg=cell.cfg,
        epochs=epochs(place, cell),
        started_at=done.started_at,
        ended_at=done.ended_at,
        files=files,
    )
    durable.create_once(place.durable.manifest(cell.name), codec.to_document(made))
    return manifest.read(place.durable.manifest(cell.name))


def verify(place: Place, published: Manifest) -> CellReceipt:
    """Load every artifact of a published cell in a child and write the receipt."""
    folder = place.durable.cell(published.cell)
    # The training's interpreter has torch, and finds the checker in the release's training zip.
    child = loading.Child(
        place.plan.training_python, place.release, str(place.release / place.training_zip)
    )
    files = _to_load(place, published)
    loaded = loading.load(child, folder, files)
    made = CellReceipt(
        run=published.run,
        cell=published.cell,
        attempt=published.attempt,
        manifest_sha256=manifest.sha256(place.durable.manifest(published.cell)),
        checked_at=timestamp.utc_now(),
        findings=tuple(loaded.findings[file.path] for file in files),
        extra={"loader": loaded.loader, "sandbox": list(loaded.sandbox)},
    )
    durable.write_whole(place.durable.receipt(published.cell), codec.to_document(made))
    return made


def prune(place: Place, cell: str) -> None:
    """Remove the declared scratch and the mirrored checkpoint of a cell that is verified."""
    out = place.scratch.out(cell).resolve()
    for pattern in place.plan.scratch:
        for path in out.glob(pattern):
            if path.is_file() and path.resolve().is_relative_to(out):
                path.unlink()
    folder = place.durable.resume(cell)
    if folder.is_dir():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def save_log(place: Place, cell: str) -> None:
    """The log of a cell that failed, for whoever looks into it once the box is gone."""
    log = place.scratch.log(cell)
    if log.exists() and not is_published(place, cell):
        copy.checked_copy(log, place.durable.cell(cell) / log.name, log.name)


def numbers(made: CellReceipt) -> dict[str, Any]:
    """The numbers that the cell's JSON artifacts hold, for the journal and the webhooks."""
    found: dict[str, Any] = {}
    for finding in made.findings:
        found |= finding.facts.get("numbers", {})
    return found


def problems(made: CellReceipt) -> str:
    """What is wrong with the artifacts, in one line."""
    return "; ".join(f"{f.path}: {', '.join(f.problems)}" for f in made.findings if f.problems)


def _to_publish(place: Place, cell: str) -> Iterator[tuple[str, Path]]:
    out, log = place.scratch.out(cell), place.scratch.log(cell)
    yield log.name, log
    if (out / progress.FILE).is_file():
        yield progress.FILE, out / progress.FILE
    # Last, so that an artifact wins over a log that has the same name.
    for artifact in place.plan.artifacts:
        yield from _artifact_files(out, artifact)


def _artifact_files(out: Path, artifact: Artifact) -> Iterator[tuple[str, Path]]:
    """An artifact may be a file, or a folder of files. Links are not followed."""
    path = paths.inside(out, artifact.path)
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in found:
        name = file.relative_to(out).as_posix()
        if file.is_file() and not paths.has_symlink(out, name) and file.stat().st_size:
            yield name, file


def _to_load(place: Place, published: Manifest) -> list[Artifact]:
    """Each published file that belongs to an artifact, with the keys that it must hold."""
    names = [file.path for file in published.files]
    return [
        Artifact(name, artifact.keys)
        for artifact in place.plan.artifacts
        for name in names
        if name == artifact.path or name.startswith(f"{artifact.path}/")
    ]


def _is_known_bad(place: Place, cell: str) -> bool:
    try:
        found = receipt.read_cell(place.durable.receipt(cell))
    except FileNotFoundError:
        return False
    is_of_this = found.manifest_sha256 == manifest.sha256(place.durable.manifest(cell))
    return is_of_this and not found.is_good


def _set_aside_bad(place: Place, cell: str) -> None:
    """Keep a result that was published and found bad, under another name."""
    if not place.durable.manifest(cell).exists():
        return
    aside = place.durable.root / "replaced"
    durable.make_folder(aside)
    stamp = timestamp.utc_now().replace(":", "")
    place.durable.cell(cell).rename(aside / f"{cell}-{stamp}")
    durable.sync_folder(aside)
    durable.sync_folder(place.durable.cells)
