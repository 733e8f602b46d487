"""Runs one verb, whichever program it was typed to: its errors are sentences, its end a code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import importlib
import io
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from boxcar.door import verb_table
from boxcar.door.verb_table import Verb
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.provider_keys import hide_keys
from boxcar.shared import errors
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    MayStillBillError,
    Message,
    message_of,
)
from boxcar.shared.process import exit_codes, told_to_end
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _

if TYPE_CHECKING:
    from boxcar.laptop.project.project import Project

# What `show` imports at once, so it is missing where only Invoke was installed.
LIBRARY = "pydantic"


@dataclass(frozen=True)
class Settings:
    """What counts where no flag says otherwise: `boxcar: {profile, job}` of invoke.yaml."""

    profile: str = ""
    job: str = "job.yaml"


@dataclass(frozen=True)
class Where:
    """Which project and platform a verb is about: as typed, else by `settings`."""

    profile: str
    job: str
    settings: Settings

    @property
    def job_file(self) -> Path:
        return Path(self.job or self.settings.job)

    @property
    def folder(self) -> Path:
        return self.job_file.parent.resolve()


def run_verb(
    verb: Verb, values: Mapping[str, Any], settings: Callable[[], Settings] = Settings
) -> int:
    """Its exit code. `values` by the names of flags, as they were typed, and no others."""
    leave_garbage()
    open_streams()
    hide_keys()
    try:
        from boxcar.laptop.common import show
    except ModuleNotFoundError as error:
        if error.name != LIBRARY:
            raise
        said = _without_library(LIBRARY)
        return refuse_command(said, verb.name, is_json=bool(values.get("json")))
    show.begin()
    if verb_table.ALL in verb.flags:
        show.shorten(_with_all(verb, values), is_all="all" in values)
    code, messages = _ended(lambda: _call(verb, values, settings()))
    for message in messages:
        show.say(message)
    if messages and values.get("json"):
        show.json_error(verb.name, code, messages)
    return code


def _ended(call: Callable[[], int]) -> tuple[int, tuple[Message, ...]]:
    """A verb's exit code, and where it raised an error, what that says."""
    try:
        _refuse_a_folder_that_is_gone()
        with told_to_end.as_exit():
            return call(), ()
    except BoxcarError as error:
        is_told = error.exit_code == exit_codes.INPUT or isinstance(error, MayStillBillError)
        return error.exit_code if is_told else exit_codes.FAILED, error.messages
    except BrokenPipeError:
        say_no_more()
        return 0, ()
    except OSError as error:
        return 1, (_of_system(error),)
    except UnicodeEncodeError as error:
        # Python opens files by such names only where the locale has UTF-8.
        return 2, (
            Message(
                _(
                    "{text} cannot be opened or written, because this locale has no UTF-8. Type: "
                    "export LC_ALL=C.UTF-8",
                    text=repr(error.object),
                )
            ),
        )
    except KeyboardInterrupt:
        again = Message(_("\ninterrupted; run the same command again to continue"))
        return exit_codes.INTERRUPTED, (again,)


def _of_system(error: OSError) -> Message:
    found = message_of(error)
    if error.errno != errno.EROFS:
        return found
    return Message(
        _(
            "{what}. Boxcar keeps its records beside job.yaml: mount this disk writable, or work "
            "in a copy of the project elsewhere",
            what=found.text,
        )
    )


def _refuse_a_folder_that_is_gone() -> None:
    """A shell stays in it where a project was removed, or cloned anew under the same name."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError(
            _(
                "The folder of this shell no longer exists. Change to your project's folder again "
                "with cd (even if it has the same name)"
            )
        ) from None


def _without_library(name: str) -> Sentence:
    if errors.program() != "invoke":
        return _(
            "{library} is missing in {python}. Install Boxcar there again",
            library=name,
            python=sys.executable,
        )
    again = shlex.join([".venv/bin/invoke", *sys.argv[1:]])
    return _(
        "{library} is missing: this Python has Invoke but not Boxcar's libraries. Type: python3 "
        "bootstrap.py && {again}",
        library=name,
        again=again,
    )


def refuse_command(said: Sentence, verb: str, *, is_json: bool) -> int:
    """Before any verb is begun, and without a library: says why, and gives the exit code."""
    print(said.said(language_of("", os.environ)), file=sys.stderr)
    if is_json:
        from boxcar.laptop.common import documents

        found = documents.of_error(verb, exit_codes.INPUT, [Message(said)])
        print(documents.as_text(found, is_line=True))
    return exit_codes.INPUT


def _with_all(verb: Verb, values: Mapping[str, Any]) -> Command:
    """As it was typed, with --all. What `down` was given is done, or has to be approved anew."""
    words: list[str] = []
    for flag in verb.flags if verb.group != "end" else ():
        if flag.name in values and flag not in _OF_THE_DOOR:
            many = values[flag.name] if flag.kind == verb_table.MANY else [values[flag.name]]
            for value in many:
                words += [f"--{flag.name}", *([str(value)] if flag.takes_value else [])]
    return Command(verb.name, (*words, "--all"))


def _call(verb: Verb, values: Mapping[str, Any], settings: Settings) -> int:
    module, _, name = verb.function.partition(":")
    function = getattr(importlib.import_module(module), name)
    where = Where(values.get("profile", ""), values.get("job", ""), settings)
    flags = {
        flag.parameter: _READERS[flag.kind](values[flag.name], f"--{flag.name}")
        for flag in verb.flags
        if flag.name in values and flag not in _OF_THE_DOOR
    }
    return int(function(**_GIVEN[verb.given](where), **flags))


_OF_THE_DOOR = (verb_table.PROFILE, verb_table.JOB, verb_table.ALL)

# --- what a function is given


def launched_project(where: Where, *, is_quiet: bool = False) -> Project:
    """For verbs that run nothing new: what is wrong with the local files is said and stops none."""
    from boxcar.laptop.common import show

    project = typed_project(where, despite_faults=True, is_quiet=is_quiet)
    if problems := (*project.doubts, *project.faults):
        first, more = problems[0].text, len(problems) - 1
        if more:
            show.say(
                _(
                    "local files: {problem} (and {n} more). Fix this before the next push or "
                    "launch",
                    problem=first,
                    n=more,
                )
            )
        else:
            show.say(
                _("local files: {problem}. Fix this before the next push or launch", problem=first)
            )
    return project


def typed_project(where: Where, *, despite_faults: bool = False, is_quiet: bool = False) -> Project:
    """The project; which profile it is, and why, is the first line that a verb says."""
    from boxcar.laptop.common import show
    from boxcar.laptop.places.open_site import SITES
    from boxcar.laptop.project.project import open_project

    show.remember_flags(where.profile, where.job)
    try:
        project = open_project(
            where.job_file,
            where.profile,
            default=where.settings.profile,
            kinds=SITES,
            despite_faults=despite_faults,
        )
    except InputError as error:
        if any(message.command for message in error.messages):
            raise
        fixed = Message(_("Then check again"), Command("plan"))
        raise InputError([*error.messages, fixed]) from error
    if not is_quiet:
        show.say(project.why)
    return project


_GIVEN: Mapping[str, Callable[[Where], dict[str, Any]]] = {
    verb_table.NOTHING: lambda where: {},
    verb_table.FOLDER: lambda where: {"root": Path.cwd()},
    verb_table.JOB_FOLDER: lambda where: {"root": where.folder},
    verb_table.SECRET: lambda where: {"secret": os.environ.get("BOXCAR_WEBHOOK_SECRET", "")},
    verb_table.PROJECT: lambda where: {"project": typed_project(where)},
    verb_table.DRAFT: lambda where: {"project": typed_project(where, despite_faults=True)},
    verb_table.LAUNCHED: lambda where: {"project": launched_project(where)},
    verb_table.WHERE: lambda where: {"where": where},
}

# --- how what was typed is read


def _number(text: str, flag: str, kind: Callable[[str], Any]) -> Any:
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1_000_000:
        raise InputError(
            _("{flag}: expected a number of 0 or more, found {text!r}", flag=flag, text=text)
        )
    return number


def _port(text: str, flag: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise InputError(
            _("{flag}: expected a port from 0 to 65535, found {text!r}", flag=flag, text=text)
        )
    return int(text)


def _exit_code(text: str, flag: str) -> int:
    """`137` or `-9`."""
    sign = -1 if text.startswith("-") else 1
    return sign * int(_number(text.removeprefix("-"), flag, int))


def _seconds(text: str, flag: str) -> float:
    """`90`, `90s`, `30m` or `2h`."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        return float(_number(number, flag, float)) * unit
    except InputError as error:
        raise InputError(
            _(
                "{flag}: expected a time, found {text!r}. For example: {flag} 30m (or 90s, 2h)",
                flag=flag,
                text=text,
            )
        ) from error


def _kib_s(text: str, flag: str) -> int:
    """As rsync reads it: `800` and `800K` are KiB a second, `2M` and `1.5m` MiB."""
    units = {"K": 1, "M": 1024, "G": 1024 * 1024}
    unit = units.get(text[-1:].upper(), 0)
    with contextlib.suppress(InputError):
        found = round(float(_number(text[:-1] if unit else text, flag, float)) * (unit or 1))
        if found > 0:
            return found
    raise InputError(
        _("{flag}: expected a rate such as 800K or 2M, found {text!r}", flag=flag, text=text)
    )


_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    verb_table.SWITCH: lambda value, flag: True,
    verb_table.OFF: lambda value, flag: False,
    verb_table.TEXT: lambda value, flag: value,
    verb_table.MANY: lambda value, flag: tuple(value),
    verb_table.COUNT: lambda value, flag: _number(value, flag, int),
    verb_table.FRACTION: lambda value, flag: _number(value, flag, float),
    verb_table.TIME: _seconds,
    verb_table.RATE: _kib_s,
    verb_table.PORT: _port,
    verb_table.EXIT_CODE: _exit_code,
}


def leave_garbage() -> None:
    """To the kernel, which takes all back at the end of this process. `status` of 10, 200, 1,000
    and 2,000 cells takes 16, 23, 23 and 9 % less CPU so. What a watch of a night leaves behind is
    looked for all the same, and what was registered for the end of the interpreter is done.
    """
    gc.set_threshold(5_000_000, 20, 100)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


# --- the standard streams: neither a closed pipe nor an old terminal ends a command


def open_streams() -> None:
    """A character that stdout cannot write becomes `?`: in a C locale, an old terminal, a pipe. A
    stream that was closed (`>&-`) is one that nobody reads.
    """
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w")


def say_no_more() -> None:
    """Who read our words has read enough, as `head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
