"""What is odd about a command that may be right all the same; looks at the code folder.

No shell reads a command, and the launcher is put before it: what only a shell understands goes to
the script as words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from boxcar.laptop.project.job import Job
from boxcar.shared import names
from boxcar.shared.cell import placeholders
from boxcar.shared.cell.launch import NONE
from boxcar.shared.cell.said import is_script
from boxcar.shared.disk import regular_file
from boxcar.shared.files.plan import IN_OUT, Plan
from boxcar.shared.sentence import _

_OF_A_SHELL = re.compile(r"\|\|?|&&?|;|[0-9]?>>?|<|[0-9]?>&[0-9]")
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]")
# What a script may find its folder by, where no word of its command says it.
_FINDS_OUT = re.compile(r"BOXCAR_OUT|boxcar\.training|boxcar import training")
_MOST_BYTES, _MOST_FILES = 1_000_000, 500


def faults_of_commands(job: Job) -> Iterator[str]:
    """A command that no launcher can start."""
    for at, command in _commands_of_job(job):
        name, is_set, value = command[0].partition("=")
        if is_set and names.VARIABLE.fullmatch(name):
            yield (
                _(
                    "{at}: begins with {command!r}, a variable in shell syntax. Write env: "
                    "{{{name}: {value!r}}}, and begin the command with the script",
                    at=at,
                    command=command[0],
                    name=name,
                    value=value,
                )
            )


def notes_on_commands(root: Path, job: Job, plan: Plan) -> Iterator[str]:
    code = root / job.code
    for at, command in _commands_of_job(job):
        yield from _for_a_shell(at, command)
        yield from _module(at, command, code)
        yield from _no_script(at, command, code, plan)
        yield from _nowhere_to_write(at, command, code, plan)


def _commands_of_job(job: Job) -> Iterator[tuple[str, Sequence[str]]]:
    yield job.at("command"), job.command
    for name, rule in job.cells.items():
        if rule.command:
            yield job.at("cells", name, "command"), rule.command


def _for_a_shell(at: str, command: Sequence[str]) -> Iterator[str]:
    if found := next((word for word in command if _OF_A_SHELL.fullmatch(word)), None):
        yield (
            _(
                "{at}: the command is not run by a shell: {found!r} and everything after it are "
                "passed to the script. Remove them: a cell's output is always kept in its log",
                at=at,
                found=found,
            )
        )
    if found := next((word for word in command if _VARIABLE.search(word)), None):
        yield (
            _(
                "{at}: the command is not run by a shell: {found!r} is passed to the script as it "
                "is. Write the value itself",
                at=at,
                found=found,
            )
        )


def _module(at: str, command: Sequence[str], code: Path) -> Iterator[str]:
    """`-m train`, where it names no file of the code."""
    if command[0] != "-m":
        return
    if len(command) < 2 or not _is_module(code, command[1]):
        name = command[1] if len(command) > 1 else ""
        file = f"{name.replace('.', '/')}.py"
        yield (
            _(
                "{at}: -m {name}: {code} has no {file}. Name the script itself, such as train.py, "
                "unless the module is installed on each box",
                at=at,
                name=name,
                code=code,
                file=file,
            )
        )


def _no_script(at: str, command: Sequence[str], code: Path, plan: Plan) -> Iterator[str]:
    """`bash train.sh`, which Python would look for as a file of that name."""
    first = command[0]
    if plan.launcher == NONE or "{" in first or first.startswith("-") or is_script(first):
        return
    if not (code / first).is_file() or first.endswith(".sh"):
        yield (
            _(
                "{at}: {first!r} is not a Python script in {code}. If it is a command or a shell "
                "script, write launcher: none",
                at=at,
                first=first,
                code=code,
            )
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
        _(
            "{at}: uses neither {{out}} nor {{name}}, and no script reads BOXCAR_OUT. All cells "
            "would write into one folder, and each would fail after its training, without "
            "artifacts in its own. Add your script's output flag, such as --out {{out}}, or write "
            "workdir: out",
            at=at,
        )
    )


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
