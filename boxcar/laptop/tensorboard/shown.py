"""One TensorBoard that was asked for: what is known of it, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from boxcar.laptop.common import home
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.hosts.reverse_port import forward
from boxcar.shared.environment import after_hook
from boxcar.shared.errors import TemporaryError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# A box that sleeps, and an interpreter on a cold network disk; TensorBoard imports a lot.
FOUND_WITHIN_S, SHOWN_WITHIN_S = 90.0, 120.0
_END_WITHIN_S = 10.0
# As TensorBoard says it; its host is the one that it was given.
_URL = re.compile(r"https?://[^\s/:]+:(\d{1,5})/")
_SAID_KEPT = 500  # characters


@dataclass(frozen=True)
class Found:
    """What `python` there has: how many event files, and whether a TensorBoard."""

    events: int
    has_tensorboard: bool
    python: str


class Shown:
    """A child that runs training/show_events. It ends when its stdin does, so also when we die."""

    def __init__(self, words: Sequence[str], typed: bytes = b"") -> None:
        """`typed` goes to its stdin first. Raises OSError where it cannot be started."""
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is ours to hear
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(typed)
            self._process.stdin.flush()
        threading.Thread(target=self._read, daemon=True).start()

    def found(self) -> Found:
        """Its first answer. Raises TemporaryError where none comes."""
        said = ""
        for line in self._until(FOUND_WITHIN_S):
            record = _record(line)
            if record is not None:
                return Found(
                    int(record["events"]), bool(record["tensorboard"]), str(record["python"])
                )
            said = f"{said}{line}"[-_SAID_KEPT:]
        raise TemporaryError(
            _("it did not report what it has: {what}", what=said.strip() or _("no output"))
        )

    def port(self) -> int:
        """Where its TensorBoard listens there. Raises TemporaryError where it does not come up."""
        said = ""
        for line in self._until(SHOWN_WITHIN_S):
            if at := _URL.search(line):
                return int(at.group(1))
            said = f"{said}{line}"[-_SAID_KEPT:]
        raise TemporaryError(
            _("TensorBoard did not start: {what}", what=said.strip() or _("no output"))
        )

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_WITHIN_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _until(self, within_s: float) -> Iterator[str]:
        """Its lines, until it ends or nothing has come in time."""
        end = time.monotonic() + within_s
        while (left_s := end - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=left_s)
            except queue.Empty:
                return
            if line is None:
                return
            yield line

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line.decode("utf-8", "replace"))
        self._lines.put(None)


def _record(line: str) -> dict[str, Any] | None:
    """A login shell may have printed something before."""
    with contextlib.suppress(ValueError):
        record = json.loads(line)
        if isinstance(record, dict) and {"events", "tensorboard", "python"} <= record.keys():
            return record
    return None


# Where event files of a run may lie, and how a TensorBoard is started there.


_PROGRAM = "show_events"
# From a port of the place to one of this machine.
PortHere = Callable[[int], int]


class Place(Protocol):
    """`name` is that of the box, '' on this machine."""

    @property
    def name(self) -> str: ...

    def show(self) -> tuple[Shown, PortHere]:
        """Starts it. Raises BoxcarError for a box that cannot be reached, and OSError."""


@dataclass(frozen=True)
class Here:
    """A folder of this machine, by one of its interpreters."""

    python: str
    folder: Path
    name: str = ""

    def show(self) -> tuple[Shown, PortHere]:
        return Shown([self.python, "-c", _program(), str(self.folder)]), lambda port: port


@dataclass(frozen=True)
class OnBox:
    """A folder of a box, by the training's interpreter after the profile's hook."""

    ssh: Ssh
    hook: str
    python: str
    folder: str

    @property
    def name(self) -> str:
        return self.ssh.alias

    def show(self) -> tuple[Shown, PortHere]:
        self.ssh.run(["true"])  # its errors are sentences, and it pins the host's key
        program = [*after_hook(self.hook), self.python, "-c", _program(), self.folder]
        words, control, typed = self.ssh.own_program(program)
        return Shown(words, typed), lambda port: forward(self.name, control, port)


def pythons_here(first: str) -> list[str]:
    """Interpreters of this machine that may have TensorBoard, each once."""
    found = [first, sys.executable]
    if program := shutil.which("tensorboard"):
        found.append(str(Path(program).resolve().with_name("python")))
    return [one for one in dict.fromkeys(found) if shutil.which(one)]


def with_events(folders: Iterator[Path]) -> Path | None:
    """The first of them that has an event file, else the first that is there."""
    there = [folder for folder in folders if folder.is_dir()]
    return next(filter(_has_event, there), next(iter(there), None))


def link(folders: Mapping[str, Path], below: Path) -> None:
    """`below` gets a link to each folder, by its name; TensorBoard calls a cell by it."""
    for name, folder in folders.items():
        at = below / name
        if at.is_symlink() and at.readlink() != folder:
            at.unlink()
        with contextlib.suppress(FileExistsError):
            at.symlink_to(folder, target_is_directory=True)


def _has_event(folder: Path) -> bool:
    return any(".tfevents." in name for _, _, files in os.walk(folder) for name in files)


def _program() -> str:
    return home.training_program(_PROGRAM)
