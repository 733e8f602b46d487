"""Data folders that runs share: what is there, room for one, its proof, its removal.

A folder comes under an unfinished name, in which a sending that broke off is gone on with. It takes
its digest as its name once every byte was compared, and is only removed by a person's word.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import atomic, checked_copy, lock
from boxcar.shared.disk.mounts import disk_room
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    InputError,
    TemporaryError,
    some,
)
from boxcar.shared.files import data_proof, fetched_data, manifest, release
from boxcar.shared.paths import DATA_FILES, DataPaths, DurablePaths, ScratchPaths
from boxcar.shared.sentence import _
from boxcar.shared.wire import data_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import others

_MOST_TOLD = 5


def answer(
    question: data_asks.FindData
    | data_asks.PrepareData
    | data_asks.InstallData
    | data_asks.RemoveData,
    run: RunOnBox,
) -> data_asks.DataFound | data_asks.DataPrepared | data_asks.DataInstalled | data_asks.DataRemoved:
    store = run.data_store(is_on_tier=question.on_tier)
    if isinstance(question, data_asks.FindData):
        return find(store, run, is_thorough=question.is_thorough)
    if isinstance(question, data_asks.PrepareData):
        return prepare(store, question)
    if isinstance(question, data_asks.InstallData):
        return data_asks.DataInstalled(install(store, run, question))
    return data_asks.DataRemoved(remove(store, run, question.digest))


def find(store: DataPaths, run: RunOnBox, *, is_thorough: bool = False) -> data_asks.DataFound:
    uses = [*_links(run), *_on_tier(store, run)]
    found = []
    for folder in data_proof.stored(store.root):
        problems = data_proof.problems_of_data(folder, is_thorough=is_thorough)
        files: tuple[data_proof.ProvenFile, ...] = ()
        with contextlib.suppress(OSError, DamagedError):
            files = data_proof.read_proof(folder).files
        size_bytes = sum(file.size_bytes for file in files)
        runs = tuple(sorted({name for name, at in uses if at == folder.name}))
        told = tuple(problems[:_MOST_TOLD])
        found.append(data_asks.DataSeen(folder.name, size_bytes, len(files), told, runs))
    return data_asks.DataFound(tuple(found), disk_room(there(store.root)).free_bytes)


def prepare(store: DataPaths, question: data_asks.PrepareData) -> data_asks.DataPrepared:
    """Make its unfinished folder where there is room for what is still to come."""
    folder = store.unfinished(question.digest)
    here = [path.stat().st_size for path in _files(folder)]
    left_bytes = max(0, sum(question.sizes_bytes) - sum(here))
    new = max(0, len(question.sizes_bytes) - len(here))
    checked_copy.check_room(there(store.root), [left_bytes, *[0] * new])
    atomic.make_folder(folder / DATA_FILES)
    return data_asks.DataPrepared(str(folder / DATA_FILES))


def install(store: DataPaths, run: RunOnBox, question: data_asks.InstallData) -> bool:
    """Prove what was sent and name it; False where it is there, whole, already. Killed between any
    two lines, the same call again completes it. Raises DamagedError for what is not that data,
    InputError where it would take the place of what a run at work reads.
    """
    target, folder = store.folder(question.digest), store.unfinished(question.digest)
    if data_proof.digest_of_files(question.files) != question.digest:
        raise DamagedError(_("{digest}: not the digest of these files", digest=question.digest))
    if target.exists() and not data_proof.problems_of_data(target):
        _remove(folder)
        return False
    if not folder.is_dir():
        raise TemporaryError(
            _("{folder}: what was sent is gone. Send it again", folder=folder), Command("push")
        )
    _leave_only(folder / DATA_FILES, {file.path for file in question.files})
    if found := manifest.compare(folder / DATA_FILES, question.files):
        for one in found:  # else it would be taken for one that is there already
            with contextlib.suppress(OSError):
                paths.inside(folder / DATA_FILES, one.path).unlink()
        told = some([f"{one.path} {one.problem}" for one in found], _MOST_TOLD)
        raise DamagedError(
            _("data: what arrived differs: {told}. Send it again", told=told), Command("push")
        )
    if target.exists():  # damaged, and sent anew
        _refuse_in_use(store, run, question.digest)
        _remove(target)
    data_proof.give_name(folder, target, question.files)
    return True


def remove(store: DataPaths, run: RunOnBox, digest: str) -> int:
    """Its size in bytes. Raises InputError where a run at work needs it, or it is not there."""
    folder = store.folder(digest)
    if not folder.is_dir():
        raise InputError(_("there is no data {digest} here", digest=digest[:12]))
    _refuse_in_use(store, run, digest)
    size_bytes = sum(path.stat().st_size for path in _files(folder))
    aside = store.unfinished(digest)
    _remove(aside)
    folder.rename(aside)
    _remove(aside)
    return size_bytes


def _refuse_in_use(store: DataPaths, run: RunOnBox, digest: str) -> None:
    """Raises InputError where a run at work is linked to it."""
    linked = {name for name, at in _links(run) if at == digest}
    at_work = {one.run for one in others.at_work_beside(run)}
    at_work |= {run.run} if others.is_at_work(run) else set()
    out_of_sight = {name for name, at in _on_tier(store, run) if at == digest}
    if busy := sorted(linked & at_work | out_of_sight):
        raise InputError(
            _(
                "data {digest} is in use by {runs}: wait for its end, or stop it first",
                digest=digest[:12],
                runs=", ".join(busy),
            )
        )


def _links(run: RunOnBox) -> Iterator[tuple[str, str]]:
    """Each run that is linked to data on this box, with the digest."""
    for scratch in paths.scratches(run.scratch.data_dir):
        yield from ((scratch.run, at) for at in _linked(scratch))


def _on_tier(store: DataPaths, run: RunOnBox) -> Iterator[tuple[str, str]]:
    """Each run with an agent at work, on whatever box, that reads the tier's data; with the digest.
    A job of a cluster has its links where nobody else sees them.
    """
    tier_dir = run.tier.durable_dir
    if store.root != DataPaths(tier_dir).root:
        return
    for folder in sorted((tier_dir / "boxcar").glob("*/")):
        tier = DurablePaths(tier_dir, folder.name)
        is_at_work = any(map(lock.is_held, tier.lock("x").parent.glob("*.lock")))
        for release_folder in tier.releases.glob("*/") if is_at_work else ():
            with contextlib.suppress(OSError, BoxcarError):
                plan = release.read_plan(release_folder)
                found = (fetched_data.find_data(store, one) for one in plan.data_urls)
                for digest in (*plan.data.values(), *(one.digest for one in found if one)):
                    yield folder.name, digest


def _linked(scratch: ScratchPaths) -> Iterator[str]:
    for link in scratch.data.glob("*/*"):
        with contextlib.suppress(OSError):
            yield Path(link.readlink()).parent.name


def _leave_only(folder: Path, names: set[str]) -> None:
    """What was there while an earlier sending went on, and is no more."""
    for path in list(_files(folder, with_links=True)):
        if str(path.relative_to(folder)) not in names:
            path.unlink()


def _files(folder: Path, *, with_links: bool = False) -> Iterator[Path]:
    for parent, _folders, files in os.walk(folder):
        for name in files:
            path = Path(parent, name)
            if with_links or not path.is_symlink():
                yield path


def there(folder: Path) -> Path:
    """What of the path exists."""
    return next(one for one in (folder, *folder.parents) if one.is_dir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise BoxcarError(
                _("{path}: cannot be removed: {error}", path=path, error=error)
            ) from error
