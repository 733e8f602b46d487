"""Where event files are looked for on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stand_in_tensorboard import write_event

from boxcar.laptop.tensorboard.shown import link, pythons_here, with_events


def test_of_a_cells_folders_the_first_with_an_event_file_is_taken(tmp_path: Path) -> None:
    scratch, results, gone = tmp_path / "scratch", tmp_path / "results", tmp_path / "gone"
    scratch.mkdir()
    assert with_events(iter([gone, scratch, results])) == scratch
    write_event(results / "tb")
    assert with_events(iter([gone, scratch, results])) == results
    write_event(scratch / "logs")
    assert with_events(iter([gone, scratch, results])) == scratch
    assert with_events(iter([gone])) is None


def test_a_link_follows_its_cell_to_where_it_lies_now(tmp_path: Path) -> None:
    below = tmp_path / "links"
    below.mkdir()
    link({"a": tmp_path / "one", "b": tmp_path / "two"}, below)
    link({"a": tmp_path / "other"}, below)
    assert (below / "a").readlink() == tmp_path / "other"
    assert (below / "b").readlink() == tmp_path / "two"


def test_each_interpreter_is_tried_once_and_only_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pythons_here(sys.executable) == [sys.executable]
    assert pythons_here("/no/such/python") == [sys.executable]
    for name in ("tensorboard", "python"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pythons_here(sys.executable) == [sys.executable, str(tmp_path / "python")]
