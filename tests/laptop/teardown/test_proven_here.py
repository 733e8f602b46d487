"""What of another run lies proven on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.common import home
from boxcar.laptop.project.project import results_of
from boxcar.laptop.teardown import still_running
from boxcar.shared.disk import digest
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.receipt import CellVerdict, RunReceipt
from boxcar.shared.paths import ResultPaths

MANIFEST = b"a manifest\n"
SHA256 = digest.of_bytes(MANIFEST)
CELLS = dict.fromkeys(("a", "b", "c"), SHA256)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ResultPaths:
    """Of a run that was launched here: what `pull` and `verify` leave of three cells."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home.remember_run("other", tmp_path / "job.yaml", "local")
    found = results_of(tmp_path, "other")
    for cell in CELLS:
        found.manifest(cell).parent.mkdir(parents=True)
        found.manifest(cell).write_bytes(MANIFEST)
    verdicts = tuple(CellVerdict(cell, "q", SHA256) for cell in CELLS)
    seen = RunReceipt("other", "2026-11-22T01:00:00.000Z", verdicts)
    found.receipt.write_bytes(codec.to_document(seen))
    return found


def test_the_receipt_of_a_folder_is_read_once_for_all_its_cells(
    results: ResultPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, reads = receipt.read_run, []
    monkeypatch.setattr(receipt, "read_run", lambda path: (reads.append(path), read(path))[1])
    assert still_running.not_proven("other", CELLS) == []
    assert reads == [results.receipt]


def test_what_another_manifest_or_none_proves_and_what_was_never_seen_may_be_lost(
    results: ResultPaths,
) -> None:
    results.manifest("b").write_bytes(b"another\n")
    results.manifest("c").unlink()
    assert still_running.not_proven("other", {**CELLS, "d": SHA256}) == ["b", "c", "d"]
    assert still_running.not_proven("other", {"a": "cd" * 32}) == ["a"]
    results.receipt.write_bytes(b"{")
    assert still_running.not_proven("other", CELLS) == ["a", "b", "c"]
