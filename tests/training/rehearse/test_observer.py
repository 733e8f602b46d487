from __future__ import annotations

import json
from pathlib import Path

from boxcar.shared.files.progress import FILE
from boxcar.training.rehearse.observer import Observer, Save


def report(out: Path, *steps: int) -> None:
    with (out / FILE).open("a") as file:
        file.writelines(json.dumps({"step": step}) + "\n" for step in steps)


def save(out: Path, text: str) -> None:
    (out / "new").write_text(text)
    (out / "new").replace(out / "latest.pth")


def test_steps_and_saves_are_seen_in_their_order(tmp_path: Path) -> None:
    watch = Observer(tmp_path, "latest.pth")
    assert watch.look(0.0).last_step is None
    report(tmp_path, 1, 2)
    assert watch.look(1.0).last_step == 2
    save(tmp_path, "a")
    report(tmp_path, 3)
    seen = watch.look(2.0)
    assert seen.saves == [Save(2.0, 2)]
    assert [(item.seconds, item.step) for item in seen.reports] == [(1.0, 1), (1.0, 2), (2.0, 3)]
    save(tmp_path, "b")
    assert [item.after_step for item in watch.look(3.0).saves] == [2, 3]


def test_what_an_earlier_start_left_is_not_counted(tmp_path: Path) -> None:
    report(tmp_path, 1, 2)
    save(tmp_path, "a")
    watch = Observer(tmp_path, "latest.pth")
    report(tmp_path, 2)
    assert (watch.look(1.0).lines, watch.seen.saves) == ([{"step": 2}], [])


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    watch = Observer(tmp_path, "latest.pth")
    progress = tmp_path / FILE
    progress.write_text('{"step": 1}\n{"st')
    assert watch.look(1.0).lines == [{"step": 1}]
    with progress.open("a") as file:
        file.write('ep": 2}\n')
    assert watch.look(2.0).last_step == 2


def test_lines_that_are_no_progress_are_passed_over(tmp_path: Path) -> None:
    watch = Observer(tmp_path, "latest.pth")
    (tmp_path / FILE).write_text('nonsense\n[1]\n{"step": "two"}\n{"step": 3}\n')
    assert watch.look(1.0).lines == [{"step": 3}]


def test_a_file_that_the_script_begins_anew_is_read_anew(tmp_path: Path) -> None:
    report(tmp_path, 1, 2, 3)
    watch = Observer(tmp_path, "latest.pth")
    (tmp_path / FILE).write_text('{"step": 1}\n')
    assert watch.look(1.0).lines == [{"step": 1}]


def test_of_a_pattern_a_save_is_a_newer_match_that_is_whole(tmp_path: Path) -> None:
    watch = Observer(tmp_path, "step_*.pt")
    (tmp_path / "step_9.pt").write_text("nine")
    assert [item.seconds for item in watch.look(1.0).saves] == [1.0]
    (tmp_path / "step_10.pt").write_bytes(b"PK\x03\x04 a zip that has no end yet")
    assert [item.seconds for item in watch.look(2.0).saves] == [1.0]
    (tmp_path / "step_10.pt").write_text("ten")
    assert [item.seconds for item in watch.look(3.0).saves] == [1.0, 3.0]
