"""Build the release: everything that a run executes, in one folder named by its content.

Written once into the project's `.boxcar/releases/<digest>/`, from where `push` sends it. The same
inputs make the same digest; what is there already and checks out is taken as it is.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from boxcar.laptop.common.home import SCHEMA_COMMENT, Home
from boxcar.laptop.common.language import language_of
from boxcar.laptop.project.project import Project
from boxcar.laptop.release import archives, batch_jobs, code_files, data_files, wrappers
from boxcar.laptop.release.code_files import CodeFile, Snapshot
from boxcar.laptop.release.left_out_files import not_shipped
from boxcar.shared.disk import atomic, checked_copy, checked_tree, digest, lock
from boxcar.shared.disk.checked_tree import ToCopy
from boxcar.shared.errors import DamagedError, InputError, TemporaryError
from boxcar.shared.files import codec, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.release import Release
from boxcar.shared.record import replace
from boxcar.shared.sentence import _


def build(project: Project, tell: Callable[[str], None]) -> tuple[Release, Path]:
    """The release of `project` as it is now, and the folder that holds it.

    `tell` hears of files that were left out because they hold secrets.
    Raises InputError for code that cannot be shipped or a template that cannot be rendered,
    DamagedError where a release that was built before was changed, TemporaryError, NoRoomError.
    """
    _refresh_schema(project)
    taken = code_files.snapshot_of(project)
    if left_out := not_shipped(project.plan, taken):
        raise InputError(left_out)
    for name in taken.withheld:
        tell(
            _(
                "{name} stays here: secrets never travel with the code. Name them under secrets: "
                "in job.yaml",
                name=name,
            )
        )
    onbox, training = archives.build_onbox(), archives.build_training()
    names = (
        archives.file_name("onbox", onbox, ".pyz"),
        archives.file_name("training", training, ".zip"),
    )
    contents = _wrappers(project, names[0]) | dict(zip(names, (onbox, training), strict=True))
    data = {one.name: one.digest for one in data_files.read_data(project)}
    contents[release.PLAN] = codec.to_document(replace(project.plan, data=data))
    if taken.diff is not None:
        contents[code_files.DIFF] = taken.diff
    described = Release(project.plan.run, *names, taken.code, _records(contents, taken))
    folder = Home(project.root).release(described.digest)
    if not _is_there(folder):
        _write(folder, described, contents, taken)
    return described, folder


def _refresh_schema(project: Project) -> None:
    """For an editor, where job.yaml names it: a clone has none, and another version's is old."""
    with contextlib.suppress(OSError):
        if SCHEMA_COMMENT.encode() in project.job_path.read_bytes():
            from boxcar.laptop.project import job_schema  # late: it costs more than most releases

            job_schema.write_job_schema(project.root, language_of("", os.environ))


def _wrappers(project: Project, onbox: str) -> dict[str, bytes]:
    plan, hook, own = project.plan, project.profile.hook, project.root / "templates"
    made = {
        release.RUN_QUEUE: wrappers.render_run_queue(plan, hook, onbox, own).encode(),
        release.RUN_ONE: wrappers.render_run_one(plan, hook, own).encode(),
    }
    for job in batch_jobs.of_project(project):
        script = wrappers.render_run_slurm(plan, job, project.profile.slurm.container, own)
        made[job.script] = script.encode()
    return made


def _records(made: dict[str, bytes], taken: Snapshot) -> tuple[FileRecord, ...]:
    records = [FileRecord(name, len(data), digest.of_bytes(data)) for name, data in made.items()]
    records += [_record(file) for file in taken.files]
    return tuple(sorted(records, key=lambda record: record.path))


def _record(file: CodeFile) -> FileRecord:
    # With the mode left out, chmod +x would change nothing and be missed on the box.
    mode = {"is_executable": True} if file.is_executable else {}
    size_bytes = file.source.stat().st_size
    return FileRecord(_name(file), size_bytes, digest.of_file(file.source), mode)


def _name(file: CodeFile) -> str:
    return f"{release.CODE}/{file.path}"


def _is_there(folder: Path) -> bool:
    """Whether the release was built before. Raises DamagedError where it was changed since."""
    if not folder.is_dir():
        return False
    try:
        problems = [f"{found.path} {found.problem}" for found in release.check(folder)]
    except FileNotFoundError:
        problems = [f"{release.FILE} is missing"]
    if problems:
        raise DamagedError(
            _(
                "{folder}: has changed since it was built: {problems}. It will be built again. "
                "Type: rm -r {command}",
                folder=folder,
                problems="; ".join(problems),
                command=shlex.quote(str(folder)),
            )
        )
    return True


def _write(folder: Path, described: Release, made: dict[str, bytes], taken: Snapshot) -> None:
    atomic.make_folder(folder.parent)
    held = lock.try_hold(folder.parent / ".lock")
    if held is None:
        raise TemporaryError(
            _(
                "{parent}: another command is building a release there. Run this one again after "
                "it",
                parent=folder.parent,
            )
        )
    try:
        if _is_there(folder):
            return  # built by another command a moment ago
        _remove_unfinished(folder.parent)
        checked_copy.check_room(folder.parent, (file.size_bytes for file in described.files))
        unfinished = atomic.temporary_name(folder)
        _fill(unfinished, described, made, taken)
        unfinished.rename(folder)
        atomic.sync_folder(folder.parent)
    finally:
        os.close(held)


def _remove_unfinished(folder: Path) -> None:
    for left in folder.iterdir():
        if atomic.is_temporary(left.name):
            shutil.rmtree(left)


def _fill(folder: Path, described: Release, made: dict[str, bytes], taken: Snapshot) -> None:
    atomic.make_folder(folder)
    for name, data in made.items():
        mode = 0o755 if name.endswith(".sh") else 0o644
        atomic.write_whole(folder / name, data, mode=mode)
    expected = {file.path: (file.size_bytes, file.sha256) for file in described.files}
    sources = {_name(file): file for file in taken.files}
    copies = [ToCopy(file.source, folder / name, name) for name, file in sources.items()]
    for copied in checked_tree.copy_all(folder, copies):
        file = sources[copied.path]
        if (copied.size_bytes, copied.sha256) != expected[copied.path]:
            raise TemporaryError(
                _("{source}: changed while it was copied. Run this again", source=file.source)
            )
        if file.is_executable:
            (folder / copied.path).chmod(0o755)
    atomic.write_whole(folder / release.FILE, codec.to_document(described))
