from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import waiting
from waiting import LIMIT_S

from boxcar.shared import timestamp
from boxcar.training import progress
from boxcar.training.reporting import progress_writer
from boxcar.training.reporting.progress_writer import MOST_WAITING


@pytest.fixture(autouse=True)
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOXCAR_OUT", str(tmp_path))
    monkeypatch.delenv("RANK", raising=False)
    return tmp_path


def lines_of(folder: Path) -> list[dict[str, Any]]:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not standard JSON")

    progress.flush()
    text = (folder / "progress.jsonl").read_text()
    assert text.endswith("\n")
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def test_each_report_is_one_line_with_its_time(out: Path) -> None:
    progress.report(step=1, epoch=0, loss=0.5, phase="warm-up", best=None, done=False)
    progress.report(step=2)
    first, second = lines_of(out)
    timestamp.parse_utc(first.pop("at"))
    assert first == {
        "step": 1,
        "epoch": 0,
        "loss": 0.5,
        "phase": "warm-up",
        "best": None,
        "done": False,
    }
    assert second["step"] == 2


def test_without_boxcar_it_lies_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOXCAR_OUT")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    progress.report(step=1)
    assert lines_of(tmp_path / "elsewhere")[0]["step"] == 1


def test_only_rank_0_writes(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    progress.report(step=1)
    progress.flush()
    assert list(out.iterdir()) == []
    monkeypatch.setenv("RANK", "0")
    progress.report(step=2)
    assert [line["step"] for line in lines_of(out)] == [2]


def test_nan_and_inf_stay_json_and_are_named(out: Path) -> None:
    progress.report(step=1, loss=float("nan"), grad=float("-inf"), lr=0.1)
    (line,) = lines_of(out)
    assert (line["loss"], line["grad"], line["lr"]) == (None, None, 0.1)
    assert line["nonfinite"] == ["loss", "grad"]


def test_a_tensor_of_one_number_is_that_number(out: Path) -> None:
    progress.report(step=torch.tensor(7), loss=torch.tensor(0.5), bad=torch.tensor(float("nan")))
    (line,) = lines_of(out)
    assert (line["step"], line["loss"], line["bad"], line["nonfinite"]) == (7, 0.5, None, ["bad"])


def test_what_is_no_number_is_written_as_text(out: Path) -> None:
    progress.report(step=1, many=torch.zeros(1000), where=Path("a\nb"), half="\ud800")
    (line,) = lines_of(out)
    assert line["many"].startswith("tensor([0.")
    assert len(line["many"]) <= 200
    assert (line["where"], line["half"]) == ("a\nb", "?")


def test_a_vanished_folder_is_said_once_and_kills_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BOXCAR_OUT", str(tmp_path / "gone"))
    for step in range(3):
        progress.report(step=step)
    progress.flush()
    said = capsys.readouterr().err
    assert said.count("gone/progress.jsonl: progress is not written: No such file") == 1


def test_a_full_disk_leaves_whole_lines_and_kills_nothing(out: Path) -> None:
    """A limit on the file's size cuts a write as a full disk does, in the middle of a line."""

    def nearly_full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    script = (
        "from boxcar.training import progress\n"
        "for step in range(5): progress.report(step=step, loss=0.25)\n"
        "print('the training went on')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        # Bytecode would be cut too, and be what others import.
        env=os.environ | {"BOXCAR_OUT": str(out), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=nearly_full,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "the training went on\n"
    assert done.stderr.count("progress is not written") == 1
    assert [line["step"] for line in lines_of(out)] == [0]


def report_many(step: int) -> None:
    for _ in range(200):
        progress.report(step=step, text="x" * 150)
    progress.flush()


def test_lines_of_two_writers_are_never_mixed(out: Path) -> None:
    """Not promised to be useful, but a cell that two attempts write must stay readable."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(report_many, [1, 2], chunksize=1)
    assert len(lines_of(out)) == 400


def test_torch_is_not_imported_for_it() -> None:
    script = "import sys; from boxcar.training import progress; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_disk_that_hangs_delays_no_step_and_what_was_dropped_is_counted(out: Path) -> None:
    """A FIFO that nobody reads: opening it waits, as a write to a dead network mount does."""
    os.mkfifo(out / "progress.jsonl")
    reported = 2 * MOST_WAITING + 11
    for step in range(reported):
        progress.report(step=step)
    lines: list[dict[str, Any]] = []
    # Read and write: a FIFO ends for a reader whenever its last writer has closed it.
    with os.fdopen(os.open(out / "progress.jsonl", os.O_RDWR), "rb") as reader:
        while len(lines) + sum(line.get("dropped", 0) for line in lines) < reported:
            lines.append(json.loads(reader.readline()))
    assert lines[0]["step"] == 0
    # As many again were in the thread's hand, by chance.
    assert MOST_WAITING <= len(lines) <= 2 * MOST_WAITING


def test_lines_that_come_close_together_are_written_together(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    monkeypatch.setattr(progress_writer, "REST_S", LIMIT_S)
    monkeypatch.setattr(progress_writer, "_append_whole", lambda _, lines: written.append(lines))
    progress.report(step=0)
    waiting.until(lambda: written, "the first line is written at once")
    for step in range(1, 40):
        progress.report(step=step)
    progress.flush()
    assert [len(lines.splitlines()) for lines in written] == [1, 39]


def test_the_lines_are_there_when_the_script_has_ended(out: Path) -> None:
    script = (
        "from boxcar.training import progress\nfor step in range(50): progress.report(step=step)"
    )
    subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {"BOXCAR_OUT": str(out)}, check=True
    )
    assert [line["step"] for line in lines_of(out)] == list(range(50))


def test_a_value_is_written_as_it_was_when_it_was_reported(out: Path) -> None:
    loss = torch.tensor(1.0)
    for step in range(3):
        progress.report(step=step, loss=loss)
        loss += 1
    assert [line["loss"] for line in lines_of(out)] == [1.0, 2.0, 3.0]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_number_on_a_gpu_is_read_by_the_thread(out: Path) -> None:
    loss = torch.tensor(1.0, device="cuda")
    progress.report(step=1, loss=loss, many=torch.zeros(3, device="cuda"))
    loss += 1
    (line,) = lines_of(out)
    assert line["loss"] == 1.0
    assert line["many"].startswith("tensor of shape (3,) on cuda")
