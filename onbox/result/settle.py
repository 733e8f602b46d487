"""From a cell that ended well to a result that is proven: publish, verify, prune. In this order.

Publish: every artifact is copied to the durable tier and read back, the manifest last and once.
Verify: the artifacts are loaded where they lie now and looked at; the receipt says what was found.
Prune: only then the declared scratch is removed. Killed anywhere in between and run again, it ends
right; the first result that was published stays, unless its own receipt says that it is bad.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from boxcar.shared import paths, timestamp
from boxcar.shared.artifacts.to_load import loaded_of, said_as, to_load
from boxcar.shared.cell import said, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import atomic, checked_copy, checked_tree, regular_file
from boxcar.shared.disk.checked_copy import OnChunk
from boxcar.shared.disk.checked_tree import ToCopy
from boxcar.shared.errors import BoxcarError, message_of, reason_of
from boxcar.shared.files import attempt, codec, manifest, progress, receipt, release
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.manifest import Carried, FileRecord, Manifest, TrainedOn
from boxcar.shared.files.plan import LOG
from boxcar.shared.files.receipt import BYTES, CellReceipt, Finding, Number
from boxcar.shared.known_secrets import NONE_KNOWN, KnownSecrets
from boxcar.shared.metrics import measure
from boxcar.shared.process import load_child
from boxcar.shared.process.load_child import Loaded
from boxcar.shared.record import replace
from boxcar.shared.sentence import _, chained, mark
from onbox.machine.place import Place
from onbox.result import collect, left, left_artifacts, published
from onbox.result.asked import NOT_KNOWN, Asked
from onbox.result.left_artifacts import LeftArtifacts

# Of a cell and the size of its result in bytes; what it returns is told of each part.
BeginCopy = Callable[[str, int], OnChunk | None]
# What the training layer leaves beside the artifacts: its lines, and what it trained with.
ALSO = (progress.FILE, progress.TRAINING_FILE)
_NAMED = 10
# A tier may refuse a name that scratch takes, or a file may have given way to a pipe meanwhile.
_NAME_ERRNOS = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)


class MovedError(BoxcarError):
    """The cell was given to another queue, which publishes it."""


class GoneError(BoxcarError):
    """A result that was there is not on scratch any more, and not published: run the cell again."""


class UnfitError(BoxcarError):
    """A result that is there and cannot be published as it is: a person has to put it right."""


class UncheckedError(BoxcarError):
    """Nobody could look into a result that is published: nothing is known of it, good or bad."""


def _not_told(cell: str, size_bytes: int) -> None:
    """Nobody asks how far a copy is."""


def publish(
    place: Place,
    cell: CellLine,
    done: Done,
    warnings: tuple[str, ...] = (),
    asked: Asked = NOT_KNOWN,
    *,
    doubt: str | None = None,
    trained_on: TrainedOn | None = None,
    secrets: Collection[str] = (),
    begin_copy: BeginCopy = _not_told,
) -> Manifest:
    """Copy the cell's results to the durable tier with proof; the manifest that stands there.

    `warnings` are sentences of the attempt, for the manifest; what is left out joins them. `doubt`
    marks it. No sentence and no file that is only carried holds one of the `secrets`. `begin_copy`
    is told the size of the rest.
    Raises GoneError, UnfitError, MovedError, NoRoomError, DamagedError, OSError; then nothing was
    published.
    """
    _refuse_moved(place, cell.name)
    if published.stands(place.durable, cell.name):
        return manifest.read_manifest(place.durable.manifest(cell.name))
    found = _whole(place, cell.name)
    files, carried = _copy_results(place, cell.name, found, secrets, begin_copy)
    known = KnownSecrets(secrets)
    made = Manifest(
        run=place.plan.run,
        cell=cell.name,
        queue=place.queue,
        box=place.box,
        release=done.release,
        attempt=done.attempt,
        task=cell.task,
        cfg=cell.cfg,
        epochs=said.epochs(place.plan, cell),
        started_at=done.started_at,
        ended_at=done.ended_at,
        files=files,
        warnings=known.left_out_of((*warnings, *found.left_out)),
        saying=asked.saying,
        overrides=cell.overrides,
        words=asked.words,
        config=asked.config,
        log_begins_at_bytes=attempt.log_begins_at_bytes(
            place.scratch.running(done.cell), done.attempt
        ),
        matches=found.matches,
        carried=replace(carried, left_out=known.left_out_of(carried.left_out)),
        doubt=doubt,
        trained_on=trained_on,
    )
    _refuse_moved(place, cell.name)
    atomic.create_once(place.durable.manifest(cell.name), codec.to_document(made))
    return manifest.read_manifest(place.durable.manifest(cell.name))


def _whole(place: Place, cell: str) -> LeftArtifacts:
    """What the cell has left, where none of it is missing and all of it is fit. Raises GoneError,
    UnfitError.
    """
    found = left_artifacts.look(place, cell)
    if found.missing:
        text = _(
            "{cell} wrote {names}, but now it is gone",
            cell=cell,
            names=", ".join(found.missing),
        )
        raise GoneError(text)
    if found.problem:
        raise UnfitError(found.problem)
    return found


def _copy_results(
    place: Place, cell: str, found: LeftArtifacts, secrets: Collection[str], begin_copy: BeginCopy
) -> tuple[tuple[FileRecord, ...], Carried]:
    """Results, and what is only carried, to the durable tier with proof."""
    _set_aside_bad(place, cell)
    folder = place.durable.cell(cell)
    atomic.make_folder_on_tier(folder, place.durable.cells)
    atomic.remove_unfinished(folder)
    sources = _beside(place, cell) | found.files
    sizes_bytes = [source.stat().st_size for source in sources.values()]
    checked_copy.check_room(folder, sizes_bytes)
    files = _copy_all(sources, folder, begin_copy(cell, sum(sizes_bytes)))
    return files, _carry(place, cell, sources, secrets)


def _refuse_moved(place: Place, cell: str) -> None:
    owner = attempt.claim_of_another(place.durable.claim(cell), place.queue)
    if owner:
        text = _(
            "{cell} belongs to {queue} on {box} now", cell=cell, queue=owner.queue, box=owner.box
        )
        raise MovedError(text)


def verify(place: Place, made: Manifest, known: KnownSecrets = NONE_KNOWN) -> CellReceipt:
    """Load every artifact of a published cell in a child and write the receipt, with no word that
    is `known` for a secret.

    Raises UncheckedError, with no receipt written, where the check could not be made.
    """
    folder = place.durable.cell(made.cell)
    # The training's interpreter has torch, and finds the checker in the release's training zip.
    child = load_child.Child(
        place.plan.training_python, place.release, str(place.release / place.training_zip)
    )
    artifacts = terms.terms_of_cell(place.plan, made.cell).artifacts
    files = to_load(artifacts, made)
    code = said.import_paths(place.plan, made.cell, str(place.release / release.CODE))
    loaded = load_child.load(
        child, folder, files, load_child.Manner(code=code, said_as=said_as(artifacts, made))
    )
    _refuse_unchecked(made.cell, loaded)
    found = CellReceipt(
        run=made.run,
        cell=made.cell,
        attempt=made.attempt,
        manifest_sha256=manifest.sha256(place.durable.manifest(made.cell)),
        checked_at=timestamp.utc_now(),
        findings=tuple(
            receipt.without_secrets(found, known)
            for found in (*(loaded.findings[file.path] for file in files), *_not_there(place, made))
        ),
        metrics=tuple(
            receipt.number_without_secrets(found, known) for found in _metrics(place, made)
        ),
        extra={"loader": loaded.loader, "sandbox": list(loaded.sandbox)},
    )
    atomic.write_whole(place.durable.receipt(made.cell), codec.to_document(found))
    return found


def prune(place: Place, cell: str) -> None:
    """Remove the declared scratch of a cell that is verified, and what it could resume from."""
    link_or_out = place.scratch.out(cell)
    out = link_or_out.resolve()
    for pattern in () if left.is_elsewhere(link_or_out) else place.plan.scratch:
        for path in out.glob(pattern):
            if path.is_file() and path.resolve().is_relative_to(out):
                path.unlink()
    shutil.rmtree(place.scratch.unloaded(cell), ignore_errors=True)
    folder = place.durable.resume(cell)
    if folder.is_dir():
        _empty(folder, manifest.read_manifest(place.durable.manifest(cell)))


def published_in(mirror: Path, made: Manifest) -> set[str]:
    """The names in it that stay: agents of before took a script's files below that name."""
    below = f"{mirror.name}/"
    return {file.path.split("/")[1] for file in made.all_files if file.path.startswith(below)}


def _empty(mirror: Path, made: Manifest) -> None:
    kept = published_in(mirror, made)
    for path in mirror.iterdir():
        if path.name not in kept:
            path.unlink()
    if not kept:
        mirror.rmdir()


def save_log(place: Place, cell: str) -> None:
    """The log of a cell that failed, for whoever looks into it once the box is gone."""
    log = place.scratch.log(cell)
    if log.exists() and not published.stands(place.durable, cell):
        checked_copy.checked_copy(log, place.durable.cell(cell) / log.name, log.name)


def bytes_only(made: CellReceipt) -> list[str]:
    """The files that nobody looked into, by name, as many as a table has room for."""
    return [found.path for found in made.findings if found.kind == BYTES][:_NAMED]


def trusted(made: CellReceipt) -> list[str]:
    """The files that were loaded with the code that wrote them, as many likewise."""
    return [found.path for found in made.findings if found.is_trusted][:_NAMED]


def problems(made: CellReceipt) -> str:
    """What is wrong with the artifacts, in one line."""
    wrong = [found.sentence for found in made.findings if found.problems]
    return chained(mark("{first}; {second}"), wrong)


def _beside(place: Place, cell: str) -> dict[str, Path]:
    """What is published with the artifacts; an artifact of the same name wins."""
    out, log = place.scratch.out(cell), place.scratch.log(cell)
    found = {}
    files = (metric.of for metric in place.plan.metrics if metric.source != LOG)
    named = (name for name in files if not paths.is_own_name(name, cell))
    for folder, name in ((log.parent, log.name), *((out, name) for name in (*ALSO, *named))):
        with contextlib.suppress(OSError):
            if (path := regular_file.resolve_left(folder, name)).is_file():
                found[name] = path
    return found


def _copy_all(
    sources: dict[str, Path], folder: Path, on_chunk: OnChunk | None = None
) -> tuple[FileRecord, ...]:
    files = [ToCopy(source, paths.inside(folder, name), name) for name, source in sources.items()]
    try:
        return checked_tree.copy_all(folder, files, on_chunk)
    except OSError as error:
        if error.errno not in _NAME_ERRNOS:
            raise
        named = checked_tree.named_in(error, files) or "a file"
        text = _(
            "{named} cannot be copied to {folder}: {error}",
            named=named,
            folder=folder,
            error=reason_of(error),
        )
        raise UnfitError(text) from error


def _carry(
    place: Place, cell: str, published_files: Collection[str], secrets: Iterable[str]
) -> Carried:
    """Copy what the job collects. What cannot be is left out: it may cost no result."""
    if not place.plan.collect:
        return Carried()
    folder = place.durable.cell(cell)
    found = collect.look(
        place.scratch.out(cell),
        place.plan.collect,
        published_files,
        cell=cell,
        links=place.plan.links,
        secrets=secrets,
    )
    files: list[FileRecord] = []
    for name, source in found.files.items():
        try:
            checked_copy.check_room(folder, [source.stat().st_size])
            files.extend(_copy_all({name: source}, folder))
        except (BoxcarError, OSError) as error:
            found.leave_out(_("could not be copied ({why})", why=message_of(error).text), name)
    return Carried(tuple(files), found.sentences)


def _refuse_unchecked(cell: str, loaded: Loaded) -> None:
    """A receipt that says `bad` makes a cell be trained again, so doubt must not write one."""
    problems = [finding for finding in loaded.findings.values() if not finding.is_good]
    unchecked = [finding for finding in problems if finding.kind == load_child.UNCHECKED]
    if unchecked and len(unchecked) == len(problems):
        what = _("{path} {problem}", path=unchecked[0].path, problem=unchecked[0].problems[0])
        raise UncheckedError(_("{cell}: {reason}", cell=cell, reason=what))


def _metrics(place: Place, made: Manifest) -> tuple[Number, ...]:
    folder = place.durable.cell(made.cell)
    left = measure.Left(folder, folder / f"{made.cell}.log", made.log_begins_at_bytes)
    return measure.take_numbers(place.plan.metrics, [left])[0]


def _not_there(place: Place, made: Manifest) -> Iterator[Finding]:
    for artifact in terms.terms_of_cell(place.plan, made.cell).artifacts:
        if not loaded_of(artifact.path, made):
            yield Finding(artifact.path, "missing", ("it is not among the published files",))


def _set_aside_bad(place: Place, cell: str) -> None:
    """Keep a result that was published and found bad, under another name."""
    if not place.durable.manifest(cell).exists():
        return
    aside = place.durable.replaced
    atomic.make_folder(aside)
    stamp = timestamp.utc_now().replace(":", "")
    place.durable.cell(cell).rename(aside / f"{cell}-{stamp}")
    atomic.sync_folder(aside)
    atomic.sync_folder(place.durable.cells)
