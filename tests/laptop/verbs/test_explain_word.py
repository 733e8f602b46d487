"""`boxcar explain WORD`: a cell of the run first, then a failure's id, a profile, a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import typed
from test_json_errors import JOB

from boxcar.laptop.verbs.explain_word import pages_in

LINES = "configs/a.yaml recon 2\nconfigs/m2.yaml recon 2\nconfigs/notify.yaml recon 2\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Path:
    (folder / "configs").mkdir()
    for name in ("a", "m2", "notify"):
        (folder / "configs" / f"{name}.yaml").write_text("lr: 1\n")
    (folder / "train.py").write_text("import argparse\n")
    (folder / "queue_1.txt").write_text(LINES)
    (folder / "job.yaml").write_text(JOB)
    return folder


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert typed("explain", *words, "--json") == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.usefixtures("project")
def test_a_cell_of_the_run_comes_before_all_that_is_called_so(capsys) -> None:
    assert told(capsys, "m2")["cell"] == "m2"
    assert told(capsys, "notify")["cell"] == "notify"
    assert told(capsys, "M2")["id"] == "M2"


def test_a_failure_is_its_words_and_what_to_try_in_order(capsys) -> None:
    assert typed("explain", "m2") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "OUT_OF_MEMORY (M2): the GPU has too little memory for this cell"
    assert [line[:4] for line in said if line.startswith("  ")][:3] == ["  1.", "  2.", "  3."]
    assert told(capsys, "EXIT3")["id"] == "EXIT3"


def test_words_of_a_failure_lead_to_its_id(capsys) -> None:
    assert typed("explain", "fragmented") == 0
    assert capsys.readouterr().out.startswith("OUT_OF_MEMORY (M2f)")
    assert typed("explain", "OOM") == 2
    said = capsys.readouterr().err
    assert "M2: the GPU has too little memory for this cell: boxcar explain M2\n" in said


def test_a_profile_is_the_page_of_that_platform(capsys) -> None:
    assert told(capsys, "autodl", "--lang", "zh")["profile"] == "autodl"


def test_a_page_is_shown_as_it_is_written(capsys) -> None:
    text = pages_in("en")["notify"].read_text("utf-8")
    assert typed("explain", "notify") == 0
    assert capsys.readouterr().out == text.rstrip() + "\n"
    assert told(capsys, "notify") == {"format": "boxcar.explain/1", "page": "notify", "text": text}


def test_a_page_is_in_the_readers_language_where_somebody_wrote_it_so() -> None:
    assert pages_in("zh")["autodl"].name == "autodl.zh.md"
    assert pages_in("zh")["formats"].name == "formats.md"
    assert "autodl.zh" not in pages_in("en")


def test_another_word_is_refused_with_what_was_meant(capsys) -> None:
    assert typed("explain", "notifi") == 2
    assert "(did you mean 'notify'?); pages: " in capsys.readouterr().err


def test_a_job_that_cannot_be_read_keeps_nobody_from_reading(project: Path, capsys) -> None:
    (project / "job.yaml").write_text("queues: [")
    assert told(capsys, "M2")["id"] == "M2"
