from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.files.plan import NEWEST, Artifact
from onbox.result import left_artifacts
from onbox.result.left_artifacts import LeftArtifacts


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """{out}, as a trainer leaves it that keeps its last two checkpoints."""
    out = tmp_path / "out"
    for name in ("checkpoints/step_9.pt", "checkpoints/step_10.pt", "checkpoint-5/w.pt", "a.csv"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(b"1")
    return out


def look(out: Path, *artifacts: Artifact) -> LeftArtifacts:
    return left_artifacts.look_at(out, artifacts, "k1")


def test_of_a_pattern_every_match_is_left(out):
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
def test_a_link_in_the_place_of_out_is_a_problem_of_every_artifact(out, tmp_path, replaced):
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
    assert found.problem.startswith("{out} is a link now")


def test_the_newest_of_a_pattern_is_the_one_with_the_highest_number(out):
    found = look(out, Artifact("checkpoints/step_*.pt", take=NEWEST))
    assert list(found.files) == ["checkpoints/step_10.pt"]
    assert found.matches == {"checkpoints/step_*.pt": ("checkpoints/step_10.pt",)}


@pytest.mark.parametrize("pattern", ["model_*.pt", "check*", "*.csv/"])
def test_a_pattern_without_a_match_of_its_kind_is_missing(out, pattern):
    found = look(out, Artifact(pattern), Artifact("a.csv"))
    assert (found.missing, found.matches) == ([pattern], {})


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*.json", "manifest.json"),
        ("*", "Receipt.json"),
        ("*/*.csv", "resume/best.csv"),
        ("*/", "resume/best.csv"),
        ("k?.*", "k1.log"),
        ("k1.log", "k1.log"),
    ],
)
def test_what_is_found_under_a_name_of_ours_is_left_out_with_what_to_rename(out, pattern, name):
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_bytes(b"theirs")
    found, top = look(out, Artifact(pattern), Artifact("a.csv")), name.partition("/")[0]
    assert name not in found.files and "a.csv" in found.files
    assert not any(path.startswith(top) for paths in found.matches.values() for path in paths)
    [told] = found.left_out
    assert told.startswith(top)
    assert told.endswith("has a name that Boxcar uses itself: rename it; it is left out")


def test_where_nothing_else_is_left_of_an_artifact_it_is_missing_and_says_why(out):
    (out / "manifest.json").write_bytes(b"{}")
    [missing] = look(out, Artifact("*.json"), Artifact("a.csv")).missing
    assert missing.startswith("*.json (manifest.json has a name that Boxcar uses itself: rename it")


def test_the_newest_of_a_pattern_is_the_newest_that_is_not_ours(out):
    (out / "k1.log").write_bytes(b"1")
    (out / "k0.log").write_bytes(b"1")
    assert list(look(out, Artifact("*.log", take=NEWEST)).files) == ["k0.log"]


@pytest.mark.parametrize("name", ["manifest.jsonl", "data/manifest.json", "resumed/a", "k10.log"])
def test_a_name_that_only_looks_like_ours_is_published(out, name):
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_bytes(b"theirs")
    found = look(out, Artifact(name))
    assert (list(found.files), found.left_out) == ([name], [])


def test_a_match_that_is_empty_or_dangles_is_a_problem_and_not_passed_over(out):
    (out / "checkpoints/step_11.pt").touch()
    (out / "checkpoints/step_12.pt").symlink_to("gone.pt")
    problem = look(out, Artifact("checkpoints/step_*.pt")).problem
    assert "step_11.pt is empty" in problem and "step_12.pt" in problem
    assert "step_12.pt" in look(out, Artifact("checkpoints/step_*.pt", take=NEWEST)).problem


def test_a_link_of_the_job_is_no_match_and_any_other_that_leads_out_is_a_problem(out, tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "a.txt").write_text("1")
    (out / "data").symlink_to(code)
    every = (Artifact("*/", take=NEWEST), Artifact("d*/"))
    found = left_artifacts.look_at(out, every[:1], "k1", {"data": "data"})
    assert found.problem == "" and set(found.files) == {"checkpoint-5/w.pt"}
    assert left_artifacts.look_at(out, every[1:], "k1", {"data": "data"}).missing == ["d*/"]
    assert "data is a link that leads out" in left_artifacts.look_at(out, every[1:], "k1").problem
