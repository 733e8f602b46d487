"""What follows from a verdict on an attempt: the next cell, another attempt, the queue's end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxcar.shared import names
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.errors import BoxcarError, Command, some
from boxcar.shared.files.attempt import Done
from boxcar.shared.process import exit_codes
from boxcar.shared.sentence import Sentence, _
from boxcar.shared.triage.evidence import OF_BOX_OR_CODE, Course
from onbox.agent.loop import Loop
from onbox.agent.runner import Steps
from onbox.judging import classify
from onbox.judging.verdict import Action, Verdict
from onbox.machine import room_wait
from onbox.queue import next_cell
from onbox.queue.lines import Lines
from onbox.result import set_aside, settle

MOST_NAMED = 10
SHORT_WAIT_S = 60.0


class StopQueue(Exception):
    """The queue cannot go on: the reason, and the exit code that says it."""

    def __init__(self, reason: str, exit_code: int = exit_codes.STOP_QUEUE) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class Outcome:
    def __init__(self, loop: Loop, lines: Lines, *, is_for_one_cell: bool = False) -> None:
        self._loop, self._lines = loop, lines
        self._is_for_one_cell = is_for_one_cell
        self._last_trouble: tuple[str, str, float] | None = None

    def refuse(
        self, cell: CellLine, number: int, problem: str, failure: str = classify.MISFIT
    ) -> None:
        """Fail a cell without an attempt: its line cannot be run, which says nothing of the box."""
        about = {"cell": cell.name, "attempt": number, "failure": failure, "reason": problem}
        release = self._loop.place.release.name
        self._loop.say("cell.failed", **about, release=release, is_final=False)

    def conclude(
        self,
        cell: CellLine,
        number: int,
        done: Done | None,
        verdict: Verdict,
        warnings: Sequence[str],
    ) -> Steps[bool]:
        """Write the verdict down and act on it; True when this agent is through with the cell, also
        where it comes again later.

        Raises StopQueue.
        """
        about = {"cell": cell.name, "attempt": number, "seconds": done.seconds if done else None}
        if verdict.action is Action.SUCCEED:
            about |= {"warnings": warnings} if warnings else {}
            about |= {"doubt": verdict.doubt} if verdict.doubt else {}
            self._loop.say("cell.succeeded", **about)
            self._loop.settler.hand_over(self._loop.reporter.line_of(cell.name), number)
            self._last_trouble = None
            return True
        if self._loop.orders.is_to_stop and verdict.failure != classify.CHANGED_CODE:
            self._loop.say("cell.preempted", **about, reason=verdict.reason or None)
            return True
        about |= {"failure": verdict.failure, "reason": verdict.reason, **verdict.evidence}
        wait_s = self._wait_before_retry(cell, verdict)
        if wait_s is None:
            self._give_up(cell, done, verdict, about)
            return True
        about |= {"awaits_room": verdict.action is Action.AWAIT_ROOM or None}
        self._loop.say("cell.retried", **about, wait_s=wait_s, aside=verdict.aside or None)
        if self._holds_others_up(verdict, wait_s):
            yield from self._loop.pausing(wait_s)
            return self._loop.orders.is_to_end
        self._lines.put_off(cell.name, wait_s)
        return True

    def _holds_others_up(self, verdict: Verdict, wait_s: float) -> bool:
        """Behind another cell a short wait may last for hours; and room on a disk helps all."""
        is_short = wait_s <= SHORT_WAIT_S
        return is_short or self._is_for_one_cell or verdict.course is Course.FREE_SPACE

    def _wait_before_retry(self, cell: CellLine, verdict: Verdict) -> float | None:
        """Seconds to wait before the identical cell is tried again; None: it is not."""
        if verdict.action is Action.AWAIT_ROOM:
            return 0.0  # setting its stage waits
        if verdict.action not in (Action.RETRY, Action.PREEMPTED):
            return None
        used = self._loop.reporter.record(cell.name).retries.get(verdict.failure, 0)
        return verdict.waits_s[used] if used < len(verdict.waits_s) else None

    def _give_up(
        self, cell: CellLine, done: Done | None, verdict: Verdict, about: dict[str, Any]
    ) -> None:
        is_changed = verdict.failure == classify.CHANGED_CODE
        moves = set_aside.moves_of(self._loop.place, cell.name) if is_changed else ()
        about |= {"reason": set_aside.told(verdict.reason, moves)}
        self._loop.say(
            "cell.failed",
            **about,
            release=done.release if done else self._loop.place.release.name,
            rc=done.rc if done else None,
            is_final=verdict.is_final,
            is_kept=verdict.is_kept or None,
        )
        self._save_log(cell)
        set_aside.move(moves)
        if verdict.course is Course.OTHER_BOX:
            raise StopQueue(
                _("{first}. {second}", first=_of(cell, verdict), second=self._who_waits(cell))
            )
        if verdict.action is Action.STOP_QUEUE:
            raise StopQueue(_of(cell, verdict))
        if verdict.course is Course.FREE_SPACE:
            raise StopQueue(_of(cell, verdict), exit_codes.NO_ROOM)
        self._take_trouble(verdict, done)

    def _take_trouble(self, verdict: Verdict, done: Done | None) -> None:
        """Two in a row that fail alike and at once: the box or the code, and not the cells."""
        if verdict.course not in OF_BOX_OR_CODE:
            self._last_trouble = None
            return
        trouble = (verdict.failure, verdict.reason, done.seconds if done else 0.0)
        if next_cell.is_same_trouble(self._last_trouble, trouble):
            text = _(
                "two cells in a row failed in the same way within a minute: {reason}",
                reason=verdict.reason,
            )
            raise StopQueue(text)
        self._last_trouble = trouble

    def _who_waits(self, cell: CellLine) -> Sentence:
        """Which cells another box is to run, and how a person gives them to one."""
        others = () if names.is_member(self._loop.place.queue) else self._lines.open()
        waiting = [line.name for line in others if line.name != cell.name]
        left = [cell.name, *waiting]
        command = Command("move", ("--cell", cell.name, "--queue", "QUEUE"))
        return _(
            "This box takes no more cells; {n} {n:cell|cells} for another box: {names}. Move each "
            "to another queue: {command}",
            n=len(left),
            names=some(left, MOST_NAMED),
            command=command.typed("boxcar"),
        )

    def _save_log(self, cell: CellLine) -> None:
        """With the last minutes of the box. What cannot be kept costs nothing else."""
        self._loop.beat.keep_last_minutes(cell.name)
        try:
            self._loop.room.through(lambda: settle.save_log(self._loop.place, cell.name))
        except (BoxcarError, OSError) as error:
            text = _(
                "the log of {cell} stays on the box only: {why}",
                cell=cell.name,
                why=room_wait.reason(error),
            )
            self._loop.reporter.warn("log_not_saved", text, cell.name)


def _of(cell: CellLine, verdict: Verdict) -> Sentence:
    return _("{cell}: {reason}", cell=cell.name, reason=verdict.reason)
