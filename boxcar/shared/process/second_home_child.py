"""Starts the program that reaches a run's second home, and waits for its answer.

The program is `boxcar/training/second_home.py`. The request is a file on its stdin, and secrets
stand in its environment only: nothing of either is in a command line, and no secret's value in what
is told of a failure.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import IO, Any

from boxcar.shared.cell import placeholders
from boxcar.shared.errors import TemporaryError, reason_of
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import DurablePaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

MODULE = "boxcar.training.second_home"
# Without a byte that moves; a store may take minutes to put the parts of a large file together.
SILENT_S = 900.0
# Over https botocore 1.36 and newer else sends a body in chunks of its own (aws-chunked) with a sum
# behind it, which OSS, TOS and OBS refuse. Each byte is compared by SHA-256 anyway.
_FEWER_SUMS = {
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
}
_LOOK_EVERY_S = 0.2
_WORDS_BYTES = 500
_SHORTEST_SECRET = 4


@dataclass(frozen=True)
class Child:
    """How it is started. `text`: the program itself, where its module is not to be had; `before`:
    words that come before all others.
    """

    python: str
    environment: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)  # their values
    text: str | None = field(default=None, repr=False)
    before: tuple[str, ...] = ()

    @property
    def argv(self) -> list[str]:
        words = ["-m", MODULE] if self.text is None else ["-c", self.text]
        return [*self.before, str(Path(self.python).expanduser()), *words]

    def without_secrets(self, text: str) -> str:
        for value in self.secrets:
            if len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, "…")
        return text


def url_of(second: str, tier: DurablePaths, folder: Path) -> str:
    """Where a folder of the run lies in the second home, which is laid out as the tier."""
    return f"{second}/{folder.relative_to(tier.durable_dir).as_posix()}"


def variables(plan: Plan) -> dict[str, str]:
    """The platform's and the job's, which a training has too; not those that differ by cell."""
    own = {}
    for name, text in plan.job_env.items():
        with contextlib.suppress(KeyError):  # of a placeholder
            own[name] = placeholders.fill_env(text, {})
    return plan.env | own


def ask(
    child: Child,
    request: Mapping[str, Any],
    is_over: Callable[[], bool] = lambda: False,
    *,
    silent_s: float = SILENT_S,
) -> dict[str, Any]:
    """What it has done. `is_over` gives it up. Raises TemporaryError with the reason."""
    with (
        tempfile.TemporaryFile() as asked,
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryFile() as words,
    ):
        asked.write(json.dumps(request).encode())
        asked.seek(0)
        try:
            process = subprocess.Popen(
                child.argv,
                cwd="/",  # where no json.py of a person's lies in the way
                env={**_FEWER_SUMS, **child.environment},
                stdin=asked,
                stdout=said,
                stderr=words,
                start_new_session=True,
            )
        except OSError as error:
            raise TemporaryError(
                _(
                    "{python}: cannot be started: {error}",
                    python=child.python,
                    error=reason_of(error),
                )
            ) from error
        try:
            _wait(process, said, is_over, silent_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return _answer(child, process.returncode, said, words)


def _wait(
    process: subprocess.Popen[bytes],
    said: IO[bytes],
    is_over: Callable[[], bool],
    silent_s: float,
) -> None:
    size_bytes, moved_at = 0, time.monotonic()
    while process.poll() is None:
        if is_over():
            raise TemporaryError(_("it was given up before it was done"))
        now_bytes = os.fstat(said.fileno()).st_size
        if now_bytes != size_bytes:
            size_bytes, moved_at = now_bytes, time.monotonic()
        if time.monotonic() - moved_at > silent_s:
            raise TemporaryError(_("nothing moved for {silent_s:g} s", silent_s=silent_s))
        time.sleep(_LOOK_EVERY_S)


def _answer(child: Child, code: int, said: IO[bytes], words: IO[bytes]) -> dict[str, Any]:
    said.seek(0)
    with contextlib.suppress(ValueError, IndexError, AttributeError):
        answer = json.loads(said.read().splitlines()[-1])
        if isinstance(answer.get("done"), dict):
            return dict(answer["done"])
        if answer.get("problem"):
            raise TemporaryError(child.without_secrets(str(answer["problem"])))
    words.seek(max(0, words.seek(0, os.SEEK_END) - _WORDS_BYTES))
    last = words.read().decode("utf-8", "replace").strip() or "no output on stderr"
    last = child.without_secrets(last)
    raise TemporaryError(
        _(
            "{python}: the copy ended with code {code}: {last}",
            python=child.python,
            code=code,
            last=last,
        )
    )
