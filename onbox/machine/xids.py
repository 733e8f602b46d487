"""Errors that the driver reports of a card by number (Xid): from NVML's events, and from the
kernel's log where it may be read, which in most containers it may not.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

_KERNEL_LOG = "/dev/kmsg"
_LINE = re.compile(rb"NVRM: Xid \(PCI:([0-9A-Fa-f:]+)[^)]*\): (\d+)")
_MOST_RECORDS, _RECORD_BYTES = 20_000, 8192
_XID_EVENT = 0x8


class Xids:
    """Remembers the last number of each card."""

    def __init__(self, path: str = _KERNEL_LOG) -> None:
        self._by_bus: dict[str, int] = {}
        self._by_index: dict[int, int] = {}
        self._log: int | None = None
        self._events: Any = None
        with contextlib.suppress(OSError):
            self._log = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def listen(self) -> None:
        """From now on to NVML, too; a card or driver that has no events is left out."""
        import pynvml

        with contextlib.suppress(pynvml.NVMLError):
            self._events = pynvml.nvmlEventSetCreate()
            for index in range(pynvml.nvmlDeviceGetCount()):
                with contextlib.suppress(pynvml.NVMLError):
                    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                    pynvml.nvmlDeviceRegisterEvents(handle, _XID_EVENT, self._events)

    def look(self) -> None:
        """Take what has come since."""
        self._read_log()
        self._take_events()

    def last(self, index: int, handle: Any) -> int | None:
        """The last number of this card; None where there was none, or nobody may know."""
        import pynvml

        found = self._by_index.get(index)
        with contextlib.suppress(pynvml.NVMLError, AttributeError):
            bus = pynvml.nvmlDeviceGetPciInfo(handle).busId
            bus = bus.decode() if isinstance(bus, bytes) else bus
            found = self._by_bus.get(_bus(bus), found)
        return found

    def _read_log(self) -> None:
        for _ in range(_MOST_RECORDS if self._log is not None else 0):
            try:
                record = os.read(self._log or 0, _RECORD_BYTES)
            except BrokenPipeError:
                continue  # older records were written over meanwhile
            except OSError:
                return  # no more
            if not record:
                return
            for bus, number in _LINE.findall(record):
                self._by_bus[_bus(bus.decode())] = int(number)

    def _take_events(self) -> None:
        import pynvml

        with contextlib.suppress(pynvml.NVMLError):
            while self._events is not None:
                told = pynvml.nvmlEventSetWait_v2(self._events, 0)
                self._by_index[pynvml.nvmlDeviceGetIndex(told.device)] = int(told.eventData)


def _bus(text: str) -> str:
    """The kernel writes 0000:65:00, NVML 00000000:65:00.0."""
    domain, _, rest = text.partition(":")
    return f"{int(domain, 16):x}:{rest.partition('.')[0].lower()}"
