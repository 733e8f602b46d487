"""Which files a spec wants and where each may be: pure, from data.json's content or from flags."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from boxcar.shared import paths
from boxcar.shared.errors import DamagedError, InputError
from boxcar.shared.safe_url import shown

KEYS = ("to", "tasks", "splits", "patterns", "sha256")
TASK_KEYS = ("splits", "patterns")
NEEDS = ("required", "optional")
DEFAULT_SPLITS = {"train": "required", "val": "optional", "test": "optional"}
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Candidate:
    """One place where a file may be, and what it is called below `to` when it comes from there.
    `token` is for a web server.
    """

    url: str
    name: str
    sha256: str | None = None
    token: str = field(default="", repr=False)


@dataclass(frozen=True)
class WantedFile:
    task: str
    split: str
    is_required: bool
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Spec:
    to: Path
    files: tuple[WantedFile, ...]


def parse(document: Any, where: str) -> Spec:
    """The spec of a JSON value. Raises InputError with everything that is wrong with it."""
    if not isinstance(document, Mapping):
        raise InputError(f"{where}: expected a JSON object, found {type(document).__name__}")
    problems = [*_unknown("key", document, KEYS), *_shape_problems(document)]
    if not problems:
        files = tuple(_files(document))
        problems = [*_problems(document, files), *_place_problems(document["to"], files)]
    if problems:
        raise InputError([f"{where}: {problem}" for problem in problems])
    return Spec(_folder(document["to"]), files)


def _files(document: Mapping[str, Any]) -> Iterator[WantedFile]:
    tasks, sums = document["tasks"], document.get("sha256", {})
    for task in tasks:
        own = tasks[task] if isinstance(tasks, Mapping) else {}
        splits = own.get("splits", document.get("splits", DEFAULT_SPLITS))
        patterns = own.get("patterns", document.get("patterns", ()))
        for split, need in splits.items():
            found = tuple(_candidate(pattern, task, split, sums) for pattern in patterns)
            yield WantedFile(task, split, need == "required", found)


def _candidate(pattern: str, task: str, split: str, sums: Mapping[str, str]) -> Candidate:
    url = pattern.replace("{task}", task).replace("{split}", split)
    name = f"{task}_{split}{_suffix(url)}"
    return Candidate(url, name, sums.get(name))


def _suffix(url: str) -> str:
    """`.h5`, and `.tar.gz` whole; of a chained URL, that of the file that comes out."""
    suffixes = PurePosixPath(url.partition("::")[0].partition("?")[0]).suffixes
    return "".join(suffixes[-2:] if suffixes[-1:] and suffixes[-1] in _PACKED else suffixes[-1:])


def _shape_problems(document: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(document.get("to"), str) or not document["to"]:
        yield '"to" should be the folder that gets the files, such as "data"'
    tasks = document.get("tasks")
    if not isinstance(tasks, (Mapping, list)) or not tasks:
        yield '"tasks" should be an object of tasks, such as {"burgers1d": {}}, or a list of names'
        tasks = {}
    yield from _part_problems("", document)
    for task in tasks:
        own = tasks[task] if isinstance(tasks, Mapping) else {}
        if not isinstance(task, str) or not isinstance(own, Mapping):
            yield f"task {task!r} should be a name with an object of its own settings, such as {{}}"
            continue
        yield from _unknown(f"key in task {task!r}:", own, TASK_KEYS)
        yield from _part_problems(f"task {task!r}: ", own)
    sums = document.get("sha256", {})
    if not isinstance(sums, Mapping):
        yield '"sha256" should be an object of file names and digests'
        return
    for name, sha256 in sums.items():
        if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            yield f'"sha256" of {name!r} should be 64 digits 0-9a-f, found {sha256!r}'


def _part_problems(at: str, part: Mapping[str, Any]) -> Iterator[str]:
    patterns, splits = part.get("patterns", ["x"]), part.get("splits", DEFAULT_SPLITS)
    if not isinstance(patterns, list) or not all(isinstance(p, str) and p for p in patterns):
        yield f'{at}"patterns" should be a list of URLs, found {patterns!r}'
    else:
        yield from (f"{at}{problem}" for p in patterns for problem in _pattern_problems(p))
    if not isinstance(splits, Mapping) or not splits:
        yield f'{at}"splits" should be an object such as {{"train": "required"}}, found {splits!r}'
        return
    for split, need in splits.items():
        if need not in NEEDS:
            yield f"{at}split {split!r} should be required or optional, found {need!r}"


def _pattern_problems(pattern: str) -> Iterator[str]:
    yield from _unknown("field", re.findall(r"{([^{}]*)}", pattern), ("task", "split"))
    if "*" in pattern:
        yield f"pattern {shown(pattern)!r} has a *: expected the URL of one file"


def _problems(document: Mapping[str, Any], files: tuple[WantedFile, ...]) -> Iterator[str]:
    """What is wrong with a spec whose shape is right."""
    for file in files:
        if not file.candidates:
            yield f'{file.task} {file.split} has no "patterns": where should it come from?'
    names = {(c.name, f.task, f.split) for f in files for c in f.candidates}
    urls = {(c.url, f.task, f.split) for f in files for c in f.candidates}
    for name, count in Counter(name for name, _, _ in names).items():
        if count > 1:
            yield f"{count} files would be called {name!r}: give the tasks other names"
    for url, count in Counter(url for url, _, _ in urls).items():
        if count > 1:
            lack = "its pattern lacks {task} or {split}"
            yield f"{shown(url)!r} is wanted as {count} files: {lack}"
    yield from _unknown("file in sha256:", document.get("sha256", {}), [n for n, _, _ in names])


def _place_problems(to: str, files: tuple[WantedFile, ...]) -> Iterator[str]:
    for name in re.findall(r"\$\{?(\w+)", to):
        if not os.environ.get(name):  # an empty one would make it a folder of the root
            yield f'"to" is {to!r}, and {name} is not set here'
    for name in sorted({candidate.name for file in files for candidate in file.candidates}):
        try:
            paths.inside(Path(to), name)
        except DamagedError as error:
            yield str(error)


def _folder(to: str) -> Path:
    return Path(os.path.expandvars(to)).expanduser()


def _unknown(what: str, found: Any, known: Any) -> Iterator[str]:
    for name in found:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
            yield f"unknown {what} {name!r} ({hint})"
