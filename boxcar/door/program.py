"""`boxcar <verb>`: the tasks of tasks.py as a program of their own, for any project folder."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import os
import re
import shutil
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType

from invoke import Exit, Program
from invoke.exceptions import ParseError

from boxcar import __version__
from boxcar.door import completion, flags, garbage, help, streams
from boxcar.door.shells import SCRIPTS
from boxcar.laptop.common import documents, home
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.near import did_you_mean
from boxcar.shared import errors
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.cell.cell_name import NO_CONFIG
from boxcar.shared.cell.own_words import REST
from boxcar.shared.errors import Message
from boxcar.shared.process import exit_codes

_GRID = "grid"
_SCRIPT = "--print-completion-script"
_WIDEST = 100  # columns that a line of help may have
_OF_A_VERB = re.compile(r"(?:--profile|--job|-p)(?P<value>=.*)?")


class Door(Program):
    """Invoke's Program, with help and completion of its own, and 2 for a wrong command."""

    def run(self, argv: list[str] | None = None, exit: bool = True) -> None:
        streams.replace_unwritable()
        errors.type_as("boxcar")
        garbage.let_it_lie()
        code: int | str | None = 0
        try:
            self._run(argv, exit)
            sys.stdout.flush()  # at the end of Python nobody would catch what it raises
        except BrokenPipeError:
            streams.say_no_more()
        except SystemExit as ended:
            code = ended.code
            with contextlib.suppress(BrokenPipeError):
                sys.stdout.flush()
                sys.exit(code)
            streams.say_no_more()
        if exit:
            sys.exit(code)

    def _run(self, argv: list[str] | None, exit: bool) -> None:
        words = list(sys.argv if argv is None else argv)[1:]
        if words[:1] == ["--complete"]:
            self._complete([word for word in words[1:] if word != "--"][1:])
        elif words and words[0].partition("=")[0] == _SCRIPT:
            self._print_script("=".join(words).partition("=")[2])
        else:
            super().run(argv, exit)

    def _complete(self, words: list[str]) -> None:
        verbs = {name: task.get_arguments() for name, task in _tasks().namespace.tasks.items()}
        # Relative, because the folder may be gone.
        for candidate in completion.candidates(words, verbs, Path()):
            print(candidate)

    def _print_script(self, shell: str) -> None:
        if shell not in SCRIPTS:
            known = ", ".join(SCRIPTS)
            print(f"{_SCRIPT}: expected {known}, found {shell!r}", file=sys.stderr)
            sys.exit(exit_codes.INPUT)
        print(SCRIPTS[shell], end="")

    def normalize_argv(self, argv: list[str] | None) -> None:
        super().normalize_argv(argv)
        program, *typed = self.argv
        verbs = _tasks().namespace.task_names
        words = _behind_its_verb(typed, verbs)
        if words[:1] == ["help"]:
            words = ["--help", *words[1:]]
        if not words or words in (["--help"], ["-h"]):
            words = ["--list"]  # and not the flags of Invoke
        elif words[0] in verbs and {"-h", "--help"} & set(words[1:]):
            words = ["--help", words[0]]  # else `logs --help` asks for a cell
        elif words[0] == _GRID:
            words = [_GRID, *_named_words(words[1:])]
        self.argv = [program, *words]

    def list_flat(self) -> None:
        print(help.of_all(list(_tasks().namespace.task_names), _language(), _width()))

    def print_task_help(self, name: str) -> None:
        arguments = _tasks().namespace[name].get_arguments()
        print(help.of_verb(name, flags.of_verb(name, arguments), _language(), _width()))

    def parse_core(self, argv: list[str] | None) -> None:
        with self._wrong_command():
            super().parse_core(argv)

    def update_config(self, merge: bool = True) -> None:
        """With the invoke.yaml of the current folder, as `invoke` reads it beside a tasks.py."""
        super().update_config(merge=False)
        with contextlib.suppress(FileNotFoundError):  # a folder that is gone has none
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
            said, words = _in_words(error), self.argv[1:]
            text = said.said(_language())
            if "--json" in words:
                verbs = [word for word in words if word in _tasks().namespace.task_names]
                found = documents.of_error("".join(verbs[:1]), exit_codes.INPUT, [Message(said)])
                print(documents.as_text(found, is_line=True))
            raise Exit(text, code=exit_codes.INPUT) from error


def _in_words(error: ParseError) -> Sentence:
    """What Invoke says, and what was meant: one of the verb's flags, or a verb."""
    context = error.context
    verb = context.name if context else None
    known = context.flags if context and verb else _tasks().namespace.task_names
    said = _said(str(error).rstrip("!"), verb or "", known)
    return Sentence("mistakes.its_flags" if verb else "mistakes.the_verbs", text=said, verb=verb)


def _said(text: str, verb: str, known: Collection[str]) -> str:
    if flag := re.match(r"Flag <Argument: (\S+?)[ >]", text):
        return Sentence("mistakes.no_value", flag=flag[1])
    if words := re.search(r"positional arguments: (.*)", text):
        return Sentence("mistakes.no_words", verb=verb, words=words[1])
    if word := re.match(r"No idea what '(\S+)' is", text):
        bare = {one.lstrip("-"): one for one in known if len(one) > 2}  # all begin with two dashes
        near = did_you_mean(word[1].lstrip("-"), bare, bare)
        if not (near or word[1].startswith("-")) and "cell" in bare:
            near = Sentence("mistakes.near", name=f"--cell {word[1]}")
        return Sentence("mistakes.no_idea", word=word[1], near=near)
    return text


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


def _behind_its_verb(words: list[str], verbs: Collection[str]) -> list[str]:
    """`-p autodl launch` as `launch -p autodl`: before a verb Invoke would take it for its own."""
    own: list[str] = []
    rest = list(words)
    while rest and (found := _OF_A_VERB.fullmatch(rest[0])):
        many = 1 if found["value"] else 2
        own, rest = [*own, *rest[:many]], rest[many:]
    return [rest[0], *own, *rest[1:]] if own and rest and rest[0] in verbs else words


def _language() -> str:
    return language_of("", os.environ)


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)


@functools.cache
def _tasks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("boxcar_tasks", home.assets_root() / "tasks.py")
    if spec is None or spec.loader is None:
        raise ImportError(
            f"{home.assets_root() / 'tasks.py'}: cannot be loaded; install boxcar again"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = Door(name="boxcar", namespace=_tasks().namespace, version=__version__)
