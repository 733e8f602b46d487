"""The board on a terminal of its own, driven by keys: a real process, and a tree without agents."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console
from run_on_disk import (
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    held,
    make_run,
    queue_done,
)
from waiting import LIMIT_S, until

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.verbs.watch import watch
from boxcar.laptop.view.board import screen as board_screen
from boxcar.laptop.view.board.screen import Terminal
from boxcar.shared.process import told_to_end
from boxcar.shared.wire import news_asks

LINES = {"queue_1": [f"configs/{name}.yaml recon 3" for name in ("a", "b", "c", "d")]}
ALTERNATE, NORMAL, CLEAR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[2J"
_LINE = re.compile(r"\x1b\[(\d+);1H((?:(?!\x1b\[\d+;1H).)*)", re.DOTALL)


def bare(written: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written).replace("\r", "")


class Screen:
    """A watch in a child with a terminal of 80x24; what it drew can be read, keys can be typed."""

    def __init__(self, run: RunOnDisk, *, has_shell: bool = False, broken: str = "") -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0 and has_shell:
            _be_shell(run)
        elif self.pid == 0:
            _be_watch(run, broken)
        os.set_blocking(self.master, False)
        self.resize(80, 24)
        self.written = ""

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self) -> str:
        """All that it wrote so far."""
        with contextlib.suppress(BlockingIOError, OSError):
            while data := os.read(self.master, 65_536):
                self.written += data.decode("utf-8", "replace")
        return self.written

    def now(self) -> str:
        """What stands on the screen: of each line what was drawn last."""
        drawn = {
            int(at): bare(text) for at, text in _LINE.findall(self.read().rpartition(CLEAR)[2])
        }
        return "\n".join(drawn[at] for at in sorted(drawn))

    def left(self) -> str:
        """What stays on the terminal once the board is gone."""
        return bare(self.read().rpartition(NORMAL)[2])

    def shows(self, *texts: str) -> None:
        def is_shown() -> bool:
            now = self.now()
            is_there = all(text in now for text in texts)
            assert is_there or not self._is_dead(), (
                f"watch has ended, and {texts} never came:\n{now}"
            )
            return is_there

        until(is_shown, f"{texts}:\n{self.now()}")

    def _is_dead(self) -> bool:
        """Without taking its exit code, which `end` is asked for."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, options) is not None

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def is_raw(self) -> bool:
        return not termios.tcgetattr(self.master)[3] & termios.ICANON

    def end(self) -> int:
        """Its exit code, once it has ended."""
        found: list[int] = []

        def has_ended() -> bool:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            found.extend([os.waitstatus_to_exitcode(status)] if pid else [])
            return bool(pid)

        until(has_ended, "the end of watch")
        self.read()
        return found[0]


def _be_watch(run: RunOnDisk, broken: str = "") -> None:
    """In the child: never comes back. `broken` is what happens within its first drawing."""
    code = 99
    if broken:
        board_screen.ansi = lambda *words: _break(broken)
    try:
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler if number == 2 else signal.SIG_DFL)
        with told_to_end.as_exit():
            code = watch(run.project, interval_s=0.1)
    except SystemExit as left:
        code = int(left.code or 0)
    except ZeroDivisionError:
        code = 77
    except KeyboardInterrupt:
        code = 130
    finally:
        sys.stdout.flush()
        os._exit(code)


def _break(how: str) -> str:
    if how == "error":
        raise ZeroDivisionError
    os.kill(os.getpid(), signal.SIGINT)
    return ""


def _be_shell(run: RunOnDisk) -> None:
    """In the child: a watch in the foreground, which goes on at a line if it was stopped."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        _be_watch(run)
    while os.WIFSTOPPED(status := os.waitpid(job, os.WUNTRACED)[1]):
        os.tcsetpgrp(0, os.getpid())
        os.write(1, b"stopped\n")
        os.read(0, 100)
        os.tcsetpgrp(0, job)
        os.kill(job, signal.SIGCONT)
    os._exit(os.waitstatus_to_exitcode(status))


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    made = make_run(tmp_path, LINES)
    made.say("queue_1", agent_started(), cell_verified("a"), cell_failed("b"), cell_started("c"))
    made.say("queue_1", cell_progress("c", 12, epoch=2, loss=0.5))
    # A busy machine takes longer than the half minute after which a silence is news.
    made.beat("queue_1", from_now(3600), cell="c", progress={"step": 13, "epoch": 2, "loss": 0.25})
    log = made.project.scratch("box-a").log("c")
    log.parent.mkdir(parents=True)
    log.write_text("epoch 1\nepoch 2 loss 0.25\n")
    return made


@pytest.fixture
def screen(run: RunOnDisk) -> Iterator[Screen]:
    log = run.project.scratch("box-a").log("c")
    with held(run.site.tier.lock("queue_1")), held(log):
        made = Screen(run)
        try:
            made.shows("needs attention", "OOM out of memory", "next: ")
            yield made
        finally:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(made.pid, signal.SIGKILL)
                os.waitpid(made.pid, 0)
            os.close(made.master)


def test_every_key_does_what_the_foot_says_and_the_terminal_is_as_before(screen: Screen) -> None:
    assert ALTERNATE in screen.read() and screen.is_raw()
    screen.press("?")
    screen.shows("── keys", "Space, =")
    screen.press("qd")
    screen.shows("done (1)", "✓  a")
    screen.press("u")
    screen.shows("queued (1)", "·  d")
    screen.press("f")
    screen.shows("needs attention (", "✗  b")
    screen.press("\x1b[B\r")
    screen.shows("✗ b  failed", "no log yet")
    screen.press("2")
    screen.shows("attempt 1 failed")
    screen.press("\t")
    screen.shows("failed (OOM): out of memory", "receipt: none yet")
    screen.press("\x1b")
    screen.shows("needs attention (")
    screen.press("/c\rj\r")
    screen.shows("▶ c  running", "epoch 2 loss 0.25", "following")
    screen.press("q\x1b")
    screen.shows("── running")
    screen.resize(120, 11)
    screen.shows("… 1 more: r")
    screen.press("q")
    assert screen.end() == 1, "a cell failed"
    assert "✗  b" in screen.left() and "next: " in screen.left()
    assert "The run continues" in screen.left()
    assert not screen.is_raw()


@pytest.mark.parametrize(
    ("leave", "code"),
    [
        (lambda screen: screen.press("\x03"), 130),
        (lambda screen: os.kill(screen.pid, signal.SIGTERM), 143),
        (lambda screen: os.kill(screen.pid, signal.SIGHUP), 129),
    ],
    ids=["ctrl-c", "sigterm", "sighup"],
)
def test_however_it_is_ended_the_terminal_is_as_before(
    screen: Screen, leave: Callable[[Screen], None], code: int
) -> None:
    leave(screen)
    assert screen.end() == code
    assert NORMAL in screen.read() and not screen.is_raw()
    assert "next: " in screen.left()


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_is_heard_between_two_drawings(number, raised):
    """Within one, a part of it may be lost."""
    master, slave = pty.openpty()
    console = Console(file=os.fdopen(slave, "w"))
    with told_to_end.as_exit(), Terminal(slave, console) as terminal:
        os.kill(os.getpid(), number)
        with pytest.raises(raised):
            terminal.wait(LIMIT_S)
    console.file.close()
    os.close(master)


@pytest.mark.parametrize(("broken", "code"), [("error", 77), ("ctrl-c", 130)])
def test_what_happens_within_the_first_drawing_leaves_the_terminal_as_before(
    run: RunOnDisk, broken: str, code: int
) -> None:
    with held(run.site.tier.lock("queue_1")):
        screen = Screen(run, broken=broken)
        assert screen.end() == code
    assert ALTERNATE in screen.read() and "\x1b[?25h" in screen.read().rpartition(ALTERNATE)[2]
    assert screen.read().count(NORMAL) == 1 and not screen.is_raw()
    os.close(screen.master)


def test_only_lines_that_changed_are_written_and_nothing_where_none_has(screen: Screen) -> None:
    """A terminal forgets what a person has selected where it is written over."""
    screen.press("d")
    screen.shows("done (1)", "✓  a", "Esc back")
    drawn = len(screen.read())
    screen.press("j")
    until(lambda: "✓  a" in bare(screen.read()[drawn:]), "the chosen line")
    assert {int(at) for at, _text in _LINE.findall(screen.read()[drawn:])} <= {1, 5}, (
        "the age of the look stands in the first line"
    )
    whole = screen.read().count(CLEAR)
    screen.press("\x0c")
    until(lambda: screen.read().count(CLEAR) > whole, "all of it, where another program wrote")
    screen.shows("done (1)", "Esc back")


def test_the_mouse_is_the_terminal_s_own_until_somebody_presses_m(screen: Screen) -> None:
    tracked, wheel = "\x1b[?1000h\x1b[?1006h", "\x1b[?1007h"
    assert tracked not in screen.read() and wheel in screen.read()
    screen.press("m")
    until(lambda: tracked in screen.read(), "mouse tracking")
    screen.press("d")
    screen.shows("done (1)", "Esc back")
    screen.press("\x1b[<0;5;5M\x1b[<0;5;5m\x1b[<0;5;5M")
    screen.shows("✓ a  verified")
    screen.press("qq")
    assert screen.end() == 1
    assert "\x1b[?1000l" in screen.read().rpartition(tracked)[2].partition(NORMAL)[0]


def test_ctrl_z_gives_the_terminal_back_until_the_shell_goes_on(run: RunOnDisk) -> None:
    with held(run.site.tier.lock("queue_1")):
        screen = Screen(run, has_shell=True)
        screen.shows("needs attention")
        screen.press("\x1a")
        until(lambda: "stopped" in screen.left(), "the shell")
        assert not screen.is_raw()
        screen.press("fg\n")
        until(lambda: screen.read().count(ALTERNATE) == 2, "the board again")
        screen.shows("needs attention")
        assert screen.is_raw()
        screen.press("q")
        assert screen.end() == 1
    os.close(screen.master)


def test_it_stays_when_no_agent_is_left_until_the_person_leaves(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalSite, "ask", lambda *words, **more: news_asks.Delivered(0))
    with held(run.site.tier.lock("queue_1")) as agent:
        screen = Screen(run)
        screen.shows("needs attention", "1 running")
        run.say("queue_1", cell_verified("c"), queue_done())
        agent.kill()  # the child of the fork holds the pipe that would tell it to end
        screen.shows("2 verified", "q quit")
    screen.press("q")
    assert screen.end() == 1
    assert "next: " in screen.left() and "The run continues" not in screen.left()
    os.close(screen.master)
