from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from plans import make_plan

from boxcar.laptop.common.home import SCHEMA_COMMENT, Home
from boxcar.laptop.release import archives as bundle
from boxcar.laptop.release import build as builder
from boxcar.shared.disk import checked_copy as copy
from boxcar.shared.disk import lock, tree_sync
from boxcar.shared.errors import DamagedError, InputError, TemporaryError
from boxcar.shared.files import plan, release
from boxcar.shared.files.plan import Box, Plan

PLAN = make_plan(
    boxes=(Box("box-a", "/data", "/root/credentials.json"),),
    queues={"queue_1": "box-a"},
    launcher="python",
    nproc=1,
)


@dataclasses.dataclass(frozen=True)
class Job:
    code: str = "code"
    data: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Profile:
    hook: str = ""
    is_slurm: bool = False


@dataclasses.dataclass(frozen=True)
class Project:
    """What `build` looks at."""

    root: Path
    job: Job = Job()
    profile: Profile = Profile()
    plan: Plan = PLAN

    @property
    def job_path(self) -> Path:
        return self.root / "job.yaml"


@pytest.fixture(scope="module")
def archives() -> tuple[bytes, bytes]:
    return bundle.build_onbox(), bundle.build_training()


@pytest.fixture
def project(
    tmp_path: Path, archives: tuple[bytes, bytes], monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project with a little code. The archives are real, and built once for all tests."""
    monkeypatch.setattr(bundle, "build_onbox", lambda: archives[0])
    monkeypatch.setattr(bundle, "build_training", lambda: archives[1])
    root = tmp_path / "it's a project"
    for name in ("train.py", "configs/a.yaml", "lib/ü ☃.py"):
        path = root / "code" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    return Project(root)


def _build(project: Project, tell: Callable[[str], None] = print) -> tuple[release.Release, Path]:
    made: Any = builder.build(project, tell)  # type: ignore[arg-type]
    return made


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _releases(project: Project) -> list[str]:
    return sorted(path.name for path in (project.root / ".boxcar" / "releases").iterdir())


def test_a_release_holds_all_that_a_run_executes(project: Project) -> None:
    made, folder = _build(project)
    assert folder == project.root / ".boxcar" / "releases" / made.digest
    assert release.read_release(folder) == made
    assert release.check(folder) == []
    assert plan.read_plan(folder / release.PLAN) == PLAN
    listed = {file.path for file in made.files} | {release.FILE}
    assert set(_contents(folder)) == listed
    assert listed == {
        *("plan.json", "release.json", "run_one.sh", "run_queue.sh", made.onbox, made.training),
        *("code/train.py", "code/configs/a.yaml", "code/lib/ü ☃.py"),
    }
    assert os.access(folder / release.RUN_QUEUE, os.X_OK)
    assert os.access(folder / release.RUN_ONE, os.X_OK)


def test_the_agent_of_the_release_starts(project: Project) -> None:
    made, folder = _build(project)
    command = [sys.executable, "-I", "-S", str(folder / made.onbox), "--help"]
    assert subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode == 0


def test_the_same_inputs_change_nothing(project: Project) -> None:
    made, folder = _build(project)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert _build(project) == (made, folder)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_the_same_content_elsewhere_is_the_same_release(project: Project, tmp_path: Path) -> None:
    other = Project(tmp_path / "another folder")
    shutil.copytree(project.root, other.root)
    made, folder = _build(project)
    same, elsewhere = _build(other)
    assert same == made
    assert elsewhere != folder
    assert _contents(elsewhere) == _contents(folder)


def _edit_code(project: Project) -> Project:
    (project.root / "code" / "train.py").write_text("changed\n")
    return project


def _make_executable(project: Project) -> Project:
    (project.root / "code" / "train.py").chmod(0o755)
    return project


def _edit_template(project: Project) -> Project:
    (project.root / "templates").mkdir()
    (project.root / "templates" / "run_queue.sh.j2").write_text("echo {{ plan.run }}\n")
    return project


def _edit_plan(project: Project) -> Project:
    return dataclasses.replace(project, plan=dataclasses.replace(PLAN, epochs=21))


def _edit_hook(project: Project) -> Project:
    return dataclasses.replace(project, profile=Profile("export A=1"))


@pytest.mark.parametrize(
    "edit", [_edit_code, _make_executable, _edit_template, _edit_plan, _edit_hook]
)
def test_a_changed_input_makes_a_release_beside_the_old_one(
    edit: Callable[[Project], Project], project: Project
) -> None:
    made, folder = _build(project)
    before = _contents(folder)
    changed, beside = _build(edit(project))
    assert changed.digest != made.digest
    assert beside != folder
    assert _contents(folder) == before


def test_the_project_s_own_template_is_used(project: Project) -> None:
    _, folder = _build(_edit_template(project))
    assert (folder / release.RUN_QUEUE).read_text() == "echo 'digits'\n"


def test_the_executable_bit_travels(project: Project) -> None:
    made, folder = _build(_make_executable(project))
    assert os.access(folder / "code" / "train.py", os.X_OK)
    [record] = [file for file in made.files if file.path == "code/train.py"]
    assert record.extra == {"is_executable": True}
    assert release.read_release(folder) == made


def test_the_diff_of_dirty_code_is_in_the_release(project: Project) -> None:
    code = project.root / "code"
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, cwd=code, check=True)
    clean, folder = _build(project)
    assert (clean.code.is_dirty, clean.code.diff) == (False, None)
    assert not (folder / "code.diff").exists()
    dirty, folder = _build(_edit_code(project))
    assert (dirty.code.commit, dirty.code.is_dirty) == (clean.code.commit, True)
    assert dirty.code.diff == "code.diff"
    assert b"+changed" in (folder / "code.diff").read_bytes()
    assert release.check(folder) == []


def test_secrets_stay_and_that_is_told(project: Project) -> None:
    told: list[str] = []
    (project.root / "code" / ".env").write_text("TOKEN=secret\n")
    _, folder = _build(project, told.append)
    assert ".env stays here" in told[0]
    assert not any(b"TOKEN=secret" in data for data in _contents(folder).values())


def test_a_link_becomes_the_file_that_it_points_to(project: Project) -> None:
    (project.root / "code" / "link.py").symlink_to("train.py")
    _, folder = _build(project)
    assert not (folder / "code" / "link.py").is_symlink()
    assert (folder / "code" / "link.py").read_text() == "train.py\n"


def test_a_release_that_was_changed_is_kept_and_said(project: Project) -> None:
    _, folder = _build(project)
    (folder / "code" / "train.py").write_text("patched in place\n")
    with pytest.raises(DamagedError, match=r"code/train\.py .*Type: rm -r '"):
        _build(project)
    assert (folder / "code" / "train.py").read_text() == "patched in place\n"
    (folder / release.FILE).unlink()
    with pytest.raises(DamagedError, match=r"release\.json is missing"):
        _build(project)


def test_nothing_is_left_of_a_build_that_was_killed(project: Project) -> None:
    """The process dies while it copies the code; the next build ends right."""

    def die(source: Path, temporary: Path, *_: Any, **_options: Any) -> tuple[int, str]:
        temporary.write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    pid = os.fork()
    if pid == 0:
        copy.copy_and_hash = die  # type: ignore[assignment]
        try:
            _build(project)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert [name for name in _releases(project) if name.endswith(".part")]
    made, folder = _build(project)
    assert _releases(project) == sorted([".lock", made.digest])
    assert release.check(folder) == []


@pytest.mark.parametrize("count", [20, 120])
def test_a_build_waits_for_the_disk_as_often_whatever_the_number_of_files(
    project: Project, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    for number in range(count):
        (project.root / "code" / f"module_{number}.py").write_text(f"x = {number}\n")
    fsync, waits = os.fsync, []
    monkeypatch.setattr(tree_sync, "has_one_sync", lambda _folder: True)
    monkeypatch.setattr(tree_sync, "is_quiet", lambda _size_bytes: True)
    monkeypatch.setattr(tree_sync, "_sync_file_system", lambda *_: waits.append(-1))
    monkeypatch.setattr(os, "fsync", lambda fd: (waits.append(fd), fsync(fd)))
    _build(project)
    assert 0 < len(waits) < 40


def test_two_builds_at_once_do_not_mix(project: Project) -> None:
    releases = project.root / ".boxcar" / "releases"
    releases.mkdir(parents=True)
    held = lock.try_hold(releases / ".lock")
    assert held is not None
    with pytest.raises(TemporaryError, match="another command is building"):
        _build(project)
    os.close(held)
    made, _ = _build(project)
    assert _releases(project) == [".lock", made.digest]


def test_code_that_changes_while_it_is_copied_makes_no_release(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edited(source: Path, *rest: Any, **options: Any) -> tuple[int, str]:
        source.write_text("saved by an editor just now\n")
        return copy_and_hash(source, *rest, **options)

    copy_and_hash = copy.copy_and_hash
    monkeypatch.setattr(copy, "copy_and_hash", edited)
    with pytest.raises(TemporaryError, match="changed while it was copied"):
        _build(project)
    monkeypatch.undo()
    assert [name for name in _releases(project) if not name.startswith(".")] == []


def test_a_template_s_mistake_touches_nothing(project: Project) -> None:
    (_edit_template(project).root / "templates" / "run_one.sh.j2").write_text("{{ wall }}")
    with pytest.raises(InputError, match="'wall' is undefined"):
        _build(project)
    assert not (project.root / ".boxcar").exists()


def test_the_schema_that_job_yaml_names_is_there_again_in_a_clone(project: Project) -> None:
    schema = Home(project.root).job_schema
    _build(project)
    assert not schema.exists(), "nobody asked for it"
    project.job_path.write_text(f"{SCHEMA_COMMENT}\nname: x\n")
    _build(project)
    assert schema.exists()
