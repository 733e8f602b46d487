from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from boxcar.laptop.release import code_files
from boxcar.shared.errors import InputError
from boxcar.shared.files.release import Code


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / 'it\'s my "code" ü'
    folder.mkdir()
    return folder


def _put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def _commit(folder: Path) -> str:
    _git(folder, "init", "-q")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "all")
    return _git(folder, "rev-parse", "HEAD").strip()


def _shipped(folder: Path) -> list[str]:
    return [file.path for file in code_files.take_snapshot(folder).files]


def _problems(folder: Path) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        code_files.take_snapshot(folder)
    return caught.value.problems


# --- which files


def test_without_any_rule_everything_travels(code: Path) -> None:
    _put(code, "train.py", "configs/a.yaml", "data/ü ☃.csv")
    assert _shipped(code) == ["configs/a.yaml", "data/ü ☃.csv", "train.py"]


def test_boxcarignore_alone_decides_where_there_is_one(code: Path) -> None:
    _put(code, "train.py", "data/big.bin", "data/keep.csv", "notes.txt")
    (code / ".gitignore").write_text("notes.txt\n")
    (code / ".boxcarignore").write_bytes(b"\xef\xbb\xbf/data/*\r\n!/data/keep.csv\r\n")
    _commit(code)
    assert _shipped(code) == [
        ".boxcarignore",
        ".gitignore",
        "data/keep.csv",
        "notes.txt",
        "train.py",
    ]


def test_what_boxcarignore_names_is_not_looked_into_even_a_submodule_that_is_not_there(
    code: Path, tmp_path: Path
) -> None:
    agents = tmp_path / "agents"
    _put(agents, "big.zip")
    _commit(agents)
    _put(code, "train.py")
    _commit(code)
    _git(code, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(agents), "rl/a")
    _git(code, "commit", "-qm", "agents")
    _git(code, "submodule", "--quiet", "deinit", "--force", "rl/a")
    assert "is not checked out" in _problems(code)[0]
    (code / ".boxcarignore").write_text("rl/\n")
    assert _shipped(code) == [".boxcarignore", ".gitmodules", "train.py"]
    assert code_files.take_snapshot(code).code.commit == _git(code, "rev-parse", "HEAD").strip()


def test_in_git_its_own_rules_decide(code: Path) -> None:
    _put(code, "train.py", "sub/a.py", "sub/log.txt", "gone.py")
    (code / "sub" / ".gitignore").write_text("*.txt\n")
    _commit(code)
    _put(code, "new.py")
    (code / "gone.py").unlink()
    assert _shipped(code) == ["new.py", "sub/.gitignore", "sub/a.py", "train.py"]


def test_gitignore_decides_where_git_does_not(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(code, "train.py", "wandb/run/x.log", "a.ckpt")
    (code / ".gitignore").write_text("wandb/\n*.ckpt\n")
    assert _shipped(code) == [".gitignore", "train.py"]
    _commit(code)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _shipped(code) == [".gitignore", "train.py"]


@pytest.mark.parametrize("in_git", [False, True])
def test_some_things_never_travel(code: Path, in_git: bool) -> None:
    _put(code, "train.py", "a.pyc", "__pycache__/b.py", ".venv/bin/x", "sub/.env", ".env")
    _put(code, "results/run/best.pth", ".boxcar/x", "lib/results/__init__.py")
    # A project that lies further down has its own results.
    _put(code, "exp/job.yaml", "exp/.boxcar/x", "exp/results/run/best.pth")
    if in_git:
        _commit(code)
    assert _shipped(code) == ["exp/job.yaml", "lib/results/__init__.py", "train.py"]


def test_an_env_file_that_stays_is_said_unless_a_rule_names_it(code: Path) -> None:
    _put(code, "train.py", ".env", "sub/.env")
    assert code_files.take_snapshot(code).withheld == (".env", "sub/.env")
    (code / ".boxcarignore").write_text("/.env\n")
    assert code_files.take_snapshot(code).withheld == ("sub/.env",)


def test_a_project_that_the_repository_around_it_ignores_is_shipped(code: Path) -> None:
    (code / ".gitignore").write_text("demo/\n")
    _commit(code)
    _put(code, "demo/train.py")
    taken = code_files.take_snapshot(code / "demo")
    assert [file.path for file in taken.files] == ["train.py"]
    assert taken.code == Code(None, is_dirty=False)


def test_a_bad_pattern_names_its_file(code: Path) -> None:
    _put(code, "train.py")
    (code / ".boxcarignore").write_text("!\n")
    assert str(code / ".boxcarignore") in _problems(code)[0]


def test_a_code_folder_without_files_is_refused(code: Path) -> None:
    assert "no file of the code folder would be sent. Check" in _problems(code)[0]
    assert "no such code folder" in _problems(code / "missing")[0]


def test_the_executable_bit_is_kept(code: Path) -> None:
    _put(code, "run.sh", "train.py")
    (code / "run.sh").chmod(0o755)
    found = {file.path: file.is_executable for file in code_files.take_snapshot(code).files}
    assert found == {"run.sh": True, "train.py": False}


# --- links and odd files


@pytest.mark.parametrize("in_git", [False, True])
def test_a_link_that_stays_inside_travels_as_what_it_points_to(code: Path, in_git: bool) -> None:
    _put(code, "configs/base.yaml", "configs/deep/a.yaml")
    (code / "default.yaml").symlink_to("configs/base.yaml")
    (code / "same").symlink_to("configs")
    if in_git:
        _commit(code)
    taken = {file.path: file.source for file in code_files.take_snapshot(code).files}
    inside = code.resolve() / "configs"
    assert taken == {
        "configs/base.yaml": inside / "base.yaml",
        "configs/deep/a.yaml": inside / "deep" / "a.yaml",
        "default.yaml": inside / "base.yaml",
        "same/base.yaml": inside / "base.yaml",
        "same/deep/a.yaml": inside / "deep" / "a.yaml",
    }


def test_every_file_that_cannot_travel_is_named_at_once(code: Path, tmp_path: Path) -> None:
    _put(tmp_path, "outside.csv")
    _put(code, "train.py", ".env", "sub/x.py", "bad\nname.py")
    (code / "data.csv").symlink_to(tmp_path / "outside.csv")
    (code / "broken").symlink_to("nothing")
    (code / "circle").symlink_to("circle")
    (code / "secret").symlink_to(".env")
    (code / "sub" / "up").symlink_to("..")
    os.mkfifo(code / "pipe")
    (code / os.fsdecode(b"latin-\xfc.py")).write_text("x")
    problems = "\n".join(_problems(code))
    assert "'data.csv' links to " in problems and ", outside the code folder;" in problems
    assert ".boxcarignore" in problems
    assert "'broken' links to" in problems
    assert "'circle' links to" in problems
    assert "'secret' links to" in problems
    assert "links to a folder that holds" in problems
    assert "'pipe' is not a regular file" in problems
    assert "'bad\\nname.py' is not UTF-8 or has a control character;" in problems
    assert "'latin-\\udcfc.py' is not UTF-8" in problems
    assert len(_problems(code)) == 8


def test_a_link_that_leaves_is_fine_once_it_is_ignored(code: Path, tmp_path: Path) -> None:
    _put(code, "train.py")
    (code / "data").symlink_to(tmp_path)
    assert ", outside the code folder;" in _problems(code)[0]
    (code / ".boxcarignore").write_text("data\n")
    assert _shipped(code) == [".boxcarignore", "train.py"]


# --- where the code came from


def test_outside_git_there_is_no_commit(code: Path) -> None:
    _put(code, "train.py")
    taken = code_files.take_snapshot(code)
    assert (taken.code, taken.diff) == (Code(None, is_dirty=False), None)


def test_before_the_first_commit_the_code_is_dirty(code: Path) -> None:
    _put(code, "train.py")
    _git(code, "init", "-q")
    taken = code_files.take_snapshot(code)
    assert (taken.code, taken.diff) == (Code(None, is_dirty=True), None)


def test_committed_code_is_clean(code: Path) -> None:
    _put(code, "a/train.py", "b/other.py")
    (code / "a" / "same.py").symlink_to("train.py")
    commit = _commit(code)
    _put(code, "b/untracked.py")
    (code / "b" / "other.py").write_text("changed\n")
    taken = code_files.take_snapshot(code / "a")
    assert (taken.code, taken.diff) == (Code(commit, is_dirty=False), None)


def test_changed_and_untracked_files_make_it_dirty_and_are_in_the_diff(code: Path) -> None:
    _put(code, "sub/train.py", "sub/gone.py", "elsewhere.py")
    commit = _commit(code)
    (code / "sub" / "train.py").write_text("changed\n")
    (code / "sub" / "gone.py").unlink()
    (code / "elsewhere.py").write_text("changed\n")
    _put(code, "sub/new.py")
    taken = code_files.take_snapshot(code / "sub")
    assert taken.code == Code(commit, is_dirty=True, diff="code.diff")
    assert taken.diff is not None
    assert taken.diff.startswith(f"# what was shipped, against commit {commit}\n".encode())
    assert b"# shipped, and not in git: new.py\n" in taken.diff
    assert b"+changed" in taken.diff
    assert b"deleted file" in taken.diff
    assert b"elsewhere" not in taken.diff
    _git(code, "stash", "-q")
    patch = code.parent / "code.diff"
    patch.write_bytes(taken.diff)
    _git(code, "apply", str(patch))
    assert (code / "sub" / "train.py").read_text() == "changed\n"


def test_what_is_left_out_is_not_in_the_diff_either(code: Path) -> None:
    _put(code, "train.py", ".env", "keys.yaml")
    (code / ".boxcarignore").write_text("keys.yaml\n")
    commit = _commit(code)
    (code / ".env").write_text("TOKEN=secret\n")
    (code / "keys.yaml").write_text("secret\n")
    taken = code_files.take_snapshot(code)
    assert (taken.code, taken.diff) == (Code(commit, is_dirty=False), None)


def test_what_leaves_a_file_out_is_told_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / ".gitignore").write_text("# data\n\ndata/\n")
    assert code_files.left_out_by(tmp_path, "data") == ".gitignore:3 (data/)"
    assert code_files.left_out_by(tmp_path, "data/a.txt") == ".gitignore:3 (data/)"
    assert code_files.left_out_by(tmp_path, "train.py") == ""
    assert code_files.left_out_by(tmp_path, "results/a.csv") == "Boxcar itself"
    (tmp_path / ".boxcarignore").write_text("*.txt\n!b.txt\n")
    assert code_files.left_out_by(tmp_path, "data/a.txt") == ".boxcarignore:1 (*.txt)"
    assert code_files.left_out_by(tmp_path, "b.txt") == ""
