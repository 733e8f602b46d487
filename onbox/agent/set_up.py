"""What a box needs before its first cell: the job's `setup` and `requirements`, once a box.

Processes of the set-up hold its lock, so that two agents, or one that was killed and its successor,
never do it side by side. That it was done is written down by `machine/set_up_marks.py`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boxcar.shared import paths
from boxcar.shared.cell import placeholders
from boxcar.shared.disk import atomic, lock
from boxcar.shared.environment import CREDENTIALS
from boxcar.shared.files.plan import HELD_PACKAGES, Plan
from boxcar.shared.files.release import CODE
from boxcar.shared.sentence import _
from onbox.agent import dead_mirrors
from onbox.agent.beat import Beat
from onbox.agent.orders import Orders
from onbox.agent.outcome import StopQueue
from onbox.agent.runner import Steps
from onbox.machine import mirrors, secret_env
from onbox.machine.place import Place
from onbox.machine.set_up_marks import digest_of, is_done, mark_done
from onbox.queue.reporter import Reporter

# From being told to end to being killed.
GRACE_S = 10.0
_TAIL_BYTES, _TAIL_LINES = 8192, 12
_WRITE_HELD = """\
import importlib.metadata as metadata, sys
for name in sys.argv[2:]:
    try:
        line = f"{name}=={metadata.version(name)}"
    except metadata.PackageNotFoundError:
        continue
    print(line, file=open(sys.argv[1], "a"))
"""


class SetUp:
    def __init__(self, reporter: Reporter, orders: Orders, beat: Beat) -> None:
        self._reporter, self._orders, self._beat = reporter, orders, beat
        self._done: set[str] = set()

    def is_needed(self, place: Place) -> bool:
        """Whether the box still lacks what the release of `place` asks for. Raises DamagedError."""
        plan = place.plan
        if not (plan.setup or plan.install):
            return False
        asked = digest_of(plan, place.release / CODE)
        if asked not in self._done and is_done(place.scratch.set_ups, asked):
            self._done.add(asked)
        return asked not in self._done

    def steps(self, place: Place, code: Path) -> Steps[bool]:
        """Do it in `code`, a stage of the release. False where the agent is to end before it is
        done. Raises StopQueue where it fails.
        """
        asked = digest_of(place.plan, place.release / CODE)
        atomic.make_folder(place.scratch.set_ups)
        self._beat.sets_up(True)
        held = None
        try:
            until = time.monotonic() + place.plan.setup_time_s
            while (held := lock.try_hold(place.scratch.set_ups / f"{asked}.lock")) is None:
                if self._orders.is_to_end:
                    return False
                if time.monotonic() > until:
                    raise StopQueue(self._over_time(place, _log(place, asked)))
                yield
            if not is_done(place.scratch.set_ups, asked):  # by whom we have waited for
                return (yield from self._run(place, asked, code, held))
            return True
        finally:
            self._beat.sets_up(False)
            if held is not None:
                os.close(held)

    def _run(self, place: Place, asked: str, code: Path, held: int) -> Steps[bool]:
        log, began = _log(place, asked), time.monotonic()
        self._reporter.say("setup.started", log=str(log))
        environ = yield from self._environ(place, code)
        child = self._start(place, code, log, held, environ)
        until = began + place.plan.setup_time_s
        while child.poll() is None and not self._orders.is_to_end and time.monotonic() < until:
            yield
        if child.poll() is None:
            yield from end(child)
            if self._orders.is_to_end:
                return False
            raise StopQueue(self._over_time(place, log))
        if child.returncode:
            raise StopQueue(self._failed(place, child.returncode, log))
        self._done.add(asked)
        with contextlib.suppress(
            OSError
        ):  # where nothing can be kept, the next agent does it again
            mark_done(place.scratch.set_ups, asked)
        self._reporter.say("setup.done", seconds=round(time.monotonic() - began, 1))
        return True

    def _environ(self, place: Place, code: Path) -> Steps[dict[str, str]]:
        """That of a cell, without a mirror that is dead from here, which is said."""
        found = environment(place, code)
        python = paths.program_on_box(place.plan.training_python)
        with ThreadPoolExecutor(1) as executor:
            trying = executor.submit(mirrors.try_mirrors, python, "", found, has_pip=True)
            while not trying.done():
                yield
        for text in dead_mirrors.told(trying.result()):
            self._reporter.warn("mirror_dead", text)
        return mirrors.without_dead(found, trying.result())

    def _start(
        self, place: Place, code: Path, log: Path, held: int, environ: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        versions = log.with_suffix(".held")
        versions.write_bytes(b"")
        commands = "\n".join(map(shlex.join, set_up_commands(place.plan, versions)))
        with log.open("wb") as out:
            log.chmod(0o600)  # a script may print what nobody else should see
            return subprocess.Popen(
                ["bash", "-e", "-c", commands],
                cwd=code,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                pass_fds=(held,),
            )

    def _failed(self, place: Place, rc: int, log: Path) -> str:
        return _(
            "SETUP: the set-up of {box} ended with {rc}: {tail}. Its log is {log}. Correct it, "
            "then launch",
            box=place.box,
            rc=rc,
            tail=self._tail(log),
            log=log,
        )

    def _over_time(self, place: Place, log: Path) -> str:
        return _(
            "SETUP: the set-up of {box} took longer than setup_time ({seconds} s): {tail}. Its "
            "log is {log}. Correct it or raise setup_time, then launch",
            box=place.box,
            seconds=place.plan.setup_time_s,
            tail=self._tail(log),
            log=log,
        )

    def _tail(self, log: Path) -> str:
        """The last lines that the log says, without what is secret."""
        found = b""
        with contextlib.suppress(OSError), log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            found = file.read()
        lines = [line.strip() for line in found.decode(errors="replace").splitlines()]
        said = " | ".join([line for line in lines if line][-_TAIL_LINES:])
        return self._reporter.secrets.known().left_out_of(said) or _("it said nothing")


def environment(place: Place, code: Path) -> dict[str, str]:
    """A cell's, without what is of one cell."""
    plan = place.plan
    file = paths.on_box(plan.box(place.box).credentials)
    beside = os.path.dirname(paths.program_on_box(plan.training_python))  # noqa: PTH120
    path = os.environ.get("PATH", os.defpath)
    found = {
        **os.environ,
        **plan.env,
        **_filled(plan.job_env, {"code": str(code), "run": plan.run}),
        **secret_env.read(str(file)),
        "BOXCAR_RUN": plan.run,
        "BOXCAR_DATA_DIR": str(place.scratch.data_dir),
        "PATH": f"{beside}{os.pathsep}{path}" if beside else path,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "DEBIAN_FRONTEND": "noninteractive",
    }
    found.pop(CREDENTIALS, None)  # of that file nobody hears
    return found


def set_up_commands(plan: Plan, held: Path) -> list[list[str]]:
    """What is run, in this order; `held`: a file for the versions that stay as they are."""
    python = paths.program_on_box(plan.training_python)
    found = []
    if plan.install and plan.requirements:
        install = ["-m", "pip", "install", "--no-input", "-r", plan.requirements, "-c", str(held)]
        found.append([python, "-c", _WRITE_HELD, str(held), *HELD_PACKAGES])
        found.append([python, *install])
    if plan.setup:
        found.append(["bash", plan.setup])
    return found


def _log(place: Place, asked: str) -> Path:
    return place.scratch.set_ups / f"{asked}.log"


def _filled(env: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Those that are of no cell."""
    found = {}
    for name, text in env.items():
        with contextlib.suppress(KeyError):
            found[name] = placeholders.fill_env(text, values)
    return found


def end(child: subprocess.Popen[bytes]) -> Steps[None]:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        until = time.monotonic() + GRACE_S
        while child.poll() is None and time.monotonic() < until:
            yield
