from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, control
from boxcar.shared.files.control import Control


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue_1.json"


@pytest.mark.parametrize("want", [control.RUN, control.DRAIN, control.STOP])
def test_what_was_asked_for_is_wanted(path: Path, want: str) -> None:
    path.write_bytes(codec.to_document(Control(want, "2026-11-20T10:00:00.000Z")))
    assert control.wanted(path) == want


def test_where_nobody_asked_the_queue_runs(path: Path) -> None:
    assert control.wanted(path) == "run"


@pytest.mark.parametrize("want", ["", "Stop", "pause", "stop\n"])
def test_a_word_that_this_agent_does_not_know_is_passed_on_and_not_taken_for_run(
    path: Path, want: str
) -> None:
    path.write_bytes(codec.to_document(Control(want, "2026-11-20T10:00:00.000Z")))
    assert control.wanted(path) == want != control.RUN


@pytest.mark.parametrize("data", [b"", b"stop\n", b"{}"])
def test_a_damaged_wish_is_not_taken_for_run(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(DamagedError, match=f"^{path}: "):
        control.wanted(path)
