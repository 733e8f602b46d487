"""`boxcar VERB ...`: the verbs of the table as a program of their own, for any project folder."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from boxcar import __version__
from boxcar.door import help
from boxcar.door.command_line import WrongCommand, parse_command
from boxcar.door.run_verb import Settings, open_streams, refuse_command, run_verb, say_no_more
from boxcar.door.verb_table import VERBS
from boxcar.laptop.common.language import language_of
from boxcar.shared import errors
from boxcar.shared.errors import InputError, message_of
from boxcar.shared.process import exit_codes
from boxcar.shared.sentence import _

_COMPLETE, _SCRIPT = "--complete", "--print-completion-script"
_HELP, _ALL = ("--help", "-h"), ("--list", "-l")
_WIDEST = 100  # columns that a line of help may have
# Where Invoke looks for its settings, the strongest last; it reads the first suffix that is there.
_SETTINGS, _SUFFIXES = ("/etc/invoke", "~/.invoke", "invoke"), (".yaml", ".yml", ".json")


def run(argv: Sequence[str] | None = None) -> NoReturn:
    """Never comes back: its exit code is that of the first verb that does not end with 0."""
    code: Any = 0
    try:
        open_streams()
        errors.type_as("boxcar")
        code = _answer(list(sys.argv if argv is None else argv)[1:])
        sys.stdout.flush()  # at the end of Python nobody would catch what it raises
    except BrokenPipeError:
        say_no_more()
    except OSError as error:  # a full disk behind `>`
        print(message_of(error), file=sys.stderr)
        code = exit_codes.FAILED
    except KeyboardInterrupt:
        code = exit_codes.INTERRUPTED
    except RuntimeError as error:
        # Python 3.10 and 3.11 wrap a Ctrl-C that meets the making of a class, as in an import.
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        code = exit_codes.INTERRUPTED
    except SystemExit as ended:
        code = ended.code
    try:
        sys.stdout.flush()
    except OSError:
        say_no_more()
    sys.exit(code)


def _answer(words: list[str]) -> int:
    if words and words[0].partition("=")[0] in (_COMPLETE, _SCRIPT):
        return _complete(words)
    if words in (["--version"], ["-V"]):
        print(f"boxcar {__version__}")
        return 0
    try:
        return _print_help(words) if _is_for_help(words) else _run_verbs(words)
    except WrongCommand as error:
        return refuse_command(error.sentence, error.verb, is_json="--json" in words)


def _is_for_help(words: list[str]) -> bool:
    own = words[: words.index("--")] if "--" in words else words
    return not words or words[0] in ("help", *_ALL) or not {*_HELP}.isdisjoint(own)


def _print_help(words: list[str]) -> int:
    named = [word for word in words if word not in ("help", *_HELP, *_ALL)]
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    if verbs := [word for word in named if word in VERBS]:
        print(help.help_of_verb(VERBS[verbs[0]], _language(), width))
    elif named:
        parse_command(named)  # which says what is wrong with it
    else:
        print(help.help_of_all(_language(), width))
    return 0


def _run_verbs(words: list[str]) -> int:
    for typed in parse_command(words):
        if code := run_verb(typed.verb, typed.values, read_settings):
            return code
    return 0


def _complete(words: list[str]) -> int:
    from boxcar.door.completion import SCRIPTS, candidates  # late: it reads queue files

    shell = "=".join(words).partition("=")[2]
    if words[0] == _COMPLETE:
        # Relative, because the folder may be gone.
        for candidate in candidates([word for word in words[1:] if word != "--"][1:], Path()):
            print(candidate)
    elif shell in SCRIPTS:
        print(SCRIPTS[shell], end="")
    else:
        print(f"{_SCRIPT}: expected {', '.join(SCRIPTS)}, found {shell!r}", file=sys.stderr)
        return exit_codes.INPUT
    return 0


def _language() -> str:
    return language_of("", os.environ)


# --- invoke.yaml, and the environment


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """As Invoke finds them. Raises InputError for a file that is none."""
    found: dict[str, str] = {}
    for place in _SETTINGS:
        paths = [Path(place + suffix).expanduser() for suffix in _SUFFIXES]
        for path in [path for path in paths if path.is_file()][:1]:
            found |= _read_file(path)
    for name in ("profile", "job"):
        if value := environ.get(f"INVOKE_BOXCAR_{name.upper()}"):
            found[name] = value
    return Settings(**found)


def _read_file(path: Path) -> dict[str, str]:
    import yaml  # late: most folders have no such file

    try:
        said = (yaml.safe_load(path.read_text("utf-8")) or {}).get("boxcar") or {}
        values = {name: said[name] for name in ("profile", "job") if said.get(name)}
    except (yaml.YAMLError, ValueError, AttributeError) as error:
        raise InputError(
            _(
                "{file}: expected boxcar: {{profile: NAME, job: PATH}}, found something else",
                file=path,
            )
        ) from error
    if not all(isinstance(value, str) for value in values.values()):
        raise InputError(
            _(
                "{file}: expected boxcar: {{profile: NAME, job: PATH}}, found something else",
                file=path,
            )
        )
    return values
