from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from exported import cell

from boxcar.laptop.trackers import export_cells, exported_cell
from boxcar.laptop.trackers.export_cells import ADDED, CHANGED, LEFT_OUT, UNCHANGED, NotExported
from boxcar.laptop.trackers.exported_cell import ExportedCell
from boxcar.shared.errors import InputError


@dataclass
class InFiles:
    """A tracker that writes a line; `die_at` counts its cells."""

    die_at: int = 0
    written: list[str] = field(default_factory=list)

    def write(self, folder: Path, cell: ExportedCell) -> str:
        self.written.append(cell.name)
        if len(self.written) == self.die_at:
            raise KeyboardInterrupt
        (folder / cell.name).write_text(cell.content)
        return cell.name


def export(folder: Path, *cells: ExportedCell | NotExported, die_at: int = 0) -> list[str]:
    """What became of each cell."""
    proven = [one for one in cells if isinstance(one, ExportedCell)]
    record = exported_cell.read_export_record(folder, "files")
    wanted = export_cells.due(folder, record, proven)
    tracker = InFiles(die_at)
    record = export_cells.write_cells(folder, record, wanted, tracker, lambda cell: None)
    return [one.state for one in export_cells.outcomes(cells, wanted, record)]


def test_a_second_export_changes_no_byte_and_more_cells_add_only_these(tmp_path: Path) -> None:
    assert export(tmp_path, cell("a"), cell("b")) == [ADDED, ADDED]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert export(tmp_path, cell("a"), cell("b", receipt="00" * 32)) == [UNCHANGED, UNCHANGED]
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert after == before
    assert export(tmp_path, cell("a"), cell("b"), cell("c")) == [UNCHANGED, UNCHANGED, ADDED]


def test_a_cell_that_was_trained_again_is_changed_and_what_was_removed_is_added(
    tmp_path: Path,
) -> None:
    export(tmp_path, cell("a"), cell("b"))
    (tmp_path / "b").unlink()
    again = replace(cell("a"), manifest="00" * 32)
    assert export(tmp_path, again, cell("b")) == [CHANGED, ADDED]
    assert (tmp_path / "a").read_text() == again.content
    assert export(tmp_path, again, cell("b")) == [UNCHANGED, UNCHANGED]


def test_a_killed_export_is_resumed_with_what_is_left(tmp_path: Path) -> None:
    cells = [cell(name) for name in "abc"]
    with pytest.raises(KeyboardInterrupt):
        export(tmp_path, *cells, die_at=2)
    assert export(tmp_path, *cells) == [UNCHANGED, ADDED, ADDED]


def test_what_is_not_proven_is_left_out_and_what_lies_there_of_it_is_known(tmp_path: Path) -> None:
    export(tmp_path, cell("a"))
    lost = NotExported("tiny", "a", "failed (M2)")
    record = exported_cell.read_export_record(tmp_path, "files")
    (found,) = export_cells.outcomes([lost], [], record)
    assert (found.state, found.because, found.where) == (LEFT_OUT, "failed (M2)", "a")
    assert found.id == cell("a").id


def test_a_folder_of_somebody_else_or_of_another_tracker_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="expected an empty folder"):
        exported_cell.read_export_record(tmp_path, "files")
    (tmp_path / "thesis.tex").unlink()
    export(tmp_path, cell("a"))
    with pytest.raises(InputError, match="contains an export to files"):
        exported_cell.read_export_record(tmp_path, "wandb")
