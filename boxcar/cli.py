"""`boxcar <verb>`: the tasks of tasks.py as a program of their own, for any project folder."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from invoke import Exit, Program
from invoke.exceptions import ParseError

from boxcar import __version__
from boxcar.laptop.common import assets, documents
from boxcar.laptop.common.near import did_you_mean
from boxcar.shared import exit_codes
from boxcar.shared.cell.cell_name import NO_CONFIG
from boxcar.shared.cell.own_words import REST
from boxcar.shared.message import Message

_GRID = "grid"


class Door(Program):
    """Invoke's Program, where a wrong command exits with 2 as everywhere in Boxcar."""

    def normalize_argv(self, argv: list[str] | None) -> None:
        super().normalize_argv(argv)
        program, *words = self.argv
        if not words:
            self.argv = [program, "--list"]  # and not the flags of Invoke
        elif words[0] in _tasks().namespace.task_names and {"-h", "--help"} & set(words[1:]):
            self.argv = [program, "--help", words[0]]  # else `logs --help` asks for a cell
        elif words[0] == _GRID:
            self.argv = [program, _GRID, *_named_words(words[1:])]

    def parse_core(self, argv: list[str] | None) -> None:
        with self._wrong_command():
            super().parse_core(argv)

    def update_config(self, merge: bool = True) -> None:
        """With the invoke.yaml of the current folder, as `invoke` reads it beside a tasks.py."""
        super().update_config(merge=False)
        self.config.set_project_location(Path.cwd())
        self.config.load_project(merge=merge)

    def parse_tasks(self) -> None:
        with self._wrong_command():
            super().parse_tasks()

    @contextlib.contextmanager
    def _wrong_command(self) -> Iterator[None]:
        try:
            yield
        except ParseError as error:
            text, words = _in_words(error), self.argv[1:]
            if "--json" in words:
                verbs = [word for word in words if word in _tasks().namespace.task_names]
                found = documents.of_error("".join(verbs[:1]), exit_codes.INPUT, [Message(text)])
                print(documents.as_text(found, is_line=True))
            raise Exit(text, code=exit_codes.INPUT) from error


def _in_words(error: ParseError) -> str:
    """Invoke's own sentence, and what was meant: one of the verb's flags, or a verb."""
    said, context = str(error).rstrip("!"), error.context
    verb = context.name if context else None
    said = re.sub(r"Flag <Argument: (\S+?)[ >].*", r"--\1 needs a value", said)
    found = re.search(r"'(\S+)'", said)
    known = context.flags if context and verb else _tasks().namespace.task_names
    near = did_you_mean(found[1], known) if found else ""
    where = f"boxcar --help {verb} shows its flags" if verb else "boxcar --list shows the verbs"
    return f"{said}{near}; {where}"


def _named_words(words: list[str]) -> Iterator[str]:
    """The words behind `grid` with a flag before each: Invoke takes a free word for a verb.

    The first that is free is the config, the others are --set; also all behind a `--`.
    """
    arguments = _tasks().namespace[_GRID].get_arguments()
    valued = {f"--{name}" for each in arguments if each.takes_value for name in each.names}
    left, flag = iter(words), "--cfg"
    for word in left:
        if word == REST:
            yield from (f"--set={each}" for each in (REST, *left))
        elif word in valued:
            yield from (word, *itertools.islice(left, 1))
        elif word.startswith("-") and word != NO_CONFIG:
            yield word
        else:
            yield f"{flag}={word}"
            flag = "--set"


def _tasks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("boxcar_tasks", assets.root() / "tasks.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{assets.root() / 'tasks.py'}: cannot be loaded; install boxcar again")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = Door(name="boxcar", namespace=_tasks().namespace, version=__version__)
