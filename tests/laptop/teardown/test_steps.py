from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.teardown import gate as steps_module
from boxcar.laptop.teardown.gate import Steps
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import Teardown

BEGUN = Teardown("tiny", "ab" * 32, "verb", "2026-01-01T00:00:00.000Z", "typed")


def test_each_step_is_on_the_disk_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "teardown.json"
    steps = Steps(path, BEGUN)
    assert receipt.read_teardown(path) == BEGUN
    for note in (steps.ended, steps.told, steps.off):
        note("box-a")
        assert receipt.read_teardown(path) == steps.now
    assert all("box-a" in done for done in (steps.now.boxes, steps.now.told, steps.now.off))
    steps.untold("box-a")
    assert not receipt.read_teardown(path).told
    steps.finished()
    assert receipt.read_teardown(path).finished_at

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(steps_module.atomic, "write_whole", full)
    with pytest.raises(OSError):
        steps.told("box-b")
    assert "box-b" not in steps.now.told
