"""A night of pretended silence, with a clock of our own, and the verb on runs of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from robot import Robot

from boxcar.laptop.common import home
from boxcar.laptop.hosts import own_network
from boxcar.laptop.run import sentinel_memory
from boxcar.laptop.verbs import sentinel as module
from boxcar.laptop.verbs.sentinel import Looked, sentinel
from boxcar.shared import timestamp
from boxcar.shared.process import exit_codes

EVENING = "2026-11-29T22:00:00.000Z"
WELL = Looked(home.KnownRun("abl", Path("/nowhere/job.yaml"), "autodl", EVENING), answered=True)
Look = Callable[[], Looked]


class Night:
    """`look` is what a look finds; `has_network`: whether the network of this machine works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.now, self.found, self.has_network, self.asked = EVENING, WELL, True, 0
        self._capsys = capsys
        monkeypatch.setattr(timestamp, "utc_now", lambda: self.now)
        monkeypatch.setattr(home, "known_runs", lambda: [WELL.known])
        monkeypatch.setattr(module, "_is_left_out", lambda known: False)
        monkeypatch.setattr(module, "_look", lambda known: self.found)
        monkeypatch.setattr(own_network, "is_up", self._is_up)

    def _is_up(self) -> bool:
        self.asked += 1
        return self.has_network

    def silent(self, why: str = "timed out", *, others_answer: bool = False) -> None:
        self.found = Looked(WELL.known, silent={"box-a": why}, answered=others_answer)

    def look(self, times: int = 1) -> list[str]:
        """What is said at so many looks, ten minutes apart."""
        self._capsys.readouterr()
        for _ in range(times):
            self.code = sentinel(environ={})
            self.now = timestamp.after(self.now, 600.0)
        said = self._capsys.readouterr().err.splitlines()
        return [line for line in said if not line.startswith(("A laptop", "crontab"))]


@pytest.fixture
def night(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Night:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Night(monkeypatch, capsys)


def test_a_box_that_falls_silent_is_told_at_the_second_look_and_once_a_night(night: Night) -> None:
    night.look()
    night.silent()
    assert not night.look()
    assert "box-a: silent for 10m (timed out)" in " ".join(night.look())
    assert night.code == 1
    assert not night.look(times=40)
    night.found = WELL
    assert "well again" in " ".join(night.look())


def test_a_single_look_that_failed_is_no_silence(night: Night) -> None:
    night.look()
    for _ in range(10):
        night.silent()
        assert not night.look()
        night.found = WELL
        assert not night.look()


def test_without_a_network_of_our_own_no_box_is_silent_and_the_count_stands_still(
    night: Night,
) -> None:
    night.look()
    night.silent()
    night.look()
    night.has_network = False
    said = night.look(times=12)
    assert night.code == exit_codes.TEMPORARY
    assert all("reaches no known ssh server" in line or "did not answer" in line for line in said)
    night.has_network = True
    assert "box-a: silent" in " ".join(night.look())


def test_a_box_that_answers_proves_the_network_and_nobody_else_is_asked(night: Night) -> None:
    night.silent(others_answer=True)
    night.look(times=3)
    assert night.asked == 0


def test_it_speaks_at_least_once_a_day_even_when_nothing_changed(night: Night) -> None:
    assert night.look() == ["Boxcar abl: nothing needs attention"]
    assert not night.look(times=6 * 23)
    assert night.look(times=6 * 2) == ["Boxcar abl: nothing needs attention"]
    night.now = timestamp.after(night.now, -40 * 86_400.0)  # the clock was wrong before
    assert night.look() == ["Boxcar abl: nothing needs attention"]


def test_two_at_once_do_not_speak_twice(night: Night, tmp_path: Path) -> None:
    night.look()
    held = module.lock.try_hold(tmp_path / "boxcar" / "sentinel.lock")
    assert held is not None
    assert night.look() == ["another sentinel is looking right now"]
    assert night.code == exit_codes.TEMPORARY


@pytest.mark.parametrize("text", ["", "{", "[]", '{"runs": {"a": 1}}', '{"runs": {"a": {}}}'])
def test_a_memory_that_cannot_be_read_makes_everything_news(text: str, tmp_path: Path) -> None:
    (tmp_path / "sentinel.json").write_text(text)
    assert sentinel_memory.read_memories(tmp_path / "sentinel.json") == {}


def test_a_service_that_does_not_take_it_is_told_again(
    night: Night, robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = _project(tmp_path / "p")
    opened, _ = module.open_known_run("abl", job, "local")
    night.found = Looked(WELL.known, opened, problem="its job cannot be read")
    monkeypatch.setattr(module, "_bring_home", lambda looked: None)
    environ = {"PATH": "/usr/bin:/bin", "WECOM_URL": robot.chat().url}
    robot.last = (500, {}, b"")
    assert sentinel(environ=environ) == 1
    robot.last = (200, {}, b'{"errcode": 0}')
    assert sentinel(environ=environ) == 1
    assert sentinel(environ=environ) == 1
    texts = [body["text"]["content"] for body in robot.bodies]
    assert len(texts) == 2 and "1 thing needs attention\nabl: its job cannot be read" in texts[1]


def _project(root: Path) -> Path:
    (root / "queues").mkdir(parents=True)
    (root / "train.py").write_text("")
    (root / "queues" / "q.txt").write_text("- recon 3\n")
    job = {"name": "abl", "command": "train.py", "launcher": "python", "artifacts": ["m.json"]}
    job |= {"queues": {"queues/q.txt": "box-a"}, "notify": [{"wecom": {"url": "env:WECOM_URL"}}]}
    (root / "job.yaml").write_text(yaml.safe_dump(job | {"language": "en"}))
    return root / "job.yaml"


def test_runs_of_this_machine_are_looked_at_and_one_whose_folder_is_lost_may_still_bill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    home.remember_run("abl", _project(tmp_path / "p"), "local")
    assert sentinel(environ={}) == 0
    said = capsys.readouterr().err
    assert "A laptop that sleeps runs no cron" in said and "0 of 1 verified" in said
    assert "WECOM_URL is not set" in said
    home.remember_run("lost", tmp_path / "gone" / "job.yaml", "autodl")
    assert sentinel(environ={}) == 1
    assert "may still be billing" in capsys.readouterr().err


def test_a_door_that_says_what_no_sshd_says_is_no_network() -> None:
    def speak(server: socket.socket, words: bytes) -> None:
        line, _ = server.accept()
        with line:
            line.sendall(words)

    for words, is_up in ((b"SSH-2.0-x\r\n", True), (b"HTTP/1.1 302\r\n", False)):
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=speak, args=(server, words), daemon=True).start()
            assert own_network.is_up([server.getsockname()], timeout_s=20.0) is is_up
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        assert not own_network.is_up([nobody.getsockname()])
