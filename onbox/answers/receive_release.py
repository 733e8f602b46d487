"""A release that the laptop sends: is it there, is there room for it, and is it what was sent.

It comes under an unfinished name and takes its digest as its name once every byte was compared. A
folder of that name is never changed again, whatever it holds.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.disk import atomic, checked_copy
from boxcar.shared.disk.digest import short
from boxcar.shared.disk.regular_file import read_plain
from boxcar.shared.disk.tree_sync import TreeSync
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    InputError,
    TemporaryError,
    words_of,
)
from boxcar.shared.files import codec, manifest, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Release, is_unfinished
from boxcar.shared.sentence import _
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import newest_release

# A push that has written nothing for so long was killed.
STILL_S = 3600.0
_MOST_TOLD = 5
_KEPT = "It is left as it is; move the folder away if no agent runs from it, and push again"


def answer(
    question: run_asks.FindRelease | run_asks.Prepare | run_asks.CopyUnchanged | run_asks.Install,
    run: RunOnBox,
) -> run_asks.FoundRelease | run_asks.Prepared | run_asks.CopiedThere | run_asks.Installed:
    if isinstance(question, run_asks.Prepare):
        return prepare(question, run)
    if isinstance(question, run_asks.CopyUnchanged):
        return copy_unchanged(question, run)
    folder = run.tier.release(question.digest)
    if isinstance(question, run_asks.Install):
        return run_asks.Installed(install(folder, question.unfinished))
    return find(folder, is_newest=newest_release.is_newest(run.tier, question.digest))


def find(folder: Path, *, is_newest: bool = False) -> run_asks.FoundRelease:
    """Whether the release is there, and every way in which it is not as it was pushed."""
    is_there = folder.is_dir() or folder.is_symlink()
    problems = tuple(_problems(folder, folder.name) if is_there else ())
    return run_asks.FoundRelease(is_there, problems, is_newest)


def prepare(question: run_asks.Prepare, run: RunOnBox) -> run_asks.Prepared:
    """Make the run's folders, remove what killed pushes left, and see that the rest has room;
    nothing of that where the release is there.

    What was left of this very `digest` is kept, and its name told as `kept`: the push goes on in
    it. What was written to a while ago stays too: a push of another release may be on its way. With
    `is_mounted` the tier's own folder has to be there: made by us it would lie on the box's own
    disk, and be lost with it. Raises NoRoomError, InputError.
    """
    tier = run.tier
    if tier.release(question.digest).is_dir():
        return run_asks.Prepared(None)
    if question.is_mounted and not tier.durable_dir.is_dir():
        raise InputError(
            _(
                "{durable_dir} is not there on this box: its shared file system is not mounted or "
                "not initialised yet. See the platform's console, then",
                durable_dir=tier.durable_dir,
            ),
            Command("audit"),
        )
    for folder in (*tier.folders(), run.scratch.root):
        atomic.make_folder(folder)
    left = [path for path in tier.releases.iterdir() if atomic.is_temporary(path.name)]
    kept = [path for path in left if _is_to_go_on(path, question.digest)][:1]
    for path in left:
        if path not in kept and not _is_on_its_way(path):
            _remove(path)
    here_bytes = sum(file.stat().st_size for path in kept for file in _files(path))
    checked_copy.check_room(tier.releases, [*question.sizes_bytes, -here_bytes])
    return run_asks.Prepared(kept[0].name if kept else None, _bases(run))


def _bases(run: RunOnBox) -> tuple[str, ...]:
    newest = newest_release.newest_there(run.tier)
    names = [f"../{newest}"] if newest else []
    names.append(
        str(run.scratch.root.parent)
    )  # the agent's file lies there since the first question
    return tuple(name for name in names if run_asks.is_base(name))


def copy_unchanged(question: run_asks.CopyUnchanged, run: RunOnBox) -> run_asks.CopiedThere:
    """What rsync does where a box has it. Nobody believes in these copies: the whole release is
    compared before it gets its name. Raises NoRoomError, DamagedError for a path that leads out.
    """
    folder = run.tier.releases / question.unfinished
    sources = [run.tier.releases / base.removeprefix("../") for base in _bases(run)]
    return run_asks.CopiedThere(
        tuple(file.path for file in question.files if _has_or_copies(folder, file, sources))
    )


def _has_or_copies(folder: Path, file: FileRecord, sources: Sequence[Path]) -> bool:
    target = paths.inside(folder, file.path)
    if not manifest.compare_one(folder, file):
        return True
    source = next((one for one in sources if not manifest.compare_one(one, file)), None)
    if source is not None:
        atomic.make_folder(target.parent)
        shutil.copy(source / file.path, target)
    return source is not None


def install(target: Path, unfinished: str) -> bool:
    """Give what was sent as `unfinished` its name; False where the release was there before.

    Of two who install at once one renames, and the other finds the release there. Killed between
    any two lines, the same call again completes it. Raises DamagedError for a release that is not
    what its digest says, there before or sent now, and TemporaryError where nothing was sent.
    """
    folder = target.with_name(unfinished)
    is_new = not target.is_dir() and _install(folder, target)
    if not is_new:
        _refuse(target, _problems(target, target.name), _KEPT)
        _remove(folder)
    atomic.sync_folder(target.parent)
    return is_new


def _is_to_go_on(path: Path, digest: str) -> bool:
    return is_unfinished(path.name, digest) and path.is_dir() and not path.is_symlink()


def _is_on_its_way(path: Path) -> bool:
    """Whether something in it was written lately. By ctime: rsync sets the other times."""
    if path.is_symlink() or not path.is_dir():
        return False
    for entry in (path, *path.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # rsync renames meanwhile
            # A time ahead is of before the clock was set back.
            if abs(time.time() - entry.lstat().st_ctime) < STILL_S:
                return True
    return False


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _install(folder: Path, target: Path) -> bool:
    """Check what was sent and rename it; False where somebody else was faster."""
    try:
        _sync(folder)
        if problems := _problems(folder, target.name):
            # A push that goes on in it would take a damaged file for one that is there already.
            _remove(folder)
            _refuse(folder, problems, "It was removed; send it again", Command("push"))
        folder.rename(target)
    except (OSError, BoxcarError):
        if not target.is_dir():
            raise
        return False
    return True


def _sync(folder: Path) -> None:
    if folder.is_symlink() or not folder.is_dir():
        raise TemporaryError(
            _(
                "{folder}: what was sent is gone, and nothing else was touched. Send it again",
                folder=folder,
            ),
            Command("push"),
        )
    found = [path for path in folder.rglob("*") if not path.is_symlink()]
    files = [path for path in found if path.is_file()]
    folders = [path for path in (*found, folder) if path.is_dir()]
    with TreeSync(folder) as sync:
        sync.make_durable(files, folders, sum(path.stat().st_size for path in files))


def _problems(folder: Path, digest: str) -> list[str]:
    """Every way in which the folder is not the release of that digest."""
    if folder.is_symlink():
        return ["it is a symbolic link, expected a folder"]
    data = read_plain(folder, release.FILE)
    if data is None:
        return [f"{release.FILE} is missing"]
    try:
        found = codec.from_document(Release, data, release.FILE)
        if found.digest != digest:
            return [f"{release.FILE} has digest {short(found.digest)}, expected {short(digest)}"]
        return [f"{one.path} {one.problem}" for one in manifest.compare(folder, found.files)]
    except DamagedError as error:
        return [words_of(error)]


def _refuse(
    folder: Path, problems: list[str], what_now: str, command: Command | None = None
) -> None:
    if problems:
        told = "; ".join(problems[:_MOST_TOLD])
        raise DamagedError(
            _(
                "{folder}: is not as it was pushed: {told}. {what_now}",
                folder=folder,
                told=told,
                what_now=what_now,
            ),
            command,
        )


def _remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # another push may be at it too
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
