"""A cell's stage, seen from its queue: set before each attempt, and looked at after it.

What it did to its release fails it. What it added beside the code is moved away and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from boxcar.shared import state, timestamp
from boxcar.shared.cell import said, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import atomic, checked_copy, regular_file
from boxcar.shared.disk.proven_folder import Seen, shown
from boxcar.shared.errors import message_of, some, words_of
from boxcar.shared.sentence import _
from onbox.attempt.stage import Stage
from onbox.checkpoint import older_checkpoint, restored_checkpoint
from onbox.judging import classify
from onbox.judging.judgement import Looked
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter
from onbox.result import beside, published

MOST_NAMED = 10


class Staging:
    def __init__(
        self,
        place: Place,
        stage: Stage,
        reporter: Reporter,
        saying: Callable[[CellLine], str | None],
        slot: int = 0,
    ) -> None:
        self._place, self._stage, self._reporter, self._saying = place, stage, reporter, saying
        self._slot = slot

    @property
    def code(self) -> Path:
        return self._place.scratch.code(self._place.release.name, self._slot)

    def set(self, cell: CellLine, number: int) -> None:
        """Code, wrapper and cell's folder on scratch, its mirrored checkpoint, room for a result.

        May be done again. Raises NoRoomError, DamagedError, OSError.
        """
        place = self._place
        artifacts = terms.terms_of_cell(place.plan, cell.name).artifacts
        published.forget_if_loaded_otherwise(place.durable, cell.name, artifacts)
        if number > 1:
            regular_file.remove(place.scratch.beside(cell.name))
        self._prove_stage(cell)
        if number == 1:
            self._set_earlier_run_aside(cell)
        out = place.scratch.out(cell.name)
        # Its own names are made durable by the wrapper, while the script runs.
        atomic.make_folder(place.scratch.cells)
        out.mkdir(parents=True, exist_ok=True)
        self._place_links(cell, out)
        largest_bytes = [self._reporter.largest_result_bytes()]
        self._make_room(largest_bytes)
        for folder in (place.scratch.root, place.durable.cells):
            checked_copy.check_room(folder, largest_bytes)
        older_checkpoint.put_aside(place.scratch, cell.name, number, self._reporter)
        # Last: what lies there counts as an earlier run's when this is done again.
        if resume := terms.terms_of_cell(place.plan, cell.name).resume:
            folder = place.durable.resume(cell.name)
            warn, asked = partial(self._warn_once, cell.name), self._saying(cell)
            was_left = self._reporter.was_left(cell.name)
            restored_checkpoint.restore(folder, out, resume, warn, asked=asked, was_left=was_left)

    def _prove_stage(self, cell: CellLine) -> None:
        seen = self._stage.restore()
        if seen.changed:
            text = _(
                "{names} changed on this box's scratch before {cell}; restored from the release",
                names=_some(seen.changed),
                cell=cell.name,
            )
            self._reporter.warn("code_restored", text, cell.name)
        if seen.added:
            folder = self._folder_of_strays()
            self._stage.move_added(folder)
            text = _(
                "{names} lay beside the code before {cell}; now in {folder}",
                names=_some(seen.added),
                cell=cell.name,
                folder=folder,
            )
            self._reporter.warn("code_added", text, cell.name)

    def _folder_of_strays(self) -> Path:
        """For what nobody has moved after an attempt: that of the cell that ran last."""
        if cell := self._reporter.last_started_from(self._place.release.name, self._slot):
            return self._place.scratch.beside(cell)
        return self._place.scratch.earlier / f"beside-{timestamp.utc_now().replace(':', '')}"

    def _make_room(self, needed_bytes: list[int]) -> None:
        """What a verified cell left beside its code is kept while there is room for others."""
        for name in beside.make_room(self._place.scratch, self._verified(), needed_bytes):
            text = _("removed what {cell} had left beside its code: its disk was full", cell=name)
            self._reporter.warn("beside_removed", text, name)

    def _verified(self) -> Iterator[str]:
        for name, record in self._reporter.state().cells.items():
            if isinstance(record.state, state.Verified):
                yield name

    def look(self, cell: CellLine) -> Looked:
        """What the cell did to its release while it ran; what it added is moved away."""
        started = self._reporter.last("cell.started", cell.name)
        if started is None or started.data.get("release") != self._place.release.name:
            return Looked()  # adopted, from another release
        seen = self._look_and_collect(cell)
        if not seen.added:
            return Looked(seen.changed)
        asked = terms.terms_of_cell(self._place.plan, cell.name)
        resume = (asked.resume,) if asked.resume else ()
        strays = self._stage.find_added([*(a.path for a in asked.artifacts), *resume])
        text = self._move_strays(cell, seen.added, strays.get(asked.resume or ""))
        self._reporter.warn("code_added", text, cell.name)
        return Looked(seen.changed, (text,), strays)

    def _look_and_collect(self, cell: CellLine) -> Seen:
        """What the job collects lies in {out} then, wherever its tracker wrote it."""
        seen, out = self._stage.look(), self._place.scratch.out(cell.name)
        if not seen.added:
            return seen
        try:
            return self._stage.move_collected(self._place.plan.collect, out)
        except OSError as error:
            text = _(
                "what {cell} left to be collected stays beside its code: {why}",
                cell=cell.name,
                why=words_of(error),
            )
            self._reporter.warn("not_carried", text, cell.name)
            return self._stage.look()

    def _move_strays(self, cell: CellLine, added: Sequence[str], resume: str | None) -> str:
        """Move them; the warning of it."""
        folder = self._place.scratch.beside(cell.name)
        kept = _(
            "Until the next attempt it is in {folder}, where no other cell sees it", folder=folder
        )
        try:
            self._stage.move_added(folder)
        except OSError as error:
            # The next attempt of any cell waits for it: see _prove_stage.
            why = message_of(error).text
            kept = _("It could not be moved away: {why}", why=why)
        way_out = classify.way_out(self._place.plan.workdir)
        if resume:
            lost = _("Nothing resumes from {path} there: {way_out}", path=resume, way_out=way_out)
            kept = _("{first}. {second}", first=kept, second=lost)
        return _(
            "{cell} left {names} beside its code, not in {{out}}, so it is no part of its result. "
            "{kept}. Put downloads that all cells share into $BOXCAR_DATA_DIR",
            cell=cell.name,
            names=_some(added),
            kept=kept,
        )

    def _set_earlier_run_aside(self, cell: CellLine) -> None:
        """The journal knows of no attempt: what lies there is of an earlier run of this name."""
        folder = self._place.scratch.cell(cell.name)
        if not folder.is_dir() or not any(path.is_file() for path in folder.rglob("*")):
            return
        aside = self._place.scratch.earlier
        atomic.make_folder(aside)
        target = aside / f"{cell.name}-{timestamp.utc_now().replace(':', '')}"
        folder.rename(target)
        text = _(
            "{folder} held files of an earlier run of this name; they are in {target} now",
            folder=folder,
            target=target,
        )
        self._reporter.warn("earlier_run", text, cell.name)

    def _place_links(self, cell: CellLine, out: Path) -> None:
        scratch, links = self._place.scratch, self._place.plan.links
        for moved in said.place(out, self.code, links, scratch.earlier):
            text = _(
                "{cell} had something in the place of one of its links; it is {moved} now",
                cell=cell.name,
                moved=moved,
            )
            self._reporter.warn("link_taken", text, cell.name)

    def _warn_once(self, cell: str, what: str, text: str) -> None:
        self._reporter.warn_once(what, text, cell)


def _some(names: Sequence[str]) -> str:
    return some(map(shown, names), MOST_NAMED)
