from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from boxcar.laptop.release import git
from boxcar.shared.errors import InputError


def _git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    command = ["git", *settings, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / 'it\'s a "repo" ü'
    folder.mkdir()
    _git(folder, "init", "-q")
    (folder / ".gitignore").write_text("ignored/\n")
    (folder / "train.py").write_text("print(1)\n")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "first")
    return folder


def test_a_repository_is_git_s_business_and_a_plain_folder_is_not(
    repository: Path, tmp_path: Path
) -> None:
    assert git.looks_after(repository)
    assert not git.looks_after(tmp_path)


def test_a_folder_that_git_ignores_is_none_of_its_business(repository: Path) -> None:
    (repository / "ignored" / "project").mkdir(parents=True)
    assert not git.looks_after(repository / "ignored" / "project")


def test_a_machine_without_git_is_no_error(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not git.looks_after(repository)


def test_a_repository_that_git_refuses_is_said_in_git_s_words(repository: Path) -> None:
    (repository / ".git" / "config").write_text("[broken")
    with pytest.raises(InputError, match="bad config"):
        git.looks_after(repository)


def test_a_git_hook_s_environment_does_not_point_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert git.files(repository, _nothing) == {".gitignore": True, "train.py": True}


def _nothing(name: str) -> bool:
    return False


def test_files_are_those_that_are_there_and_not_ignored(repository: Path) -> None:
    (repository / "ignored").mkdir()
    (repository / "ignored" / "big.bin").write_text("x")
    (repository / "new\nline.py").write_text("x")
    (repository / "train.py").unlink()
    assert git.files(repository, _nothing) == {".gitignore": True, "new\nline.py": False}


def test_files_are_named_from_the_folder_that_was_asked_for(repository: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "a.py").write_text("x")
    assert git.files(repository / "sub", _nothing) == {"a.py": False}


def test_the_files_of_a_submodule_count(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    _git(outer, "init", "-q")
    _git(outer, "submodule", "--quiet", "add", str(repository), "sub")
    assert git.files(outer, _nothing) == {
        ".gitmodules": True,
        "sub/.gitignore": True,
        "sub/train.py": True,
    }


@pytest.fixture
def clone(repository: Path, tmp_path: Path) -> Path:
    """A repository with a submodule `sub` that is not checked out."""
    outer, clone = tmp_path / "outer", tmp_path / "clone"
    outer.mkdir()
    _git(outer, "init", "-q")
    _git(outer, "submodule", "--quiet", "add", str(repository), "sub")
    _git(outer, "commit", "-qm", "with a submodule")
    _git(tmp_path, "clone", "-q", str(outer), str(clone))
    return clone


def test_a_submodule_that_is_not_checked_out_is_an_error_with_both_ways_out(clone: Path) -> None:
    with pytest.raises(InputError, match=r"git submodule update --init.*\.boxcarignore"):
        git.files(clone, _nothing)


def test_a_submodule_that_is_left_out_is_not_looked_into(clone: Path) -> None:
    assert git.files(clone, "sub/".__eq__) == {".gitmodules": True}


def test_before_the_first_commit_there_is_none(tmp_path: Path, repository: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    _git(empty, "init", "-q")
    assert git.commit(empty) is None
    assert git.commit(repository) == _git(repository, "rev-parse", "HEAD").strip()


def test_the_patch_makes_the_commit_what_lies_here(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A person's own settings would make a patch that nobody else can apply.
    (tmp_path / ".gitconfig").write_text("[diff]\n noprefix = true\n external = false\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    _git(tmp_path, "clone", "-q", str(repository), "clean")
    (repository / "train.py").write_text("print(2)\n")
    (repository / "weights.bin").write_bytes(bytes(range(256)))
    (repository / ".gitignore").unlink()
    _git(repository, "add", "weights.bin")
    names = git.changed(repository)
    assert sorted(names) == [".gitignore", "train.py", "weights.bin"]
    patch = tmp_path / "code.diff"
    patch.write_bytes(git.patch(repository, names))
    _git(tmp_path / "clean", "apply", str(patch))
    assert (tmp_path / "clean" / "train.py").read_text() == "print(2)\n"
    assert (tmp_path / "clean" / "weights.bin").read_bytes() == bytes(range(256))
    assert not (tmp_path / "clean" / ".gitignore").exists()


def test_the_patch_holds_only_the_files_that_are_named(repository: Path) -> None:
    (repository / "*.py").write_text("literally\n")
    (repository / "train.py").write_text("changed\n")
    _git(repository, "add", ".")
    assert b"train.py" not in git.patch(repository, ["*.py"])
    assert git.patch(repository, []) == b""


def test_the_rule_by_which_a_file_is_ignored_is_told(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/.gitignore").write_text("# data\n*.bin\n")
    (tmp_path / "sub/a.bin").touch()
    assert git.ignored_by(tmp_path, "sub/a.bin") == "sub/.gitignore:2 (*.bin)"
    assert git.ignored_by(tmp_path, "sub/a.txt") == ""


def test_a_git_that_fails_is_quoted_with_the_line_to_try_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "git"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho unknown option >&2\nexit 129\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(broken.parent), prepend=os.pathsep)
    folder = tmp_path / "my code"
    folder.mkdir()
    with pytest.raises(InputError, match=r"says: unknown option.* git -C '.*my code' status"):
        git.changed(folder)
