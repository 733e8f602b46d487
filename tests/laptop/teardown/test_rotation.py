from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from boxcar.laptop.project import launches
from boxcar.laptop.project.from_environment import credential_names
from boxcar.laptop.project.job import Job, read_job
from boxcar.laptop.teardown import rotation
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.paths import ResultPaths

AT = "2026-01-01T00:00:00.000Z"
BEGUN = Teardown("tiny", "ab" * 32, "verb", AT, "typed")
JOB = """name: tiny
command: train.py {cfg}
queues: {queues/q1.txt: box-a}
artifacts: [metrics.json]
secrets: [WANDB_API_KEY, MY_KEY]
notify: [{webhook: {url: "env:HOOK_URL", secret: "env:HOOK_SECRET"}}]
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "job.yaml").write_text(JOB)
    return read_job(tmp_path / "job.yaml")


def written(results: ResultPaths, teardown: Teardown) -> None:
    atomic.make_folder(results.root)
    atomic.write_whole(results.teardown, codec.to_document(teardown))


def test_what_goes_to_a_box_is_named_and_never_its_value(tmp_path: Path, job: Job) -> None:
    assert credential_names(job) == ("WANDB_API_KEY", "MY_KEY", "HOOK_URL", "HOOK_SECRET")
    results = ResultPaths(tmp_path / "results", "tiny")
    before = ["OLD_KEY", "MY_KEY"]
    launches.append_launch(results, "autodl", "r", ["q1"], is_smoked=True, credentials=before)
    names = rotation.held_credentials(job, results)
    assert names == ["HOOK_SECRET", "HOOK_URL", "MY_KEY", "OLD_KEY", "WANDB_API_KEY"]


def test_a_launch_of_an_earlier_version_recorded_no_names(tmp_path: Path) -> None:
    results = ResultPaths(tmp_path / "results", "tiny")
    atomic.make_folder(results.root)
    (results.root / launches.LAUNCHES).write_text('{"profile": "autodl"}\n[]\n{"credentials')
    assert launches.credentials_of(results) == set()


def test_a_box_whose_secrets_went_before_exposes_nothing() -> None:
    begun = replace(BEGUN, boxes={"box-a": AT}, gone={"box-c": "lost"}, exposed={"K": "box-c"})
    assert rotation.exposed_credentials(begun, ["box-a"], ["K"]) == {"K": "box-c"}
    assert rotation.exposed_credentials(begun, ["box-c"], ["K"]) == {"K": "box-c"}
    assert rotation.exposed_credentials(begun, ["box-b"], ["K", "L"]) == {
        "K": "box-c, box-b",
        "L": "box-b",
    }


def test_it_is_said_until_each_was_replaced(tmp_path: Path) -> None:
    results = ResultPaths(tmp_path / "results", "tiny")
    teardown = replace(BEGUN, exposed={"WANDB_API_KEY": "box-b", "MY_KEY": "box-b"})
    written(results, teardown)
    texts = [str(message) for message in rotation.rotation_steps(teardown)]
    assert "rotate WANDB_API_KEY: it is still on box-b" in texts[0]
    assert "https://wandb.ai/settings" in texts[0] and "where you created it" in texts[1]
    assert texts[-1].endswith("invoke down --rotated WANDB_API_KEY --rotated MY_KEY")
    now = rotation.confirm_rotated(results, ["WANDB_API_KEY"])
    assert receipt.read_teardown(results.teardown) == now
    assert rotation.unrotated(now) == {"MY_KEY": "box-b"}
    assert rotation.rotation_steps(rotation.confirm_rotated(results, ["MY_KEY"])) == []
    assert rotation.rotation_steps(None) == []


@pytest.mark.parametrize("exposed", [{}, {"MY_KEY": "box-b"}])
def test_what_was_not_to_be_rotated_is_refused(tmp_path: Path, exposed: dict[str, str]) -> None:
    results = ResultPaths(tmp_path / "results", "tiny")
    written(results, replace(BEGUN, exposed=exposed))
    with pytest.raises(InputError, match=r"MYKEY|no box was given up"):
        rotation.confirm_rotated(results, ["MYKEY"])
