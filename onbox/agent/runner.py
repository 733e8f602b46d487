"""Running one cell once: start the wrapper on the stage that is set, and see it to its end.

The wrapper outlives the agent. An attempt is over when no process of it is left, which the lock on
the cell's log tells, also for an attempt that an earlier agent had started.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeAlias, TypeVar

from boxcar.shared import paths
from boxcar.shared.cell import cell_line, launch, said, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.said import SaidCell
from boxcar.shared.disk import lock
from boxcar.shared.errors import BoxcarError, words_of
from boxcar.shared.files import attempt, attempt_spec, resume_pointer
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.attempt_spec import AttemptSpec
from boxcar.shared.files.release import RUN_ONE, Release
from boxcar.shared.news import text
from boxcar.shared.process import end_reason, exit_codes
from boxcar.shared.sentence import _
from onbox.agent.dead_mirrors import DeadMirrors
from onbox.agent.early_end import EarlyEnd
from onbox.agent.orders import Orders
from onbox.agent.slots import Slot, Slots
from onbox.agent.staging import Staging
from onbox.attempt import leftovers, stage
from onbox.checkpoint.live_checkpoint import Mirror, Mirroring, Warn
from onbox.machine import gpus, process
from onbox.machine.place import Place
from onbox.queue.release_lines import ReleaseLines
from onbox.queue.reporter import Reporter

T = TypeVar("T")
# What the agent's loop goes on with, a step at a time: it waits at each `yield`.
Steps: TypeAlias = Generator[None, None, T]
TICK_S = 0.1
CLAIM_LOOK_EVERY_S = 5.0
MOST_NAMED = 10
# A script needs about as much to save and leave, before its checkpoint can be mirrored.
SHORT_GRACE_S = 10.0
# Of a grace: for saying what became of it.
LAST_WORDS_S = 1.0


class Runner:
    def __init__(
        self,
        place: Place,
        release: Release,
        reporter: Reporter,
        orders: Orders,
        *,
        slots: Slots,
        wake: Callable[[], None],
        mirrors: DeadMirrors | None = None,
    ) -> None:
        """`wake` ends the loop's wait: an attempt has ended."""
        self._mirrors_of_env = mirrors
        self._place = place
        self._release = release
        self._reporter = reporter
        self._orders = orders
        self._wake, self._slots = wake, slots
        self._mirrors: dict[str, Mirroring] = {}  # of cells that nobody settles yet
        self.lines = ReleaseLines(place, release)
        self._stagings: dict[int, Staging] = {}

    @property
    def place(self) -> Place:
        return self._place

    def staging(self, slot: int) -> Staging:
        """Of each slot its own."""
        if slot not in self._stagings:
            place = self._place
            made = stage.of_release(place.release, self._release, place.scratch, slot)
            self._stagings[slot] = Staging(place, made, self._reporter, self.lines.saying, slot)
        return self._stagings[slot]

    def is_running(self, cell: CellLine) -> bool:
        return lock.is_held(self._place.scratch.log(cell.name))

    def start(
        self, cell: CellLine, number: int, slot: Slot, beside: int = 0
    ) -> subprocess.Popen[bytes]:
        """Say that an attempt starts, then start it; `beside`: how many others run."""
        place, stored = self._place, self.lines.as_stored(cell)
        was_left = self._reporter.was_left(cell.name)
        what = self.lines.said(cell, slot.number, was_left=was_left)
        spec = self.spec(cell, number, what, slot)
        path = place.scratch.spec(cell.name, number)
        line = cell_line.begun_fields(cell) | {
            "cfg": stored.cfg,
            "epochs": said.epochs(place.plan, cell),
        }
        ranks = 1 if spec.launcher == launch.PYTHON else spec.ranks * spec.nodes
        line |= {"nproc": ranks, "saying": self.lines.saying(cell)}
        line |= {"resumes": what.has_checkpoint or None}
        line |= {"slot": slot.number or None, "gpus": list(slot.gpus) or None}
        share = self._slots.share(slot)
        line |= {"beside": beside or None, "share": share if share < 1 else None}
        about = {"cell": cell.name, "attempt": number, "release": place.release.name}
        with self._log(cell).open("ab") as log:
            attempt_spec.write_attempt_spec(path, spec)
            self._reporter.say("cell.started", **about, **line)
            return subprocess.Popen(
                ["bash", str(place.scratch.wrapper(place.release.name) / RUN_ONE), str(path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=self._slots.locks(slot),
            )

    def spec(self, cell: CellLine, number: int, what: SaidCell, slot: Slot) -> AttemptSpec:
        """What this attempt runs, and where."""
        place, release = self._place, self._place.release.name
        plan, box = place.plan, place.plan.box(place.box)
        env = self._mirrors_of_env.without(what.env) if self._mirrors_of_env else what.env
        return AttemptSpec(
            run=plan.run,
            cell=cell.name,
            attempt=number,
            release=release,
            launcher=what.launcher,
            words=what.words,
            env=self._slots.env(slot, env),
            ranks=what.nproc or len(slot.gpus) or gpus.count() or 1,
            nodes=what.nodes,
            python=paths.program_on_box(plan.training_python),
            python_path=(
                str(place.scratch.wrapper(release) / place.training_zip),
                *what.python_path,
            ),
            workdir=what.workdir,
            out=str(place.scratch.out(cell.name)),
            resume=what.resume,
            data_dir=str(place.scratch.data_dir),
            durable_dir=str(place.durable.durable_dir),
            credentials=str(paths.on_box(box.credentials)),
            grace_s=plan.grace_s,
            limit_s=what.time_s,
            slot=slot.number,
            gpus=slot.gpus,
            data=place.data,
        )

    def _log(self, cell: CellLine) -> Path:
        """Its path, once what an earlier attempt has put there in its place is aside."""
        log = self._place.scratch.log(cell.name)
        if log.is_symlink() or (log.exists() and not log.is_file()):
            aside = log.with_name(f"{log.name}.no-log-{time.time_ns()}")
            log.rename(aside)
            text = _(
                "{log} was not a file; what was there is now {aside}", log=log, aside=aside.name
            )
            self._reporter.warn("log_replaced", text, cell.name)
        return log

    def see_to_its_end(
        self,
        cell: CellLine,
        number: int,
        child: subprocess.Popen[bytes] | None,
    ) -> Steps[Done | None]:
        """Wait until no process of the attempt is left; its record, or None where it left none.

        `child` is the wrapper where this agent started it; an adopted attempt has none.
        """
        live = self._mirror(cell, number)
        tell_of_end(self._place.scratch.log(cell.name), child, self._wake)
        was_told, early = False, EarlyEnd(self._place, self._reporter, cell.name, number)
        next_claim_look_at = time.monotonic() + CLAIM_LOOK_EVERY_S  # it was just looked at
        while self._lives(cell, child):
            if time.monotonic() >= next_claim_look_at:
                next_claim_look_at = time.monotonic() + CLAIM_LOOK_EVERY_S
                if self._is_taken(cell):
                    self.end(cell, number)
            if not was_told and self._orders.is_to_stop:
                if live and self._is_in_a_hurry:
                    yield from self._flush(cell, live)
                was_told = self._tell_to_leave(cell, child)
            elif not was_told and early.is_due():
                was_told = self._tell_to_leave(cell, child)
            if not self._has_wrapper(cell, child):
                leftovers.end_processes(self._place.scratch, cell.name, number)
            yield
        done = attempt.read_done(self._place.scratch.done(cell.name, number))
        if live:
            yield from self._end_mirror(cell, live, done)
        if done is None:
            self.end(cell, number)
        return done

    def _is_taken(self, cell: CellLine) -> bool:
        """Whether the claim was given to another queue since."""
        path = self._place.durable.claim(cell.name)
        # What cannot be read for a moment ends nothing.
        with contextlib.suppress(BoxcarError, OSError):
            return attempt.claim_of_another(path, self._place.queue) is not None
        return False

    @property
    def _is_in_a_hurry(self) -> bool:
        """Whether the box may be gone before the script has left, and its last checkpoint with it.

        Before the script is told: one that saves meanwhile would change what is being copied.
        """
        return self._orders.by == end_reason.SIGNAL and self._place.plan.grace_s < SHORT_GRACE_S

    def end(self, cell: CellLine, number: int) -> None:
        """End what is left of an attempt: another one begins, or the cell is another queue's."""
        leftovers.end_all(self._place.scratch, cell.name, number, self._reporter.warn)

    def _end_mirror(self, cell: CellLine, live: Mirroring, done: Done | None) -> Steps[None]:
        """Of a success nothing is awaited. At a stop the newest checkpoint is what must arrive."""
        if self._orders.is_to_stop:
            if live.was_late or not (yield from self._flush(cell, live)):
                return
        elif done is not None and done.rc == exit_codes.DONE:
            live.give_up()
            return
        yield from live.finish()

    def _flush(self, cell: CellLine, live: Mirroring) -> Steps[bool]:
        """Mirror the newest checkpoint before the box is gone; where it cannot be, that is said."""
        at, grace_s = self._orders.signalled_at, self._place.plan.grace_s
        # A person's stop ends no box; a platform that gives no time has sent no signal.
        until = at + grace_s - LAST_WORDS_S if at is not None and grace_s else math.inf
        if (yield from live.flush(until)):
            return True
        about = {"cell": cell.name, "seconds": grace_s, "mirrored_at": self._mirrored_at(cell)}
        told = text.late_mirror(about)
        with contextlib.suppress(OSError):
            self._reporter.say("box.warning", what=text.LATE_MIRROR, text=told, **about)
        return False

    def _mirrored_at(self, cell: CellLine) -> str | None:
        with contextlib.suppress(BoxcarError, OSError):
            pointer = resume_pointer.read_resume_pointer(self._place.durable.resume(cell.name))
            return pointer.at if pointer else None
        return None

    def wait_for_mirror(self, cell: str) -> None:
        """Until nothing is written any more where the cell's checkpoint was mirrored."""
        if live := self._mirrors.pop(cell, None):
            live.wait()

    def _not_mirrored(self, cell: CellLine, error: Exception) -> None:
        """A tier that is full or away costs the mirror, not the cell."""
        text = _(
            "the checkpoint of {cell} could not be mirrored: {why}",
            cell=cell.name,
            why=words_of(error),
        )
        with contextlib.suppress(OSError):
            self._reporter.warn("mirror_failed", text, cell.name)

    def _lives(self, cell: CellLine, child: subprocess.Popen[bytes] | None) -> bool:
        return (child is not None and child.poll() is None) or self.is_running(cell)

    def _has_wrapper(self, cell: CellLine, child: subprocess.Popen[bytes] | None) -> bool:
        """Whether the wrapper lives; ranks that it left behind would run on, seen by nobody."""
        if child is not None:
            return child.poll() is None
        running = attempt.read_running(self._place.scratch.running(cell.name))
        return running is not None and process.is_same(
            running.pid, running.start_time, running.boot_id
        )

    def _tell_to_leave(self, cell: CellLine, child: subprocess.Popen[bytes] | None) -> bool:
        """A signal to the wrapper, which tells the script; False where it cannot be told yet."""
        running = attempt.read_running(self._place.scratch.running(cell.name))
        if running is None or not process.is_same(running.pid, running.start_time, running.boot_id):
            return False
        with contextlib.suppress(ProcessLookupError):
            # Only a signal that came to us hurries: see attempt/stop.py.
            is_signal = self._orders.by == end_reason.SIGNAL
            os.kill(running.pid, signal.SIGTERM if is_signal else signal.SIGINT)
        return True

    def _mirror(self, cell: CellLine, number: int) -> Mirroring | None:
        place, name = self._place, terms.terms_of_cell(self._place.plan, cell.name).resume
        if name is None:
            return None
        out = place.scratch.out(cell.name)
        folder, mtbf_s = place.durable.resume(cell.name), place.plan.interrupted_every_s
        warn, asked = self._warn_once(cell), self.lines.saying(cell)
        mirror = Mirror(
            *(cell.name, number, out, name, folder), saying=asked, mtbf_s=mtbf_s, warn=warn
        )
        bytes_per_s = place.plan.mirror_bytes_per_s
        live = Mirroring(mirror, lambda error: self._not_mirrored(cell, error), bytes_per_s)
        self._mirrors[cell.name] = live
        return live

    def _warn_once(self, cell: CellLine) -> Warn:
        return lambda what, text: self._reporter.warn_once(what, text, cell.name)


# --- Waiting for the end of an attempt: a thread that the kernel wakes, once no process of it is
# left. It waits for the wrapper, where the agent started that itself, and then for the lock on the
# cell's log, which an adopted attempt has too. It only wakes: whether the attempt is over, the
# loop looks for itself, also every TICK_S, for where the thread cannot wait.


def tell_of_end(
    log: Path, child: subprocess.Popen[bytes] | None, wake: Callable[[], None]
) -> threading.Thread:
    """`wake` is called when the wrapper and when the attempt ends, each once."""

    def watch() -> None:
        if child is not None:
            child.wait()
            wake()
        try:
            lock.wait_until_free(log)
        except OSError:
            return  # the log is gone, or its disk has no locks: the loop looks
        wake()

    # A daemon: an agent that stops leaves its attempt running.
    thread = threading.Thread(target=watch, name="attempt-end", daemon=True)
    thread.start()
    return thread
