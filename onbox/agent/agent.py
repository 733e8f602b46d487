"""The agent of one queue: it runs one cell after another and proves each result.

In order: hold the queue's lock; announce; take over what an earlier agent left; then for each cell
claim, attempt, judge, and hand the result over to be settled while the next cell runs; at the end
say what came of it. Everything that happens is in the journal before it has an effect.

All steps of a queue stand here in their order; what each does has a file of its own.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from boxcar.shared import state
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import DamagedError, NoRoomError, words_of
from boxcar.shared.event_words import heard
from boxcar.shared.files import heartbeat, journal, resume_pointer
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.release import Release
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, said_by
from onbox.agent import black_box, job_data, neighbours
from onbox.agent.beat import Beat
from onbox.agent.dead_mirrors import DeadMirrors
from onbox.agent.ending import Ending
from onbox.agent.held import Held, held
from onbox.agent.job_data import DataFetch
from onbox.agent.live_metrics import LiveMetrics
from onbox.agent.loop import Loop
from onbox.agent.orders import Orders
from onbox.agent.outcome import Outcome, StopQueue
from onbox.agent.queue_watch import QueueWatch
from onbox.agent.releases import Releases
from onbox.agent.runner import TICK_S, Runner, Steps
from onbox.agent.second_home import SecondHome
from onbox.agent.set_up import SetUp
from onbox.agent.settler import Settler
from onbox.agent.slots import Slot, Slots, slot_of_start
from onbox.agent.staging import Staging
from onbox.checkpoint import older_checkpoint
from onbox.judging import classify, ended_well, judgement
from onbox.judging.verdict import Action, Verdict
from onbox.machine import gpus, pod_end, process, room_wait
from onbox.machine.credentials import BoxSecrets
from onbox.machine.place import Place
from onbox.queue import next_cell, resaid
from onbox.queue.acceptance import Acceptance
from onbox.queue.claims import Claims
from onbox.queue.lines import Lines
from onbox.queue.next_cell import Begin
from onbox.queue.queue_file import QueueFile
from onbox.queue.reporter import Remembered, Reporter
from onbox.queue.resaid import Standing
from onbox.result import set_aside
from onbox.result.asked import NOT_KNOWN, Asked
from onbox.slurm import in_vain
from onbox.webhooks.deliver import Deliverer
from onbox.webhooks.life_signs import LifeSigns

# What ends a queue, once all that is under way has ended.
ENDS_QUEUE = (StopQueue, DamagedError, NoRoomError, OSError)
# Of the environment: this agent ends after one cell.
ONE_CELL = "BOXCAR_ONE_CELL"
# For so long at a time a thread computes that settles a result, and the loop waits.
SWITCH_S = 0.0005
LONGEST_TICK_S = 0.5  # of many cells
# How soon it is seen that another queue has come to what a cell here waits for.
LOOK_S = 2.0
# The same of GPUs that somebody else uses: each look asks the driver.
GPUS_LOOK_S = 15.0


@dataclass(frozen=True)
class UnderWay:
    slot: Slot
    steps: Steps[None]


def run(
    place: Place,
    release: Release,
    begin: Begin,
    deliverer: Deliverer | None,
    signs: LifeSigns | None = None,
) -> int:
    """Run a queue to its end; the exit code of `onbox agent`. Raises BoxcarError."""
    process.adopt_orphans()  # of a wrapper that is killed
    sys.setswitchinterval(SWITCH_S)
    tier = place.durable
    folders = (tier.queues, tier.control_folder, tier.accepted_folder)
    with held(tier, place.queue) as ours, QueueWatch(folders) as watch:
        one = Agent(place, release, begin, watch, deliverer, held=ours, signs=signs)
        try:
            return one.run()
        finally:
            one.ending.end_copies()


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
        signs: LifeSigns | None = None,
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
        secrets = BoxSecrets(place.plan.box(place.box).credentials)
        self.reporter = Reporter(writer, deliverer, remembered, secrets)
        self.slots = Slots(place, self.reporter)
        self.orders = Orders(place.durable.control(place.queue), watch.wake)
        self.settler = Settler(
            place,
            self.reporter,
            lambda cell: self.releases.judge_of(cell).place,
            self.asked_of,
            wait_for_mirror=lambda cell: self.releases.of_attempt(cell).wait_for_mirror(cell),
            trained_on=self.slots.trained_on,
        )
        beat = Beat(place, LiveMetrics(place, self.reporter.warn_once), secrets, signs)
        self.loop = Loop(place, self.reporter, beat, self.orders, self.settler)
        self.set_up = SetUp(self.reporter, self.orders, beat)
        self.mirrors = DeadMirrors(place, self.reporter.warn)
        self.data = DataFetch(self.reporter, self.orders, beat, self.mirrors)
        self.releases = Releases(place, release, self.reporter, self.make_runner)
        self.second = SecondHome(place, self.reporter) if place.plan.second else None
        self.claims = Claims(place, self.reporter, self.loop.room, self.loop.say)
        self.acceptance = Acceptance(
            place, self.reporter, self.settler, self.releases.own.lines.saying
        )
        self.lines = Lines(
            QueueFile(place.durable.queue(place.queue)),
            begin,
            self.reporter,
            self.releases.own.lines,
            self.releases.other_release,
            claims=self.claims,
            acceptance=self.acceptance,
        )
        self.is_for_one_cell = os.environ.get(ONE_CELL) == "1"
        self.outcome = Outcome(self.loop, self.lines, is_for_one_cell=self.is_for_one_cell)
        self.ending = Ending(self.loop, self.lines, self.second)
        self.is_turn_over = False
        self.under_way: dict[str, UnderWay] = {}
        self.trouble: Exception | None = None
        self.next_look_at = 0.0
        self.is_short_of_gpus = False

    def make_runner(self, where: Place, found: Release) -> Runner:
        wake = self.watch.wake
        return Runner(
            *(where, found, self.reporter, self.orders),
            slots=self.slots,
            wake=wake,
            mirrors=self.mirrors,
        )

    def run(self) -> int:
        try:
            before = self.before_a_restart()
            self.announce()
            if before:
                self.refuse_restarts_in_vain(before)
            self.take_over()
            has_more = True
            while has_more:
                self.run_what_is_there()
                self.ending.wait_for_settling()
                self.ending.wait_for_copies(self.has_more)
                has_more = self.has_more()
            return self.ending.turn_over() if self.is_turn_over else self.ending.done()
        except StopQueue as stop:
            return self.ending.stopped(said_by(stop), stop.exit_code)
        except DamagedError as error:
            return self.ending.stopped(words_of(error), exit_codes.STOP_QUEUE)
        except (NoRoomError, OSError) as error:
            if not room_wait.is_no_room(error):
                return self.ending.stopped(room_wait.reason(error), exit_codes.TEMPORARY)
            if self.orders.is_to_end:
                return self.ending.done()
            return self.ending.stopped(room_wait.reason(error), exit_codes.NO_ROOM)

    # --- before the first cell

    def announce(self) -> None:
        self.loop.say(
            "agent.started",
            pid=os.getpid(),
            release=self.place.release.name,
            start_index=self.begin.index,
            start_cell=self.begin.cell or None,
            python=platform.python_version(),
            slurm=self.slurm or None,
        )
        if torn_file := self.reporter.torn_file:
            text = _(
                "a crash cut off the event log's last line; it is kept in {file}", file=torn_file
            )
            self.reporter.warn("journal_torn", text)
        if self.slurm:
            self.warn_of_runs_beside()
        self.lines.read()
        self.loop.say("queue.started", cells=len(self.lines.queue.cells))
        if self.second:
            self.second.start()

    def warn_of_runs_beside(self) -> None:
        """A scheduler keeps GPUs apart only where its site says so: another run of ours on them."""
        seen = {process.environment(pid).get("BOXCAR_RUN") for pid in gpus.pids_on_gpus()}
        if runs := sorted(filter(None, seen - {self.place.plan.run})):
            text = _(
                "{runs} also trains on the GPUs of this job: both are slower", runs=", ".join(runs)
            )
            self.reporter.warn("runs_beside", text)

    def before_a_restart(self) -> Sequence[Event]:
        """The events until now, where a scheduler has started this agent again; else none."""
        path = self.place.durable.journal(self.place.queue)
        return journal.read_journal(path).events if in_vain.restarts() else ()

    def refuse_restarts_in_vain(self, before: Sequence[Event]) -> None:
        """A scheduler would go on for ever. Raises StopQueue."""
        cells = self.reporter.state().cells
        pointers = (
            resume_pointer.read_resume_pointer(self.place.durable.resume(cell)) for cell in cells
        )
        newest = max((pointer.at for pointer in pointers if pointer), default=None)
        if reason := in_vain.reason(before, in_vain.restarts(), newest):
            raise StopQueue(reason)

    def take_over(self) -> None:
        """Settle what ended before this agent came, and see a cell that still runs to its end."""
        before = self.reporter.state()
        for name, number in next_cell.to_settle(before):
            if not self.claims.leave_what_is_anothers(name):
                self.settler.hand_over(self.reporter.line_of(name), number)
        for name, record in before.cells.items():
            if isinstance(record.state, state.Verified):
                self.settler.prune(name)  # the agent may have been killed just before it
            if isinstance(record.state, state.Running):
                slot = slot_of_start(self.reporter.last("cell.started", name))
                self.begin_cell(self.reporter.line_of(name), slot, record.state.attempt)

    def asked_of(self, cell: CellLine) -> Asked:
        lines = self.releases.of_attempt(cell.name).lines
        slot = slot_of_start(self.reporter.last("cell.started", cell.name))
        return lines.asked(cell, slot.number) if lines.has_config(cell) else NOT_KNOWN

    # --- which cells are under way, and which is next

    def run_what_is_there(self) -> None:
        """Cell after cell, as many side by side as there are slots, until none is left to run."""
        idle_since = time.monotonic()
        while True:
            has_begun, may_come = False, True
            try:
                if self.may_begin():
                    has_begun, may_come = self.begin_next()
            except ENDS_QUEUE as error:
                self.take_trouble(error)
            has_ended = self.step()
            self.slots.name_trespassers(self.under_way)
            if self.under_way:
                idle_since = time.monotonic()
            elif self.trouble:
                raise self.trouble
            elif self.is_turn_over:
                return
            left_s = self.place.plan.linger_s - (time.monotonic() - idle_since)
            if not has_begun and not may_come and (left_s <= 0 or self.orders.is_to_end):
                break
            self.loop.tick()
            if not (has_begun or has_ended):
                self.wait(left_s)
        self.refuse_waiting()

    def may_begin(self) -> bool:
        if self.is_turn_over or self.trouble or len(self.under_way) >= self.slots.most:
            return False
        is_waiting = self.under_way or self.is_short_of_gpus
        return not is_waiting or time.monotonic() >= self.next_look_at

    def begin_next(self) -> tuple[bool, bool]:
        """Begin the next cell: whether there was one, and whether one may still come."""
        self.next_look_at = time.monotonic() + LOOK_S
        self.orders.look_again()
        if self.orders.is_to_end:
            return False, bool(self.under_way)
        self.ending.raise_settling_failure()
        if not self.lines.read():
            return False, True
        if self.acceptance.take(self.lines.queue.cells):
            self.lines.warn_of_used_names()
        self.claims.take_back()  # which are found in their place in the file
        if found := self.find_place():
            self.begin_cell(*found)
            self.next_look_at = 0.0  # there may be room for another
            return True, True
        if self.is_short_of_gpus:
            self.next_look_at = time.monotonic() + GPUS_LOOK_S
            return False, True
        if not self.under_way and self.lines.count_last_line():
            return False, True
        # A result that is lost before it is settled makes a cell to run again.
        return False, bool(self.under_way or self.settler.is_busy or self.lines.has_waiting)

    def find_place(self) -> tuple[CellLine, Slot] | None:
        """The first cell that there is a place for, with that. Smaller ones pass one that waits for
        GPUs only where the job says so.
        """
        taken = [one.slot for one in self.under_way.values()]
        too_many: int | None = None
        for cell in self.lines.in_turn(self.under_way):
            if self.claims.is_in_pool and (why := self.slots.problem(cell)):
                self.lines.leave_to_members(cell.name, why)
                continue
            wanted = self.slots.wanted(cell)
            if too_many is not None and wanted >= too_many:
                continue
            if (slot := self.slots.take_slot(cell, taken)) is not None:
                self.is_short_of_gpus = False
                return cell, slot
            too_many = wanted
            if not self.place.plan.backfill:
                break
        self.is_short_of_gpus = too_many is not None
        return None

    def begin_cell(self, cell: CellLine, slot: Slot, adopted: int | None = None) -> None:
        self.under_way[cell.name] = UnderWay(slot, self.run_cell(cell, slot, adopted))

    def step(self) -> bool:
        """Go on with each cell that is under way; whether one is through, and another may begin at
        once. One that ends the queue lets the others end.
        """
        before = len(self.under_way)
        for name, one in list(self.under_way.items()):
            try:
                next(one.steps)
                continue
            except StopIteration:
                pass
            except ENDS_QUEUE as error:
                self.take_trouble(error, name)
            self.slots.give_back(self.under_way.pop(name).slot)
            self.next_look_at = 0.0
        return len(self.under_way) < before

    def take_trouble(self, error: Exception, of: str = "") -> None:
        """The queue ends by the first; who still runs goes on to its end, and a person is told."""
        self.trouble = self.trouble or error
        if others := [name for name in self.under_way if name != of]:
            text = _(
                "{reason}. Nothing new starts; {cells} {n:runs|run} to the end",
                reason=words_of(error),
                cells=", ".join(others),
                n=len(others),
            )
            with contextlib.suppress(OSError):
                self.reporter.warn("queue_ends", text)

    def wait(self, left_s: float) -> None:
        """For what is under way or settled a moment; else until a line may come, or a GPU."""
        if self.under_way or self.settler.is_busy:
            # An end wakes it; of many cells each look costs as much as that of one.
            left_s = min(TICK_S * max(1, len(self.under_way)), LONGEST_TICK_S)
        elif self.is_short_of_gpus:
            left_s = GPUS_LOOK_S
        elif self.lines.has_waiting:
            left_s = LOOK_S
        if self.watch.wait(max(TICK_S, left_s)):
            self.next_look_at = 0.0

    def has_more(self) -> bool:
        """Whether a line has come since; who is just saving the queue may be writing one."""
        if self.is_turn_over or self.orders.is_to_end:
            return False
        if not self.lines.read() or self.lines.is_typed:
            return True
        if self.claims.take_back(at_once=True):
            return True
        return bool(self.lines.next() or self.lines.waiting())

    def refuse_waiting(self) -> None:
        """A line that has waited in vain until the end is not forgotten."""
        if not self.orders.is_to_end:
            for line in self.lines.waiting():
                for _ in self.run_cell(line, Slot()):
                    self.loop.tick()
                    self.watch.wait(TICK_S)

    def runner_of(self, cell: CellLine, *, is_adopted: bool) -> Runner:
        if is_adopted:
            return self.releases.of_attempt(cell.name)
        return self.releases.of_line(cell) or self.releases.own

    # --- one cell

    def run_cell(self, cell: CellLine, slot: Slot, adopted: int | None = None) -> Steps[None]:
        """Attempt the cell until it succeeds, fails for good, or the agent is asked to end."""
        runner = self.runner_of(cell, is_adopted=adopted is not None)
        asked = runner.lines.saying(cell)
        claim = self.claims.take(cell.name, asked)
        if claim is None:
            if adopted:
                runner.end(cell, adopted)
            return
        self.is_turn_over = self.is_for_one_cell
        self.lines.begins(cell.name)
        is_over = False
        while not is_over:
            # Each time: a retry of what an earlier agent began runs from this agent's release.
            if not adopted and not self.is_as_begun(cell, claim):
                return
            number = adopted or self.reporter.record(cell.name).attempts + 1
            is_over = yield from self.attempt(cell, slot, number, is_adopted=adopted is not None)
            # Of GPUs that an adopted attempt had, this agent holds no lock: they are asked for.
            is_over = is_over or bool(adopted and slot.gpus)
            adopted = claim = None

    def is_as_begun(self, cell: CellLine, claim: Claim | None) -> bool:
        """Whether it may be attempted as its line says it: it may have said something else. `claim`
        is as it was just read, if it was.
        """
        asked = self.runner_of(cell, is_adopted=False).lines.saying(cell)
        claim, record = claim or self.claims.of(cell.name), self.reporter.record(cell.name)
        started = self.reporter.last("cell.started", cell.name)
        found = resaid.standing(asked, claim, record, started)
        if claim is None or found is Standing.AS_BEGUN:
            return True
        before = resaid.sentence(cell, started)
        if found is Standing.OTHERWISE:
            problem = _(
                "{before}: write the line as it was, or give it another name, name=...",
                before=before,
            )
            self.outcome.refuse(cell, max(1, record.attempts), problem, resaid.FAILURE)
            return False
        if record.attempts:
            text = _(
                "{before} and failed; it starts over with the line as it is now", before=before
            )
            self.reporter.warn("begun_anew", text, cell.name)
        set_aside.what_it_left(self.place, cell.name)
        self.claims.renew(claim, asked)
        return True

    def attempt(self, cell: CellLine, slot: Slot, number: int, *, is_adopted: bool) -> Steps[bool]:
        """One attempt, from its start to what follows from it; True when the cell is through."""
        runner = self.runner_of(cell, is_adopted=is_adopted)
        problem = None if is_adopted else runner.lines.problem(cell) or self.slots.problem(cell)
        if problem:
            self.outcome.refuse(cell, number, problem)
            return True
        child, staging = None, runner.staging(slot.number)
        beside = len(self.under_way) - 1
        if not is_adopted:
            if not (yield from self.make_ready(runner, staging, cell, number)):
                return True
            child = yield from self.loop.with_room(lambda: runner.start(cell, number, slot, beside))
        self.loop.beat.begins(cell.name, number, slot.gpus)
        done = yield from runner.see_to_its_end(cell, number, child)
        self.loop.beat.ends(cell.name)
        if self.claims.leave_what_is_anothers(cell.name):
            return True
        looked = staging.look(cell)
        wrapper_rc = child.returncode if child else None
        verdict = judgement.of_attempt(
            runner.place, cell.name, done, wrapper_rc, looked, gpus=slot.gpus
        )
        if done and done.oom_kills and len(self.under_way) > 1:
            neighbours.warn_of_memory_kill(self.reporter, self.place.scratch, done, self.under_way)
        if is_adopted and (job_ended := self.slurm.get("before")):
            verdict = classify.of_ended_job(verdict, job_ended)
        elif is_adopted and done is None and (pod_ended := (yield from self.pod_before())):
            verdict = classify.of_ended_pod(verdict, pod_ended)
        verdict = yield from self.of_early_end(runner, cell.name, number, verdict)
        verdict = older_checkpoint.instead(runner.place, cell.name, done, verdict, self.reporter)
        warnings = looked.warnings
        if done and not looked.changed and ended_well.is_worth_a_look(done, verdict):
            verdict = yield from self.loop.beside(
                lambda: ended_well.instead(runner.place, cell, done, verdict)
            )
            is_proven = verdict.action is Action.SUCCEED and verdict.reason
            warnings += (verdict.reason,) if is_proven else ()
        if done and verdict.action is Action.SUCCEED:
            started = self.reporter.last("cell.started", cell.name)
            doubt = ended_well.doubt_of(runner.place, cell, done, started, verdict.doubt)
            verdict = replace(verdict, doubt=doubt)
        return (yield from self.outcome.conclude(cell, number, done, verdict, warnings))

    def make_ready(
        self, runner: Runner, staging: Staging, cell: CellLine, number: int
    ) -> Steps[bool]:
        """The cell's stage, and what the box needs before a cell; False where the agent is to end
        before. Raises StopQueue.
        """
        place = runner.place
        yield from self.loop.with_room(lambda: staging.set(cell, number))
        if self.set_up.is_needed(place):
            if not (yield from self.set_up.steps(place, staging.code)):
                return False
            # What it left beside the code is moved away.
            yield from self.loop.with_room(lambda: staging.set(cell, number))
        if self.mirrors.is_awaited:
            yield from self.loop.beside(self.mirrors.wait)
        if self.data.is_needed(place) and not (yield from self.data.steps(place)):
            return False
        if place.data:
            yield from self.loop.beside(lambda: job_data.link_data(place))
        return True

    def pod_before(self) -> Steps[str | None]:
        """How the pod of the agent before ended, where its cluster says so."""
        return (yield from self.loop.beside(pod_end.before))

    def of_early_end(
        self, runner: Runner, cell: str, number: int, verdict: Verdict
    ) -> Steps[Verdict]:
        """Where this agent, or one before, has ended the attempt: for that reason."""
        early = self.reporter.ended_early(cell, number)
        if early is None:
            return verdict
        verdict = classify.of_early_end(verdict, early.data["what"], heard(early.data) or "")
        if verdict.failure == classify.STALL:
            yield from self.loop.beside(lambda: black_box.keep_end(runner.place, cell, number))
        return verdict
