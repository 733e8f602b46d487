"""Loads artifacts in a child process and brings back what it found in each.

The child (`boxcar.training.load_check`) gets the files as JSON on stdin and answers in JSON Lines:
`{"at": path}` before a file, `{"finding": {...}}` after it, `{"done": true, "loader": ...,
"sandbox": [...]}` at the end. So a file that kills or hangs it is known by name; it is the file's
problem, and a new child goes on with the others. A child that reports on no file leaves the first
one UNCHECKED, and a second such child in a row all that are left. Both sides verify this way: the
box once a cell is published, the laptop once it is pulled.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import IO, Any

from boxcar.shared.errors import BoxcarError, DamagedError, reason_of
from boxcar.shared.event_words import SENTENCES, hear_in
from boxcar.shared.files import codec
from boxcar.shared.files.plan import SAFE, Artifact
from boxcar.shared.files.receipt import Finding
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, quotation

MODULE = "boxcar.training.load_check"
TIMEOUT_S = 900.0
# The kind of a file on which no child reported: nothing is known of it, good or bad.
UNCHECKED = "unchecked"
# Between the end of its output and its own.
_CLOSED_S = 10.0
_WORDS_BYTES = 2000
_LONGEST_LINE_BYTES = 16 * 1024 * 1024
# What a file makes the loader do must find no secret in the environment.
_KEPT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Child:
    """How the checker is started. `cwd` holds no Python files: `-m` looks there first.

    `python` is a program or a path, which may begin with `~/`.
    """

    python: str
    cwd: Path
    python_path: str | None = None
    timeout_s: float = TIMEOUT_S  # for each file

    @property
    def argv(self) -> list[str]:
        return [str(Path(self.python).expanduser()), "-m", MODULE]

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        kept = {name: environ[name] for name in _KEPT if name in environ}
        return kept | ({"PYTHONPATH": self.python_path} if self.python_path else {})


@dataclass(frozen=True)
class Loaded:
    """A finding for every file, by path; what loaded them, and what held the loader in."""

    findings: dict[str, Finding] = field(default_factory=dict)
    loader: str = ""
    sandbox: tuple[str, ...] = ()


@dataclass(frozen=True)
class Manner:
    """How files are loaded, by their paths.

    `allow_pickle` may run code when they are loaded. `code`: where the run's own code lies, for
    files of `load: trusted`; None where those must not be loaded, but only read. `said_as` is the
    artifact in job.yaml that a file belongs to, for sentences. `on_finding` is told of each.
    """

    allow_pickle: tuple[str, ...] = ()
    code: tuple[str, ...] | None = None
    said_as: Mapping[str, str] = field(default_factory=dict)
    on_finding: Callable[[Finding], object] = lambda finding: None


PLAIN = Manner()


def load(child: Child, folder: Path, files: Sequence[Artifact], manner: Manner = PLAIN) -> Loaded:
    """Load every file of `files`, given relative to `folder`, each within the child's time.

    Raises BoxcarError where the interpreter cannot be started.
    """
    loaded, was_silent = Loaded(), False
    modes = {file.path: file.load for file in files}
    while left := [file for file in files if file.path not in loaded.findings]:
        more, last_words = _ask(child, folder, left, manner)
        findings = more.findings or _unchecked(left if was_silent else left[:1], last_words)
        loaded = Loaded(
            loaded.findings | _with_modes(findings, modes),
            more.loader or loaded.loader,
            more.sandbox or loaded.sandbox,
        )
        was_silent = not more.findings
    return loaded


def _request(folder: Path, files: Sequence[Artifact], manner: Manner) -> dict[str, Any]:
    """What is as ever is left out: a child of an older release reads the rest."""
    said_as = {
        file.path: manner.said_as[file.path] for file in files if file.path in manner.said_as
    }
    return {
        "folder": str(folder.absolute()),
        "files": [
            {"path": file.path, "keys": list(file.keys)}
            | ({"load": file.load} if file.load != SAFE else {})
            for file in files
        ],
        "allow_pickle": list(manner.allow_pickle),
        **({"said_as": said_as} if said_as else {}),
        **({"code": list(manner.code)} if manner.code is not None else {}),
    }


def _with_modes(findings: Mapping[str, Finding], modes: Mapping[str, str]) -> dict[str, Finding]:
    """Also where the child did not live to say it, or said another."""
    return {path: replace(finding, load=modes[path]) for path, finding in findings.items()}


def _unchecked(files: Sequence[Artifact], last_words: str) -> dict[str, Finding]:
    problem = _("could not be checked: {last_words}", last_words=last_words)
    return {file.path: Finding(file.path, UNCHECKED, (problem,)) for file in files}


def _ask(
    child: Child, folder: Path, files: Sequence[Artifact], manner: Manner
) -> tuple[Loaded, str]:
    """One child's life: what it found, and how it ended where it reported on no file."""
    request = _request(folder, files, manner)
    with tempfile.TemporaryFile() as words, tempfile.TemporaryFile() as asked:
        asked.write(json.dumps(request).encode())
        asked.seek(0)
        with _started(child, asked, words) as process:
            wanted = {file.path for file in files}
            loaded = _listen(process, wanted, child.timeout_s, manner.on_finding)
        return loaded, (
            _(
                "the load check reported on no file. {argv} ended with code {returncode}: {words}",
                argv=" ".join(child.argv),
                returncode=process.returncode,
                words=_last_words(words),
            )
        )


@contextlib.contextmanager
def _started(child: Child, asked: IO[bytes], words: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The request is a file and no pipe, so that a child that does not read holds nobody up."""
    try:
        process = subprocess.Popen(
            child.argv,
            cwd=child.cwd,
            env=child.environment(os.environ),
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=words,
            start_new_session=True,
        )
    except OSError as error:
        raise BoxcarError(
            _("{python}: cannot be started: {error}", python=child.python, error=reason_of(error))
        ) from error
    try:
        yield process
    finally:
        _end(process)


def _listen(
    process: subprocess.Popen[bytes],
    wanted: set[str],
    timeout_s: float,
    on_finding: Callable[[Finding], object],
) -> Loaded:
    findings: dict[str, Finding] = {}
    at: str | None = None
    kind = "unknown"
    try:
        for message in _messages(process, wanted, timeout_s):
            if "at" in message:
                at = message["at"]
            elif "finding" in message:
                told = hear_in(message["finding"], message.get(SENTENCES))
                finding = codec.decode(Finding, told, "finding")
                if finding.path != at:
                    raise DamagedError(
                        _("{finding!r} while it was at {at!r}", finding=finding.path, at=at)
                    )
                findings[at], at = finding, None
                on_finding(finding)
            elif at is not None:
                raise DamagedError(_("that it is done, while it was at {at!r}", at=at))
            else:
                return Loaded(findings, message["loader"], tuple(message["sandbox"]))
        problem = _("killed the checker ({process})", process=_how_it_ended(process))
        if process.returncode == -signal.SIGKILL:
            # So the system ends who takes the last memory: that says nothing of the file.
            kind = UNCHECKED
    except TimeoutError:
        problem = _("took longer than {seconds:g} s", seconds=timeout_s)
    except (DamagedError, KeyError, TypeError) as error:
        problem = _("made the checker give an answer that it never gives ({error})", error=error)
    if at is not None:
        findings[at] = Finding(at, kind, (_("loading it {problem}", problem=problem),))
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
    """Closes the pipe itself, whenever that is: whoever left the session may keep it open."""
    assert process.stdout
    with process.stdout as stdout:
        while line := stdout.readline(_LONGEST_LINE_BYTES):
            lines.put(line)
    lines.put(b"")


def _message(line: bytes, wanted: set[str]) -> dict[str, Any]:
    """One line of the protocol. A file that runs code may print others: DamagedError."""
    try:
        message: dict[str, Any] = json.loads(line)
        is_said = "done" in message
        path = message.get("at") or message.get("finding", {}).get("path")
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise DamagedError(repr(line[:80])) from None
    if not is_said and path not in wanted:
        raise DamagedError(repr(line[:80]))
    return message


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(timeout=_CLOSED_S)
    except subprocess.TimeoutExpired:
        return _("it closed its output and kept running")
    return _("signal {number}", number=-code) if code < 0 else _("exit code {code}", code=code)


def _last_words(words: IO[bytes]) -> str:
    words.seek(max(0, words.seek(0, os.SEEK_END) - _WORDS_BYTES))
    last = words.read().decode("utf-8", "replace").strip()
    return quotation(last) if last else _("no output on stderr")
