"""The child that loads artifacts, so that whoever asks for it does not have to.

    python -m boxcar.training.load_check < request.json

A checkpoint may crash its reader, never end, or be made to harm: the one who verifies runs this in
a process group of its own, with a time limit and without secrets, and reads what it says.

The request on stdin is one JSON object:

    {"folder": "/results/seg_baseline", "files": [{"path": "best.pth", "keys": ["model"]}],
     "allow_pickle": ["best.pth"]}

`allow_pickle` names the files, as they stand in `files`, that may run code when they are loaded.
A file may have a `load` (shared/files/plan.py). With `bytes` nobody looks into it. With `trusted`
it may run code where there is a `code`: the folders of the code that wrote it, which come to the
end of the path, behind all libraries. Where there is none, what it names is listed and it is not
loaded. Files that may run code come last. `said_as` is what job.yaml calls a file.
The answer on stdout is one JSON object a line, each written at once:

    {"at": "best.pth"}                                          before a file is touched
    {"finding": {"path": ..., "kind": ..., "problems": [], "facts": {}}}      after it
    {"done": true, "loader": "torch 2.13.0", "sandbox": ["no-network", ...]}  at the end

So a child that ended without `done` has failed at the file of its last `at`, or before the first.
The exit code is 0 with `done`, 2 for a request that cannot be read. What libraries print goes to
stderr. See sandbox.py for what is and is not kept from a file that may run code; it could also
write lines like these itself, so it is believed only as far as it is trusted.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxcar.shared import event_words
from boxcar.shared.artifacts.file_kinds import kind_of
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.shared.files.plan import TRUSTED, Artifact
from boxcar.shared.files.receipt import Finding
from boxcar.training.load_check import artifacts, sandbox
from boxcar.training.load_check.refusals import How


@dataclass(frozen=True)
class Request:
    """What to load. `folder` is absolute, paths are relative to it."""

    folder: str
    files: tuple[Artifact, ...]
    allow_pickle: tuple[str, ...] = ()
    code: tuple[str, ...] | None = None
    said_as: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def is_trusted(self, file: Artifact) -> bool:
        """A person's word for this very file, here and now, goes before that of job.yaml."""
        return file.load == TRUSTED and file.path not in self.allow_pickle

    def may_run_code(self, file: Artifact) -> bool:
        has_code = self.is_trusted(file) and self.code is not None
        return has_code or file.path in self.allow_pickle


def main() -> int:
    answer_fd = _claim_stdout()
    try:
        request = _read_request(sys.stdin.buffer.read())
    except DamagedError as error:
        print(error, file=sys.stderr)
        return 2
    sandbox.give_way()
    granted = sandbox.isolate()
    found = {kind_of(Path(request.folder), file.path) for file in request.files}
    libraries = artifacts.import_libraries(sorted(found))
    sizes_bytes = [_size_bytes(Path(request.folder, file.path)) for file in request.files]
    granted += sandbox.restrict(sizes_bytes, writes_to=(answer_fd, 2))
    for file in sorted(request.files, key=request.may_run_code):
        _say(answer_fd, {"at": file.path})
        found_in = codec.encode(_look(request, file))
        said = event_words.sentences_in(found_in)
        _say(answer_fd, {"finding": found_in, event_words.SENTENCES: said})
    loader = ", ".join(libraries) or f"python {platform.python_version()}"
    _say(answer_fd, {"done": True, "loader": loader, "sandbox": granted})
    return 0


def _claim_stdout() -> int:
    """Keep stdout for the answer alone; whoever prints from now on, prints to stderr."""
    answer_fd = os.dup(1)
    os.dup2(2, 1)
    return answer_fd


def _read_request(data: bytes) -> Request:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise DamagedError(f"the request on stdin is not JSON: {error}") from error
    return codec.decode(Request, value, "the request on stdin")


def _size_bytes(path: Path) -> int:
    """0 for what cannot be read: the look at it will say why."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def _look(request: Request, file: Artifact) -> Finding:
    if request.is_trusted(file):
        _find_modules_in(request.code or ())
    how = How(
        request.may_run_code(file),
        request.is_trusted(file),
        request.said_as.get(file.path, file.path),
    )
    return artifacts.look(Path(request.folder), file, how)


def _find_modules_in(code: Sequence[str]) -> None:
    """At the end: a json.py or torch.py among them takes no library's place."""
    sys.dont_write_bytecode = True
    sys.path.extend(folder for folder in code if folder not in sys.path)


def _say(fd: int, record: dict[str, Any]) -> None:
    # ASCII: a file's name that is not UTF-8 comes back as it was asked about.
    line = json.dumps(record, allow_nan=False) + "\n"
    view = memoryview(line.encode())
    while view:
        view = view[os.write(fd, view) :]


if __name__ == "__main__":
    code = main()
    gc.freeze()  # all that torch has imported would be taken apart first, for 0.2 s
    sys.exit(code)
