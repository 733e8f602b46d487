"""Whole rehearsals of small scripts without torch: real processes, really killed."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import InputError
from boxcar.training.rehearse import __main__, two_runs, verdict
from boxcar.training.rehearse.rehearsal import Report, rehearse
from boxcar.training.rehearse.two_runs import Request

# Sums numbers, saves every third step, reports each. A mode in the words makes it go wrong.
SCRIPT = """
import json, os, pathlib, sys, time
mode, out = sys.argv[1], pathlib.Path(sys.argv[2])
latest = out / "latest.json"
state = {"step": 0, "model": {"w": 0.0}, "rng": [7], "seconds": time.time()}
state["python_rng"] = [time.time_ns()]  # as of a generator that nobody seeds
if latest.exists() and mode != "anew":
    state = json.loads(latest.read_text())
    if mode == "crash":
        sys.exit("KeyError: 'optimizer'")
    if mode == "rng":
        state["rng"] = [8]  # not the first run's 7: killed half way, the two would meet
while state["step"] < 30:
    state["step"] += 1
    state["rng"] = [state["rng"][0] * 5 % 1000003]
    state["model"]["w"] += 1 / state["step"] + (state["rng"][0] if mode == "noise" else 0)
    if mode == "chance":
        state["model"]["w"] += time.time_ns() % 1000
    if mode != "silent":
        with (out / "progress.jsonl").open("a") as file:
            print(json.dumps({"step": state["step"], "loss": state["model"]["w"]}), file=file)
    if state["step"] % 3 == 0 and mode != "saveless":
        (out / "new").write_text(json.dumps(state))
        (out / "new").replace(latest)
    if mode == "litter":
        pathlib.Path("shared.txt").write_text("x")
    # So that a kill before the end is none after it, though whoever kills has to wait for its turn.
    time.sleep(2.0 if mode == "late" and state["step"] == 29 else 0.005)
if mode == "forgets":
    latest.unlink()
(out / "metrics.json").write_text(json.dumps({"w": state["model"]["w"], "ended_at": time.time()}))
"""


# The same under a name for each save, and it breaks where it is told to resume from nothing.
STEPS = """
import json, os, pathlib, sys, time
out, resume = pathlib.Path(sys.argv[1]), sys.argv[2:]
assert resume in ([], ["--resume", os.environ["BOXCAR_RESUME"]])
state = {"step": 0, "model": {"w": 0.0}}
if resume:
    state = json.loads(pathlib.Path(resume[1]).read_text())
(out / "saves").mkdir(exist_ok=True)
while state["step"] < 30:
    state["step"] += 1
    state["model"]["w"] += 1 / state["step"]
    with (out / "progress.jsonl").open("a") as file:
        print(json.dumps({"step": state["step"], "loss": state["model"]["w"]}), file=file)
    if state["step"] % 3 == 0:
        folder = out / f"saves/step_{state['step']}"
        folder.mkdir(exist_ok=True)
        (folder / "new").write_text(json.dumps(state))
        (folder / "new").replace(folder / "state.json")
    time.sleep(0.005)
(out / "metrics.json").write_text(json.dumps({"w": state["model"]["w"]}))
"""


class Rehearsal:
    def __init__(self, root: Path) -> None:
        self.root, self.code = root, root / "code"
        self.code.mkdir()
        (self.code / "train.py").write_text(SCRIPT)
        self.said: list[str] = []

    def report(self, mode: str, **changes: Any) -> Report:
        request = {
            "words": (sys.executable, "train.py", mode, "{out}"),
            "work": self.root / "work",
            "cwd": self.code,
            "resume": "latest.json",
            "artifacts": ("metrics.json",),
            "seed": 1,
        }
        return rehearse(Request(**(request | changes)), self.said.append)


@pytest.fixture
def rehearsal(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path)


def text(report: Report) -> str:
    return "\n".join(__main__.report_lines(report))


def test_a_script_that_resumes_well_is_bit_equal_and_leaves_little(rehearsal: Rehearsal) -> None:
    report = rehearsal.report("good")
    assert report.word == verdict.BIT_EQUAL, text(report)
    assert report.files["latest.json"].of_one_run == ("seconds", "python_rng.0")
    assert report.curve.lines >= 30
    assert [item for item in report.outside if not item.harmless] == []
    assert sorted(path.name for path in (rehearsal.root / "work").iterdir()) == [
        ".rehearsal",
        "hook",
        "logs",
    ]
    assert any("--seed 1" in line for line in rehearsal.said)


@pytest.mark.parametrize("resume", ["saves/step_*/", "saves/*/state.json"])
def test_the_newest_match_of_a_pattern_is_resumed_from_by_words(
    rehearsal: Rehearsal, resume: str
) -> None:
    (rehearsal.code / "steps.py").write_text(STEPS)
    if resume.endswith("/"):
        (rehearsal.code / "steps.py").write_text(
            STEPS.replace("Path(resume[1])", "Path(resume[1], 'state.json')")
        )
    words = (sys.executable, "steps.py", "{out}")
    resumed = (*words, "--resume", "{resume}")
    report = rehearsal.report("", words=words, resume=resume, resumed=resumed, kills=2)
    assert report.word == verdict.BIT_EQUAL, text(report)
    assert all(kill.was_saved and not kill.is_restarted for kill in report.kills)
    assert resume in report.files


def test_without_the_words_a_script_begins_anew_and_that_is_seen(rehearsal: Rehearsal) -> None:
    (rehearsal.code / "steps.py").write_text(STEPS)
    words = (sys.executable, "steps.py", "{out}")
    report = rehearsal.report("", words=words, resume="saves/*/state.json")
    assert not report.is_good
    assert report.kills[0].was_saved and report.kills[0].is_restarted


def test_the_second_run_may_be_killed_several_times(rehearsal: Rehearsal) -> None:
    report = rehearsal.report("late", kills=3)
    assert report.word == verdict.BIT_EQUAL, text(report)
    steps = [kill.after_step or 0 for kill in report.kills]
    assert len(steps) == 3 and steps == sorted(steps)


def test_a_state_that_was_not_restored_is_named_and_both_runs_are_kept(
    rehearsal: Rehearsal,
) -> None:
    report = rehearsal.report("rng")
    assert [suspect.state for suspect in report.suspects] == ["rng"], text(report)
    kept = Path(report.kept)
    assert (kept / "uninterrupted" / "latest.json").exists()
    assert (kept / "killed" / "latest.json").exists()


def test_a_script_that_reports_nothing_is_killed_after_a_save(rehearsal: Rehearsal) -> None:
    report = rehearsal.report("silent")
    assert report.word == verdict.BIT_EQUAL, text(report)
    assert report.kills[0].after_step is None
    assert "a step that is unknown" in "\n".join(rehearsal.said)
    assert "loss curve: not measured" in text(report)


def test_a_script_that_never_saves_is_told_so(rehearsal: Rehearsal) -> None:
    report = rehearsal.report("saveless")
    assert report.word == verdict.NOT_PROVEN
    assert "nothing was saved before the kill" in text(report)
    assert "the script never saves it" in text(report)


def test_a_script_that_ignores_its_checkpoint_is_not_taken_as_resumed(
    rehearsal: Rehearsal,
) -> None:
    report = rehearsal.report("anew")
    assert report.word == verdict.NOT_PROVEN
    assert "but the script started over" in text(report)


def test_a_script_that_removes_its_checkpoint_at_the_end_proves_nothing(
    rehearsal: Rehearsal,
) -> None:
    report = rehearsal.report("forgets")
    assert report.word == verdict.NOT_PROVEN
    assert "latest.json is missing at the end" in text(report)


def test_a_script_that_cannot_load_what_it_saved_has_failed(rehearsal: Rehearsal) -> None:
    report = rehearsal.report("crash")
    assert report.word == verdict.FAILED
    assert "after the kill the same command ended with exit code 1" in report.failure
    assert report.log_end == ("KeyError: 'optimizer'",)


def test_a_script_that_depends_on_the_clock_is_not_repeatable(rehearsal: Rehearsal) -> None:
    report = rehearsal.report("chance")
    assert report.word == verdict.DIFFERS and report.suspects == ()
    assert "the cell is not reproducible" in text(report)


def test_what_is_written_outside_is_named_with_its_line(rehearsal: Rehearsal) -> None:
    report = rehearsal.report("litter")
    assert report.word == verdict.BIT_EQUAL
    (item,) = [item for item in report.outside if not item.harmless]
    assert (item.path, item.what) == (f"{rehearsal.code.resolve()}/shared.txt", "written")
    assert "train.py:" in item.by
    assert "1 path was changed" in text(report)


def test_a_run_that_is_over_at_once_is_too_short(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_runs, "_TRIES", 2)
    short = "import json, pathlib, sys; out = pathlib.Path(sys.argv[2])\n"
    short += "(out / 'latest.json').write_text('{}')\n"
    lines = "".join(json.dumps({"step": step}) + "\\n" for step in (1, 2))
    (rehearsal.code / "train.py").write_text(
        textwrap.dedent(short) + f"(out / 'progress.jsonl').write_text('{lines}')"
    )
    report = rehearsal.report("short")
    assert report.word == verdict.NOT_PROVEN
    assert "always ended before it could be killed" in text(report)


def test_a_folder_with_other_files_is_never_emptied(rehearsal: Rehearsal) -> None:
    precious = rehearsal.root / "work" / "out" / "results.txt"
    precious.parent.mkdir(parents=True)
    precious.touch()
    with pytest.raises(InputError, match="that no rehearsal made"):
        rehearsal.report("good")
    assert precious.exists()
