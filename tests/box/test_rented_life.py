"""`up` to `down` with real sshd hosts behind a stand-in for vast.ai: a box is outbid in the middle,
another one takes its place, and the run is verified and ended.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked_verb import QUICK_CLOCK
from hosts import Hosts
from rented import Rented, hurry, rent
from stand_in_providers import KEY, Box, environment, stand_in
from waiting import until

from boxcar.shared import timestamp
from boxcar.shared.disk import lock

# Which real host stands behind the first, the second box that is rented.
BEHIND = ("box-a", "box-b")
STOPPED = {"is_billed": True, "down": "destroy", "off_price": "0.05 USD/h"}


class Market:
    """The stand-in, whose boxes are hosts that boot when they are rented."""

    def __init__(self, hosts: Hosts, server: Any) -> None:
        self.hosts, self.server, self.used = hosts, server, 0
        server.on_create = self.boot

    def boot(self, box: Box) -> None:
        name = BEHIND[self.used]
        self.used += 1
        env = {"BOXCAR_RENTED": box.stamp, "CONTAINER_ID": box.id}
        if name == "box-a":
            env["CONTAINER_API_KEY"] = "0wn-k3y"
        self.hosts.set_up(name, environment=env)
        found = re.search(rf"Host {name}\n  HostName (\S+)", self.hosts.config.read_text())
        assert found
        box.host, box.port = found[1], 22


def settings(tmp_path: Path, server: Any) -> Mapping[str, str]:
    home = tmp_path / "person"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / ".ssh/id_ed25519")]
    subprocess.run(words, check=True)
    there = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), QUICK_CLOCK: "1"}
    return there | environment(server)


def records(env: Mapping[str, str]) -> list[dict[str, Any]]:
    folder = Path(env["XDG_STATE_HOME"]) / "boxcar" / "rented"
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return sorted(found, key=lambda one: one["asked_at"])


def by_hand(project: Rented, new: Mapping[str, Any]) -> float:
    """From the first word of each agent to its last: 0.5 an hour on the first box, 0.8 after."""
    spans: list[list[float]] = []
    for event in project.events("queue_1"):
        at_s = timestamp.parse_utc(event["at"]).timestamp()
        if event["type"] == "agent.started":
            spans.append([0.5 if event["at"] < new["asked_at"] else 0.8, at_s, at_s])
        spans[-1][2] = at_s
    return sum(rate * (end_s - begin_s) / 3600 for rate, begin_s, end_s in spans)


@pytest.mark.faults
def test_up_launch_outbid_replace_verify_and_down(hosts: Hosts, tmp_path: Path) -> None:
    hurry(hosts)
    with stand_in("vastai") as server:
        market, env = Market(hosts, server), settings(tmp_path, server)
        stranger = server.stranger()
        project = rent(
            hosts, tmp_path / "project", {"queue_1": ["configs/a.json recon 3"]},
            profile={"extends": "vastai"},
        )  # fmt: skip
        project.hold("a", 2)
        project.write_job()

        said = project.boxcar(
            "up", "--spot", "--max-price", "0.5", "--hours", "2", typed="y", env=env
        )
        assert "box-a is up" in said.err, said
        [first] = records(env)
        assert first["up_at"] and first["id"] in server.boxes and first["rate"] == 0.5

        assert "stops itself" in said.err and "no deadline" not in said.err
        assert lock.is_held(project.box("box-a") / "deadline"), "from the first minute"

        # As after a restart of the box: what waited there is gone.
        deadline = project.box("box-a") / "deadline"
        hosts.run("box-a", ["pkill", "-f", f" deadline .*/{deadline.name} vast "])
        until(lambda: not lock.is_held(deadline), "the deadline has died")
        project.launch(env=env).ended(0)
        assert lock.is_held(deadline), "laid again by the launch"
        history = project.box("box-a") / "cells" / "a" / "out" / "history.txt"
        until(lambda: history.exists() and "step 2" in history.read_text(), project.told)
        copied = project.tier / "cells" / "a" / "resume" / "resume.json"
        until(copied.exists, project.told)

        server.outbid(first["id"])
        hosts.halt("box-a")
        assert "orphan" in project.boxcar("orphans", env=env).err
        assert "its deadline may have stopped it" in project.boxcar("status", env=env).err

        said = project.boxcar(
            "up", "--replace", "box-a", "--spot", "--max-price", "0.8", typed="y", env=env
        )
        assert "keeps its disk" in said.err and "box-a is up" in said.err, said
        assert "CONTAINER_API_KEY is not set" in said.err, "nothing stops this one"
        assert server.calls("create") == 2 and server.calls("end") == 0
        old, new = records(env)
        assert old["stopped_at"] and new["up_at"] and market.used == 2

        project.let_go("a")
        project.launch(env=env).ended(0)
        project.boxcar("watch", "--every", "1s", env=env).ended(0)
        started = (project.box("box-b") / "cells" / "a" / "out" / "history.txt").read_text()
        assert re.match(r"start [12]\n", started), "the cell goes on from its live checkpoint"
        for verb in ("pull", "verify"):
            project.boxcar(verb, env=env).ended(0)

        found = project.boxcar("cost", "--json", env=env).document
        assert found["so_far"]["USD"] == pytest.approx(by_hand(project, new), rel=0.01)

        said = project.boxcar("down", typed=f"tiny\n{new['id']}\n{new['id']}\n", env=env).ended(0)
        assert "is gone, seen twice" in said.err
        assert sorted(server.boxes) == sorted([old["id"], stranger.id]), "the old one's disk"
        assert KEY not in said.err + said.out
        assert server.wrong == []


@pytest.mark.faults
def test_a_verified_run_is_stopped_by_the_provider_and_destroyed_later(
    hosts: Hosts, tmp_path: Path
) -> None:
    hurry(hosts)
    with stand_in("vastai") as server:
        Market(hosts, server)
        env = settings(tmp_path, server)
        project = rent(
            hosts, tmp_path / "project", {"queue_1": ["configs/a.json recon 1"]},
            profile={"extends": "vastai", "meter": STOPPED},
        )  # fmt: skip
        project.boxcar("up", "--hours", "2", typed="y", env=env)
        [record] = records(env)
        project.launch(env=env).ended(0)
        project.boxcar("watch", "--every", "1s", env=env).ended(0)

        said = project.boxcar("down", "--verb", "stop", typed="tiny\n", env=env).ended(1)
        assert "pull" in said.err and server.calls("stop") == 0, "the gate is as for an end"
        for verb in ("pull", "verify"):
            project.boxcar(verb, env=env).ended(0)
        said = project.boxcar("down", "--verb", "stop", typed="\n", env=env).ended(1)
        assert server.calls("stop") == 0, "nobody said yes"

        said = project.boxcar("down", "--verb", "stop", typed="tiny\n", env=env).ended(75)
        assert "is stopped, seen twice" in said.err and server.is_stopped(record["id"])
        assert "0.05 USD/h" in said.err and "its disk bills until it is destroyed" in said.err
        assert not project.credentials("box-a").exists()
        hosts.halt("box-a")

        for words in (("status",), ("runs",)):
            said = project.boxcar(*words, env=env)
            assert "is stopped since" in said.err + said.out, said
        said = project.boxcar("down", typed="\n", env=env).ended(75)
        assert server.calls("end") == 0 and record["id"] in server.boxes
        project.boxcar("down", typed=f"{record['id']}\n", env=env).ended(0)
        assert server.boxes == {} and records(env)[0]["gone_at"]
        assert project.boxcar("orphans", env=env).code == 0
        assert server.wrong == []


@pytest.mark.faults
def test_boxes_without_a_key_of_their_own_are_ended_by_an_approval_that_covers_their_ids(
    hosts: Hosts, tmp_path: Path
) -> None:
    hurry(hosts)
    with stand_in("lambda") as server:
        Market(hosts, server)
        stranger, env = server.stranger(), settings(tmp_path, server)
        project = rent(
            hosts, tmp_path / "project", {"queue_1": ["configs/a.json recon 1"]},
            profile={"extends": "lambda", "connection": {"user": "root"}},
        )  # fmt: skip
        path = project.root / "profiles" / "rented.yaml"
        document = yaml.safe_load(path.read_text())
        home = hosts.home("box-a")
        document["storage"]["credentials"] = f"{home}/.boxcar/credentials-{{run}}.json"
        path.write_text(yaml.safe_dump(document))

        said = project.boxcar("up", "--hours", "2", typed="y", env=env)
        assert "nothing stops a box by itself" in said.err, said
        [record] = records(env)
        project.launch(env=env).ended(0)
        project.boxcar("watch", "--every", "1s", env=env).ended(0)
        for verb in ("pull", "verify"):
            project.boxcar(verb, env=env).ended(0)

        said = project.boxcar("down", env=env).ended(1)
        assert f"box-a (id {record['id']}) ends for good" in said.err
        found = re.search(r"--approve (\w+)", said.err)
        assert found and server.calls("end") == 0
        # The record says another id by now: the approval was of the one that it named.
        other = {**record, "id": stranger.id}
        kept = Path(env["XDG_STATE_HOME"]) / "boxcar" / "rented" / f"{record['nonce']}.json"
        true = kept.read_text()
        kept.write_text(json.dumps(other))
        project.boxcar("down", "--approve", found[1], env=env).ended(1)
        kept.write_text(true)
        assert server.calls("end") == 0 and project.credentials("box-a").exists()

        said = project.boxcar("down", "--approve", found[1], env=env).ended(0)
        assert "is gone, seen twice" in said.err and [*server.boxes] == [stranger.id]
        assert records(env)[0]["gone_at"] and server.wrong == []
