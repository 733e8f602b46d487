from __future__ import annotations

import ctypes
import platform
import threading

import pytest

from onbox.machine import io_class

_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}


def of_this_thread() -> int:
    """1 to 3, or 0 where none was set."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(_IOPRIO_GET[platform.machine()], 1, 0) >> 13


def in_a_thread() -> list[int]:
    found: list[int] = []

    def body() -> None:
        io_class.give_way()
        found.append(of_this_thread())
        io_class.be_usual()
        found.append(of_this_thread())

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return found


@pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in _IOPRIO_GET,
    reason="asks the kernel by a number that is known for Linux on two processors",
)
def test_one_thread_gives_way_and_is_in_turn_again_and_no_other_thread_is_changed() -> None:
    before = of_this_thread()
    gave_way, is_usual = in_a_thread()
    assert gave_way == 3
    # What was never set is 0, or since Linux 5.14 what follows from the niceness.
    assert is_usual in (0, 2)
    assert of_this_thread() == before


def test_where_the_number_is_not_known_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    if platform.system() == "Linux":
        monkeypatch.setattr(ctypes.CDLL, "__getattr__", None)
    io_class.give_way()
