"""The list of launches of a person."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.laptop.common import home


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_the_newest_launch_of_each_is_known_the_last_first(tmp_path: Path) -> None:
    for run, job in (("a", "x"), ("b", "y"), ("a", "x"), ("a", "z")):
        home.remember_run(run, tmp_path / job / "job.yaml", "autodl")
    assert [(one.run, one.job.parent.name) for one in home.known_runs()] == [
        ("a", "z"),
        ("a", "x"),
        ("b", "y"),
    ]


def test_nothing_was_launched_yet() -> None:
    assert home.known_runs() == []


def test_a_torn_line_hides_no_other(tmp_path: Path) -> None:
    home.remember_run("a", tmp_path, "ssh")
    path = home.known_runs_file(os.environ)
    path.write_bytes(path.read_bytes() + b'{"run": "tor')
    home.remember_run("b", tmp_path, "ssh")
    assert {one.run for one in home.known_runs()} == {"a", "b"}


def test_a_home_that_cannot_be_written_keeps_nobody_from_launching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    home.remember_run("a", tmp_path, "ssh")
    assert home.known_runs() == []


def test_a_relative_state_home_counts_for_nothing() -> None:
    assert home.known_runs_file({"XDG_STATE_HOME": "state"}).is_absolute()
