from __future__ import annotations

import signal
import subprocess
import sys
import threading

from boxcar.shared.process import told_to_end

# Says how it was left, and is slow to leave.
SLOW = """
import signal, sys, time
from boxcar.shared.process import told_to_end
if "nohup" in sys.argv:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
with told_to_end.as_exit():
    try:
        print("at work", flush=True)
        sys.stdin.readline()
        print("to its end", flush=True)
    finally:
        print("leaves", flush=True)
        sys.stdin.readline()
        print("left", flush=True)
"""


def begun(*words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    made = subprocess.Popen(
        [sys.executable, "-c", SLOW, *words], stdin=pipe, stdout=pipe, text=True
    )
    assert made.stdout is not None and made.stdout.readline() == "at work\n"
    return made


def test_the_second_signal_does_not_end_who_ends_its_processes() -> None:
    program = begun()
    assert program.stdout is not None
    program.send_signal(signal.SIGHUP)
    assert program.stdout.readline() == "leaves\n"
    program.send_signal(signal.SIGHUP)
    program.send_signal(signal.SIGTERM)
    assert program.communicate("go\n") == ("left\n", None)
    assert program.returncode == 128 + signal.SIGHUP


def test_what_nohup_ignores_stays_ignored() -> None:
    program = begun("nohup")
    program.send_signal(signal.SIGHUP)
    assert program.communicate("on\ngo\n") == ("to its end\nleaves\nleft\n", None)
    assert program.returncode == 0


def test_what_somebody_has_chosen_is_left_and_put_back() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with told_to_end.as_exit():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    hangup = signal.getsignal(signal.SIGHUP)
    with told_to_end.as_exit():
        pass
    assert signal.getsignal(signal.SIGHUP) is hangup


def test_another_thread_hears_no_signals() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with told_to_end.as_exit():
                pass
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []
