from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from begun import DIES_AT_ONCE, HANDS_ON, ONE_BY_ONE, RANKS, SCRIPT, SHELL, Begun
from specs import make_spec
from waiting import until

from boxcar.shared.paths import ScratchPaths
from onbox.attempt import watch
from onbox.attempt.stop import Stop
from onbox.attempt.watch import Watch
from onbox.machine import process

# Longer than what a launcher leaves behind gets where nobody has asked for a stop.
SAVES_FOR_S = 1.0
# With a helper, which its save needs and which a signal would end.
WITH_HELPER = f"""\
import subprocess
helper = subprocess.Popen(["sleep", "600"])
{SCRIPT.replace('open(f"saved', 'assert helper.poll() is None; open(f"saved')}
"""


Begin = Callable[..., Begun]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Begin an attempt by a launcher of this text, or by a shell's; what is left of it is ended."""
    begun = []
    monkeypatch.setattr("onbox.attempt.watch.LEFTOVER_GRACE_S", 0.3)

    def of(text: str, *words: str, script: str = SCRIPT, **more: Any) -> Begun:
        (tmp_path / "script.py").write_text(script)
        launcher = tmp_path / "launcher"
        launcher.write_text(text)
        launcher.chmod(0o755)
        own = [str(launcher), sys.executable] if text == SHELL else [sys.executable, str(launcher)]
        argv = (*own, str(tmp_path / "script.py"), *words)
        begun.append(Begun(tmp_path, make_spec(tmp_path, **more), argv=argv))
        return begun[-1]

    yield of
    for one in begun:
        one.end()


SAVES = ("85", str(SAVES_FOR_S))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("launcher", [DIES_AT_ONCE, SHELL], ids=["python", "bash"])
def test_a_script_whose_launcher_hands_no_signal_on_is_told_and_may_save(launcher, number, begin):
    one = begin(launcher, *SAVES)
    one.wait_for("pid0")
    one.tell(number)
    done = one.ended()
    assert one.has_saved()
    assert (one.told(), done.was_told_to_stop) == (1, True)


def test_ranks_whose_launcher_hands_the_signal_on_hear_it_once(begin):
    one = begin(HANDS_ON, *SAVES, launcher="torchrun", ranks=2)
    one.wait_for("pid0", "pid1")
    one.tell()
    assert one.ended().rc == 85
    assert [(one.has_saved(rank), one.told(rank)) for rank in (0, 1)] == [(True, 1)] * 2


def test_of_deepspeed_the_ranks_are_told_and_their_code_arrives(begin):
    one = begin(ONE_BY_ONE, *SAVES, launcher="deepspeed", ranks=2)
    one.wait_for("pid0", "pid1")
    one.tell()
    assert one.ended().rc == 85
    assert [(one.has_saved(rank), one.told(rank)) for rank in (0, 1)] == [(True, 1)] * 2


def test_one_that_has_no_ranks_yet_is_told_itself(begin):
    one = begin(
        "import time\nopen('pid0', 'w').write('it is there')\ntime.sleep(600)\n",
        launcher="deepspeed",
        ranks=2,
    )
    one.wait_for("pid0")
    one.tell()
    assert one.ended().rc == -signal.SIGTERM


def test_the_same_time_is_left_where_its_time_limit_has_come(begin):
    one = begin(DIES_AT_ONCE, *SAVES, limit_s=1)
    one.wait_for("pid0")
    done = one.ended()
    assert one.has_saved()
    assert (one.told(), done.over_time_s, done.was_told_to_stop) == (1, 1, False)


def test_what_a_script_has_started_is_left_to_it_until_it_has_ended(begin):
    """A data loader's worker that ends makes the save of its script fail."""
    one = begin(SHELL, *SAVES, script=WITH_HELPER)
    one.wait_for("pid0")
    one.tell()
    one.ended()
    assert one.has_saved()


@pytest.mark.parametrize("launcher", [DIES_AT_ONCE, HANDS_ON], ids=["ended", "waits"])
def test_who_has_not_left_at_the_end_of_the_grace_is_killed(launcher, begin):
    one = begin(launcher, "85", "600", grace_s=1.0)
    one.wait_for("pid0")
    pid = int((one.folder / "pid0").read_text())
    one.tell()
    assert one.ended().was_told_to_stop
    assert not one.has_saved()
    assert process.start_time(pid) is None


def test_a_platform_that_gives_less_shortens_a_persons_stop_also_after_the_launchers_end(begin):
    one = begin(DIES_AT_ONCE, "85", "600", grace_s=0.5)
    one.wait_for("pid0")
    one.tell(signal.SIGINT)
    one.wait_for("told0")
    one.tell(signal.SIGTERM)
    one.ended()
    assert (one.told(), one.has_saved()) == (1, False)


def test_what_a_launcher_leaves_that_nobody_asked_to_stop_gets_little_time(begin):
    leaves = (
        "import subprocess, sys, os, time\n"
        "subprocess.Popen([sys.executable, *sys.argv[1:]])\n"
        "while not os.path.exists('pid0'):\n    time.sleep(0.01)\n"
    )
    one = begin(leaves, "0", "600")
    assert one.ended().rc == 0
    assert not one.has_saved()


@pytest.mark.parametrize(("code", "rc"), [(247, -9), (250, -6), (245, -11), (249, -7), (241, -15)])
def test_deepspeeds_spelling_of_a_signal_is_read_as_the_signal(code, rc, begin):
    text = f"import sys\nsys.exit({code})\n"
    assert begin(text, launcher="deepspeed", ranks=2).ended().rc == rc


@pytest.mark.parametrize(("launcher", "code"), [("deepspeed", 255), ("torchrun", 247)])
def test_any_other_code_is_the_scripts_own(launcher, code, begin):
    text = f"import sys\nsys.exit({code})\n"
    assert begin(text, launcher=launcher, ranks=2).ended().rc == code


# As one whose own child is ended by a signal, and which takes that for a good end.
ENDS_WITH_0 = f"""\
{RANKS}
while not os.path.exists("go"):
    time.sleep(0.01)
sys.exit(0)
"""
HELPERS = """\
import os, subprocess, sys, time
helper = subprocess.Popen(["sleep", "900"])
with open("pid0", "w") as file:
    file.write(str(helper.pid))
while not os.path.exists("go"):
    time.sleep(0.01)
"""


@pytest.fixture
def look_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Wait until the wrapper has looked at all that is there now."""
    looks, look = tmp_path / "looks", Watch.look

    def look_and_say(self: Watch, launcher: int) -> float:
        pause_s = look(self, launcher)
        with looks.open("a") as file:
            file.write(".")
        return min(pause_s, 0.1)

    monkeypatch.setattr(Watch, "look", look_and_say)

    def count() -> int:
        return looks.stat().st_size if looks.exists() else 0

    def wait() -> None:
        before = count()
        until(lambda: count() >= before + 2, "two looks")

    return wait


def test_a_launchers_0_with_ranks_alive_is_written_down(begin, look_twice):
    one = begin(ENDS_WITH_0, "0", "600", launcher="torchrun", ranks=2)
    one.wait_for("pid0", "pid1")
    look_twice()
    (one.folder / "go").touch()
    done = one.ended()
    assert (done.rc, done.ranks_alive, done.ranks_formed) == (0, 2, None)


def test_what_a_launcher_started_that_is_no_rank_counts_for_nothing(begin, look_twice):
    one = begin(HELPERS, "0", "600", launcher="torchrun", ranks=2)
    one.wait_for("pid0")
    look_twice()
    (one.folder / "go").touch()
    assert one.ended().ranks_alive is None


# --- how long a script gets


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a wrapper takes for the time, in seconds; nothing is signalled."""
    now_s = [100.0]
    monkeypatch.setattr("onbox.attempt.stop.signal.signal", lambda number, handler: None)
    monkeypatch.setattr("onbox.attempt.stop.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr(os, "kill", lambda pid, number: None)
    return now_s


def of_none(platform_grace_s: float = 60.0, limit_s: int | None = None) -> Stop:
    return Stop(list, "", platform_grace_s, limit_s)


@pytest.mark.parametrize(
    ("platform_grace_s", "numbers", "left_s"),
    [
        pytest.param(60, [signal.SIGTERM], 60, id="usual"),
        pytest.param(5, [signal.SIGTERM], 5, id="the platform hurries"),
        pytest.param(600, [signal.SIGTERM], 60, id="the platform has time"),
        pytest.param(5, [signal.SIGINT], 60, id="a person stops"),
        pytest.param(5, [signal.SIGINT, signal.SIGTERM], 5, id="a person, then the platform"),
        pytest.param(5, [signal.SIGTERM, signal.SIGINT], 5, id="the platform, then a person"),
        pytest.param(0, [signal.SIGTERM], 60, id="a platform that sends none"),
    ],
)
def test_a_script_gets_as_long_as_the_platform_gives(clock, platform_grace_s, numbers, left_s):
    stop = of_none(platform_grace_s)
    stop.watch(1)
    for number in numbers:
        stop._hear(number, None)
    assert stop.look() == left_s


def test_who_asks_twice_gives_no_more_time(clock):
    stop = of_none()
    stop.watch(1)
    stop._hear(signal.SIGINT, None)
    clock[0] += 20
    stop._hear(signal.SIGINT, None)
    assert stop.look() == 40


def test_what_came_before_the_launcher_counts_for_it(clock):
    stop = of_none(5)
    stop._hear(signal.SIGTERM, None)
    clock[0] += 10
    stop.watch(1)
    assert stop.look() == 5


def test_the_time_of_an_attempt_runs_from_its_start(clock):
    stop = of_none(limit_s=5)
    clock[0] += 10
    assert stop.look() == math.inf
    stop.watch(1)
    assert stop.look() == 5
    assert not stop.is_over_time
    clock[0] += 6
    assert (stop.look(), stop.is_over_time) == (60, True)


# --- the watch


@pytest.fixture
def ended() -> list[str]:
    return []


@pytest.fixture
def watched(tmp_path: Path, ended: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Two ranks were asked for; a look takes no time."""
    (tmp_path / "boxcar" / "run" / "cells" / "a").mkdir(parents=True)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    monkeypatch.setattr(time, "process_time", lambda: 7.0)
    monkeypatch.setattr(watch, "end_soon", lambda find: ended.append(log.read_text()))
    log = tmp_path / "log"
    fd = os.open(log, os.O_WRONLY | os.O_CREAT)
    spec = make_spec(tmp_path, launcher="torchrun", ranks=2)
    yield Watch(spec, ScratchPaths(tmp_path, "run"), ("launcher", "train.py"), list, fd)
    os.close(fd)


def see(monkeypatch: pytest.MonkeyPatch, formed: int | None) -> None:
    monkeypatch.setattr(watch, "formed", lambda launcher, argv, **how: formed)


def test_until_a_rank_is_seen_no_script_is_short_enough_to_come_and_go_between_two_looks(
    watched, monkeypatch
):
    """It was looked each second, and a script of one second with one rank of two was verified."""
    interpreter_s = 0.05  # to start one takes as long
    see(monkeypatch, None)
    assert watched.look(1) < interpreter_s
    assert watched.look(1) < interpreter_s
    see(monkeypatch, 2)
    watched.look(1)
    assert watched.look(1) == watch.LOOK_EVERY_S
    assert watched.wrong_ranks is None


def test_fewer_ranks_than_were_asked_for_end_the_attempt_once(watched, ended, monkeypatch):
    see(monkeypatch, 1)
    watched.look(1)
    watched.look(1)
    assert watched.wrong_ranks == 1
    text = "boxcar: the launcher was asked for 2 ranks and formed 1: this attempt is ended\n"
    assert ended == [text]
