"""Loads artifacts in a child process and brings back what it found in each.

The child (`boxcar.training.load_check`) gets the files as JSON on stdin and answers in JSON Lines:
`{"at": path}` before a file, `{"finding": {...}}` after it, `{"done": true, "loader": ...,
"sandbox": [...]}` at the end. So a file that kills or hangs it is known by name; it is the file's
problem, and a new child goes on with the others.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import boxcar
from boxcar.formats import codec
from boxcar.formats.errors import BoxcarError, DamagedError, InputError
from boxcar.formats.receipt import Finding

CHILD = (sys.executable, "-m", "boxcar.training.load_check")
TIMEOUT_S = 900.0
_TEXT = (".csv", ".json", ".jsonl")
_WORDS_BYTES = 2000


@dataclass(frozen=True)
class ToLoad:
    """One file, relative to the folder, and what must be in it."""

    path: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loaded:
    """A finding for every file, by path; what loaded them, and what held the loader in."""

    findings: dict[str, Finding] = field(default_factory=dict)
    loader: str = ""
    sandbox: tuple[str, ...] = ()


def check_torch(files: Sequence[ToLoad]) -> None:
    """Raise InputError, with the command to type, where torch is needed and not there."""
    is_needed = any(Path(file.path).suffix not in _TEXT for file in files)
    if is_needed and importlib.util.find_spec("torch") is None:
        raise InputError(
            f"torch is missing, and results are verified by loading them. Type: {sys.executable} "
            "-m pip install torch --index-url https://download.pytorch.org/whl/cpu"
        )


def load(
    folder: Path,
    files: Sequence[ToLoad],
    allow_pickle: Sequence[str] = (),
    *,
    child: Sequence[str] = CHILD,
    timeout_s: float = TIMEOUT_S,
) -> Loaded:
    """Load every file of `files`, each within `timeout_s`.

    `allow_pickle` names those that may run code when they are loaded. Raises BoxcarError where the
    child does not even begin, InputError where torch is missing.
    """
    check_torch(files)
    loaded = Loaded()
    while left := [file for file in files if file.path not in loaded.findings]:
        request = {
            "folder": str(folder.absolute()),
            "files": [codec.encode(file) for file in left],
            "allow_pickle": list(allow_pickle),
        }
        more = _ask_child(request, child, timeout_s)
        loaded = Loaded(loaded.findings | more.findings, more.loader, more.sandbox)
    return loaded


def _ask_child(request: dict[str, Any], child: Sequence[str], timeout_s: float) -> Loaded:
    """One child's life: it leaves at least one finding, or BoxcarError with its last words."""
    with tempfile.TemporaryFile() as words, _started(child, words) as process:
        try:
            _send(process, request)
            loaded = _listen(process, {file["path"] for file in request["files"]}, timeout_s)
        finally:
            _end(process)
        if not loaded.findings:
            process.wait()
            raise BoxcarError(
                f"the load check said nothing of any file. {' '.join(child)} ended with code "
                f"{process.returncode}: {_last_words(words)}"
            )
    return loaded


def _started(child: Sequence[str], words: IO[bytes]) -> subprocess.Popen[bytes]:
    # Only these: what a file makes the loader do must find no secret in the environment.
    names = ("PATH", "HOME", "LANG")
    return subprocess.Popen(
        child,
        # -m looks here first; in the user's folder a file called json.py would win over Python's.
        cwd=Path(boxcar.__file__).parent.parent,
        env={name: os.environ[name] for name in names if name in os.environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=words,
        start_new_session=True,
    )


def _send(process: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    assert process.stdin
    # A child that is dead already is noticed by its silence.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(request).encode())
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def _listen(process: subprocess.Popen[bytes], wanted: set[str], timeout_s: float) -> Loaded:
    findings: dict[str, Finding] = {}
    at: str | None = None
    try:
        for message in _messages(process, wanted, timeout_s):
            if "at" in message:
                at = message["at"]
            elif "finding" in message:
                finding = codec.decode(Finding, message["finding"], "finding")
                if finding.path != at:
                    raise DamagedError(f"{finding.path!r} while it was at {at!r}")
                findings[at], at = finding, None
            elif "done" in message:
                return Loaded(findings, message["loader"], tuple(message["sandbox"]))
        problem = f"killed the checker ({_how_it_ended(process)})"
    except TimeoutError:
        problem = f"took longer than {timeout_s:g} s"
    except (DamagedError, KeyError, TypeError) as error:
        problem = f"made the checker say what it never says ({error})"
    if at is not None:
        findings[at] = Finding(at, "unknown", (f"loading it {problem}",))
    return Loaded(findings)


def _messages(
    process: subprocess.Popen[bytes], wanted: set[str], timeout_s: float
) -> Iterator[dict[str, Any]]:
    """What the child says, each within `timeout_s` of the one before (else TimeoutError)."""
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read_lines, args=(process, lines), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError from None
        if not line:
            return
        yield _message(line, wanted)


def _read_lines(process: subprocess.Popen[bytes], lines: queue.Queue[bytes]) -> None:
    assert process.stdout
    for line in process.stdout:
        lines.put(line)
    lines.put(b"")


def _message(line: bytes, wanted: set[str]) -> dict[str, Any]:
    """One line of the protocol. A file that runs code may print others: DamagedError."""
    try:
        message: dict[str, Any] = json.loads(line)
        is_said = "done" in message
        path = message.get("at") or message.get("finding", {}).get("path")
    except (ValueError, AttributeError, TypeError):
        raise DamagedError(repr(line[:80])) from None
    if not is_said and path not in wanted:
        raise DamagedError(repr(line[:80]))
    return message


def _end(process: subprocess.Popen[bytes]) -> None:
    # The whole group: a child of the child that keeps the pipe open would keep us waiting.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return "it closed its output and went on"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _last_words(words: IO[bytes]) -> str:
    words.seek(max(0, words.seek(0, os.SEEK_END) - _WORDS_BYTES))
    return words.read().decode("utf-8", "replace").strip() or "no word on stderr"
