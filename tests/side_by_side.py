"""Runs what pytest has collected in several processes that are forked from it: `--side-by-side N`.

To collect takes longer than most folders of tests, and here it is done once. Files that mostly wait
are run beside files that mostly calculate, and those that train by few of the processes: each that
begins with one of those loads torch for its ranks. A file's tests stay together, but for those that
wait long and share nothing.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import deque
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

# Where tests wait for boxes and agents, the longest first; and where they train.
WAITING = ("tests/box/", "tests/e2e/", "tests/examples/", "tests/onbox/agent/")
TRAINING = ("tests/training/",)
LONGEST = (
    "tests/e2e/test_digits.py",
    "tests/box/test_life.py",
    "tests/box/test_own_tiers.py",
    "tests/e2e/test_kills.py",
    "tests/e2e/test_unfamiliar_project.py",
    "tests/e2e/test_life.py",
    "tests/box/test_down.py",
    "tests/e2e/test_flip.py",
)
_LOOK_S = 1.0  # for a process that was ended from outside


Batch = list[int]  # of session.items


@dataclass
class Batches:
    """What is yet to be run; the longest of those that wait first, the others as collected."""

    waiting: deque[Batch]
    training: deque[Batch]
    calculating: deque[Batch]

    def next(self, number: int) -> Batch | None:
        """For the process of that number; each kind has every third of them first."""
        waiting, training, calculating = self.waiting, self.training, self.calculating
        order = (
            (waiting, calculating, training),
            (training, calculating, waiting),
            (calculating, waiting, training),
        )[number % 3]
        return next((batches.popleft() for batches in order if batches), None)


def batches_of(items: Sequence[pytest.Item]) -> Batches:
    waiting: list[Batch] = []
    made = Batches(deque(), deque(), deque())
    for name, group in groupby(range(len(items)), lambda at: _file_of(items[at])):
        batch = list(group)
        if name.startswith(TRAINING):
            made.training.append(batch)
        elif not name.startswith(WAITING):
            made.calculating.append(batch)
        elif any(_shares(items[at]) for at in batch):
            waiting.append(batch)
        else:
            waiting.extend([at] for at in batch)
    made.waiting.extend(sorted(waiting, key=lambda one: _place_in_line(_file_of(items[one[0]]))))
    return made


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _place_in_line(name: str) -> int:
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def _shares(item: pytest.Item) -> bool:
    """Whether its file has a fixture that several of its tests use."""
    fixtures = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
    nearest = [each[-1] for each in fixtures.values()]
    return any(one.scope != "function" and one.baseid.endswith(".py") for one in nearest)


# --- the process that has collected


@dataclass
class Worker:
    """A forked process."""

    number: int
    pid: int
    pipe: Connection
    left: deque[int] = field(default_factory=deque)  # of its batch, the test at work first

    @property
    def node(self) -> SimpleNamespace:
        """What pytest's reporter asks a report for that comes from another process."""
        name = f"w{self.number}"
        return SimpleNamespace(gateway=SimpleNamespace(id=name), _workerinfocache=f"[{name}]")


class SideBySide:
    def __init__(self, session: pytest.Session, at_once: int) -> None:
        self.session, self.config = session, session.config
        self.batches = batches_of(session.items)
        self.at_once = at_once
        self.workers: dict[Connection, Worker] = {}

    def run(self) -> bool:
        """False in a process that was forked and has done its part."""
        for number in range(self.at_once):
            if not self._fork(number):
                return False
        while self.workers:
            for pipe in wait(list(self.workers), _LOOK_S):
                assert isinstance(pipe, Connection)
                if not self._hear(self.workers[pipe]):
                    return False
            self._stop_where_enough_failed()
        return True

    def _fork(self, number: int) -> bool:
        ours, theirs = Pipe()
        pid = os.fork()
        if pid == 0:
            for pipe in (ours, *self.workers):
                pipe.close()
            work(self.session, theirs, number)
            return False
        theirs.close()
        self.workers[ours] = worker = Worker(number, pid, ours)
        self._hand_out(worker)
        return True

    def _hand_out(self, worker: Worker) -> None:
        batch = self.batches.next(worker.number)
        worker.left = deque(batch or [])
        worker.pipe.send(batch)

    def _hear(self, worker: Worker) -> bool:
        try:
            kind, data = worker.pipe.recv()
        except (EOFError, OSError):
            return self._bury(worker)
        if kind == "report":
            self._tell(worker, self._report_of(data))
        elif kind == "warning":
            names = ("warning_message", "when", "nodeid", "location")
            kwargs = dict(zip(names, data, strict=True))
            self.config.hook.pytest_warning_recorded.call_historic(kwargs=kwargs)
        elif kind == "ended":
            worker.left.popleft()
            if not worker.left:
                self._hand_out(worker)
        return True

    def _report_of(self, data: dict[str, Any]) -> pytest.TestReport:
        report = self.config.hook.pytest_report_from_serializable(config=self.config, data=data)
        assert isinstance(report, pytest.TestReport)
        return report

    def _tell(self, worker: Worker, report: pytest.TestReport) -> None:
        vars(report)["node"] = worker.node
        self.config.hook.pytest_runtest_logreport(report=report)

    def _bury(self, worker: Worker) -> bool:
        """It has ended; if in the middle of a test, that has failed, and another takes the rest."""
        del self.workers[worker.pipe]
        worker.pipe.close()
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not worker.left:
            return True
        item = self.session.items[worker.left.popleft()]
        why = f"the process that ran this test ended with {status}"
        self._tell(worker, pytest.TestReport(
            item.nodeid, item.location, {}, "failed", why, "call",
        ))  # fmt: skip
        if worker.left:
            self.batches.calculating.appendleft(list(worker.left))
        return self._fork(worker.number)

    def _stop_where_enough_failed(self) -> None:
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)


# --- a process that was forked


def work(session: pytest.Session, pipe: Connection, number: int) -> None:
    """Run the batches that come. What pytest does at its end is done after this, here too."""
    config, items = session.config, session.items
    _have_folder_and_streams_of_its_own(config, number)
    _calculate_in_one_thread()
    config.pluginmanager.register(_Teller(session, pipe))
    while (batch := _next(pipe)) and not (session.shouldfail or session.shouldstop):
        # What comes after the last is not known yet: what is the session's stays, and nothing else.
        followers = [*(items[at] for at in batch[1:]), session]
        for at, follower in zip(batch, followers, strict=True):
            config.hook.pytest_runtest_protocol(item=items[at], nextitem=follower)
            if session.shouldfail or session.shouldstop:
                return
            pipe.send(("ended", at))


def _next(pipe: Connection) -> Batch | None:
    try:
        batch: Batch | None = pipe.recv()
        return batch
    except (EOFError, OSError):
        return None


def _have_folder_and_streams_of_its_own(config: pytest.Config, number: int) -> None:
    # Other plugins know by this that their files are another's to write.
    vars(config)["workerinput"] = {"workerid": f"w{number}"}
    factory = vars(config)["_tmp_path_factory"]
    config.option.basetemp = str(factory.getbasetemp() / f"w{number}")
    vars(config)["_tmp_path_factory"] = type(factory).from_config(config, _ispytest=True)
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    reporter = config.pluginmanager.getplugin("terminalreporter")
    assert isinstance(reporter, TerminalReporter)
    nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (until we end)
    vars(reporter._tw)["_file"] = nowhere


def _calculate_in_one_thread() -> None:
    """Threads that calculated while tests were collected are not in a forked process, where torch
    would wait for them."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


@dataclass(eq=False)
class _Teller:
    """Tells the process that has collected what comes of each test."""

    session: pytest.Session
    pipe: Connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        config = self.session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        self._tell("report", data)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        if when != "runtest":  # of before, which pytest repeats to whoever is registered
            return
        plain = warnings.WarningMessage(
            str(warning_message.message),
            warning_message.category,
            warning_message.filename,
            warning_message.lineno,
        )
        self._tell("warning", (plain, when, nodeid, location))

    def _tell(self, kind: str, data: object) -> None:
        try:
            self.pipe.send((kind, data))
        except OSError:
            self.session.shouldstop = "nobody listens any more"


# A GPU changes what `auto` and torch choose: tests that are not for one see none, nor what they
# start does. `pytest -m gpu` sees them.
HAS_GPUS = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def hide_gpus(markers: str, has_gpus: bool, env: MutableMapping[str, str]) -> None:
    """Unless the tests that were asked for are those for GPUs."""
    if has_gpus and "gpu" not in markers.replace("not gpu", ""):
        env["CUDA_VISIBLE_DEVICES"] = env["HIP_VISIBLE_DEVICES"] = ""
