"""A stream of kubectl's may be cut, and kubectl then ends with 0: the link counts as cut, and the
same is tried again, and a copy goes on. And what two laptops do at once.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kube_cluster import KubeCluster
from on_kube import OnKube, on_kube
from proof import assert_pulled
from tiny_project import ARTIFACTS
from waiting import until

# What the cell was given is what it leaves.
COPY = """
import shutil
shutil.copy(Path(os.environ["BOXCAR_DATA"], "set", "all.bin"), out / "weights.bin")
"""
GOES_ON = "the connection was lost; the copy continues"
ONE = {"a": ["configs/one.json t"]}


@pytest.fixture(autouse=True)
def nothing_stays(kube: KubeCluster) -> Iterator[None]:
    yield
    kube.make("no-faults")
    kube.kubectl("delete", "job,pod,secret", "-l", "boxcar-run=tiny", "--grace-period=0", "--force")


def wait_for_end(project: OnKube, *cells: str) -> None:
    for cell in cells:
        manifest = project.tier / "cells" / cell / "manifest.json"
        until(manifest.exists, lambda: project.boxcar("status"))
    until(lambda: project.types("a")[-1:] == ["agent.stopped"])


def test_a_copy_that_is_cut_goes_on_and_a_look_is_put_again(
    kube: KubeCluster, tmp_path: Path
) -> None:
    artifacts = [*ARTIFACTS, "weights.bin"]
    project = on_kube(tmp_path, kube, ONE, artifacts=artifacts, data={"set": "pictures"})
    pictures, size_bytes = project.root / "pictures" / "all.bin", 6_000_000
    pictures.parent.mkdir()
    pictures.write_bytes(random.Random(1).randbytes(size_bytes))
    train = project.root / "train.py"
    train.write_text(train.read_text() + COPY)
    half = size_bytes // 2
    kube.make("cut-exec", bytes=half, of="/.data/", is_of_stdin=True)
    sent = project.boxcar("launch", "--no-smoke").ended(0)
    assert GOES_ON in sent.err, sent
    wait_for_end(project, "one")
    # Else the look may meet two faults: the pod's own end, and then the cut.
    until(lambda: kube.get("job", project.job("a"))["status"].get("succeeded"))
    kube.make("cut-exec", bytes=7)
    said = project.boxcar("status").ended(0)
    assert "verified" in said.out and "does not answer" not in said.err, said
    kube.make("cut-exec", bytes=half, of="/tiny/cells/")
    pulled = project.boxcar("pull").ended(0)
    assert GOES_ON in pulled.err, pulled
    weights = project.results / "cells" / "one" / "weights.bin"
    assert weights.read_bytes() == pictures.read_bytes()
    assert_pulled(project, ["one"])


@pytest.mark.faults
def test_of_two_laptops_that_launch_at_once_one_submits(kube: KubeCluster, tmp_path: Path) -> None:
    first = on_kube(tmp_path, kube, ONE)
    first.write_config("one", hold_at=1, until="/checkpoints/let-go")
    shutil.copytree(first.root, tmp_path / "another" / "project")
    second = replace(first, root=tmp_path / "another" / "project")
    started = [one.start("launch", "--no-smoke") for one in (first, second)]
    ended = [(*process.communicate(), process.returncode) for process in started]
    assert [job["metadata"]["name"] for job in kube.all("jobs")] == [first.job("a")], ended
    assert 0 in [code for _, _, code in ended], ended
    for _, err, code in ended:
        words = ("waits", "somebody else", "left alone", "at this moment")
        assert code == 0 or any(word in err for word in words), ended
    (first.tier.parents[1] / "let-go").touch()
    wait_for_end(first, "one")
    assert first.types("a", "one").count("cell.started") == 1


@pytest.mark.faults
def test_two_runs_that_launch_at_once_in_a_namespace_both_come_home(
    kube: KubeCluster, tmp_path: Path
) -> None:
    projects = []
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        projects.append(on_kube(tmp_path / name, kube, ONE))
    for process in [one.start("launch", "--no-smoke") for one in projects]:
        assert process.communicate() and process.returncode == 0
    for project in projects:
        wait_for_end(project, "one")
        project.boxcar("pull").ended(0)
        project.boxcar("verify").ended(0)
        project.boxcar("down", typed="tiny\n").ended(0)
    assert kube.all("jobs,pods,secrets") == []
