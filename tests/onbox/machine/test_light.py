from __future__ import annotations

import subprocess
import sys

import pytest

from onbox.cell.wrapper import program
from onbox.machine.light import suppress


def test_what_is_named_is_passed_over_and_nothing_else() -> None:
    with suppress(OSError, ValueError):
        raise FileNotFoundError
    with suppress(OSError):
        pass
    with pytest.raises(KeyError), suppress(OSError):
        raise KeyError


def test_an_attempts_program_brings_none_of_what_makes_its_start_longer() -> None:
    modules = (*program.FIRST, "onbox.cell.wrapper.prepared", "onbox.cell.wrapper.waiting")
    words = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    found = subprocess.check_output([sys.executable, "-S", "-c", words], text=True).split()
    assert not {"enum", "collections", "contextlib", "functools", "signal", "socket"} & {*found}
