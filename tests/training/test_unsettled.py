from __future__ import annotations

import os
import subprocess
import sys

import pytest
from waiting import LIMIT_S

from boxcar.shared.errors import BoxcarError, InputError
from boxcar.training import unsettled


class Settles:
    def __init__(self, error: BoxcarError | None = None) -> None:
        self.asked: list[bool] = []
        self._error = error

    def settle(self, *, is_alone: bool = False) -> None:
        self.asked.append(is_alone)
        error, self._error = self._error, None
        if error:
            raise error


@pytest.fixture(autouse=True)
def nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsettled, "_waiting", {})


def test_each_is_settled_once_in_the_order_in_which_they_came() -> None:
    ones = [Settles(InputError(str(n))) for n in range(3)]
    for one in ones:
        unsettled.add(one)
    for number in range(3):
        with pytest.raises(InputError, match=str(number)):
            unsettled.settle(is_alone=number == 2)
    unsettled.settle()
    assert [one.asked for one in ones] == [[False], [False], [True]]


def test_what_is_settled_elsewhere_is_dropped() -> None:
    one = Settles()
    unsettled.add(one)
    unsettled.drop(one)
    unsettled.drop(one)
    unsettled.settle()
    assert one.asked == []


def test_a_fork_settles_nothing_of_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Settles()
    unsettled.add(one)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    unsettled.settle()
    assert one.asked == []


def test_what_was_wrong_is_raised_to_whoever_is_about_to_keep_something() -> None:
    one = Settles(InputError("was wrong"))
    unsettled.add(one)
    with pytest.raises(InputError, match="was wrong"):
        unsettled.settle()
    unsettled.settle()  # it is said once


@pytest.mark.parametrize(("error", "rc"), [("None", 0), ("InputError('was wrong')", 2)])
def test_what_nobody_kept_is_settled_when_the_interpreter_ends(error: str, rc: int) -> None:
    script = (
        "from boxcar.shared.errors import InputError\n"
        "from boxcar.training import unsettled\n"
        "class One:\n"
        "    def settle(self, *, is_alone=False):\n"
        "        assert is_alone\n"
        f"        error = {error}\n"
        "        if error: raise error\n"
        "def main(): unsettled.add(One())\n"
        "main()\n"
        "print('through')\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (rc, "through\n")
    assert ("was wrong" in done.stderr) == bool(rc)
