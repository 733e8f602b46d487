"""The agent of one queue: it runs one cell after another and proves each result.

In order: hold the queue's lock; announce; take over what an earlier agent left; then for each cell
claim, attempt, judge, and hand the result over to be settled while the next cell runs; at the end
say what came of it. Everything that happens is in the journal before it has an effect.

Long, because all steps of a queue stand here in their order; what each does has a file of its own.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from boxcar.shared import ended_by, exit_codes, state
from boxcar.shared.cell import begun
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import atomic, lock
from boxcar.shared.errors import (
    BoxcarError,
    DamagedError,
    InputError,
    NoRoomError,
    TemporaryError,
)
from boxcar.shared.files import heartbeat, journal, resume_pointer
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.release import Release
from boxcar.shared.message import Command, counted, some
from boxcar.shared.record import dataclass
from boxcar.shared.triage.course import OF_BOX_OR_CODE, Course
from onbox.agent import older_checkpoint, room_wait, scheduler
from onbox.agent.acceptance import Acceptance
from onbox.agent.beat import Beat
from onbox.agent.claims import Claims
from onbox.agent.lines import Lines
from onbox.agent.orders import Orders
from onbox.agent.queue_file import QueueFile
from onbox.agent.queue_watch import QueueWatch
from onbox.agent.releases import Releases
from onbox.agent.reporter import Remembered, Reporter
from onbox.agent.room_wait import RoomWait
from onbox.agent.runner import TICK_S, Beside, Runner
from onbox.agent.scheduler import Begin
from onbox.agent.second_home import SecondHome
from onbox.agent.settler import Settler
from onbox.cell import resaid, set_aside, settle
from onbox.cell.asked import NOT_KNOWN, Asked
from onbox.cell.live_metrics import LiveMetrics
from onbox.cell.resaid import Standing
from onbox.cell.wrapper.ahead import Ahead
from onbox.judging import classify, ended_well, judgement
from onbox.judging.verdict import Action, Verdict
from onbox.machine import process, terminal
from onbox.place import Place
from onbox.slurm import in_vain, ownership
from onbox.webhooks import linger
from onbox.webhooks.deliver import Deliverer

FLUSH_S = 10.0
MOST_NAMED = 10
# Of the environment: this agent ends after one cell.
ONE_CELL = "BOXCAR_ONE_CELL"
# For so long at a time a thread computes that settles a result, and the loop waits.
SWITCH_S = 0.0005
BESIDE_AFTER_S = 0.06
SHORT_S = 0.25
# Beside longer ones no torch waits in memory, to save two seconds. Beside others it is loaded after
# a quarter of what the one before took: not beside a cell's own start.
LONG_S = 600.0
LOADS_AFTER = 0.25
# How soon it is seen that another queue has come to what a cell here waits for.
LOOK_S = 2.0


class StopQueue(Exception):
    """The queue cannot go on: the reason, and the exit code that says it."""

    def __init__(self, reason: str, exit_code: int = exit_codes.STOP_QUEUE) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


def begins_beside_after_s(last_took_s: float, *, has_waited: bool) -> float:
    """How long a cell runs before the next one is prepared; `has_waited`: the agent, for its line.

    A start takes a while of two cores, and is not held up. But where cells that end at once follow
    each other, the next one's program would come too late.
    """
    return 0.0 if last_took_s < SHORT_S and not has_waited else BESIDE_AFTER_S


def run(place: Place, release: Release, begin: Begin, deliverer: Deliverer | None) -> int:
    """Run a queue to its end; the exit code of `onbox agent`. Raises BoxcarError."""
    process.adopt_orphans()  # of a wrapper that is killed
    sys.setswitchinterval(SWITCH_S)
    is_slurms = ownership.is_ours_to_take()
    held = _take_queue(place.durable.lock(place.queue), is_alone=is_slurms)
    if held is None:
        raise TemporaryError(f"{place.queue}: its agent is already running; it was left alone")
    cursor: int | None = None
    owned: ownership.Owned | None = None
    try:
        owned = ownership.take(place.durable, place.queue) if is_slurms else None
        for path in (place.durable.heartbeat(place.queue), place.durable.delivered(place.queue)):
            atomic.remove_unfinished_of(path)  # an agent that was killed while it wrote
        # One that lingers sees that the queue is held, and ends.
        cursor = lock.hold(place.durable.delivered_lock(place.queue), linger.YIELDS_WITHIN_S)
        folders = (
            place.durable.queues,
            place.durable.control_folder,
            place.durable.accepted_folder,
        )
        with QueueWatch(folders) as watch:
            delivers = deliverer if cursor is not None else None
            one = Agent(place, release, begin, watch, delivers, held=Held(held, owned))
            try:
                return one.run()
            finally:
                one.ahead.close()
                one.end_copies()
    finally:
        os.close(held)
        if cursor is not None:
            os.close(cursor)
        if owned is not None:
            owned.end()


def _take_queue(path: Path, *, is_alone: bool = False) -> int | None:
    """None where another agent has it. Raises InputError for a file system without locks, unless
    something else than the lock keeps other machines out.
    """
    if not is_alone and not lock.is_true(path):
        raise InputError(
            f"{path}: its file system has no file locks (flock), by which an agent owns its queue. "
            "Name another one as the durable tier"
        )
    return lock.hold(path)


@dataclass(frozen=True)
class Held:
    """What makes a queue this agent's: its lock, and under Slurm its job."""

    lock: int
    owned: ownership.Owned | None = None

    def is_ours(self) -> bool:
        return lock.keep(self.lock) and (self.owned is None or self.owned.is_ours())


class Agent:
    def __init__(
        self,
        place: Place,
        release: Release,
        begin: Begin,
        watch: QueueWatch,
        deliverer: Deliverer | None,
        *,
        held: Held,
    ) -> None:
        common = {"run": place.plan.run, "queue": place.queue, "box": place.box}
        seen = heartbeat.journal_end(place.durable.heartbeat(place.queue))
        path = place.durable.journal(place.queue)
        remembered = Remembered(is_copied=place.plan.second is not None)
        writer = Journal(path, common, held.is_ours, seen, take=remembered.take)
        self.place = place
        self.begin = begin
        self.slurm = held.owned.shown if held.owned else {}
        self.watch = watch
        self.reporter = Reporter(writer, deliverer, remembered)
        self.beat = Beat(place, LiveMetrics(place, self.reporter.warn_once).numbers)
        self.orders = Orders(place.durable.control(place.queue), watch.wake)
        self.room = RoomWait(
            place.plan.full_disk_s, self.pause, lambda: self.orders.is_to_end, self.warn_of_no_room
        )
        self.ahead = Ahead()
        self.releases = Releases(
            place,
            release,
            self.reporter,
            lambda where, found: Runner(
                where, found, self.reporter, self.orders, self.tick, ahead=self.ahead
            ),
        )
        self.settler = Settler(
            place,
            self.reporter,
            lambda cell: self.releases.of_attempt(cell).place,
            self.asked_of,
            lambda cell: self.releases.of_attempt(cell).wait_for_mirror(cell),
        )
        self.second = SecondHome(place, self.reporter) if place.plan.second else None
        self.claims = Claims(place, self.reporter, self.room, self.say)
        self.acceptance = Acceptance(
            place, self.reporter, self.settler, self.releases.own.lines.saying
        )
        self.lines = Lines(
            QueueFile(place.durable.queue(place.queue)),
            begin,
            self.reporter,
            self.releases,
            claims=self.claims,
            acceptance=self.acceptance,
        )
        self.last_trouble: tuple[str, str, float] | None = None
        self.is_for_one_cell = os.environ.get(ONE_CELL) == "1"
        self.is_turn_over = False
        self.last_took_s = math.inf
        self.has_waited = False  # for the line of this cell

    def run(self) -> int:
        try:
            before = self.before_a_restart()
            self.announce()
            if before:
                self.refuse_restarts_in_vain(before)
            self.take_over()
            while not self.is_turn_over and (cell := self.next_cell()) is not None:
                self.run_cell(cell)
            if not self.is_turn_over:
                self.refuse_waiting()
            self.wait_for_settling()
            self.wait_for_copies()
            return self.end_turn() if self.is_turn_over else self.end()
        except StopQueue as stop:
            return self.end_stopped(str(stop), stop.exit_code)
        except DamagedError as error:
            return self.end_stopped(str(error), exit_codes.STOP_QUEUE)
        except (NoRoomError, OSError) as error:
            if not room_wait.is_no_room(error):
                return self.end_stopped(room_wait.reason(error), exit_codes.TEMPORARY)
            if self.orders.is_to_end:
                return self.end()
            return self.end_stopped(room_wait.reason(error), exit_codes.NO_ROOM)

    # --- before the first cell

    def announce(self) -> None:
        self.say(
            "agent.started",
            pid=os.getpid(),
            release=self.place.release.name,
            start_index=self.begin.index,
            start_cell=self.begin.cell or None,
            python=platform.python_version(),
            slurm=self.slurm or None,
        )
        if torn_file := self.reporter.torn_file:
            text = f"the journal's last line was torn by a crash; it is kept in {torn_file}"
            self.reporter.warn("journal_torn", text)
        self.lines.read()
        self.say("queue.started", cells=len(self.lines.queue.cells))
        if self.second:
            self.second.start()

    def before_a_restart(self) -> Sequence[Event]:
        """The events until now, where a scheduler has started this agent again; else none."""
        path = self.place.durable.journal(self.place.queue)
        return journal.read(path).events if in_vain.restarts() else ()

    def refuse_restarts_in_vain(self, before: Sequence[Event]) -> None:
        """A scheduler would go on for ever. Raises StopQueue."""
        cells = self.reporter.state().cells
        pointers = (resume_pointer.read(self.place.durable.resume(cell)) for cell in cells)
        newest = max((pointer.at for pointer in pointers if pointer), default=None)
        if reason := in_vain.reason(before, in_vain.restarts(), newest):
            raise StopQueue(reason)

    def take_over(self) -> None:
        """Settle what ended before this agent came, and see a cell that still runs to its end."""
        before = self.reporter.state()
        for name, number in scheduler.to_settle(before):
            if not self.claims.leave_what_is_anothers(name):
                self.settler.hand_over(self.line_of(name), number)
        for name, record in before.cells.items():
            if isinstance(record.state, state.Verified):
                self.settler.prune(name)  # the agent may have been killed just before it
            if isinstance(record.state, state.Running):
                self.run_cell(self.line_of(name), adopted=record.state.attempt)

    def line_of(self, name: str) -> CellLine:
        """A cell as it was started, whatever the queue says of it by now."""
        started = self.reporter.last("cell.started", name)
        if started is None:
            raise DamagedError(f"{self.place.queue}: {name} ran, but no event says how it ended")
        return begun.line(started)

    def asked_of(self, cell: CellLine) -> Asked:
        lines = self.releases.of_attempt(cell.name).lines
        return lines.asked(cell) if lines.has_config(cell) else NOT_KNOWN

    # --- which cell is next

    def next_cell(self) -> CellLine | None:
        """The next cell, once there is one; None when the queue is done, drained or stopped."""
        idle_since = time.monotonic()
        self.has_waited = False
        while True:
            self.orders.look_again()
            if self.orders.is_to_end:
                return None
            self.raise_settling_failure()
            if not self.lines.read():
                self.make_known()
                self.tick()
                time.sleep(TICK_S)
                continue
            if self.acceptance.take(self.lines.queue.cells):
                self.lines.warn_of_used_names()
            cell = self.lines.next()
            left_s = self.place.plan.linger_s - (time.monotonic() - idle_since)
            # A result that is lost before it is settled makes a cell to run again.
            is_idle = not (self.settler.is_busy or self.lines.has_waiting)
            if cell is not None or (left_s <= 0 and is_idle):
                return cell
            self.make_known()
            self.has_waited = True
            self.tick()
            wait_s = LOOK_S if self.lines.has_waiting else left_s
            self.watch.wait(TICK_S if self.settler.is_busy else wait_s)

    def refuse_waiting(self) -> None:
        """A line that has waited in vain until the end is not forgotten."""
        self.make_known()
        if not self.orders.is_to_end:
            for line in self.lines.waiting():
                self.run_cell(line)

    def runner_of(self, cell: CellLine, *, is_adopted: bool) -> Runner:
        if is_adopted:
            return self.releases.of_attempt(cell.name)
        return self.releases.of_line(cell) or self.releases.own

    # --- one cell

    def run_cell(self, cell: CellLine, adopted: int | None = None) -> None:
        """Attempt the cell until it succeeds, fails for good, or the agent is asked to end."""
        runner = self.runner_of(cell, is_adopted=adopted is not None)
        asked = runner.lines.saying(cell)
        if not self.claims.take(cell.name, asked):
            if adopted:
                runner.end(cell, adopted)
            return
        self.is_turn_over = self.is_for_one_cell
        is_over = False
        while not is_over:
            # Each time: a retry of what an earlier agent began runs from this agent's release.
            if not adopted and not self.is_as_begun(cell):
                return
            number = adopted or self.reporter.state().cell(cell.name).attempts + 1
            is_over = self.attempt(cell, number, is_adopted=adopted is not None)
            adopted = None

    def is_as_begun(self, cell: CellLine) -> bool:
        """Whether it may be attempted as its line says it: it may have said something else."""
        asked = self.runner_of(cell, is_adopted=False).lines.saying(cell)
        claim, record = self.claims.of(cell.name), self.reporter.state().cell(cell.name)
        started = self.reporter.last("cell.started", cell.name)
        found = resaid.standing(asked, claim, record, started)
        if claim is None or found is Standing.AS_BEGUN:
            return True
        before = resaid.sentence(cell, started)
        if found is Standing.OTHERWISE:
            problem = f"{before}: write the line as it was, or give it another name, name=..."
            self.refuse(cell, max(1, record.attempts), problem, resaid.FAILURE)
            return False
        if record.attempts:
            text = f"{before} and failed; it begins anew, as its line says now"
            self.reporter.warn("begun_anew", text, cell.name)
        set_aside.what_it_left(self.place, cell.name)
        self.claims.renew(claim, asked)
        return True

    def attempt(self, cell: CellLine, number: int, *, is_adopted: bool) -> bool:
        """One attempt, from its start to what follows from it; True when the cell is through."""
        runner = self.runner_of(cell, is_adopted=is_adopted)
        if not is_adopted and (problem := runner.lines.problem(cell)):
            self.refuse(cell, number, problem)
            return True
        child = None
        if not is_adopted:
            self.set_stage(runner, cell, number)
            child = self.room.through(lambda: runner.start(cell, number))
        self.beat.at(cell.name, number)
        after_s = begins_beside_after_s(self.last_took_s, has_waited=self.has_waited)
        beside = Beside(after_s, lambda: self.begin_beside(cell))
        done = runner.see_to_its_end(cell, number, child, beside)
        self.last_took_s = done.seconds if done else math.inf
        self.beat.at(None)
        if self.claims.leave_what_is_anothers(cell.name):
            return True
        looked = runner.look_at_stage(cell)
        wrapper_rc = child.returncode if child else None
        verdict = judgement.of_attempt(runner.place, cell.name, done, wrapper_rc, looked)
        if is_adopted and (job_ended := self.slurm.get("before")):
            verdict = classify.of_ended_job(verdict, job_ended)
        verdict = older_checkpoint.instead(runner.place, cell.name, done, verdict, self.reporter)
        warnings = looked.warnings
        if done and not looked.changed and ended_well.is_worth_a_look(done, verdict):
            verdict = self.ticking(lambda: ended_well.instead(runner.place, cell, done, verdict))
            warnings += (verdict.reason,) if verdict.action is Action.SUCCEED else ()
        return self.conclude(cell, number, done, verdict, warnings)

    def begin_beside(self, cell: CellLine) -> None:
        """The result before is proven while this cell runs, and the next one is prepared."""
        self.make_known()
        self.start_one_ahead(cell)

    def start_one_ahead(self, beside: CellLine) -> None:
        """The next cell, also one that is not in the queue yet, most often is launched alike."""
        line = self.lines.next(beside.name) or (beside if self.place.plan.linger_s else None)
        if line and not (self.is_turn_over or self.orders.is_to_end):
            took_s = self.last_took_s
            after_s = LOADS_AFTER * took_s if took_s < LONG_S else None
            self.runner_of(line, is_adopted=False).start_ahead(line, loads_after_s=after_s)

    def set_stage(self, runner: Runner, cell: CellLine, number: int) -> None:
        """The cell before does not wait for what takes a while, such as room on a disk."""
        if runner.is_set_quickly(cell, number, may_look=self.has_waited):
            try:
                runner.set_stage(cell, number)
            except (NoRoomError, OSError) as error:
                if not room_wait.is_no_room(error):
                    raise
            else:
                return
        self.make_known()
        self.room.through(lambda: runner.set_stage(cell, number))

    def make_known(self) -> None:
        """A success that is not on the disk yet goes there, and its result is settled."""
        self.room.through(self.reporter.flush)
        self.settler.begin()

    def ticking(self, act: Callable[[], Verdict]) -> Verdict:
        """What takes a while, done beside the loop: the heartbeat goes on."""
        with ThreadPoolExecutor(1) as executor:
            future = executor.submit(act)
            while not future.done():
                self.tick()
                time.sleep(TICK_S)
            return future.result()

    def refuse(
        self, cell: CellLine, number: int, problem: str, failure: str = classify.MISFIT
    ) -> None:
        """Fail a cell without an attempt: its line cannot be run, which says nothing of the box."""
        about = {"cell": cell.name, "attempt": number, "failure": failure, "reason": problem}
        self.say("cell.failed", **about, release=self.place.release.name, is_final=False)

    def conclude(
        self,
        cell: CellLine,
        number: int,
        done: Done | None,
        verdict: Verdict,
        warnings: Sequence[str],
    ) -> bool:
        """Write the verdict down and act on it; True when this agent is through with the cell."""
        about = {"cell": cell.name, "attempt": number, "seconds": done.seconds if done else None}
        if verdict.action is Action.SUCCEED:
            about |= {"warnings": warnings} if warnings else {}
            # One wait for the disk, with the start of the next cell: see make_known.
            self.reporter.hold("cell.succeeded", **about)
            self.settler.keep(self.line_of(cell.name), number)
            self.last_trouble = None
            return True
        if self.orders.is_to_stop and verdict.failure != classify.CHANGED_CODE:
            self.say("cell.preempted", **about)
            return True
        about |= {"failure": verdict.failure, "reason": verdict.reason, **verdict.evidence}
        wait_s = self.wait_before_retry(cell, verdict)
        if wait_s is None:
            self.give_up(cell, done, verdict, about)
            return True
        about |= {"awaits_room": verdict.action is Action.AWAIT_ROOM or None}
        self.say("cell.retried", **about, wait_s=wait_s, aside=verdict.aside or None)
        self.pause(wait_s)
        return self.orders.is_to_end

    def wait_before_retry(self, cell: CellLine, verdict: Verdict) -> float | None:
        """Seconds to wait before the identical cell is tried again; None: it is not."""
        if verdict.action is Action.AWAIT_ROOM:
            return 0.0  # set_stage waits
        if verdict.action not in (Action.RETRY, Action.PREEMPTED):
            return None
        used = self.reporter.state().cell(cell.name).retries.get(verdict.failure, 0)
        return verdict.waits_s[used] if used < len(verdict.waits_s) else None

    def give_up(
        self, cell: CellLine, done: Done | None, verdict: Verdict, about: dict[str, Any]
    ) -> None:
        self.say(
            "cell.failed",
            **about,
            release=done.release if done else self.place.release.name,
            rc=done.rc if done else None,
            is_final=verdict.is_final,
            is_kept=verdict.is_kept or None,
        )
        self.save_log(cell)
        if verdict.failure == classify.CHANGED_CODE:
            set_aside.what_it_left(self.place, cell.name)
        if verdict.course is Course.OTHER_BOX:
            raise StopQueue(f"{cell.name}: {verdict.reason}. {self.who_waits(cell)}")
        if verdict.action is Action.STOP_QUEUE:
            raise StopQueue(f"{cell.name}: {verdict.reason}")
        if verdict.course is Course.FREE_SPACE:
            raise StopQueue(f"{cell.name}: {verdict.reason}", exit_codes.NO_ROOM)
        if verdict.course not in OF_BOX_OR_CODE:
            self.last_trouble = None
            return
        trouble = (verdict.failure, verdict.reason, done.seconds if done else 0.0)
        if scheduler.is_same_trouble(self.last_trouble, trouble):
            raise StopQueue(f"two cells in a row failed alike within a minute: {verdict.reason}")
        self.last_trouble = trouble

    def who_waits(self, cell: CellLine) -> str:
        """Which cells another box is to run, and how a person gives them to one."""
        waiting = [line.name for line in self.lines.open() if line.name != cell.name]
        names = [cell.name, *waiting]
        command = Command("move", ("--cell", cell.name, "--queue", "QUEUE"))
        return (
            f"This box takes no more cells; {counted(len(names), 'cell')} for another box: "
            f"{some(names, MOST_NAMED)}. Give each to another queue: {command.typed('boxcar')}"
        )

    def save_log(self, cell: CellLine) -> None:
        """A log that cannot be kept costs nothing else."""
        try:
            self.room.through(lambda: settle.save_log(self.place, cell.name))
        except (BoxcarError, OSError) as error:
            text = f"the log of {cell.name} stays on the box only: {room_wait.reason(error)}"
            self.reporter.warn("log_not_saved", text, cell.name)

    def say(self, type: str, **data: Any) -> None:
        """An event, which waits for room on the tier; what is said beside a cell does not."""
        self.room.through(lambda: self.reporter.say(type, **data))

    def warn_of_no_room(self, text: str) -> None:
        terminal.say(f"{self.place.queue}: {text}")
        # The tier may be what is full.
        with contextlib.suppress(OSError):
            self.reporter.warn("disk_full", text, self.beat.cell)

    def pause(self, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        while time.monotonic() < until and not self.orders.is_to_end:
            self.tick()
            time.sleep(TICK_S)

    # --- settling and the end

    def raise_settling_failure(self) -> None:
        for error in self.settler.failures():
            is_full = room_wait.is_no_room(error)
            exit_code = exit_codes.NO_ROOM if is_full else exit_codes.STOP_QUEUE
            text = f"a result could not be settled: {room_wait.reason(error)}"
            raise StopQueue(text, exit_code) from error

    def wait_for_settling(self) -> None:
        self.make_known()
        while self.settler.is_busy:
            if self.orders.is_to_stop:
                self.settler.hurry()
            self.raise_settling_failure()
            self.tick()
            self.settler.wait(TICK_S)

    def wait_for_copies(self) -> None:
        if self.second:
            self.second.try_to_the_end(self.tick, lambda: self.orders.is_to_stop)

    def end_copies(self) -> None:
        """Before the lock is free: nobody writes to the journal after that."""
        if self.second:
            self.second.close()

    def end(self) -> int:
        if self.orders.is_to_end:
            return self.end_stopped(self.orders.reason, self.orders.exit_code, self.orders.by)
        states = [record.state for record in self.reporter.state().cells.values()]
        verified = sum(isinstance(cell, state.Verified) for cell in states)
        failed = sum(isinstance(cell, state.Failed) for cell in states)
        skipped = "; ".join(self.lines.left_open())
        self.say("queue.done", verified=verified, failed=failed, reason=skipped or None)
        self.leave("the queue is done", ended_by.DONE)
        return exit_codes.FAILED if failed or skipped else exit_codes.DONE

    def end_turn(self) -> int:
        """One cell for each start was asked for: the next start takes the next one, if there is."""
        self.lines.read()
        if self.orders.is_to_end or self.lines.next() is None:
            return self.end()
        self.leave("one cell for each task: the next one takes the next cell", ended_by.TURN)
        return exit_codes.PREEMPTED

    def end_stopped(self, reason: str, exit_code: int, by: str = ended_by.TROUBLE) -> int:
        """The journal first: the terminal is a log on a disk that may be full."""
        # Else the next agent finds the record of the cell's end, and judges it again.
        with contextlib.suppress(BoxcarError, OSError):
            self.reporter.flush()
            self.settler.begin()
        self.settler.close()
        # The durable tier itself may be what is gone.
        with contextlib.suppress(OSError):
            self.reporter.say("queue.stopped", reason=reason, by=by)
            self.leave(reason, by)
        terminal.say(f"{self.place.queue} stopped: {reason}")
        return exit_code

    def leave(self, reason: str, by: str) -> None:
        self.settler.close()
        self.end_copies()
        self.reporter.say("agent.stopped", reason=reason, by=by)
        self.beat.at(None)
        self.tick()
        self.reporter.close(FLUSH_S)

    def tick(self) -> None:
        """Everything that is due every few seconds, whatever else the agent is busy with."""
        found = self.beat.tick(
            journal=self.reporter.journal_end,
            is_settling=self.settler.is_busy,
            webhooks=self.reporter.webhooks(),
        )
        if found:
            about = {"cell": self.beat.cell, "attempt": self.beat.attempt, "progress": found}
            self.say_beside("cell.progress", **about)
        if idle := self.beat.idle():
            self.say_beside("box.idle", **idle)

    def say_beside(self, type: str, **data: Any) -> None:
        """A tier that fails for a moment costs this event, and not the cell that runs."""
        with contextlib.suppress(OSError):
            self.reporter.say(type, **data)
