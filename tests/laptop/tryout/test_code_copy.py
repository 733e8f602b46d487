from __future__ import annotations

from pathlib import Path

import pytest
from tiny_project import make_project

from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.tryout import code_copy
from boxcar.laptop.tryout.code_copy import CodeCopy, Written
from boxcar.shared.errors import DamagedError


@pytest.fixture
def project(tmp_path: Path) -> Project:
    tiny = make_project(tmp_path / "p", {"q1": ["configs/a.json recon 5"]})
    tiny.write_config("a")
    (tiny.root / "tool.sh").write_text("#!/bin/sh\n")
    (tiny.root / "tool.sh").chmod(0o755)
    return open_project(tiny.root / "job.yaml", "local")


@pytest.fixture
def copy(project: Project, tmp_path: Path) -> CodeCopy:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/litter").touch()
    return code_copy.copy_code(project, tmp_path / "copy")


def listed(copy: CodeCopy) -> set[str]:
    found = copy.folder.rglob("*")
    return {path.relative_to(copy.folder).as_posix() for path in found if path.is_file()}


def test_the_copy_is_what_would_be_shipped_and_nothing_else(copy: CodeCopy) -> None:
    assert listed(copy) == {file.path for file in copy.files} >= {"train.py", "configs/a.json"}
    assert (copy.folder / "tool.sh").stat().st_mode & 0o111
    assert copy.has("configs")
    assert copy.has("configs/a.json")
    assert not copy.has("conf")
    assert copy.put_back(("best.pt",)) == Written()


def test_what_a_try_wrote_is_named_and_gone_before_the_next(copy: CodeCopy) -> None:
    before = {path: (copy.folder / path).read_bytes() for path in listed(copy)}
    (copy.folder / "best.pt").touch()
    (copy.folder / "data/x").mkdir(parents=True)
    (copy.folder / "link").symlink_to(copy.folder / "configs")
    (copy.folder / "train.py").write_text("other")
    (copy.folder / "configs/a.json").unlink()
    assert copy.put_back(("best.pt", "none")) == Written(
        ("best.pt", "data/", "link"), ("configs/a.json", "train.py"), (("best.pt", "best.pt"),)
    )
    assert {path: (copy.folder / path).read_bytes() for path in listed(copy)} == before
    assert copy.put_back(()) == Written()


def test_a_file_that_was_edited_meanwhile_is_not_taken_for_the_copied_one(
    copy: CodeCopy, project: Project
) -> None:
    (copy.folder / "train.py").unlink()
    (project.root / "train.py").write_text("edited")
    with pytest.raises(DamagedError, match=r"train\.py: it was edited while smoke copied it"):
        copy.put_back(())
