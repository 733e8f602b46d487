from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.disk import lock
from boxcar.shared.errors import TemporaryError
from boxcar.shared.paths import DurablePaths
from onbox.agent.held import held


@pytest.fixture
def tier(tmp_path: Path) -> DurablePaths:
    found = DurablePaths(tmp_path, "tiny")
    for folder in found.folders():
        folder.mkdir(parents=True, exist_ok=True)
    return found


def test_a_queue_is_one_agents_until_that_has_ended(tier, monkeypatch):
    monkeypatch.setattr(lock.hold, "__defaults__", (0.0,))
    with held(tier, "q1") as ours:
        assert ours.is_ours()
        with (
            pytest.raises(TemporaryError, match="q1: its agent is already running"),
            held(tier, "q1"),
        ):
            pass
        with held(tier, "q2") as another:
            assert another.is_ours()
    with held(tier, "q1") as ours:
        assert ours.is_ours()


def test_what_a_killed_agent_had_half_written_goes(tier):
    path = tier.heartbeat("q1")
    unfinished = path.with_name(f".{path.name}.0123abcd.part")
    unfinished.write_text("{")
    with held(tier, "q1"):
        assert not unfinished.exists()


def test_nothing_of_a_queue_is_held_where_it_could_not_be_taken_whole(tier, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("boxcar.shared.disk.atomic.remove_unfinished_of", full)
    with pytest.raises(OSError, match="No space"), held(tier, "q1"):
        pass
    assert not lock.is_held(tier.lock("q1"))
