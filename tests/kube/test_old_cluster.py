"""A cluster before 1.26, whose Jobs cannot tell ends apart: the container turns what must not be
tried again into a 0.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_cluster import kube_cluster
from on_kube import on_kube
from waiting import until


@pytest.mark.faults
def test_before_1_26_a_failed_cell_ends_its_job_and_the_next_launch_makes_it_anew(
    tmp_path: Path,
) -> None:
    with kube_cluster(tmp_path / "k", version="1.24") as kube:
        project = on_kube(tmp_path, kube, {"a": ["configs/bad.json t"]})
        project.write_config("bad", exit_code=42)
        said = project.boxcar("audit").ended(0)
        assert "before 1.26 a Job cannot tell ends apart" in said.out
        project.boxcar("launch", "--no-smoke")
        name = project.job("a")
        until(lambda: "CompletionsReached" in kube.kubectl("get", "job", name, "-o", "yaml"))
        first = kube.get("job", name)
        assert "podFailurePolicy" not in first["spec"] and "failed" not in first["status"]
        (pod,) = kube.pods(name)
        state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (state["exitCode"], state["message"]) == (0, "the agent ended with 1\n")
        said = project.boxcar("status")
        assert "failed" in said.out and "bad" in said.out, said
        # Mended, the same command tries it again, by a new Job of that name.
        project.write_config("bad")
        project.boxcar("launch", "--no-smoke").ended(0)
        manifest = project.tier / "cells" / "bad" / "manifest.json"
        until(manifest.exists, lambda: project.boxcar("status"))
        until(lambda: project.types("a")[-1:] == ["agent.stopped"])
        assert kube.get("job", name)["metadata"]["uid"] != first["metadata"]["uid"]
        project.boxcar("pull").ended(0)
        project.boxcar("verify").ended(0)
        project.boxcar("down", typed="tiny\n").ended(0)
        assert kube.all("jobs,pods,secrets") == []


@pytest.mark.faults
def test_before_1_26_a_kill_starts_the_agent_again(tmp_path: Path) -> None:
    with kube_cluster(tmp_path / "k", version="1.24") as kube:
        project = on_kube(tmp_path, kube, {"a": ["configs/one.json t"]})
        project.write_config("one", hold_at=1, until="/checkpoints/let-go")
        project.boxcar("launch", "--no-smoke").ended(0)
        first = kube.running_pod(project.job("a"))
        until((project.tier / "claims" / "one.json").exists)
        kube.make("kill", pod=first)
        until(lambda: kube.running_pod(project.job("a")) != first)
        (project.tier.parents[1] / "let-go").touch()
        manifest = project.tier / "cells" / "one" / "manifest.json"
        until(manifest.exists, lambda: project.boxcar("status"))
        assert project.types("a", "one").count("cell.started") == 2
