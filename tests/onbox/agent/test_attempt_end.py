from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from waiting import LIMIT_S

from boxcar.shared.disk import lock
from onbox.agent.runner import AttemptEnd

# Far longer than any test runs: who waits for it has not been woken.
NEVER_S = 10 * LIMIT_S


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "a.log"
    path.touch()
    return path


def woken(end: AttemptEnd) -> threading.Thread:
    """A thread that is at its end once `end` wakes it."""
    waits = threading.Thread(target=end.wait, args=(NEVER_S,), daemon=True)
    waits.start()
    return waits


def test_an_adopted_attempt_wakes_the_agent_as_its_lock_becomes_free(log):
    held = lock.try_hold(log)
    waits = woken(AttemptEnd(log, None))
    assert waits.is_alive()
    os.close(held)
    waits.join(LIMIT_S)
    assert not waits.is_alive()
    assert not lock.is_held(log)


def test_a_wrapper_that_is_gone_wakes_it_and_so_do_the_last_it_left_behind(log):
    with log.open("ab") as file:
        lock.try_lock(file.fileno())
        left = subprocess.Popen(["sleep", "3600"], stdout=file)
        child = subprocess.Popen([sys.executable, "-c", "pass"], stdout=file)
    end = AttemptEnd(log, child)
    end.wait(NEVER_S)
    assert child.poll() == 0
    assert lock.is_held(log)
    waits = woken(end)
    left.kill()
    left.wait()
    waits.join(LIMIT_S)
    assert not waits.is_alive()


def test_a_log_that_is_gone_costs_no_more_than_the_wait(log):
    log.unlink()
    AttemptEnd(log, None).wait(0.01)


def test_whoever_was_woken_waits_again(log):
    end = AttemptEnd(log, None)
    end.wait(NEVER_S)
    end.wait(0.01)
