"""TensorBoard of a run on this machine: what is shown, and what is said where nothing can be."""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from run_on_disk import RunOnDisk, make_run
from stand_in_tensorboard import install, write_event

from boxcar.laptop.common import show
from boxcar.laptop.tensorboard import shown
from boxcar.laptop.tensorboard.shown import Found
from boxcar.laptop.verbs import tb as tb_module
from boxcar.laptop.verbs.tb import tb


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunOnDisk:
    monkeypatch.setattr(tb_module.shown, "pythons_here", lambda first: [sys.executable])
    return make_run(tmp_path, {"queue_1": ["configs/a.yaml recon 3", "configs/b.yaml recon 3"]})


def test_the_event_files_of_all_cells_are_shown_by_their_names_until_ctrl_c(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(install(run.project.root / "site")))
    write_event(run.project.scratch("box-a").out("a") / "tb")
    write_event(run.project.results.cell("b") / "tb")
    read: list[bytes] = []

    def leave(*_: object) -> int:
        url = capsys.readouterr().out.split()[-1]
        with urllib.request.urlopen(url) as answer:
            read.append(answer.read())
        raise KeyboardInterrupt

    monkeypatch.setattr(tb_module, "_wait", leave)
    assert tb(run.project) == 130
    assert read == [b"a/tb b/tb"]


def test_without_event_files_it_says_where_they_would_be_found(
    run: RunOnDisk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tb(run.project) == 1
    said = capsys.readouterr().err
    assert "here: no event file" in said and "below {out}" in said


def test_an_interpreter_without_tensorboard_is_named_with_the_line_to_type(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Bare:
        def found(self) -> Found:
            return Found(3, False, "/opt/py/bin/python")

        def close(self) -> None:
            pass

    def bare(place: Any) -> Any:
        return Bare(), lambda port: port

    monkeypatch.setattr(shown.Here, "show", bare)
    show.begin()
    assert tb(run.project) == 1
    assert "/opt/py/bin/python -m pip install tensorboard" in capsys.readouterr().err


def test_a_box_that_cannot_be_asked_is_a_row_and_holds_up_nobody(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from boxcar.laptop.places.local_site import LocalSite
    from boxcar.shared.errors import TemporaryError

    def silent(site: object, box: str) -> None:
        raise TemporaryError(f"{box} does not answer")

    monkeypatch.setattr(LocalSite, "events_on", silent)
    assert tb(run.project) == 1
    assert "box-a: box-a does not answer" in capsys.readouterr().err
