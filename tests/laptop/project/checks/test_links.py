"""Links to the code's folders: what of them is refused, each with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.project.project import open_project
from boxcar.laptop.verbs.plan import plan
from boxcar.shared.errors import InputError

JOB = """\
name: run-1
command: train.py
launcher: python
queues: {queue.txt: box-a}
"""
OUT = "workdir: out\nartifacts: [checkpoints/]\n"


def project(root: Path, more: str, queue: str = "- unet\n") -> Path:
    for name in ("data/a.txt", "sets/cifar/b.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("1")
    (root / "train.py").write_text("print(open('data/a.txt').read())\n")
    (root / "queue.txt").write_text(queue)
    (root / "job.yaml").write_text(JOB + more)
    return root / "job.yaml"


def test_the_plan_has_each_name_and_its_folder(tmp_path: Path) -> None:
    job = project(tmp_path, f"{OUT}links: [data/, cifar: sets/cifar]\n")
    assert open_project(job, "local").plan.links == {"data": "data", "cifar": "sets/cifar"}
    assert open_project(project(tmp_path, f"{OUT}links: data\n"), "local").plan.links == {
        "data": "data"
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (f"{OUT}links: [../data]\n", "'../data' is not a name below {out}"),
        (f"{OUT}links: [sets/cifar]\n", "- data: datasets/cifar"),
        (f"{OUT}links: [data: ../data]\n", "'../data' must be a plain relative path"),
        (f"{OUT}links: [manifest.json]\n", "'manifest.json' is not a name below {out}"),
        (f"{OUT}links: ['d*']\n", "'d*' is not a name below {out}"),
        (f"{OUT}links: [[data]]\n", "expected one string"),
        (f"{OUT}links:\n", "expected one string"),
        (f"{OUT}links: [data, data: sets]\n", "'data' is listed twice"),
        (f"{OUT}links: [models]\n", "there is no folder 'models' in the code folder"),
        (f"{OUT}links: [train.py]\n", "there is no folder 'train.py' in the code folder"),
        (
            "artifacts: []\nlinks: [data]\n",
            "the command starts in the code folder, which has those folders.",
        ),
        ("workdir: out\nartifacts: [data/best.pth]\nlinks: [data]\n", "artifacts looks for"),
        (f"{OUT}links: [data]\nresume: data/last.pth\n", "resume looks for 'data/last.pth'"),
        (f"{OUT}links: [data]\ncollect: [data/]\n", "collect looks for 'data' in it: nothing"),
        (f"{OUT}links: [data]\nscratch: [data/x]\n", "scratch looks for 'data/x' in it: nothing"),
        (
            f"{OUT}links: [data]\nmetrics: {{top1: {{csv: data/log.csv, column: a}}}}\n",
            "metrics looks for 'data/log.csv' in it",
        ),
        (
            f"{OUT}links: [data]\ncells: {{unet: {{artifacts: [data/best.pth]}}}}\n",
            "artifacts looks for 'data/best.pth' in it",
        ),
    ],
)
def test_what_does_not_go_is_one_sentence_at_its_line(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        open_project(project(tmp_path, more), "local")
    [problem] = raised.value.problems
    assert said in problem and problem.startswith(str(tmp_path / "job.yaml") + ":")


def test_a_pattern_may_match_the_name_of_a_link(tmp_path: Path) -> None:
    job = project(tmp_path, "workdir: out\nartifacts: ['*/']\nlinks: [data]\n")
    assert open_project(job, "local").plan.links == {"data": "data"}


def test_a_folder_of_which_nothing_travels_is_said_before_a_box_misses_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = project(tmp_path, f"{OUT}links: [data]\n")
    (tmp_path / ".boxcarignore").write_text("data/\n")
    assert plan(open_project(job, "local"), as_json=False) == 1
    assert "data: nothing in this folder is sent," in capsys.readouterr().err


def test_a_word_that_a_link_leads_to_is_no_slip(tmp_path: Path) -> None:
    told = {
        links: open_project(
            project(tmp_path, f"{OUT}{links}", "- unet -- --data data/a.txt\n"), "local"
        ).take_notes()
        for links in ("", "links: [data]\n", "links: [data: sets]\n")
    }
    assert [len(notes) for notes in told.values()] == [1, 0, 1]
