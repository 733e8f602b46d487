from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest

from boxcar.laptop.triage import log_file
from boxcar.shared.errors import InputError
from boxcar.shared.triage.evidence import Evidence
from boxcar.shared.triage.judge import judge

END = 'Traceback (most recent call last):\n  File "a"\ntorch.OutOfMemoryError: CUDA out of memory\n'


@pytest.mark.parametrize(
    ("data", "program"),
    [
        (gzip.compress(END.encode()), "zcat"),
        (bz2.compress(END.encode()), "bzcat"),
        (lzma.compress(END.encode()), "xzcat"),
    ],
)
def test_what_is_compressed_is_said_with_the_line_to_type(tmp_path, data, program) -> None:
    path = tmp_path / "my log"
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"compressed: type {program} '{path}' | boxcar triage -"):
        log_file.read_log_file(str(path))


def test_a_pipe_is_not_waited_for_but_what_a_shell_made_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is a pipe or a device"):
        log_file.read_log_file(str(pipe))
    with pytest.raises(InputError, match="is a pipe or a device"):
        log_file.read_log_file("/dev/zero")
    reader, writer = os.pipe()
    os.write(writer, END.encode())
    os.close(writer)
    assert log_file.read_log_file(f"/dev/fd/{reader}").text == END
    os.close(reader)


def test_bytes_that_are_no_text_are_said(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(bytes(range(128, 256)) * 1000)
    with pytest.raises(InputError, match="is not a text file"):
        log_file.read_log_file(str(path))


def test_what_may_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.touch()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        log_file.read_log_file(str(path))


@pytest.mark.parametrize(
    "data",
    [
        END.encode("utf-16"),
        b"\xfe\xff" + END.encode("utf-16-be"),
        ("x\n" * log_file.MOST_BYTES + END).encode("utf-16"),
        bytes(1 << 20) + END.encode(),
        END.replace("\n", "\r\n").encode(),
        b"".join(b"\r%d%%|##| [00:01<00:01]" % n for n in range(9999)) + b"\n" + END.encode(),
        b"loss \xff\xfe 0.1\n" + END.encode(),
    ],
    ids=["utf-16", "big-endian", "long utf-16", "holes", "crlf", "progress bars", "latin-1"],
)
def test_whatever_a_terminal_or_a_shell_made_of_it_is_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    assert judge(Evidence(log_file.read_log_file(str(path)).text)).id == "M2"
