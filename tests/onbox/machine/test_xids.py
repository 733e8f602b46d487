"""Xid by NVML's events and by lines as real kernels write them; what may not be read is no news."""

from __future__ import annotations

import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from onbox.machine import xids
from onbox.machine.xids import Xids

# As /dev/kmsg has them, of drivers 525 to 570.
FALLEN = (
    b"4,1822,58231114,-;NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has "
    b"fallen off the bus.\n"
)
FAULT = b"4,1823,58231115,-;NVRM: Xid (PCI:0000:65:00): 31, pid=4711, name=python, Ch 00000008\n"
OTHER = b"6,1824,58231116,-;usb 1-1: new high-speed USB device\n"


class Error(Exception):
    pass


class Timeout(Error):
    pass


@pytest.fixture(autouse=True)
def nvml(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two cards, of which events come as the test says."""
    library: Any = ModuleType("pynvml")
    library.NVMLError, library.events = Error, []
    library.nvmlDeviceGetCount = lambda: 2
    library.nvmlDeviceGetHandleByIndex = lambda index: f"card {index}"
    library.nvmlDeviceGetIndex = lambda handle: int(handle.split()[1])
    library.nvmlDeviceGetPciInfo = lambda handle: SimpleNamespace(
        busId="00000000:65:00.0" if handle == "card 0" else "00000000:B1:00.0"
    )
    library.nvmlEventSetCreate = lambda: "set"
    library.nvmlDeviceRegisterEvents = lambda handle, kinds, events: None

    def wait(events: Any, timeout_ms: int) -> Any:
        if not library.events:
            raise Timeout
        index, number = library.events.pop(0)
        return SimpleNamespace(device=f"card {index}", eventData=number)

    library.nvmlEventSetWait_v2 = wait
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def log(monkeypatch: pytest.MonkeyPatch, *records: bytes) -> Xids:
    """A log of which each read is one record, as the kernel has it."""
    left = [*records]

    def read(fd: int, size: int) -> bytes:
        if not left:
            raise BlockingIOError
        return left.pop(0)

    found = Xids(os.devnull)
    monkeypatch.setattr(xids.os, "read", read)
    return found


def test_the_kernels_log_names_the_card_by_its_bus(monkeypatch):
    found = log(monkeypatch, OTHER, FAULT, FALLEN, OTHER)
    found.look()
    assert (found.last(0, "card 0"), found.last(1, "card 1")) == (79, None)


def test_nvmls_events_are_taken_as_they_come(nvml):
    found = Xids("/nowhere")
    found.listen()
    found.look()
    assert found.last(1, "card 1") is None
    nvml.events += [(1, 31), (1, 48)]
    found.look()
    assert (found.last(0, "card 0"), found.last(1, "card 1")) == (None, 48)


def test_a_card_without_events_and_a_log_that_may_not_be_read_are_no_news(nvml, monkeypatch):
    def refuse(*words: Any) -> Any:
        raise Error

    monkeypatch.setattr(nvml, "nvmlDeviceRegisterEvents", refuse)
    monkeypatch.setattr(nvml, "nvmlDeviceGetPciInfo", refuse)
    found = Xids("/nowhere")
    found.listen()
    found.look()
    assert found.last(0, "card 0") is None
