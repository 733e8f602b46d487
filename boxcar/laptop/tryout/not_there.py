"""What a try missed although it lies in the project: it does not travel, or is named wrongly."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from boxcar.laptop.release import code_files
from boxcar.laptop.tryout.code_copy import CodeCopy
from boxcar.shared.record import dataclass

_FILE = re.compile(
    r"(?:No such file or directory: b?(?P<quote>['\"])|name = (?P<other>'))(?P<path>[^'\"]+)['\"]"
)
_MODULE = re.compile(r"No module named (['\"])(?P<name>[\w.]+)\1")
_MOST = 3


@dataclass(frozen=True)
class Tried:
    """Where a try ran: the project's own code folder, its copy, {out}.

    `is_in_out`: the command began in {out}, and not in the copy.
    """

    project_code: Path
    copy: CodeCopy
    out: Path
    is_in_out: bool


def hints_at_missing(lines: Sequence[str], tried: Tried) -> list[str]:
    """A sentence for each file or module that the end of a log misses and the project has."""
    text = "\n".join(lines)
    found = [*_files(text, tried), *_modules(text, tried)]
    return list(dict.fromkeys(found))[:_MOST]


def _files(text: str, tried: Tried) -> Iterator[str]:
    for match in _FILE.finditer(text):
        word = match["path"]
        path = _below_the_code(word, tried)
        if path is None or not os.path.lexists(tried.project_code / path):
            continue
        if not tried.copy.has(path):
            yield _left_out(path, tried)
        elif tried.is_in_out and not word.startswith("/"):
            yield (
                f"{path} lies in the code folder, and the command starts in {{out}}: "
                f"write {{code}}/{path}{_link(path)}"
            )


def _link(path: str) -> str:
    """A script that has the name in itself takes no other."""
    top, _, below = path.partition("/")
    return f", or, where the script itself names it, links: [{top}] in job.yaml" if below else ""


def _modules(text: str, tried: Tried) -> Iterator[str]:
    for match in _MODULE.finditer(text):
        head = match["name"].replace(".", "/")
        for path in (f"{head}.py", head):
            if not os.path.lexists(tried.project_code / path):
                continue
            if not tried.copy.has(path):
                yield _left_out(path, tried)
            elif not tried.is_in_out:
                yield (
                    f"{path} lies in the code folder, and Python looks beside the script: write "
                    "env: {PYTHONPATH: .} in job.yaml, or start it as -m package.module"
                )


def _left_out(path: str, tried: Tried) -> str:
    rule = code_files.left_out_by(tried.project_code, path)
    why = f"{rule} leaves it out" if rule else "nothing that is shipped holds it"
    return (
        f"{path} is in your code folder and does not travel: {why}. Let it travel (a "
        f"{code_files.BOXCARIGNORE} replaces git's rules), or bring it to the box and read it from "
        "$BOXCAR_DATA_DIR"
    )


def _below_the_code(word: str, tried: Tried) -> str | None:
    """The path below the code folder that a script meant, from wherever it began."""
    for folder in (tried.copy.folder, tried.out):
        word = word.removeprefix(f"{folder}/")
    path = os.path.normpath(word)
    return None if path.startswith(("/", "..")) or path == "." else path
