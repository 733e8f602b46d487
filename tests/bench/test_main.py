from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench.plots import points, svg
from bench.row import COLUMNS, Row, no_value, of_document


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_part_that_fails_is_a_line_with_its_reason(
    in_a_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    [row] = bench._in_a_process("copies")
    assert row.reason == "exit code 1" and len(row.fields) == len(COLUMNS)


def test_a_part_that_is_killed_after_its_work_counts(
    in_a_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch does, which may abort at the end of a process."""
    script = in_a_folder / "part"
    script.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        'open(sys.argv[-1], "w").write(\'[{"what": "w", "value": 2.0, "unit": "s"}]\')\n'
        "print('a warning of some library')\nos.abort()\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    assert bench._in_a_process("copies") == [Row("w", 2.0, "s")]


def test_a_part_leaves_its_lines_and_no_folder(
    in_a_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = types.ModuleType("bench.made_up")
    part.measure = lambda folder: [Row("w", 1.0, "s")]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bench.made_up", part)
    assert bench._measure("made_up", in_a_folder / "rows") == 0
    assert [path.name for path in in_a_folder.iterdir()] == ["rows"]


def test_a_line_goes_through_its_document_and_back() -> None:
    for row in (Row("w", 1.0, "s", 2.0, "p", 0.5, 1.5, 1.3), no_value("w", "why")):
        assert of_document(row.document) == row


def test_growth_is_drawn_for_each_verb_and_sizes_for_each_way() -> None:
    rows = [Row(f"status, {n} cells", n / 100, "s of CPU").document for n in (10, 1000)]
    rows.append(Row("copy, 16 MiB", 1.0, "s", 2.0, "rsync").document)
    figures = {"parts": {"growth": rows}}
    assert points(figures, "growth", "MiB") == {"copy": [(16.0, 1.0)], "rsync": [(16.0, 2.0)]}
    found = points(figures, "growth", "cells")
    assert found == {"status": [(10.0, 0.1), (1000.0, 10.0)]}
    drawn = svg("title", "cells", "s", found)
    assert drawn.startswith("<svg") and drawn.count("<circle") == 2 and "status" in drawn
