"""What is done about tests that failed beside others."""

from __future__ import annotations

import json
from pathlib import Path

import again
import pytest


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose last run named two tests: one that passes alone, and one that never does."""
    (tmp_path / "test_two.py").write_text(
        "def test_sound(): pass\ndef test_broken(): assert False\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it needs none, and starts sooner
    monkeypatch.setattr(again, "FAILED", tmp_path / "lastfailed")
    return tmp_path / "lastfailed"


def name(failed: Path, *tests: str) -> None:
    failed.write_text(json.dumps({f"test_two.py::{test}": True for test in tests}))


def test_what_passes_alone_is_named_and_does_not_count(failed, capsys):
    name(failed, "test_sound")
    assert again.main(1) == 0
    assert "FLAKY test_two.py::test_sound" in capsys.readouterr().out


def test_what_fails_alone_too_fails_the_run(failed):
    name(failed, "test_sound", "test_broken")
    assert again.main(1) == 1


def test_many_failures_are_run_no_second_time(failed, capsys):
    name(failed, *(f"test_{number}" for number in range(again.MOST + 1)))
    assert again.main(1) == 1
    assert "once more" not in capsys.readouterr().out


@pytest.mark.parametrize("exit_code", [0, 2, 3, 4, 5])
def test_a_run_that_went_wrong_itself_is_not_asked_again(failed, exit_code):
    name(failed, "test_sound")
    assert again.main(exit_code) == exit_code


def test_a_run_that_failed_and_named_nothing_stays_failed(failed):
    name(failed)
    assert again.main(1) == 1
