from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

ENTER = """
import json, os, sys
from boxcar.training.load_check import sandbox
words = sandbox.isolate() + sandbox.restrict([1 << 20], writes_to=(1, 2))
def tried(call):
    try:
        return repr(call())
    except BaseException as error:
        return type(error).__name__
"""


def inside(expression: str, **names: Any) -> tuple[list[str], Any]:
    """The words of a sandboxed child, and what `tried(lambda: expression)` gave there."""
    given = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    script = f"{ENTER}{given}print(json.dumps([words, tried(lambda: {expression})]))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    words, result = json.loads(done.stdout)
    return words, result


def need(word: str, words: list[str]) -> None:
    if word not in words:
        pytest.skip(f"this kernel or container does not grant {word}")


def test_the_limits_of_every_platform_are_granted() -> None:
    words, _ = inside("0")
    assert {"no-core-dump", "file_bytes=0"} <= set(words)
    assert any(word.startswith("cpu_s=") for word in words)


def test_no_server_is_reached_not_even_on_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        connect = "__import__('socket').create_connection(('127.0.0.1', port), 5)"
        words, result = inside(connect, port=server.getsockname()[1])
        if "no-tcp" not in words:
            need("no-network", words)
        assert result.endswith("Error")
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "attempt",
    [
        "open(path, 'w')",
        "open(path, 'a')",
        "os.truncate(path, 0)",
        "os.remove(path)",
        "os.rename(path, path + '.away')",
        "open(path + '.new', 'x')",
        "os.mkdir(path + '.folder')",
        "os.symlink('/', path + '.link')",
    ],
)
def test_no_file_is_made_changed_or_removed(tmp_path: Path, attempt: str) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    words, result = inside(attempt, path=str(kept))
    need("read-only", words)
    assert result.endswith("Error")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("kept", "kept")]


def test_no_program_is_started(tmp_path: Path) -> None:
    words, result = inside("__import__('subprocess').run(['true'])")
    need("read-only", words)
    assert result == "PermissionError"


def test_no_byte_is_written_to_a_file_that_is_open_already(tmp_path: Path) -> None:
    """What an older kernel still gives: the file was opened before."""
    script = (
        "import sys\nfrom boxcar.training.load_check import sandbox\n"
        "file = open(sys.argv[1], 'w')\n"
        "sandbox.restrict([], writes_to=(1, 2))\nfile.write('x')\nfile.flush()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "open")], capture_output=True, check=False
    )
    assert b"File too large" in done.stderr
    assert (tmp_path / "open").read_bytes() == b""


def test_a_process_that_answers_into_a_file_still_can(tmp_path: Path) -> None:
    script = f"{ENTER}print(json.dumps(words))"
    with (tmp_path / "answer").open("w") as answer:
        subprocess.run(
            [sys.executable, "-c", script], stdout=answer, stderr=subprocess.PIPE, check=True
        )
    assert f"file_bytes={1 << 20}" in json.loads((tmp_path / "answer").read_text())


def test_memory_is_bounded() -> None:
    words, result = inside("len(bytearray(1 << 40))")
    assert any(word.startswith("memory=") for word in words) == sys.platform.startswith("linux")
    assert result == "MemoryError"


def test_other_processes_get_no_signal() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        words, result = inside("os.kill(pid, 9)", pid=other.pid)
        other.communicate(b"\n", timeout=LIMIT_S)
        need("no-signals", words)
        assert result == "PermissionError"
        assert other.returncode == 0


def test_files_are_read_as_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    _, result = inside("open(path).read()", path=str(tmp_path / "file"))
    assert result == "'content'"


def test_a_library_that_asks_for_a_temporary_folder_late_is_told_one() -> None:
    _, result = inside("os.path.isdir(__import__('tempfile').gettempdir())")
    assert result == "True"


def test_it_gives_way_to_what_the_machine_has_to_do_and_twice_is_once() -> None:
    mine = inside("os.nice(0)")[1]
    twice = inside("[sandbox.give_way(), sandbox.give_way(), os.nice(0)][-1]")[1]
    assert twice == str(max(int(mine), 10))
