"""A queue file of several boxes that share no durable tier: a file for each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.project.queues import rewrite
from boxcar.shared.errors import InputError

JOB = """\
name: run-1
command: train.py --task {task} --epochs {epochs} --out {out}
queues: {queues/all.txt: [box-a, box-b]}
artifacts: [best.pth]
"""
LINES = "- t 8 name=long\n# two of these\n- t 5 name=mid\n- t 4 name=short\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "queues").mkdir()
    (tmp_path / "train.py").touch()
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "queues" / "all.txt").write_text(LINES)
    return tmp_path


def opened(root: Path) -> Project:
    return open_project(root / "job.yaml", "runpod")


def dealt(project: Project) -> dict[str, list[str]]:
    cells = project.plan.cells
    return {q: [c.name for c in cells if c.queue == q] for q in project.plan.queues}


def write(project: Project) -> Project:
    rewrite.write_queue(project.root, project.to_deal)
    return opened(project.root)


def test_lines_go_to_the_box_that_ends_them_earliest_and_nothing_is_written_by_a_look(root: Path):
    project = opened(root)
    assert project.plan.queues == {"all-box-a": "box-a", "all-box-b": "box-b"}
    assert dealt(project) == {"all-box-a": ["long"], "all-box-b": ["mid", "short"]}
    assert [path.name for path in (root / "queues").iterdir()] == ["all.txt"]


def test_what_is_dealt_stays_where_it_is_and_a_new_line_goes_to_who_has_less(root: Path):
    project = write(opened(root))
    assert not project.to_deal
    assert dealt(project) == {"all-box-a": ["long"], "all-box-b": ["mid", "short"]}
    with (root / "queues" / "all.txt").open("a") as file:
        file.write("- t 20 name=new\n- t 1 name=last\n")
    assert dealt(opened(root)) == {
        "all-box-a": ["long", "new"],
        "all-box-b": ["mid", "short", "last"],
    }
    project = write(opened(root))
    assert (root / "queues" / "all-box-a.txt").read_text().splitlines()[1:] == [
        "- t 8 name=long",
        "- t 20 name=new",
    ]
    assert not project.to_deal


def test_a_line_that_was_dropped_or_moved_is_not_dealt_out_again(root: Path):
    write(opened(root))
    a, b = (root / "queues" / f"all-box-{box}.txt" for box in "ab")
    b.write_text(b.read_text().replace("- t 5 name=mid", "# - t 5 name=mid"))
    assert dealt(opened(root)) == {"all-box-a": ["long"], "all-box-b": ["short"]}
    a.write_text(a.read_text() + "- t 5 name=mid\n")
    assert dealt(opened(root)) == {"all-box-a": ["long", "mid"], "all-box-b": ["short"]}


def test_a_box_that_joins_gets_the_next_lines(root: Path):
    write(opened(root))
    (root / "job.yaml").write_text(JOB.replace("box-b]", "box-b, box-c]"))
    with (root / "queues" / "all.txt").open("a") as file:
        file.write("- t 1 name=new\n")
    assert dealt(opened(root))["all-box-c"] == ["new"]


def test_a_box_that_left_the_list_and_has_cells_is_said(root: Path):
    write(opened(root))
    (root / "job.yaml").write_text(JOB.replace("[box-a, box-b]", "[box-a]"))
    with pytest.raises(InputError) as caught:
        opened(root)
    said = " ".join(caught.value.problems)
    assert "box-b is not in the list any more, but 2 cells were dealt to it" in said


def test_a_mistake_is_said_where_the_person_wrote_it(root: Path):
    (root / "queues" / "all.txt").write_text(LINES + "configs/gone.yaml t 1 name=gone\n- t\n")
    with pytest.raises(InputError) as caught:
        opened(root)
    assert any("queues/all.txt:6" in one for one in caught.value.problems)
    (root / "queues" / "all.txt").write_text(LINES + "configs/gone.yaml t 1 name=gone\n")
    with pytest.raises(InputError) as caught:
        opened(root)
    assert [one for one in caught.value.problems if one.startswith("queues/all.txt:5")]


def test_where_a_part_cannot_be_read_nothing_is_dealt_twice(root: Path):
    write(opened(root))
    part = root / "queues" / "all-box-b.txt"
    part.unlink()
    part.mkdir()
    with pytest.raises(InputError, match="all-box-b"):
        opened(root)


def test_with_a_shared_tier_the_file_stays_one(root: Path):
    project = open_project(root / "job.yaml", "autodl")
    assert set(project.plan.queues) == {"all@box-a", "all@box-b"} and not project.to_deal
