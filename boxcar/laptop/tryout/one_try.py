"""One cell's try: its run, what it left where, and the pass that is kept of it."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from boxcar.laptop.release import code_files
from boxcar.laptop.tryout import outcome, passes
from boxcar.laptop.tryout.code_copy import CodeCopy
from boxcar.laptop.tryout.outcome import (
    BEFORE,
    FAILED,
    MOST_NAMED,
    PASSED,
    TIMED_OUT,
    FoundNumber,
    Outcome,
)
from boxcar.laptop.tryout.passes import SmokePass
from boxcar.laptop.tryout.stage import (
    Stage,
    by_hand,
    has_printed,
    log_end,
    tail,
    training,
    try_cell,
)
from boxcar.shared import paths, timestamp
from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.file_kinds import BY_TORCH, kind_of
from boxcar.shared.artifacts.resume_match import is_of_folders, is_pattern
from boxcar.shared.artifacts.to_load import said_as, to_load
from boxcar.shared.cell import said, terms
from boxcar.shared.errors import some
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import BYTES_ONLY, IN_OUT, LOG, NEWEST, Artifact, Cell, Plan
from boxcar.shared.metrics import measure
from boxcar.shared.process import load_child, strays
from boxcar.shared.process.load_child import UNCHECKED, Child, Manner
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, chained, mark
from boxcar.shared.triage import exit_signals

# What a try left of its artifacts: whether it loads, as its box will load it, and what is lacking
# in every cell although the short run wrote others.


_NOTHING = Manifest("", "", "", "", "", 0, "", "", 0, "", "", ())
_OF_MODELS = BY_TORCH | {"lightgbm", "mindspore", "onnx", "ubjson"}


def problem(stage: Stage, cell: Cell) -> str:
    """What a box would refuse of it (BAD-ART); '' for nothing. Raises BoxcarError, OSError."""
    plan, out = stage.project.plan, stage.out(cell.name)
    artifacts = terms.terms_of_cell(plan, cell.name).artifacts
    made = _as_published(plan, cell, out, artifacts)
    files = to_load(artifacts, made) if made.files else []
    if all(file.load == BYTES_ONLY for file in files):
        return ""
    child = Child(stage.python, Path("/"), str(training(stage.folder)))
    manner = Manner(
        code=said.import_paths(plan, cell.name, str(stage.code)), said_as=said_as(artifacts, made)
    )
    found = load_child.load(child, out, files, manner).findings.values()
    bad = [one for one in found if one.problems and one.kind != UNCHECKED]
    if not bad:
        return ""
    told = chained(mark("{first}; {second}"), [one.sentence for one in bad[:MOST_NAMED]])
    return _("a box would refuse its artifacts (BAD-ART): {problems}", problems=told)


def _as_published(plan: Plan, cell: Cell, out: Path, artifacts: Sequence[Artifact]) -> Manifest:
    files = tuple(
        FileRecord(name, (out / name).stat().st_size, "")
        for name in names(out)
        if not paths.is_own_name(name, cell.name)
    )
    patterns = (item for item in artifacts if is_pattern(item.path))
    matches = {item.path: tuple(_matches(plan, cell, out, item)) for item in patterns}
    return replace(_NOTHING, files=files, matches=matches)


def _matches(plan: Plan, cell: Cell, out: Path, item: Artifact) -> list[str]:
    found = [
        name
        for name in resume_match.newest_first(out, item.path)
        if (out / name).is_dir() == is_of_folders(item.path)
        and not (name in plan.links or paths.is_own_name(name, cell.name))
    ]
    return found[:1] if item.take == NEWEST else found


def names(folder: Path) -> tuple[str, ...]:
    """Its files, those in it first: what a person names as artifacts instead."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return tuple(path.as_posix() for path in sorted(found, key=lambda path: len(path.parts)))


# --- of all cells


def files_beside(plan: Plan, cell: Cell, out: Path, lacks: Collection[str]) -> tuple[str, ...]:
    """What the short run wrote of other artifacts, or of what looks like one and no key names: so
    it came to its saves. A log that grows while it trains says nothing of that.
    """
    held = terms.terms_of_cell(plan, cell.name)
    declared = [item.path for item in held.artifacts]
    named = [*declared, *plan.collect, *plan.scratch, *([held.resume] if held.resume else [])]
    named += [metric.of for metric in plan.metrics if metric.source != LOG]
    suffixes = {PurePosixPath(path).suffix for path in lacks} - {""}
    found = []
    for name in names(out):
        is_model = kind_of(out, name) in _OF_MODELS or PurePosixPath(name).suffix in suffixes
        if strays.is_of(name, declared) or (is_model and not strays.is_of(name, named)):
            found.append(name)
    return tuple(found)


def in_no_cell(plan: Plan, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[str]]:
    """The outcomes, where those are failed that lack what no cell wrote although they wrote others,
    and what that is. What is resumed from is saved from time to time: a short run may end before.
    """
    wanted: dict[str, set[bool]] = {}
    for item in outcomes:
        held = terms.terms_of_cell(plan, item.cell)
        for path in {one.path for one in held.artifacts} - {held.resume} if item.is_good else ():
            wanted.setdefault(path, set()).add(path not in item.lacks)
    lost = {path for path, written in wanted.items() if written == {False}}
    if not any(item.others for item in outcomes):
        return list(outcomes), []
    return [_failed(one, lost) if lost & {*one.lacks} else one for one in outcomes], sorted(lost)


def _failed(item: Outcome, lost: set[str]) -> Outcome:
    lacks = some(sorted(lost & {*item.lacks}), MOST_NAMED)
    why = _("did not write {files}", files=lacks)
    if item.others:
        wrote = _("but wrote {files}", files=some(item.others, MOST_NAMED))
        why = _("{first}; {second}", first=why, second=wrote)
    return replace(item, word=FAILED, why=why, log=None)


# Failures that are the same but for their cell: shown once, for all of them.


_TRACEBACK = "Traceback (most recent call last)"
_ADDRESS = re.compile(r"0x[0-9a-f]{4,}")
_RANK = re.compile(r"^\[rank\d+\]:\s?")


def own_names(cells: Iterable[Cell]) -> re.Pattern[str]:
    """The words by which cells differ: their names, their configs, the values that they vary."""
    words = {word for cell in cells for word in _words(cell) if word}
    # The longest first: a name may be part of a path.
    spelled = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"(?<![\w.-])(?:{spelled})(?![\w-])")


def _words(cell: Cell) -> tuple[str, ...]:
    cfg = PurePosixPath(cell.cfg)
    # The keys stay: a script that refuses one says of each cell the same.
    values = (word.partition("=")[2] if "=" in word else word for word in cell.overrides)
    return cell.name, cell.cfg, cfg.name, cfg.stem, *(v for v in values if not v.startswith("-"))


def log_essence(lines: Sequence[str], folder: Path, names: re.Pattern[str]) -> str:
    """The last traceback of a log's end, else its last line, without what is one cell's own.

    `folder` is the cell's; `names` are those of all cells that it is compared with.
    """
    plain = [_RANK.sub("", line).rstrip() for line in lines if line.strip()]
    begins = [at for at, line in enumerate(plain) if _TRACEBACK in line]
    text = "\n".join(plain[begins[-1] :] if begins else plain[-1:])
    return names.sub("{}", _ADDRESS.sub("0x", text.replace(str(folder), "{cell}")))


# What a try missed although it lies in the project: it does not travel, or is named wrongly.


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
                _(
                    "{path} is in the code folder, but the command starts in {{out}}: write "
                    "{{code}}/{path}{or_link}",
                    path=path,
                    or_link=_link(path),
                )
            )


def _link(path: str) -> str:
    """A script that has the name in itself takes no other."""
    top, _slash, below = path.partition("/")
    return (
        _("; if the script itself names it, write links: [{top}] in job.yaml", top=top)
        if below
        else ""
    )


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
                    _(
                        "{path} is in the code folder, but Python looks beside the script: write "
                        "env: {{PYTHONPATH: .}} in job.yaml, or start the script with -m "
                        "package.module",
                        path=path,
                    )
                )


def _left_out(path: str, tried: Tried) -> str:
    rule = code_files.left_out_by(tried.project_code, path)
    why = _("{rule} excludes it", rule=rule) if rule else _("the release does not contain it")
    return _(
        "{path} is in your code folder but is not sent: {why}. Send it (a {boxcarignore} replaces "
        "git's rules), or copy it to the box and read it from $BOXCAR_DATA_DIR",
        path=path,
        why=why,
        boxcarignore=code_files.BOXCARIGNORE,
    )


def _below_the_code(word: str, tried: Tried) -> str | None:
    """The path below the code folder that a script meant, from wherever it began."""
    for folder in (tried.copy.folder, tried.out):
        word = word.removeprefix(f"{folder}/")
    path = os.path.normpath(word)
    return None if path.startswith(("/", "..")) or path == "." else path


def remembered(stage: Stage, cell: Cell, key: str) -> Outcome | None:
    """The pass that holds for what would be tried, if there is one."""
    passed = passes.read_passes(stage.project.root, key)
    if passed is None:
        return None
    return Outcome(
        cell.name,
        BEFORE,
        seconds=passed.seconds,
        lacks=passed.lacks,
        beside=passed.beside,
        reserved=passed.reserved,
        no_number=passed.no_number,
        numbers=passed.numbers,
    )


def make_try(stage: Stage, cell: Cell, key: str) -> Outcome:
    """Run the cell, put the code's copy back, and keep a pass. Raises DamagedError, OSError."""
    began = time.monotonic()
    ended = try_cell(stage, cell)
    if again := _why_again(stage, cell, ended.why):
        ended = try_cell(stage, cell)
    seconds = round(time.monotonic() - began, 1)
    out, log = stage.out(cell.name), str(stage.log(cell.name))
    lacks, reserved = _lacks(stage, cell, out), _reserved(stage, cell, out)
    written = stage.copy.put_back((*lacks, *_no_resume(stage, cell, out)))
    size_bytes, files = _measure(out)
    has_left_anything = bool(files) or has_printed(Path(log))
    why = ended.why or outcome.try_fault(
        written,
        stage.project.plan.command,
        is_in_out=_is_in_out(stage),
        has_left_anything=has_left_anything,
    )
    why = why or problem(stage, cell)
    if why:
        word, typed = TIMED_OUT if ended.is_late else FAILED, by_hand(stage, cell)
        hints = tuple(hints_at_missing(tail(Path(log)), _tried(stage, out)))
        return Outcome(
            cell.name, word, why, seconds, lacks, written.added, None, log, typed, hints, again
        )
    at = timestamp.utc_now()
    beside = tuple(
        one for one in written.added if not strays.is_of(one, stage.project.plan.collect)
    )
    no_number, numbers = _numbers(stage, out, Path(log))
    passed = SmokePass(
        *(cell.name, at, seconds, size_bytes, files, lacks, beside, reserved, no_number, numbers),
        memory_bytes=ended.peak.size_bytes or None,
        shm_bytes=ended.peak.shm_bytes or None,
    )
    passes.write_pass(stage.project.root, key, passed)
    wrote = names(out) if lacks else ()
    others = files_beside(stage.project.plan, cell, out, lacks) if lacks else ()
    shutil.rmtree(out, ignore_errors=True)  # forty checkpoints fill a laptop
    return Outcome(
        cell.name,
        PASSED,
        seconds=seconds,
        lacks=lacks,
        beside=beside,
        log=log,
        again=again,
        wrote=wrote,
        reserved=reserved,
        no_number=no_number,
        others=others,
        numbers=numbers,
    )


def _numbers(stage: Stage, out: Path, log: Path) -> tuple[dict[str, str], dict[str, FoundNumber]]:
    """Why there is none, and what was found and where; by name."""
    found = measure.take_with_place(stage.project.plan.metrics, measure.Left(out, log))
    numbers = {
        one.name: FoundNumber(one.value, where) for one, where in found if one.value is not None
    }
    return measure.notes([one for one, _ in found]), numbers


def _why_again(stage: Stage, cell: Cell, why: str) -> str:
    """Why a failed try says nothing of the cell; '' where it does."""
    is_torchs = bool(why) and exit_signals.is_abort_at_exit(log_end(stage.log(cell.name)))
    return _("torch crashed at exit on the first try") if is_torchs else ""


def _is_in_out(stage: Stage) -> bool:
    return stage.project.plan.workdir == IN_OUT


def _lacks(stage: Stage, cell: Cell, out: Path) -> tuple[str, ...]:
    wanted = [item.path for item in terms.terms_of_cell(stage.project.plan, cell.name).artifacts]
    return tuple(name for name in wanted if not _is_there(out, name))


def _reserved(stage: Stage, cell: Cell, out: Path) -> tuple[str, ...]:
    """What artifacts mean, and a box leaves out."""
    wanted = [item.path for item in terms.terms_of_cell(stage.project.plan, cell.name).artifacts]
    named = (
        name
        for one in wanted
        for name in (resume_match.newest_first(out, one) if is_pattern(one) else (one,))
    )
    ours = {name for name in named if paths.is_own_name(name, cell.name)}
    return tuple(sorted(name for name in ours if (out / name).exists()))


def _is_there(out: Path, name: str) -> bool:
    if is_pattern(name):
        return next(resume_match.find_checkpoints(out, name), None) is not None
    return (out / name).exists()


def _no_resume(stage: Stage, cell: Cell, out: Path) -> tuple[str, ...]:
    """The job's `resume`, where nothing of it is in {out}."""
    resume = terms.terms_of_cell(stage.project.plan, cell.name).resume
    return (
        (resume,)
        if resume and next(resume_match.find_checkpoints(out, resume), None) is None
        else ()
    )


def _tried(stage: Stage, out: Path) -> Tried:
    return Tried(
        stage.project.root / stage.project.job.code, stage.copy, out, is_in_out=_is_in_out(stage)
    )


def _measure(folder: Path) -> tuple[int, int]:
    """What lies in the folder: bytes and files."""
    found = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(found), len(found)
