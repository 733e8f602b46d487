"""`boxcar` as a process that is forked from one that has its modules loaded, see forked.py. What a
local box answers it, is forked too.

A test that is about the program itself runs tiny_project.BOXCAR.
"""

from __future__ import annotations

import importlib
import itertools
import os
import pkgutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import door
import forked_answer
from forked import Forked, serve

# The environment's word for a process whose mounts it shall see; needs root.
MOUNTS_OF = "FORKED_IN_MOUNTS_OF"
# Its word for the two interpreters that are `auto` for a local box: see quick_python.here and
# forked_check.python, which are made where they are removed as well.
QUICK_BOXES = "FORKED_WITH_QUICK_BOXES"
# Its word for `up` without an ssh, whose boxes are folders, with waits that take no time, and
# without the audit at its end.
QUICK_RENTING = "FORKED_WITH_QUICK_RENTING"
# With it, for a network that lets no ssh out.
SHUT_NETWORK = "FORKED_WITH_SHUT_NETWORK"
# Its word for waits on a provider that take no time.
QUICK_CLOCK = "FORKED_WITH_QUICK_CLOCK"
# Its word for a wall clock that is wrong by so many seconds; `jumps`: another one at each wait.
WRONG_CLOCK = "FORKED_WITH_WRONG_CLOCK"
# What the modules import only where it is needed, as most verbs here need it.
_LATE = ("jinja2", "pathspec", "rich.progress", "rich.table")


class ForkedVerb(Forked[str]):
    """As `Popen([BOXCAR, *words], cwd=..., env=..., text=True)`."""

    SERVER = (sys.executable, __file__)


def _load_all() -> None:
    import boxcar.laptop

    for module in pkgutil.walk_packages(boxcar.laptop.__path__, "boxcar.laptop."):
        importlib.import_module(module.name)
    for name in ("boxcar.cli", *_LATE):
        importlib.import_module(name)
    archives = importlib.import_module("boxcar.laptop.release.archives")
    archives.build_onbox(), archives.build_training()
    forked_answer.kind()
    importlib.import_module("boxcar.laptop.hosts.ask_over_ssh").subprocess = forked_answer


def _become(words: Sequence[str]) -> None:
    sys.argv = list(words)
    if pythons := os.environ.pop(QUICK_BOXES, None):
        _use_quick_boxes(*pythons.split(os.pathsep))
    is_quick_renting = os.environ.pop(QUICK_RENTING, None)
    if wrong := os.environ.pop(WRONG_CLOCK, None):
        _use_wrong_clock(wrong)
    if os.environ.pop(QUICK_CLOCK, None) or is_quick_renting:
        _use_quick_clock()
    if is_quick_renting:
        _use_quick_renting()
    if keeper := os.environ.pop(MOUNTS_OF, None):
        _enter_mounts(int(keeper))
    sys.stdout.reconfigure(line_buffering=False)
    from boxcar.cli import program

    program.run()


def _use_quick_boxes(agent_python: str, training_python: str) -> None:
    forked_answer.PYTHONS.add(agent_python)
    for name, python in (("profile", agent_python), ("training_here", training_python)):
        module = importlib.import_module(f"boxcar.laptop.project.profiles.{name}")
        module.sys = SimpleNamespace(executable=python)  # type: ignore[attr-defined]


def _use_quick_clock() -> None:
    calls = importlib.import_module("boxcar.laptop.providers.calls")
    slept_s = [0.0]

    def sleep(seconds: float) -> None:
        slept_s[0] += seconds

    calls.CLOCK = calls.Clock(lambda: slept_s[0], sleep)  # type: ignore[attr-defined]


_WRONG_S = itertools.cycle((0.0, 3600.0, -86400.0, 30 * 86400.0))


def _use_wrong_clock(word: str) -> None:
    """As all of this process sees it; the monotonic clock runs on."""
    real_ns = time.time_ns

    def now_ns() -> int:
        wrong_s = next(_WRONG_S) if word == "jumps" else float(word)
        return real_ns() + int(wrong_s * 1e9)

    time.time_ns = now_ns
    time.time = lambda: now_ns() / 1e9


def _use_quick_renting() -> None:
    verbs = "boxcar.laptop.verbs"
    is_shut = bool(os.environ.pop(SHUT_NETWORK, None))
    network = importlib.import_module("boxcar.laptop.hosts.own_network")
    network.is_up = lambda: not is_shut  # type: ignore[attr-defined]
    importlib.import_module(f"{verbs}.rent_boxes")._answers = lambda *given: not is_shut  # type: ignore[attr-defined]
    importlib.import_module(f"{verbs}.deal").image_bytes = lambda image: None  # type: ignore[attr-defined]
    importlib.import_module(f"{verbs}.up").audit = lambda *given: 0  # type: ignore[attr-defined]
    importlib.import_module(f"{verbs}.up").open_site = _quick_site  # type: ignore[attr-defined]
    end_itself = importlib.import_module("onbox.machine.end_itself")
    own = [name for each in end_itself.OWN.values() for name in (each.id, each.key)]
    end_itself.first_environment = lambda: dict.fromkeys(own, "its own")  # type: ignore[attr-defined]
    end_itself.start_child = _keep_start  # type: ignore[attr-defined]


@contextmanager
def _quick_site(project: Any, say: Any) -> Iterator[SimpleNamespace]:
    """Whose boxes are folders beside the records, and answer as a box does."""
    yield SimpleNamespace(project=project, ask=partial(_ask_folder, project))


def _ask_folder(project: Any, box: str, question: Any) -> Any:
    records = importlib.import_module("boxcar.laptop.providers.rented_record")
    record = records.record_of_alias(project.root, box)
    folder = records.folder_of().parent / "boxes" / record.id
    where = importlib.import_module("boxcar.shared.wire.question").RunOnBox
    answer = importlib.import_module("onbox.answers.end").answer
    return answer(question, where(project.plan.run, str(folder), str(folder)))


_WAITING: list[int | None] = []


def _keep_start(words: list[str], environ: Mapping[str, str]) -> None:
    """Of the process that would wait there, that it was started; until this ends it holds its
    file.
    """
    lock = importlib.import_module("boxcar.shared.disk.lock")
    _WAITING.append(lock.hold(Path(words[1])))
    with Path(f"{words[1]}.started").open("a") as file:
        file.write(" ".join(words) + "\n")


def _enter_mounts(pid: int) -> None:
    folder = Path.cwd()
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    door.checked(door.libc().setns(namespace, 0))
    os.close(namespace)
    os.chdir(folder)
    # The server of answers is not in there.
    importlib.import_module("boxcar.laptop.hosts.ask_over_ssh").subprocess = subprocess


if __name__ == "__main__":
    _load_all()
    serve(_become)
