"""The words of `onbox attempt`, as run_one.sh spells them, and the attempt that they say."""

from __future__ import annotations

import os

from onbox.cell import attempt, environment
from onbox.cell.attempt import Attempt
from onbox.cell.wrapper.places import Durable, Scratch
from onbox.machine import credentials_path, process

# Not typing's: see attempt.py.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from onbox.cell.wrapper.prepared import Prepared

USAGE = """\
usage: onbox attempt --release FOLDER --box BOX --cell CELL --attempt N [--ranks N]
  [--launcher NAME] [--time S] [--env NAME=VALUE ...] [--python-path PATH ...]
  [--run RUN --data-dir FOLDER --durable FOLDER --grace S] -- LAUNCHER WORD ...
Runs one attempt at one cell. The four in the last line are the plan's; without them it is read."""
_ONE = ("release", "box", "cell", "attempt", "ranks", "launcher", "time")
_OF_PLAN = ("run", "data-dir", "durable", "grace")
_MANY = ("env", "python-path")
# Of the environment: what is started waits to be let in, see waiting.py; and after so many seconds
# torchrun is loaded.
WAITS = "BOXCAR_WAITS"
LOADS_AFTER_S = "BOXCAR_LOADS_AFTER_S"


class Misspelled(Exception):
    """What is wrong with the words."""


class Words:
    """Each word by its name, and behind `--` the launcher's own."""

    def __init__(self, argv: list[str]) -> None:
        """Raises Misspelled."""
        self.one: dict[str, str] = {}
        self.many: dict[str, list[str]] = {name: [] for name in _MANY}
        at = argv.index("--") if "--" in argv else len(argv)
        self.launcher = tuple(argv[at + 1 :])
        if at % 2:
            raise Misspelled(f"{argv[at - 1]} has no value")
        for flag, value in zip(argv[:at:2], argv[1:at:2], strict=True):
            self._take(flag, value)
        if missing := [name for name in _ONE[:4] if name not in self.one]:
            raise Misspelled(f"--{missing[0]} is missing")

    def _take(self, flag: str, value: str) -> None:
        name = flag.removeprefix("--")
        if name in _MANY:
            self.many[name].append(value)
        elif name in (*_ONE, *_OF_PLAN) and flag != name:
            self.one[name] = value
        else:
            raise Misspelled(f"{flag} is no word of it")

    def of_cell(self, words: list[str]) -> tuple[Words, dict[str, str]]:
        """With those of a cell, spelled as for run_one.sh, which was started without a cell: what
        it would have made of them, and the variables that it would have set.
        """
        _, cell, number, _, _, time_s, _, resume, *rest = words
        end = rest.index("--")
        made = Words.__new__(Words)
        made.one = {**self.one, "cell": cell, "attempt": number, "time": time_s}
        made.many = {**self.many, "env": rest[:end]}
        made.launcher = (*self.launcher, *rest[end + 1 :])
        out = f"{os.environ['BOXCAR_DATA_DIR']}/boxcar/{self.one['run']}/cells/{cell}/out"
        return made, {"BOXCAR_CELL": cell, "BOXCAR_OUT": out, "BOXCAR_RESUME": resume}


def run(argv: list[str]) -> int:
    """Run the attempt that is said. Raises Misspelled, BoxcarError, OSError, ValueError."""
    words = Words(argv)
    one = words.one
    if not all(name in one for name in _OF_PLAN):
        from onbox.cell.wrapper import planned

        one |= planned.words(one["release"], one["box"])
    loads_after_s = os.environ.pop(LOADS_AFTER_S, "")
    if not os.environ.pop(WAITS, ""):
        return attempt.run(_attempt(words), _credentials())
    if (let_in := _let_in(words, loads_after_s)) is None:
        return 0
    words, launcher = let_in
    launcher.argv = words.launcher
    return attempt.run(_attempt(words), _credentials(), launcher)


def _let_in(words: Words, loads_after_s: str) -> tuple[Words, Prepared] | None:
    """The words of the cell that it is let in with, and their variables set; None for none."""
    from onbox.cell.wrapper import prepared, waiting

    cookie = process.waiting_cookie(_scratch(words.one).root, os.getpid())
    environ = environment.of_launcher(os.environ, {}, {}, words.many["python-path"])
    loads = waiting.meanwhile(words.launcher, loads_after_s)
    launcher = prepared.Prepared(cookie, loads, environ | {process.COOKIE: cookie})
    told = waiting.until_let_in(launcher)
    if told is None:
        return None
    made, variables = words.of_cell(told)
    os.environ |= variables
    waiting.take_terminal(_scratch(made.one).log(made.one["cell"]))
    return made, launcher


def _credentials() -> str | None:
    return os.environ.get(credentials_path.VARIABLE)


def _scratch(one: dict[str, str]) -> Scratch:
    return Scratch(one["data-dir"], one["run"])


def _attempt(words: Words) -> Attempt:
    one = words.one
    launcher, ranks = one.get("launcher", ""), one.get("ranks")
    # accelerate becomes the script where it is to start one process: none is formed below it.
    is_plain = launcher == "python" or (launcher, ranks) == ("accelerate", "1")
    return Attempt(
        _scratch(one),
        Durable(one["durable"], one["run"]),
        release=one["release"].rstrip("/").rpartition("/")[2],
        cell=one["cell"],
        number=int(one["attempt"]),
        argv=words.launcher,
        platform_grace_s=float(one["grace"]),
        launcher=launcher,
        ranks=None if is_plain or ranks is None else int(ranks),
        env=dict(pair.split("=", 1) for pair in words.many["env"]),
        python_path=tuple(words.many["python-path"]),
        limit_s=int(one.get("time", "0")) or None,
    )
