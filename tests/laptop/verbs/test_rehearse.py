from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_project import make_project

from boxcar.laptop.common import show
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.tryout import stage
from boxcar.laptop.verbs import rehearse as verb
from boxcar.laptop.verbs.rehearse import rehearse
from boxcar.shared.disk import lock
from boxcar.shared.errors import BoxcarError, InputError, TemporaryError

COMMAND = "train.py --config {cfg} --task {task} --epochs {epochs} --out {out}"
QUEUES = {"q1": ["configs/a.json recon 2", "configs/b.json recon 2"], "q2": ["configs/c.json seg"]}


class Rehearsed:
    """The tiny project, whose script counts to --epochs and saves each step."""

    def __init__(self, root: Path, **job: Any) -> None:
        self.root = root
        self.job = {"command": COMMAND, "rehearse": "--epochs 30"} | job
        self.tiny = make_project(root, QUEUES, **self.job)
        for name in "abc":
            self.tiny.write_config(name, seconds=0.005, x=1)

    @property
    def project(self) -> Project:
        return open_project(self.root / "job.yaml", "local")

    @property
    def stage(self) -> Path:
        return self.root / ".boxcar" / "smoke" / "tiny"


@pytest.fixture
def rehearsed(tmp_path: Path) -> Rehearsed:
    return Rehearsed(tmp_path / 'it\'s a "project"')


def test_a_cell_is_run_twice_with_the_words_of_the_job(
    rehearsed: Rehearsed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rehearse(rehearsed.project, cells=["b"], seed=4) == 0
    shown = capsys.readouterr()
    assert "bit-equal" in shown.out and "b: bit-equal: the killed run ended" in shown.out
    assert "it reported steps 1 to 30" in shown.err
    assert "repeat by --seed 4" in shown.err


def test_a_cell_that_reads_the_jobs_data_is_rehearsed_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Rehearsed(tmp_path / "project", data={"set": "sets/one"})
    (told.root / "sets" / "one").mkdir(parents=True)
    (told.root / "sets" / "one" / "a.txt").write_text("here")
    train = told.root / "train.py"
    reads = "open(__import__('os').environ['BOXCAR_DATA'] + '/set/a.txt').read()\n"
    train.write_text(reads + train.read_text())
    assert rehearse(told.project, cells=["b"], seed=4) == 0
    assert "b: bit-equal" in capsys.readouterr().out


def test_the_whole_report_is_one_document(
    rehearsed: Rehearsed, capsys: pytest.CaptureFixture[str]
) -> None:
    train = rehearsed.root / "train.py"
    train.write_text(train.read_text() + "\nopen('shared', 'w')\n")
    assert rehearse(rehearsed.project, cells=["a"], kills=2, as_json=True) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["cell"], cell["state"], cell["is_good"]) == ("a", "bit-equal", True)
    # A training that is quicker than who looks at it has ended before its second kill.
    assert 1 <= len(cell["report"]["kills"]) <= 2
    (outside,) = [item for item in cell["report"]["outside"] if not item["harmless"]]
    assert outside["path"].endswith("/code/shared") and "train.py:" in outside["by"]


def test_a_chinese_reader_reads_it_in_chinese_and_the_report_stays_english(
    rehearsed: Rehearsed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show.begin()  # what a verb before has chosen is over
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert rehearse(rehearsed.project, cells=["b"], seed=4) == 0
    shown = capsys.readouterr()
    assert "b：逐位一致：被杀掉的那次运行，结果与从未中断一样" in shown.out
    assert "报告了 step 1 到 30" in shown.err and "--seed 4" in shown.err
    assert "uninterrupted" not in shown.out + shown.err and "bit-equal" not in shown.out
    (report,) = rehearsed.stage.parent.rglob("report.json")
    document = json.loads(report.read_text())
    assert document["lines"][0].startswith("bit-equal: the killed run")
    assert document["word"] == "bit-equal"


def test_a_script_that_cannot_resume_fails_the_verb(
    rehearsed: Rehearsed, capsys: pytest.CaptureFixture[str]
) -> None:
    train = rehearsed.root / "train.py"
    train.write_text(train.read_text().replace('json.loads(latest.read_text())["step"]', "1 / 0"))
    assert rehearse(rehearsed.project, cells=["a"]) == 1
    shown = capsys.readouterr()
    assert "after the kill the same command ended with exit code 1" in shown.out
    assert "ZeroDivisionError" in shown.out
    assert "not proven to resume exactly: a" in shown.err


def test_without_a_name_it_is_the_first_cell_of_each_task_and_rank_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsed = Rehearsed(tmp_path / "p", cells={"b": {"nproc_per_node": 4}}, launcher="torchrun")
    chosen = verb._first_of_each_kind(rehearsed.project.plan.cells)
    assert [cell.name for cell in chosen] == ["a", "b", "c"]
    rehearsed.tiny.write_job(command=COMMAND)
    chosen = verb._first_of_each_kind(rehearsed.project.plan.cells)
    assert [cell.name for cell in chosen] == ["a", "c"]


def test_a_job_without_rehearse_words_is_rehearsed_with_those_of_the_smoke(
    rehearsed: Rehearsed, capsys: pytest.CaptureFixture[str]
) -> None:
    rehearsed.tiny.write_job(command=COMMAND, smoke="--epochs 25")
    assert rehearse(rehearsed.project, cells=["a"]) == 0
    said = capsys.readouterr().err
    assert "smoke: is used" in said and "steps 1 to 25" in said


def test_a_script_that_is_told_what_to_resume_from_gets_the_newest_match(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"resume": "steps/step_*.json", "resume_args": "--resume {resume}"}
    rehearsed = Rehearsed(tmp_path, **words)
    train = rehearsed.root / "train.py"
    text = train.read_text()
    for old, new in (
        ("asked = parser", "parser.add_argument('--resume')\nasked = parser"),
        ("if latest.exists()", "if asked.resume"),
        ("latest.read_text()", "Path(asked.resume).read_text()"),
        ("save(latest,", "(out / 'steps').mkdir(exist_ok=True)\n        save("),
        ('{"step": step})', 'out / f"steps/step_{step}.json", {"step": step})'),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    train.write_text(text)
    code = rehearse(rehearsed.project, cells=["a"], seed=4)
    shown = capsys.readouterr()
    assert code == 0, shown.out + shown.err
    assert "steps/step_*.json is there" in shown.err


# --- what is refused


def test_all_that_is_wrong_is_told_at_once(rehearsed: Rehearsed) -> None:
    rehearsed.tiny.write_job(command=COMMAND, resume=None, rehearse=None)
    with pytest.raises(InputError) as caught:
        rehearse(rehearsed.project, kills=0, tolerance=3.0)
    text = str(caught.value)
    assert "rehearse: --limit-batches 8 --epochs 5" in text
    assert "resume: latest.pth" in text
    assert "--kills: expected a number from 1 to 100, found 0" in text
    assert "--tolerance: expected a number from 0 up to, but not including, 1; found 3" in text


def test_an_unknown_cell_is_refused_with_the_nearest(rehearsed: Rehearsed) -> None:
    with pytest.raises(InputError, match="has no cell 'aa'"):
        rehearse(rehearsed.project, cells=["aa"])
    assert not rehearsed.stage.exists()


def test_it_shares_the_lock_of_the_smoke(
    rehearsed: Rehearsed, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsed.stage.mkdir(parents=True)
    monkeypatch.setattr(lock, "hold", lock.try_hold)  # without its patience
    with (
        stage.alone_in(rehearsed.stage),
        pytest.raises(TemporaryError, match="another smoke or rehearse"),
    ):
        rehearse(rehearsed.project, cells=["a"])


def test_a_child_that_leaves_no_report_is_an_error(
    rehearsed: Rehearsed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verb, "MODULE", "boxcar.training.no_such_module")
    with pytest.raises(BoxcarError, match="ended with exit code 1 and left no report"):
        rehearse(rehearsed.project, cells=["a"])


# --- workdir, resume_args, replace, skip


@pytest.fixture
def in_out(tmp_path: Path) -> Rehearsed:
    """A script that writes where it is started, and is told to resume only where it can."""
    made = Rehearsed(
        tmp_path / "p",
        command="train.py --config {cfg} --task {task} --epochs {epochs} --out .",
        workdir="out",
        rehearse={"replace": {"{epochs}": 30}, "skip": {"c": "no such task here"}},
    )
    train = made.root / "train.py"
    train.write_text(train.read_text().replace('("config", ', '("resume", "config", ', 1))
    train.write_text(train.read_text().replace("required=True", 'required=name != "resume"'))
    train.write_text(train.read_text().replace("latest.exists()", "asked.resume"))
    made.tiny.write_job(**made.job, resume_args="--resume {resume}")
    return made


def test_each_start_begins_in_out_and_gets_the_words_of_a_resume_only_where_it_can(
    in_out: Rehearsed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rehearse(in_out.project, cells=["a"]) == 0
    assert "it reported steps 1 to 30" in capsys.readouterr().err
    assert {path.name for path in (in_out.stage / "code").iterdir()} >= {"train.py", "configs"}
    assert not (in_out.stage / "code/latest.json").exists()


def test_each_start_finds_the_links_of_the_job(
    in_out: Rehearsed, capsys: pytest.CaptureFixture[str]
) -> None:
    train = in_out.root / "train.py"
    train.write_text(f"open('./sets/a.json').close()\n{train.read_text()}")
    in_out.tiny.write_job(
        **in_out.job, resume_args="--resume {resume}", links=[{"sets": "configs"}]
    )
    assert rehearse(in_out.project, cells=["a"]) == 0
    assert "it reported steps 1 to 30" in capsys.readouterr().err


def test_a_cell_that_the_job_skips_is_rehearsed_only_where_it_is_named(
    in_out: Rehearsed, capsys: pytest.CaptureFixture[str]
) -> None:
    project = verb._with_words(in_out.project)
    assert [cell.name for cell in verb._unskipped(project)] == ["a", "b"]
    assert "c is skipped: no such task here" in capsys.readouterr().err
