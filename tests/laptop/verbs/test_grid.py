from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_project import make_project

from boxcar.laptop.project import launches
from boxcar.laptop.project.grids.grid_lines import Asked
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.project.queues import rewrite
from boxcar.laptop.verbs.grid import grid
from boxcar.laptop.verbs.split import finish
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError

JOURNAL = Path(__file__).parents[2] / "data" / "v1" / "journal.jsonl"
BASE = "configs/base.json"
WORDS = ("lr=1e-3,3e-4", "seed=0..2", "opt=sgd,adam,lion")


def project(root: Path, queues: dict[str, list[str]] | None = None, **job: object) -> Project:
    if not (root / "job.yaml").exists():
        tiny = make_project(root, queues or {"q1": [], "q2": []}, **job)
        tiny.write_config("base", lr=1, seed=0, opt="sgd")
    return open_project(root / "job.yaml", "local", despite_faults=True)


def asked(*words: str, cfg: str = BASE, task: str = "recon", **more: object) -> Asked:
    return Asked(cfg, task, words=words, **more)  # type: ignore[arg-type]


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def lines(root: Path, queue: str) -> list[str]:
    return (root / "queues" / f"{queue}.txt").read_text().splitlines()


def test_without_write_the_lines_are_shown_and_nothing_is_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = project(tmp_path)
    before = files(tmp_path)
    assert grid(found, asked(*WORDS)) == 0
    assert files(tmp_path) == before
    shown = capsys.readouterr()
    assert "grid: 18 new cells" in shown.out
    assert f"{BASE} recon lr=1e-3 seed=0 opt=lion" in shown.out
    assert "base_lr1e-3_seed0_optlion" in shown.out
    assert "add --write" in shown.err


def test_with_write_they_are_spread_over_the_queues_and_plan_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid(project(tmp_path), asked(*WORDS), is_to_write=True)
    assert len(lines(tmp_path, "q1")) == len(lines(tmp_path, "q2")) == 9
    plan = open_project(tmp_path / "job.yaml", "local").plan
    assert len({cell.name for cell in plan.cells}) == 18
    assert "18 lines appended. Next: invoke plan" in capsys.readouterr().err


def test_the_same_grid_again_writes_nothing_and_a_larger_one_only_what_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid(project(tmp_path), asked(*WORDS), is_to_write=True)
    before = files(tmp_path)
    grid(project(tmp_path), asked(*WORDS), is_to_write=True)
    assert files(tmp_path) == before
    shown = capsys.readouterr().err
    assert "18 cells skipped, already in the queues" in shown
    assert "no new cells" in shown
    more = asked("lr=1e-3,3e-4", "seed=0..3", "opt=sgd,adam,lion")
    grid(project(tmp_path), more, is_to_write=True)
    assert len(lines(tmp_path, "q1")) + len(lines(tmp_path, "q2")) == 24


def test_a_cell_that_was_commented_out_stays_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = project(tmp_path, {"q1": [f"# {BASE} recon lr=1"]})
    grid(found, asked("lr=1,2"), is_to_write=True)
    assert lines(tmp_path, "q1") == [f"# {BASE} recon lr=1", f"{BASE} recon lr=2"]
    assert "base_lr1 skipped: commented out at queues/q1.txt:1" in capsys.readouterr().err


def test_epochs_that_the_job_gives_are_the_same_cell(tmp_path: Path) -> None:
    found = project(tmp_path, {"q1": [f"{BASE} recon lr=1"]}, epochs=7)
    before = files(tmp_path)
    grid(found, asked("lr=1", epochs=7), is_to_write=True)
    assert files(tmp_path) == before


def test_lines_are_only_appended_whatever_the_file_ends_with(tmp_path: Path) -> None:
    project(tmp_path)
    text = b"\xef\xbb\xbf# mine\r\nconfigs/base.json recon 3\r\n# no end"
    (tmp_path / "queues" / "q1.txt").write_bytes(text)
    grid(project(tmp_path), asked("lr=1", queues=("q1",)), is_to_write=True)
    assert (tmp_path / "queues" / "q1.txt").read_bytes() == (
        text + b"\n" + f"{BASE} recon lr=1\n".encode()
    )


def test_a_queue_is_named_by_its_file_or_its_name_and_one_that_is_not_there_is_made(
    tmp_path: Path,
) -> None:
    project(tmp_path)
    for path in (tmp_path / "queues").iterdir():
        path.unlink()
    (tmp_path / "queues").rmdir()
    found = open_project(tmp_path / "job.yaml", "local", despite_faults=True)
    grid(found, asked("lr=1,2", queues=("queues/q2.txt",)), is_to_write=True)
    assert (lines(tmp_path, "q1"), len(lines(tmp_path, "q2"))) == ([], 2)
    grid(project(tmp_path), asked("lr=3", queues=("q1",)), is_to_write=True)
    assert lines(tmp_path, "q1") == [f"{BASE} recon lr=3"]


def test_new_cells_go_first_to_the_queue_that_has_less_left(tmp_path: Path) -> None:
    queues = {"q1": [f"{BASE} recon 6"], "q2": [f"configs/n{n}.json x 2" for n in range(2)]}
    grid(project(tmp_path, queues), asked("lr=1..3", epochs=2), is_to_write=True)
    assert len(lines(tmp_path, "q1")) == 2  # 6 + 2, and 4 + 2 x 2
    assert len(lines(tmp_path, "q2")) == 4


def test_a_cell_that_has_ended_does_not_count_as_left(tmp_path: Path) -> None:
    base, other = "configs/recon_baseline.json reconstruction 60", "configs/other.json x 4"
    found = project(tmp_path, {"queue_1": [base], "queue_2": [other]})
    journal = found.on_tier.journal("queue_1")
    journal.parent.mkdir(parents=True)
    shutil.copy(JOURNAL, journal)
    grid(found, asked("lr=1", epochs=1), is_to_write=True)
    assert len(lines(tmp_path, "queue_1")) == 2


def test_after_a_launch_the_next_command_is_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = project(tmp_path)
    launches.append_launch(found.results, "local", "ab" * 32, ["q1"], is_smoked=False)
    grid(found, asked("lr=1"), is_to_write=True)
    assert "1 line appended. Next: invoke launch" in capsys.readouterr().err


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = project(tmp_path, {"q1": [f"{BASE} recon 数据=甲"]})
    grid(found, asked("数据=甲,乙"), is_to_write=True, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "format": "boxcar.grid/1",
        "is_written": True,
        "cells": [
            {
                "cell": "base_数据乙",
                "queue": "q1",
                "line": f"{BASE} recon name=base_数据乙 数据=乙",
                "config": None,
            }
        ],
        "left_out": [{"cell": "base_数据甲", "at": "queues/q1.txt:1", "is_dropped": False}],
    }


# --- bad input


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (asked(), "at least one key with values"),
        (asked("lr="), "empty value"),
        (asked("lr=1,1"), "is twice"),
        (asked("lr=1", task=""), "--task is missing, but the command uses {task}."),
        (asked("lr=1", cfg="seed=1"), "the first word is the config"),
        (asked("lr=1", cfg="configs/bas.json"), "there is no config 'configs/bas.json'"),
        (asked("lr=1", cfg="-"), "the command uses {cfg}, but the line has -"),
        (asked("lr=1", cfg="-", configs="g"), "--configs needs a config as its base,"),
        (asked("lr=1", queues=("q9",)), "the job has no queue 'q9'"),
        (asked("lr=1", "after=nobody"), "no queue has a cell with this"),
        (asked("seed=0..99999"), "100,000 cells"),
        (asked("lrr=1,2", configs="configs/g"), "has no key 'lrr' (did you mean 'lr'?)"),
    ],
)
def test_bad_input_is_one_sentence_and_touches_nothing(
    tmp_path: Path, wanted: Asked, said: str
) -> None:
    found = project(tmp_path)
    before = files(tmp_path)
    with pytest.raises(InputError) as caught:
        grid(found, wanted, is_to_write=True)
    assert said in str(caught.value)
    assert len(caught.value.messages) == 1
    assert files(tmp_path) == before


def test_a_name_that_says_another_cell_is_refused_with_both_lines(tmp_path: Path) -> None:
    found = project(tmp_path, {"q1": [f"{BASE} recon 3 lr=1"]})
    before = files(tmp_path)
    with pytest.raises(InputError) as caught:
        grid(found, asked("lr=1,2", epochs=4), is_to_write=True)
    assert f"{BASE} recon 4 lr=1" in str(caught.value)
    assert f"queues/q1.txt:1 has it for '{BASE} recon 3 lr=1'" in str(caught.value)
    assert files(tmp_path) == before


@pytest.mark.parametrize(("values", "name"), [("A,a", "base_taga"), ("a/b,a-b", "base_taga-b")])
def test_two_cells_of_a_grid_that_would_share_a_folder_are_refused_with_the_way_out(
    tmp_path: Path, values: str, name: str
) -> None:
    found = project(tmp_path, {"q1": []})
    with pytest.raises(InputError) as caught:
        grid(found, asked(f"tag={values}", epochs=4))
    one, other = values.split(",")
    lines = f"'{BASE} recon 4 tag={one}' and '{BASE} recon 4 tag={other}'"
    assert f"{lines} would share the name '{name}'" in str(caught.value)
    assert "write its line by hand with name=." in str(caught.value)


def test_what_is_wrong_in_the_queues_already_is_said_as_plan_says_it(tmp_path: Path) -> None:
    found = project(tmp_path, {"q1": ["configs/a.json recon ten"]})
    with pytest.raises(InputError) as caught:
        grid(found, asked("lr=1"), is_to_write=True)
    assert str(caught.value).startswith("queues/q1.txt:1: epochs must be a whole number")


def test_lines_that_the_tier_has_more_are_taken_first(tmp_path: Path) -> None:
    found = project(tmp_path, {"q1": [f"{BASE} recon 3"]})
    shared = found.on_tier.queue("q1")
    shared.parent.mkdir(parents=True)
    shutil.copy(tmp_path / "queues" / "q1.txt", shared)
    grid(found, asked("lr=1"), is_to_write=True)  # a queue that was pushed is appended to
    shared.write_text(f"{BASE} recon 3\nconfigs/theirs.json x\n")
    before = files(tmp_path)
    with pytest.raises(InputError, match=r"has lines that are missing here.* && cp "):
        grid(project(tmp_path), asked("lr=2"), is_to_write=True)
    assert files(tmp_path) == before


# --- killed


class Killed(BaseException):
    """As sudden as a SIGKILL."""


@pytest.mark.parametrize("calls", range(6))
def test_killed_between_two_queue_files_the_same_command_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    found = project(tmp_path, {"q1": [f"{BASE} recon 1"], "q2": []})
    write, left = atomic.write_whole, [calls]

    def until_killed(path: Path, data: bytes) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(rewrite.atomic, "write_whole", until_killed)
        try:
            grid(found, asked(*WORDS), is_to_write=True)
        except Killed:
            assert calls < 5
    finish(tmp_path)
    grid(project(tmp_path), asked(*WORDS), is_to_write=True)
    every = [*lines(tmp_path, "q1"), *lines(tmp_path, "q2")]
    assert len(every) == len(set(every)) == 19
    assert len(open_project(tmp_path / "job.yaml", "local").plan.cells) == 19


# --- one config for each cell


def test_configs_get_a_file_for_each_cell_and_lines_without_overrides(tmp_path: Path) -> None:
    wanted = asked("lr=1e-3,3e-4", "seed=0..1", configs="configs/g", queues=("q1",))
    found = project(tmp_path)
    before = files(tmp_path)
    grid(found, wanted)
    assert files(tmp_path) == before
    grid(found, wanted, is_to_write=True)
    assert lines(tmp_path, "q1")[0] == "configs/g/base_lr1e-3_seed0.json recon"
    made = json.loads((tmp_path / "configs" / "g" / "base_lr3e-4_seed1.json").read_text())
    assert made == {"lr": 0.0003, "seed": 1, "opt": "sgd"}
    before = files(tmp_path)
    grid(project(tmp_path), wanted, is_to_write=True)
    assert files(tmp_path) == before


def test_a_config_with_another_content_is_kept_and_no_line_is_written(tmp_path: Path) -> None:
    found = project(tmp_path)
    mine = tmp_path / "configs" / "g" / "base_lr2.json"
    mine.parent.mkdir()
    mine.write_text("{}")
    before = files(tmp_path)
    with pytest.raises(InputError, match="exists with other content"):
        grid(found, asked("lr=1,2", configs="configs/g"), is_to_write=True)
    assert files(tmp_path) == before


def test_configs_that_were_written_before_a_kill_get_their_lines_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, wanted = project(tmp_path), asked("lr=1,2", configs="configs/g")

    def killed(*words: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "write_queue", killed)
        with pytest.raises(Killed):
            grid(found, wanted, is_to_write=True)
    assert lines(tmp_path, "q1") == lines(tmp_path, "q2") == []
    grid(project(tmp_path), wanted, is_to_write=True)
    assert len(open_project(tmp_path / "job.yaml", "local").plan.cells) == 2
