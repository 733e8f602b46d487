from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.files.plan import NEWEST, Artifact
from onbox.cell import left_artifacts
from onbox.cell.left_artifacts import LeftArtifacts


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """{out}, as a trainer leaves it that keeps its last two checkpoints."""
    out = tmp_path / "out"
    for name in ("checkpoints/step_9.pt", "checkpoints/step_10.pt", "checkpoint-5/w.pt", "a.csv"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(b"1")
    return out


def look(out: Path, *artifacts: Artifact) -> LeftArtifacts:
    return left_artifacts.look_at(out, artifacts)


def test_of_a_pattern_every_match_is_left(out: Path) -> None:
    found = look(out, Artifact("checkpoints/*.pt"), Artifact("checkpoint-*/"), Artifact("a.csv"))
    assert set(found.files) == {
        "checkpoints/step_9.pt", "checkpoints/step_10.pt", "checkpoint-5/w.pt", "a.csv",
    }  # fmt: skip
    assert found.matches == {
        "checkpoints/*.pt": ("checkpoints/step_10.pt", "checkpoints/step_9.pt"),
        "checkpoint-*/": ("checkpoint-5",),
    }
    assert (found.missing, found.problem) == ([], "")


@pytest.mark.parametrize("replaced", ["out", "the cell's folder"])
def test_a_link_in_the_place_of_out_is_a_problem_of_every_artifact(
    out: Path, tmp_path: Path, replaced: str
) -> None:
    """What it leads to was published and verified, and prune would have removed it there."""
    cell = tmp_path / "cells" / "a"
    if replaced == "out":
        cell.mkdir(parents=True)
        (cell / "out").symlink_to(out)
    else:
        cell.parent.mkdir()
        cell.symlink_to(tmp_path)
    found = look(cell / "out", Artifact("checkpoints/*.pt"), Artifact("a.csv"), Artifact("no"))
    assert (found.files, found.matches, found.missing) == ({}, {}, [])
    assert found.problem.startswith("{out} is a link by now")


def test_the_newest_of_a_pattern_is_the_one_with_the_highest_number(out: Path) -> None:
    found = look(out, Artifact("checkpoints/step_*.pt", take=NEWEST))
    assert list(found.files) == ["checkpoints/step_10.pt"]
    assert found.matches == {"checkpoints/step_*.pt": ("checkpoints/step_10.pt",)}


@pytest.mark.parametrize("pattern", ["model_*.pt", "check*", "*.csv/"])
def test_a_pattern_without_a_match_of_its_kind_is_missing(out: Path, pattern: str) -> None:
    found = look(out, Artifact(pattern), Artifact("a.csv"))
    assert (found.missing, found.matches) == ([pattern], {})


def test_a_match_that_is_empty_or_dangles_is_a_problem_and_not_passed_over(out: Path) -> None:
    (out / "checkpoints/step_11.pt").touch()
    (out / "checkpoints/step_12.pt").symlink_to("gone.pt")
    problem = look(out, Artifact("checkpoints/step_*.pt")).problem
    assert "step_11.pt is empty" in problem and "step_12.pt" in problem
    assert "step_12.pt" in look(out, Artifact("checkpoints/step_*.pt", take=NEWEST)).problem
