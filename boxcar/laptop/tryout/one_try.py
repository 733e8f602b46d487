"""One cell's try: its run, what it left where, and the pass that is kept of it."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from boxcar.laptop.release import code_files
from boxcar.laptop.tryout import left_artifacts, outcome, passes
from boxcar.laptop.tryout.code_copy import CodeCopy
from boxcar.laptop.tryout.outcome import BEFORE, FAILED, PASSED, TIMED_OUT, FoundNumber, Outcome
from boxcar.laptop.tryout.passes import SmokePass
from boxcar.laptop.tryout.stage import Stage, by_hand, has_printed, log_end, tail, try_cell
from boxcar.shared import paths, timestamp
from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.resume_match import is_pattern
from boxcar.shared.cell import terms
from boxcar.shared.files.plan import IN_OUT, Cell
from boxcar.shared.metrics import measure
from boxcar.shared.process import strays
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.triage import exit_signals

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
                    "{path} lies in the code folder, and the command starts in {{out}}: write "
                    "{{code}}/{path}{path_2}",
                    path=path,
                    path_2=_link(path),
                )
            )


def _link(path: str) -> str:
    """A script that has the name in itself takes no other."""
    top, _slash, below = path.partition("/")
    return (
        _(", or, where the script itself names it, links: [{top}] in job.yaml", top=top)
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
                        "{path} lies in the code folder, and Python looks beside the script: "
                        "write env: {{PYTHONPATH: .}} in job.yaml, or start it as -m "
                        "package.module",
                        path=path,
                    )
                )


def _left_out(path: str, tried: Tried) -> str:
    rule = code_files.left_out_by(tried.project_code, path)
    why = _("{rule} leaves it out", rule=rule) if rule else _("nothing that is shipped holds it")
    return _(
        "{path} is in your code folder and does not travel: {why}. Let it travel (a "
        "{boxcarignore} replaces git's rules), or bring it to the box and read it from "
        "$BOXCAR_DATA_DIR",
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
    why, is_late = try_cell(stage, cell)
    if again := _why_again(stage, cell, why):
        why, is_late = try_cell(stage, cell)
    seconds = round(time.monotonic() - began, 1)
    out, log = stage.out(cell.name), str(stage.log(cell.name))
    lacks, reserved = _lacks(stage, cell, out), _reserved(stage, cell, out)
    written = stage.copy.put_back((*lacks, *_no_resume(stage, cell, out)))
    size_bytes, files = _measure(out)
    has_left_anything = bool(files) or has_printed(Path(log))
    why = why or outcome.try_fault(
        written, is_in_out=_is_in_out(stage), has_left_anything=has_left_anything
    )
    why = why or left_artifacts.problem(stage, cell)
    if why:
        word, typed = TIMED_OUT if is_late else FAILED, by_hand(stage, cell)
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
        *(cell.name, at, seconds, size_bytes, files, lacks, beside, reserved, no_number, numbers)
    )
    passes.write_pass(stage.project.root, key, passed)
    wrote = left_artifacts.names(out) if lacks else ()
    others = left_artifacts.others(stage.project.plan, cell, out, lacks) if lacks else ()
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
    return _("torch aborted its first try after the script's end") if is_torchs else ""


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
