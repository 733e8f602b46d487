"""Which release a cell runs from: wholly, so wrapper, plan, code, artifacts and checker are one's.

That is the agent's own. Only a line whose config the own one lacks, as one that was appended with a
new config, runs from another: where it was begun, else the newest that has the config. A plan with
other boxes, queues or another launcher is none that a running agent can take over.
"""

from __future__ import annotations

from collections.abc import Callable

from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import BoxcarError, words_of
from boxcar.shared.files import attempt_spec, plan, release
from boxcar.shared.files.release import RUN_ONE, Release
from boxcar.shared.sentence import _
from onbox.agent.runner import Runner
from onbox.machine import place
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter


class Releases:
    """`make` makes the runner of a release; it is made once for each."""

    def __init__(
        self,
        own: Place,
        found: Release,
        reporter: Reporter,
        make: Callable[[Place, Release], Runner],
    ) -> None:
        self._place = own
        self._reporter = reporter
        self._make = make
        self.own = make(own, found)
        self._runners: dict[str, Runner | None] = {own.release.name: self.own}

    def of_line(self, cell: CellLine) -> Runner | None:
        """What the line is to be run by; None while no release has its config."""
        if self.own.lines.has_config(cell):
            return self.own
        for digest in (self._begun_with(cell.name), *reversed(self._pushed())):
            runner = self._runner(digest) if digest else None
            if runner and runner.lines.has_config(cell) and self._starts_alike(runner):
                return runner
        return None

    def other_release(self, cell: CellLine) -> str | None:
        """The digest of what `of_line` finds."""
        runner = self.of_line(cell)
        return runner.place.release.name if runner else None

    def _starts_alike(self, runner: Runner) -> bool:
        """Whether this agent can start an attempt by the release's wrapper. What that has started
        it can see to its end in any case.
        """
        wrapper = runner.place.release / RUN_ONE
        if attempt_spec.NAME in wrapper.read_text(errors="replace"):
            return True
        why = _("a Boxcar made it that starts cells differently: drain and launch again")
        self._warn(runner.place.release.name, why)
        return False

    def of_attempt(self, cell: str) -> Runner:
        """What the cell's last attempt was started from, by whichever agent."""
        digest = self._begun_with(cell)
        return (self._runner(digest) if digest else None) or self.own

    def judge_of(self, cell: str) -> Runner:
        """What its result is judged by: its attempt's, or a later one that puts artifacts right."""
        started = self._reporter.last("cell.started", cell)
        ended = self._reporter.last("cell.succeeded", cell)
        if started and ended and ended.data["attempt"] == started.data["attempt"]:
            digest = ended.data.get("judged_by")
            return (self._runner(digest) if digest else None) or self.of_attempt(cell)
        return self.of_attempt(cell)

    def _begun_with(self, cell: str) -> str | None:
        started = self._reporter.last("cell.started", cell)
        return started.data.get("release") if started else None

    def _pushed(self) -> tuple[str, ...]:
        try:
            return release.releases(self._place.durable.newest)
        except (BoxcarError, OSError) as error:
            text = _("the list of releases cannot be read: {why}", why=words_of(error))
            self._reporter.warn("releases_unread", text)
            return ()

    def _runner(self, digest: str) -> Runner | None:
        """None for a release that this agent cannot take over, which is said once."""
        if digest not in self._runners:
            try:
                self._runners[digest] = self._open(digest)
            except (BoxcarError, OSError) as error:
                # It may be readable at the next look.
                self._warn(digest, words_of(error))
                return None
        return self._runners[digest]

    def _open(self, digest: str) -> Runner | None:
        folder = self._place.durable.release(digest)
        found = release.read_release(folder)
        made = release.read_plan(folder)
        if others := plan.unlike(self._place.plan, made, self._place.queue):
            why = _("its plan differs in {names}: drain and launch again", names=", ".join(others))
            self._warn(digest, why)
            return None
        return self._make(place.of_queue(made, folder, found, self._place.queue), found)

    def _warn(self, digest: str, why: str) -> None:
        text = _("the newer release {digest} is not used: {why}", digest=short(digest), why=why)
        self._reporter.warn("release_not_taken", text)
