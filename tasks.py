"""The door for `invoke`: a task for each verb of boxcar/door/verb_table.py.

Settings may also stand in invoke.yaml (`boxcar: {profile: ..., job: ...}`) or the environment, by
Invoke's own rules. Imports nothing that a clone lacks where only Invoke was installed.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from invoke import Argument, Collection, Context, Exit, Task

if sys.version_info < (3, 10):  # noqa: UP036 (a clone may meet any; bootstrap.py finds a newer)
    words = " ".join(sys.argv[1:])
    print(f"Boxcar needs Python 3.10. Type: python3 bootstrap.py && .venv/bin/invoke {words}")
    sys.exit(2)

from boxcar.door.help import flag_text, verb_text
from boxcar.door.run_verb import Settings, run_verb
from boxcar.door.verb_table import FIRST, MANY, VERBS, Flag, Verb

if {"--list", "-l", "--help", "-h"} & {*sys.argv[1:]}:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `invoke --list | head` says nothing more


class VerbTask(Task):  # type: ignore[type-arg]
    """Its flags are the verb's, whatever Invoke would read from its body."""

    def __init__(self, verb: Verb) -> None:
        def body(c: Context, **values: Any) -> None:
            # Invoke switches it off, and each command in a checkout would compile all modules anew.
            sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
            typed = {name: value for name, value in values.items() if value}
            settings = c.config.boxcar
            if code := run_verb(verb, typed, lambda: Settings(settings.profile, settings.job)):
                raise Exit(code=code)

        body.__doc__ = str(verb_text(verb))
        super().__init__(body, name=verb.name)
        self.verb = verb

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        by_place = sorted(self.verb.flags, key=lambda flag: flag.place != FIRST)
        return [_argument(self.verb, flag) for flag in by_place]


def _argument(verb: Verb, flag: Flag) -> Argument:
    """One without a default is required: Invoke knows no optional word."""
    kind = list if flag.kind == MANY else str if flag.takes_value else bool
    return Argument(
        names=[spelling.lstrip("-") for spelling in flag.spellings],
        kind=kind,
        default=None if flag.place == FIRST else kind(),
        help=flag_text(verb, flag, "en"),
        positional=flag.place == FIRST,
    )


namespace = Collection(*(VerbTask(verb) for verb in VERBS.values()))
namespace.configure({"boxcar": {"profile": "", "job": "job.yaml"}})
