"""What is odd about a command that may be right all the same; looks at the code folder.

No shell reads a command, and the launcher is put before it: what only a shell understands goes to
the script as words.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from boxcar.laptop.habits import endless, script, worth
from boxcar.laptop.habits.endless import Endless
from boxcar.laptop.project.job import Job
from boxcar.shared import names
from boxcar.shared.cell import placeholders, terms
from boxcar.shared.cell.said import Places, is_script, say
from boxcar.shared.disk import regular_file
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import IN_OUT, Cell, Plan

_OF_A_SHELL = re.compile(r"\|\|?|&&?|;|[0-9]?>>?|<|[0-9]?>&[0-9]")
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]")
# What a script may find its folder by, where no word of its command says it.
_FINDS_OUT = re.compile(r"BOXCAR_OUT|boxcar\.training|boxcar import training")
_MOST_BYTES, _MOST_FILES = 1_000_000, 500
_MOST_CELLS = 200  # of each command: the others of a grid mostly differ in a number


def faults(job: Job) -> Iterator[str]:
    """A command that no launcher can start."""
    for at, command in _commands(job):
        name, is_set, value = command[0].partition("=")
        if is_set and names.VARIABLE.fullmatch(name):
            yield (
                f"{at}: begins with {command[0]!r}, which only a shell would take for a variable; "
                f"write it under env: {{{name}: {value!r}}}, and the command from the script on"
            )


def notes(root: Path, job: Job, plan: Plan) -> Iterator[str]:
    code = root / job.code
    for at, command in _commands(job):
        yield from _for_a_shell(at, command)
        yield from _module(at, command, code)
        yield from _nowhere_to_write(at, command, code, plan)
        yield from _no_end(at, command, code, plan)


def _commands(job: Job) -> Iterator[tuple[str, Sequence[str]]]:
    yield job.at("command"), job.command
    for name, rule in job.cells.items():
        if rule.command:
            yield job.at("cells", name, "command"), rule.command


def _for_a_shell(at: str, command: Sequence[str]) -> Iterator[str]:
    if found := next((word for word in command if _OF_A_SHELL.fullmatch(word)), None):
        yield (
            f"{at}: no shell reads it, so that {found!r} and what stands behind it go to the "
            "script as words; leave them out: all that a cell prints is kept in its log"
        )
    if found := next((word for word in command if _VARIABLE.search(word)), None):
        yield (
            f"{at}: no shell reads it, so that {found!r} goes to the script as it stands; write "
            "the value itself"
        )


def _module(at: str, command: Sequence[str], code: Path) -> Iterator[str]:
    """`-m train`, where it names no file of the code."""
    if command[0] != "-m":
        return
    if len(command) < 2 or not _is_module(code, command[1]):
        name = command[1] if len(command) > 1 else ""
        file = f"{name.replace('.', '/')}.py"
        yield (
            f"{at}: -m {name}: {code} holds no {file}; write the script itself, such as train.py, "
            "unless it is a module that is installed on each box"
        )


def _is_module(code: Path, name: str) -> bool:
    place = code.joinpath(*name.split("."))
    try:
        return place.with_name(f"{place.name}.py").is_file() or (place / "__main__.py").is_file()
    except (OSError, ValueError):
        return False


def _nowhere_to_write(at: str, command: Sequence[str], code: Path, plan: Plan) -> Iterator[str]:
    """Cells would all write to one place, and leave none of their artifacts where they count."""
    words = [*command, *plan.resume_args]
    env = [*plan.job_env.values(), *(text for rule in plan.rules for text in rule.env.values())]
    if plan.workdir == IN_OUT or any(
        placeholders.takes(words, key) or placeholders.env_takes(env, key)
        for key in ("out", "name")
    ):
        return
    if any(map(_finds_out, _sources(code, command))):
        return
    yield (
        f"{at}: neither {{out}} nor {{name}} stands in it, and no script asks for BOXCAR_OUT: "
        "every cell would write into the same folder, and fail after its training because its "
        "artifacts are not in its own; give your script's flag for it, such as --out {out}, or "
        "write workdir: out"
    )


def _no_end(at: str, command: Sequence[str], code: Path, plan: Plan) -> Iterator[str]:
    """A training that only who stops it would end, told of the first cell that has it."""
    path = next((code / word for word in command if is_script(word)), None)
    one = _script(code, path) if path and path.is_relative_to(code) else None
    if path is None or one is None:
        return
    found: dict[tuple[object, ...], Endless | None] = {}
    for cell in islice(_without_time_limit(plan, command), _MOST_CELLS):
        words = say(plan, cell, Places("{out}", "{code}")).words
        given = worth.given_by(one, words, _config(code, cell.cfg))
        key = tuple(sorted((name, repr(value)) for name, value in given.items()))
        if key not in found:
            found[key] = endless.of(code, one, given)
        if loop := found[key]:
            yield f"{at}: {cell.name} {_endless_words(loop)}"
            return


def _without_time_limit(plan: Plan, command: Sequence[str]) -> Iterator[Cell]:
    for cell in plan.cells:
        held = terms.of_cell(plan, cell.name, cell.own)
        if held.command == command and not held.time_s:
            yield cell


def _endless_words(loop: Endless) -> str:
    has_no_end = f"would train until somebody stops it: the loop at {loop.where}"
    if not loop.key:
        return (
            f"{has_no_end} has no way out; give the script one, or say how long a cell may take, "
            "such as time: 6h (at its end a cell may save, and counts as failed)"
        )
    more = f"{loop.flag.word}=10000" if loop.flag and loop.flag.is_setting else f"{loop.said} 10000"
    typed = f"such as {more}, here or at the end of a queue line" if loop.flag else "in the code"
    return f"{has_no_end} ends by {loop.said}, which is {loop.value}; say a number, {typed}"


def _script(code: Path, path: Path) -> script.Script | None:
    with contextlib.suppress(InputError):  # no sense can be made of it, and so no note
        return script.read(code, path)
    return None


def _config(code: Path, cfg: str) -> str:
    """A config may say all that a flag says; '' where there is none."""
    try:
        with regular_file.open_followed(code / cfg) as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _sources(code: Path, command: Sequence[str]) -> Iterator[Path]:
    """The script first, which mostly says it."""
    yield from (code / word for word in command if is_script(word))
    for number, path in enumerate(code.rglob("*.py")):
        if number == _MOST_FILES:
            return
        yield path


def _finds_out(path: Path) -> bool:
    try:
        with regular_file.open_followed(path) as file:
            return _FINDS_OUT.search(file.read(_MOST_BYTES).decode("utf-8", "replace")) is not None
    except OSError:
        return False
