from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.project.project import Project, open_project
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec


def write_project(root: Path) -> Path:
    (root / "queues").mkdir(parents=True)
    (root / "train.py").touch()
    (root / "a.json").touch()
    (root / "queues" / "q1.txt").write_text("a.json recon 2\n")
    job = root / "job.yaml"
    job.write_text(
        "name: run-1\ncommand: train.py --config {cfg} --out {out}\n"
        "queues: {queues/q1.txt: box-a}\nartifacts: [best.pth]\n"
    )
    return job


def test_a_project_knows_its_places(tmp_path: Path) -> None:
    project = open_project(write_project(tmp_path), "local")
    assert project.root == tmp_path.resolve()
    assert project.queue_files == {"q1": project.root / "queues" / "q1.txt"}
    assert project.on_tier.root == project.root / ".boxcar/local/durable/boxcar/run-1"
    assert project.scratch("box-a").root == project.root / ".boxcar/local/boxes/box-a/boxcar/run-1"
    assert project.results.root == project.root / "results" / "run-1"


def test_a_relative_job_path_gives_absolute_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path / "my project")
    monkeypatch.chdir(tmp_path / "my project")
    project = open_project(Path("job.yaml"), "local")
    assert project.root == (tmp_path / "my project").resolve()
    assert Path(project.plan.box("box-a").credentials).is_absolute()


def test_a_box_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    project = open_project(write_project(tmp_path), "local")
    with pytest.raises(
        InputError, match=r"no box 'box-b' \(did you mean 'box-a'\?\); it has: box-a"
    ):
        project.scratch("box-b")


def test_problems_of_job_and_profile_are_told_together(tmp_path: Path) -> None:
    job = write_project(tmp_path)
    job.write_text("nmae: run-1\n")
    with pytest.raises(InputError) as caught:
        open_project(job, "locl")
    message = str(caught.value)
    assert f"{job}:1: unknown key 'nmae' (did you mean 'name'?)" in message
    assert "there is no profile 'locl' (did you mean 'local'?)" in message


def test_opening_a_project_writes_nothing(tmp_path: Path) -> None:
    job = write_project(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert isinstance(open_project(job, "local"), Project)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("profile", "grace_s", "is_written"),
    [("local", 60.0, False), ("ssh", 60.0, False), ("runpod", 5.0, True), ("vastai", 0.0, True)],
)
def test_the_box_is_told_how_long_the_platform_waits_before_it_takes_it_back(
    tmp_path: Path, profile: str, grace_s: float, is_written: bool
) -> None:
    plan = open_project(write_project(tmp_path), profile).plan
    assert plan.grace_s == grace_s
    # What is usual is not written: a release that says nothing new keeps its digest.
    assert (b"grace_s" in codec.to_document(plan)) is is_written


def test_despite_faults_a_project_opens_with_the_cells_that_are_known(tmp_path: Path) -> None:
    job = write_project(tmp_path)
    (tmp_path / "a.json").unlink()
    (tmp_path / "queues/q1.txt").write_text("a.json recon 2\nhalf-writ\n")
    project = open_project(job, "local", despite_faults=True)
    assert [(cell.name, cell.cfg) for cell in project.plan.cells] == [("a", "a.json")]
    (doubt,), (fault,) = project.doubts, project.faults
    assert "queues/q1.txt:2" in doubt.text and "there is no config 'a.json'" in fault.text
    with pytest.raises(InputError) as caught:
        open_project(job, "local")
    assert caught.value.messages == (doubt, fault)


def test_despite_faults_a_project_must_still_say_where_its_run_lives(tmp_path: Path) -> None:
    job = write_project(tmp_path / "a:b")
    with pytest.raises(InputError, match="tier cannot have a ':'"):
        open_project(job, "local", despite_faults=True)


@pytest.mark.parametrize(("profile", "hours"), [("vastai", 3), ("autodl", 24), ("mine", 0.5)])
def test_the_box_is_told_how_long_boxes_of_its_kind_live(
    tmp_path: Path, profile: str, hours: float
) -> None:
    job = write_project(tmp_path)
    (tmp_path / "profiles").mkdir()
    mine = "name: mine\nextends: vastai\nspot: {interrupted_every_s: 1800}\n"
    (tmp_path / "profiles" / "mine.yaml").write_text(mine)
    assert open_project(job, profile).plan.interrupted_every_s == hours * 3600


@pytest.mark.parametrize(
    ("limit", "bytes_per_s"), [("", None), ("mirror: {bandwidth_mb_s: 80}", 8e7)]
)
def test_the_box_is_told_what_a_mirror_may_take_of_the_tier(
    tmp_path: Path, limit: str, bytes_per_s: float | None
) -> None:
    job = write_project(tmp_path)
    (tmp_path / "profiles").mkdir()
    mine = f"name: mine\nextends: autodl\nstorage: {{{limit}}}\n"
    (tmp_path / "profiles" / "mine.yaml").write_text(mine)
    assert open_project(job, "mine").plan.mirror_bytes_per_s == bytes_per_s
