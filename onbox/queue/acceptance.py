"""What the laptop has proven of this queue's cells: taken as it is, at every look for a next cell.

Of a result that was lent no event tells how its cell was started, as the box that ran it is lost:
what its manifest says of that is said with it.

A document that cannot be read is doubt: its cell is neither begun again, because what is published
may have been proven, nor called verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Protocol

from boxcar.shared import names
from boxcar.shared.cell import cell_line, said, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.said import Places, sayings_differ
from boxcar.shared.errors import BoxcarError, DamagedError, message_of
from boxcar.shared.files import attempt, manifest, receipt, release
from boxcar.shared.files.attempt import Done
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import Plan
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.files.release import Release
from boxcar.shared.sentence import _
from boxcar.shared.state import Failed, Verified
from onbox.attempt import stage
from onbox.judging import classify, ended_well
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter
from onbox.result import left_artifacts


class Settles(Protocol):
    """What the agent's settler does with a result."""

    def is_at(self, cell: str) -> bool: ...
    def hand_over(self, cell: CellLine, number: int) -> None: ...
    def take_accepted(self, cell: str, found: Accepted, ran_as: Mapping[str, Any]) -> None: ...


class Acceptance:
    """`doubts` are why a cell can neither be begun nor be called verified, as of the last look.

    `saying_of` is what a line asks for by the agent's own release.
    """

    def __init__(
        self,
        place: Place,
        reporter: Reporter,
        settler: Settles,
        saying_of: Callable[[CellLine], str | None],
    ) -> None:
        self._place = place
        self._reporter = reporter
        self._settler = settler
        self._saying_of = saying_of
        self._put_right = PutRight(place, reporter, settler, saying_of)
        self.doubts: dict[str, str] = {}

    def take(self, lines: Iterable[CellLine]) -> bool:
        """Say of each cell that was accepted since the last look that it is verified, and have
        judged anew what job.yaml puts right; whether there was one. `lines` are the queue's.
        """
        self.doubts, has_taken = {}, self._put_right.take(lines)
        for path in sorted(self._place.durable.accepted_folder.glob("*.json")):
            if self._may_be_taken(path.stem) and (found := self._read(path.stem)):
                ran_as = self._ran_as(path.stem, lines) if found.is_lent else {}
                self._settler.take_accepted(path.stem, found, ran_as)
                has_taken = True
        return has_taken

    def _ran_as(self, cell: str, lines: Iterable[CellLine]) -> dict[str, Any]:
        """The fields of `cell.started`, as far as they are known. A line that asks for the same is
        the one that was run, with what the manifest does not say.
        """
        made = manifest.read_manifest(self._place.durable.manifest(cell))
        said = {"cfg": made.cfg, "epochs": made.epochs, "saying": made.saying}
        said |= {"release": made.release, "is_lent": True}
        line = next((one for one in lines if one.name == cell), None)
        if line and not sayings_differ(self._saying_of(line), made.saying):
            return cell_line.begun_fields(line) | said
        return {"task": made.task, "overrides": list(made.overrides) or None, **said}

    def _may_be_taken(self, cell: str) -> bool:
        """Whether it is this queue's, and nothing is known or being found out of its result."""
        is_verified = isinstance(self._reporter.record(cell).state, Verified)
        if is_verified or self._settler.is_at(cell):
            return False
        try:
            claim = attempt.read_claim(self._place.durable.claim(cell))
        except DamagedError:
            return False  # said where the cell is claimed
        return claim is not None and claim.queue == self._place.queue

    def _read(self, cell: str) -> Accepted | None:
        try:
            return receipt.accepted_result(self._place.durable, cell)
        except DamagedError as error:
            self.doubts[cell] = _(
                "{cell} is not begun again: {why}", cell=cell, why=message_of(error).text
            )
            self._reporter.warn("accepted_damaged", self.doubts[cell], cell)
            return None


# --- A cell that ended with 0 and lacked an artifact, once job.yaml names others: its result is
# judged anew, as one that was kept (decision 0031), and not trained again. Only where code, words
# and environment are those of the attempt: else an old file would pass for what the new ones make.
# Whatever cannot be compared is trained again.

_JOB = "job.yaml"
WARNING = (
    "it ended without the artifacts that its job named then; judged anew by those that it names now"
)


class PutRight:
    """By the agent's own release. `saying_of` is what a line asks for by it."""

    def __init__(
        self,
        place: Place,
        reporter: Reporter,
        settler: Settles,
        saying_of: Callable[[CellLine], str | None],
    ) -> None:
        self._place, self._reporter, self._settler = place, reporter, settler
        self._saying_of = saying_of
        self._has_looked = False

    def take(self, lines: Iterable[CellLine]) -> bool:
        """Hand over what is put right of cells that an earlier agent gave up; once. Whether there
        was one. Raises OSError.
        """
        found = [] if self._has_looked else list(lines)
        self._has_looked = self._has_looked or bool(found)
        taken = [line for line in found if (done := self._ended(line)) and self._judge(line, done)]
        return bool(taken)

    def _ended(self, line: CellLine) -> Done | None:
        """The record of an attempt that lacked nothing but artifacts, and is this line's."""
        now = self._reporter.record(line.name).state
        started = self._reporter.last("cell.started", line.name)
        if not (isinstance(now, Failed) and now.failure == classify.NO_ART and started):
            return None
        if sayings_differ(self._saying_of(line), started.data.get("saying")):
            return None
        try:
            claim = attempt.read_claim(self._place.durable.claim(line.name))
            done = attempt.read_done(self._place.scratch.done(line.name, now.attempt))
        except (BoxcarError, OSError):
            return None
        is_ours = claim is not None and claim.queue == self._place.queue
        return done if done and done.rc == 0 and is_ours else None

    def _judge(self, line: CellLine, done: Done) -> bool:
        try:
            if not self._is_put_right(line, done):
                return False
        except (BoxcarError, OSError):
            return False
        started = self._reporter.last("cell.started", line.name)
        self._reporter.say(
            "cell.succeeded",
            cell=line.name,
            attempt=done.attempt,
            seconds=0.0,
            judged_by=self._place.release.name,
            warnings=[WARNING],
            doubt=ended_well.doubt_of(self._place, line, done, started) or None,
        )
        self._settler.hand_over(self._reporter.line_of(line.name), done.attempt)
        return True

    def _is_put_right(self, line: CellLine, done: Done) -> bool:
        then = self._place.durable.release(done.release)
        its, ours = release.read_plan(then), self._place.plan
        of_then, of_now = (terms.terms_of_cell(plan, line.name).artifacts for plan in (its, ours))
        if of_then == of_now or not is_alike(its, ours, line):
            return False
        if code_of(release.read_release(then), its) != code_of(
            release.read_release(self._place.release), ours
        ):
            return False
        return not left_artifacts.look(self._place, line.name).missing


def is_alike(one: Plan, other: Plan, line: CellLine) -> bool:
    """Whether the same is run for a line by both plans."""
    return _asked(one, line) == _asked(other, line)


def _asked(plan: Plan, line: CellLine) -> tuple[object, ...]:
    resume = terms.terms_of_cell(plan, line.name).resume
    places = Places("{out}", "{code}", said.resume_place("{out}", resume))
    data = (plan.data, plan.data_urls)
    beside = (resume, plan.resume_args, plan.secrets, plan.links, plan.training_python, data)
    return said.say_cell(plan, line, places), *beside


def code_of(found: Release, plan: Plan) -> list[FileRecord]:
    """Its code, without what Boxcar itself reads there: that is what was corrected."""
    own = {f"{names.file_of(queue)}.txt" for queue in plan.queues}
    return [
        file
        for file in stage.code_files(found)
        if file.path != _JOB and PurePosixPath(file.path).name not in own
    ]
