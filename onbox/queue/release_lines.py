"""A queue's lines as one release runs them: which it can, with which config, by which words."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

from boxcar.shared.artifacts import resume_match
from boxcar.shared.cell import said, terms
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import config_path, stored_names
from boxcar.shared.cell.said import Places, SaidCell, saying_of
from boxcar.shared.files.release import Release
from onbox.attempt import stage
from onbox.machine.place import Place
from onbox.result import asked
from onbox.result.asked import Asked, after_folders


class ReleaseLines:
    """Of the release whose place it is given."""

    def __init__(self, place: Place, release: Release) -> None:
        self.place = place
        self._sha256s = {file.path: file.sha256 for file in stage.code_files(release)}
        self._stored_names = stored_names(self._sha256s)

    def has_config(self, cell: CellLine) -> bool:
        """Whether the line is for this release; what is wrong with it beyond that, see below."""
        return not cell.has_config or config_path(cell.cfg) in self._stored_names

    def problem(self, cell: CellLine) -> str | None:
        """Why this release cannot run a line: it may have been appended since."""
        stored = self._stored_names.get(config_path(cell.cfg), [])
        if cell.has_config and not stored:
            return f"{cell.cfg} is in no release: push it, then launch the queue again"
        if len(stored) > 1:
            return (
                f"{cell.cfg} is two files of this release, whose names differ only in their "
                "Unicode form: rename one, push, then launch the queue again"
            )
        plan = self.place.plan
        return next(
            chain(terms.misfits_of_line(plan, cell), terms.misfits_of_rules(plan, cell.name)),
            None,
        )

    def as_stored(self, cell: CellLine) -> CellLine:
        """With its config as it lies in the release: a line may spell it in another form."""
        if not cell.has_config:
            return cell
        (cfg,) = self._stored_names[config_path(cell.cfg)]
        return cell if cfg == cell.cfg else replace(cell, cfg=cfg)

    def said(self, cell: CellLine, slot: int = 0, *, was_left: bool = False) -> SaidCell:
        """What is run now in that slot: with resume_args where there is a checkpoint. Raises
        OSError.

        `was_left`: the attempt before it saved and left when it was asked to.
        """
        out = self.place.scratch.out(cell.name)
        resume = terms.terms_of_cell(self.place.plan, cell.name).resume
        found = resume_match.chosen(out, resume, at_rest=was_left)
        plain = said.resume_place(str(out), resume)
        path = plain or str(found or "")
        after = after_folders(self.place.durable, cell)
        code = str(self._code(slot))
        places = Places(str(out), code, path, found is not None, after, self.place.data)
        return said.say_cell(self.place.plan, self.as_stored(cell), places)

    def saying(self, cell: CellLine) -> str | None:
        """None for a line that this release cannot run for its config."""
        if cell.has_config and len(self._stored_names.get(config_path(cell.cfg), [])) != 1:
            return None
        stored = self.as_stored(cell)
        return saying_of(self.place.plan, stored, self._sha256(stored))

    def asked(self, cell: CellLine, slot: int = 0) -> Asked:
        """What the line asks for, for its result, and was run in that slot."""
        stored = self.as_stored(cell)
        return asked.of_cell(self.place, stored, self._code(slot), self._sha256(stored))

    def _sha256(self, stored: CellLine) -> str | None:
        return self._sha256s[stored.cfg] if stored.has_config else None

    def _code(self, slot: int) -> Path:
        return self.place.scratch.code(self.place.release.name, slot)
