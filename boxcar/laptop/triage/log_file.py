"""The end of a log that a person names, or the sentence that says why it cannot be judged."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path

from boxcar.shared.errors import Command, InputError, reason_of
from boxcar.shared.sentence import _
from boxcar.shared.triage import log_lines
from boxcar.shared.triage.log_lines import Tail

STDIN = "-"
MOST_BYTES = 8 * 1024 * 1024
# What such files begin with, and the program that shows what is in them.
_PACKED = {
    b"\x1f\x8b": "zcat",
    b"BZh": "bzcat",
    b"\xfd7zXZ": "xzcat",
    b"\x28\xb5\x2f\xfd": "zstdcat",
    b"PK\x03\x04": "unzip -p",
}
# Of a text: what cannot be read as UTF-8 is a character here and there.
_MOST_UNREADABLE = 0.1
# What a shell makes of <(command) is read as stdin is.
_SHELLS_PIPES = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")


def read_log_file(log: str) -> Tail:
    """`log` is a file, or `-` for stdin. Raises InputError."""
    tail = log_lines.tail_of_stream(sys.stdin.buffer, MOST_BYTES) if log == STDIN else _of_file(log)
    if tail.text.count("\ufffd") > _MOST_UNREADABLE * len(tail.text):
        raise InputError(
            _("{log} is not a text file: expected a log, found bytes that are not UTF-8", log=log)
        )
    return tail


def _of_file(log: str) -> Tail:
    path = Path(log)
    try:
        _refuse_what_waits(log, path.stat().st_mode)
        with path.open("rb") as file:
            if log.startswith(_SHELLS_PIPES):
                return log_lines.tail_of_stream(file, MOST_BYTES)
            _refuse_packed(log, file.read(6))
            return log_lines.tail_of_file(file, 0, MOST_BYTES)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        text = _("{log}: no such file. For the log of a cell", log=log)
        raise InputError(text, Command("explain", ("--cell", "CELL"))) from None
    except OSError as error:
        raise InputError(
            _("{log} cannot be read: {what}", log=log, what=reason_of(error))
        ) from None


def _refuse_what_waits(log: str, mode: int) -> None:
    """A pipe that nobody writes into is never at its end, nor is a device."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode) and not log.startswith(_SHELLS_PIPES):
        raise InputError(
            _(
                "{log} is a pipe or a device: to judge what comes out of it, type boxcar triage - "
                "< {file}",
                log=log,
                file=shlex.quote(os.fspath(log)),
            )
        )


def _refuse_packed(log: str, head: bytes) -> None:
    for begins, program in _PACKED.items():
        if head.startswith(begins):
            line = f"{program} {shlex.quote(log)} | boxcar triage -"
            raise InputError(_("{log} is compressed: type {line}", log=log, line=line))
