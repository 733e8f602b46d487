"""`down` where the box can end its own meter, as on AutoDL: the verb is run there."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hosts import Hosts
from rented import Rented, hurry, rent
from waiting import until

BEGUN = Hosts.data_dir / "told"
STOP = {
    "verb": "关机",
    "does": "stop the meter; the disks stay",
    "is_reversible": True,
    "where": "the console",
    # What a shutdown is to the laptop: nobody answers any more.
    "from_box": f"sh -c 'touch {BEGUN}; sleep 3; exec pkill -x sshd'",
}
METER = {"is_billed": True, "down": "stop", "stop": STOP, "verified": "2026-11",
         "confidence": "documented"}  # fmt: skip


def verified_run(hosts: Hosts, root: Path) -> Rented:
    lines = {"queue_1": ["configs/a.json recon 1"], "queue_2": ["configs/b.json recon 1"]}
    project = rent(hosts, root, lines, profile={"meter": METER})
    project.launch().ended(0)
    project.watch()
    for verb in ("pull", "verify"):
        project.boxcar(verb).ended(0)
    return project


@pytest.mark.faults
def test_the_boxes_stop_themselves_once_approved_and_a_down_that_broke_off_goes_on(
    hosts: Hosts, tmp_path: Path
) -> None:
    hurry(hosts)
    project = verified_run(hosts, tmp_path / "project")
    assert project.credentials("box-a").exists()

    assert "not approved yet" in project.boxcar("down").ended(1).err
    assert hosts.run("box-a", ["pgrep", "-x", "sshd"]).stdout

    hosts.cut("box-b")  # between the gate and the verb there is time for this
    refused = project.boxcar("down", typed="tiny").ended(1)
    assert "box-b does not answer" in refused.err and "nothing was removed" in refused.err
    assert project.credentials("box-a").exists()

    hosts.heal("box-b")
    with ThreadPoolExecutor(1) as pool:
        untold = pool.submit(project.boxcar, "down", typed="tiny")
        until(hosts.seen("box-a", BEGUN).exists, "box-a was told")
        hosts.cut("box-b")  # between two verbs there is time for it, too
        said = untold.result().ended(75)
    assert "box-b: could not be told to shut down" in said.err and "done" not in said.err
    teardown = json.loads((project.results / "teardown.json").read_text())
    assert not teardown["finished_at"] and list(teardown["off"]) == ["box-a"]
    assert hosts.run("box-b", ["pgrep", "-x", "sshd"]).stdout

    hosts.heal("box-b")
    done = project.boxcar("down").ended(0)
    assert "关机: done" in done.err
    assert not project.credentials("box-a").exists()
    for box in ("box-a", "box-b"):
        assert hosts.run(box, ["pgrep", "-x", "sshd"], check=False).stdout == b""
    teardown = json.loads((project.results / "teardown.json").read_text())
    assert sorted(teardown["boxes"]) == ["box-a", "box-b"] and teardown["verb"] == "关机"
    # What survives the verb is still on the tier, and the run is over for the laptop.
    assert (project.tier / "cells/a/manifest.json").exists()
    assert "was torn down" in project.boxcar("status").ended(0).err
    assert "torn down" in project.boxcar("launch").ended(2).err


@pytest.mark.faults
def test_a_box_that_is_gone_for_good_is_said_to_be_and_never_guessed(
    hosts: Hosts, tmp_path: Path
) -> None:
    hurry(hosts)
    project = verified_run(hosts, tmp_path / "project")
    because = ("--because", "the host left the market")
    assert "it answers" in project.boxcar("down", "--gone", "box-b", *because).ended(2).err
    hosts.destroy("box-b")
    refused = project.boxcar("down", typed="tiny").ended(1)
    assert "box-b does not answer" in refused.err and "--gone BOX" in refused.err
    unknown = project.boxcar("down", "--gone", "box-x", *because).ended(2)
    assert "has no box 'box-x'" in unknown.err
    project.boxcar("down", "--gone", "box-b", *because, typed="tiny").ended(75)
    teardown = json.loads((project.results / "teardown.json").read_text())
    assert teardown["gone"] == {"box-b": because[1]} and list(teardown["boxes"]) == ["box-a"]
    # That it will never answer says nothing of its bill: the other one fell silent after its verb.
    assert "yours is open: 1 box may still bill" in project.boxcar("down").ended(75).err
    assert "seen off: box-b" in project.boxcar("down", "--seen-off", "box-b").ended(0).err
