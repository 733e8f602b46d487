from __future__ import annotations

import gc
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


def test_what_was_added_is_settled_until_nobody_holds_it() -> None:
    one = Settles()
    unsettled.add(one)
    unsettled.settle()
    unsettled.settle(is_alone=True)
    assert one.asked == [False, True]
    asked = one.asked
    del one
    gc.collect()
    unsettled.settle()
    assert asked == [False, True]


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
        "one = One()\n"
        "unsettled.add(one)\n"
        "print('through')\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (rc, "through\n")
    assert ("was wrong" in done.stderr) == bool(rc)
