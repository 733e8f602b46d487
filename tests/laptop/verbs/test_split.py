from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_project import make_project

from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.verbs.split import finish, split
from boxcar.shared.errors import InputError

JOURNAL = Path(__file__).parents[2] / "data" / "v1" / "journal.jsonl"


# --- the verb

QUEUES = {
    "q1": ["configs/long.json recon 8", "configs/mid.json recon 4", "configs/small.json seg 4"],
    "q2": ["configs/tiny.json recon 1"],
}


def project(root: Path, queues: dict[str, list[str]] = QUEUES) -> Project:
    make_project(root, queues)
    return open_project(root / "job.yaml", "local")


def cells_of(root: Path, queue: str) -> list[str]:
    found = open_project(root / "job.yaml", "local").plan.cells
    return [cell.name for cell in found if cell.queue == queue]


def test_without_write_it_shows_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = project(tmp_path)
    before = {path: path.read_bytes() for path in found.queue_files.values()}
    assert split(found) == 0
    assert {path: path.read_bytes() for path in before} == before
    assert not (tmp_path / ".boxcar").exists()
    shown = capsys.readouterr()
    assert "→ q2" in shown.out
    assert "16 epochs" in shown.out and "9 epochs" in shown.out
    assert "To move the cells: invoke split --write" in shown.err


def test_with_write_the_queues_end_at_about_one_time_and_it_stays_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert split(project(tmp_path), write=True) == 0
    assert (cells_of(tmp_path, "q1"), cells_of(tmp_path, "q2")) == (
        ["long", "tiny"],
        ["mid", "small"],
    )
    before = (tmp_path / "queues" / "q1.txt").read_bytes()
    capsys.readouterr()
    again = open_project(tmp_path / "job.yaml", "local")
    assert split(again, write=True, as_json=True) == 0
    assert (tmp_path / "queues" / "q1.txt").read_bytes() == before
    assert json.loads(capsys.readouterr().out)["is_written"] is False


def test_files_that_are_as_even_already_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        f"configs/c{number}.json recon {epochs}" for number, epochs in enumerate([3, 3, 2, 2, 2])
    ]
    found = project(tmp_path, {"q1": lines[:2], "q2": lines[2:]})  # the best; longest first makes 7
    split(found, as_json=True)
    shown = capsys.readouterr()
    assert all(cell["queue"] == cell["to"] for cell in json.loads(shown.out)["cells"])
    assert "the queues are already balanced" in shown.err


def test_what_earlier_runs_took_is_what_a_cell_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = project(
        tmp_path,
        {"q1": ["configs/recon_baseline.json reconstruction 60", "configs/n.json x 2"], "q2": []},
    )
    (tmp_path / "results" / "old" / "journal").mkdir(parents=True)
    shutil.copy(JOURNAL, tmp_path / "results" / "old" / "journal" / "queue_1.jsonl")
    (tmp_path / "results" / "old" / "journal" / "bad.jsonl").write_text("no journal\n")
    split(found, as_json=True)
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["unit"] == "seconds"
    cells = {cell["cell"]: cell for cell in document["cells"]}
    assert cells["recon_baseline"]["amount"] == pytest.approx(10.881 + 19.208)
    assert cells["recon_baseline"]["source"] == "measured"
    assert cells["n"]["source"] == "other tasks"
    assert "bad.jsonl: skipped" in shown.err


def test_minutes_and_speeds_may_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = project(tmp_path)
    split(found, minutes=["recon=10", "tiny=60"], speeds=["box-b=3"], as_json=True)
    document = json.loads(capsys.readouterr().out)
    cells = {cell["cell"]: cell["amount"] for cell in document["cells"]}
    assert (cells["long"], cells["mid"], cells["tiny"]) == (600, 600, 3600)
    assert [queue["speed"] for queue in document["queues"]] == [1.0, 3.0]
    assert {cell["cell"]: cell["to"] for cell in document["cells"]}["tiny"] == "q2"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            {"speeds": ["box-c=2"]},
            "--speed box-c=2: the job has no box 'box-c' (did you mean 'box-b'?)",
        ),
        ({"speeds": ["box-a=0"]}, "expected a number above 0, found '0'"),
        ({"speeds": ["box-a=inf"]}, "expected a number above 0, found 'inf'"),
        ({"speeds": ["box-a=fast"]}, "expected a number above 0, found 'fast'"),
        ({"minutes": ["recn=5"]}, "did you mean 'recon'?"),
        ({"minutes": ["recon"]}, "expected NAME=NUMBER"),
        ({"speeds": ["box-a"]}, "--speed box-a: expected NAME=NUMBER, such as box-a=2"),
    ],
)
def test_a_bad_number_is_refused(tmp_path: Path, flags: dict[str, list[str]], words: str) -> None:
    with pytest.raises(InputError) as caught:
        split(project(tmp_path), **flags)
    assert words in str(caught.value)


def test_queues_on_the_tier_are_never_rewritten(tmp_path: Path) -> None:
    found = project(tmp_path)
    shared = found.on_tier.queue("q2")
    shared.parent.mkdir(parents=True)
    shutil.copy(found.queue_files["q2"], shared)
    before = {path: path.read_bytes() for path in found.queue_files.values()}
    with pytest.raises(InputError, match="q2: already on the durable tier, where lines can only"):
        split(found, write=True)
    assert {path: path.read_bytes() for path in before} == before
    assert split(found) == 0  # looking is allowed


def test_a_killed_write_is_finished_before_the_project_is_opened(tmp_path: Path) -> None:
    found = project(tmp_path)
    paths = [found.queue_files["q1"], found.queue_files["q2"]]
    both = paths[0].read_text() + paths[1].read_text()
    record = {str(path): [path.read_text(), ""] for path in paths}
    record[str(paths[1])][1] = both
    (tmp_path / ".boxcar").mkdir()
    (tmp_path / ".boxcar" / "split.json").write_text(json.dumps(record))
    paths[1].write_text(both)
    with pytest.raises(InputError, match="To finish it: invoke split"):
        open_project(tmp_path / "job.yaml", "local")
    finish(tmp_path)
    assert cells_of(tmp_path, "q2") == ["long", "mid", "small", "tiny"]
    finish(tmp_path)
