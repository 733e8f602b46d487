"""What an agent could not deliver arrives after the queue's end, and nobody waits for that."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from waiting import LIMIT_S, until

from boxcar.shared.channels.answer import Later, Taken
from boxcar.shared.disk import lock
from boxcar.shared.files import delivered
from boxcar.shared.files.journal import Journal
from boxcar.shared.paths import DurablePaths
from onbox.webhooks import deliver, post
from onbox.webhooks.post import Posted

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def tier(tmp_path: Path) -> DurablePaths:
    """Of a queue that has ended, with one event that nobody took."""
    made = DurablePaths(tmp_path, "run")
    for folder in made.folders():
        folder.mkdir(parents=True)
    held = lock.try_hold(made.lock("q1"))
    assert held is not None
    about = {"run": "run", "queue": "q1", "box": "box-a"}
    Journal(made.journal("q1"), about, lambda: lock.keep(held)).append(
        "queue.done", verified=1, failed=0
    )
    os.close(held)
    return made


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """The receiver is away: nothing listens at that port."""
    path = tmp_path / "credentials.json"
    record = (
        f'{{"env": {{}}, "webhooks": [{{"url": "http://127.0.0.1:1/x", "secret": "{SECRET}"}}]}}'
    )
    path.write_text(record)
    path.chmod(0o600)
    return path


class Running:
    """One that lingers, in a thread."""

    def __init__(self, tier: DurablePaths, secrets: Path, longest_s: float = LIMIT_S) -> None:
        self.left: list[int] = []
        self.thread = threading.Thread(
            target=lambda: self.left.append(deliver.linger(tier, "q1", secrets, longest_s)),
            daemon=True,
        )
        self.thread.start()
        until(lambda: self.is_at_work() or not self.thread.is_alive())

    def is_at_work(self) -> bool:
        return any(one.name == "webhook" for one in threading.enumerate())

    def ended(self) -> int:
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive()
        return self.left[0]


def test_it_ends_when_the_receiver_is_back_and_has_taken_all(
    tier: DurablePaths, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_back = threading.Event()
    monkeypatch.setattr(
        post,
        "post_once",
        lambda *_: Posted(Taken() if is_back.is_set() else Later("away"), "", None),
    )
    one = Running(tier, secrets)
    assert one.thread.is_alive()
    assert not lock.is_held(tier.lock("q1"))  # the box's queue is free meanwhile
    is_back.set()
    assert one.ended() == 0
    [cursor] = delivered.read_delivered(tier.delivered("q1")).endpoints.values()
    assert cursor.seq == 1


def test_it_yields_to_whoever_takes_the_queue(tier: DurablePaths, secrets: Path) -> None:
    one = Running(tier, secrets)
    held = lock.hold(tier.lock("q1"), LIMIT_S)
    assert held is not None
    assert one.ended() == 1
    os.close(held)


@pytest.mark.parametrize("gone", ["credentials", "journal"])
def test_it_dies_with_the_credentials_and_with_the_run(
    gone: str, tier: DurablePaths, secrets: Path
) -> None:
    one = Running(tier, secrets)
    (secrets if gone == "credentials" else tier.journal("q1")).unlink()
    one.ended()


def test_it_ends_by_itself_after_its_time(tier: DurablePaths, secrets: Path) -> None:
    assert Running(tier, secrets, longest_s=0.0).ended() == 1


def test_without_endpoints_nobody_lingers(tier: DurablePaths, secrets: Path) -> None:
    secrets.write_text('{"env": {}, "webhooks": []}')
    assert deliver.linger(tier, "q1", secrets) == 0


def test_a_program_that_was_not_started_by_its_door_leaves_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(deliver.subprocess, "Popen", lambda words, **_: started.append(words))
    deliver.leave_behind(tmp_path, "q1")
    assert started == []
    monkeypatch.setattr(
        deliver.sys, "orig_argv", ["python", "-I", "x.pyz", "agent", "--queue", "q1"]
    )
    deliver.leave_behind(tmp_path, "q1")
    words = ["linger", "--release", str(tmp_path), "--queue", "q1"]
    assert started == [["python", "-I", "x.pyz", *words]]


def test_no_node_of_a_cluster_keeps_one_when_its_job_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(deliver.subprocess, "Popen", lambda words, **_: started.append(words))
    monkeypatch.setattr(deliver.sys, "orig_argv", ["python", "x.pyz", "agent", "--queue", "q1"])
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    deliver.leave_behind(tmp_path, "q1")
    assert started == []
    monkeypatch.delenv("SLURM_JOB_ID")
    deliver.leave_behind(tmp_path, "q1")
    assert len(started) == 1
