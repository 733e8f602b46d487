from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, control
from boxcar.shared.files.control import AgentStart


def test_what_was_started_is_read_back(tmp_path: Path) -> None:
    made = AgentStart(
        "r",
        "q",
        "b",
        "0" * 64,
        "~/tier",
        3,
        ("tmux",),
        {"PATH": "/bin"},
        "2026-11-21T03:27:48.102Z",
    )
    path = tmp_path / "start-q.json"
    path.write_bytes(codec.to_document(made))
    assert control.read_agent_start(path) == made


def test_what_is_no_record_is_damage_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "start-q.json"
    path.write_bytes(b"")
    with pytest.raises(DamagedError, match=r"start-q\.json"):
        control.read_agent_start(path)
