"""Real boxes with real disks: what an audit finds on them, over ssh."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import NAMES, Hosts
from rented import quick

from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import open_project
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs import audit
from boxcar.shared import timestamp

PROFILE = """\
name: lab
extends: ssh
env: {{agent_python: {agent}, training_python: {training}}}
storage:
  data: disk
  durable: nas
  credentials: ~/.boxcar/credentials-{{run}}.json
  tiers:
    disk: {{path: {data}, destroy: lose}}
    nas: {{path: {durable}, scope: cluster, destroy: keep}}
"""
QUEUES = {f"queues/queue_{name[-1]}.txt": name for name in NAMES}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for folder in ("configs", "queues", "profiles"):
        (root / folder).mkdir(parents=True)
    (root / "train.py").write_text("")
    for file, name in QUEUES.items():
        (root / f"configs/{name}.yaml").write_text("")
        (root / file).write_text(f"configs/{name}.yaml seg 1\n")
    queues = ", ".join(f"{file}: {name}" for file, name in QUEUES.items())
    (root / "job.yaml").write_text(
        "name: demo\ncommand: train.py --config {cfg} --out {out}\nlauncher: python\n"
        f"queues: {{{queues}}}\nartifacts: [m.json]\n"
    )
    return root


@pytest.fixture
def opened(hosts: Hosts, root: Path) -> Iterator[Opened]:
    made = Opened(hosts, root)
    yield made
    for site in made.sites:
        site.close()


class Opened:
    """`opened(durable=...)`: the project, with that folder of the boxes as its durable tier."""

    def __init__(self, hosts: Hosts, root: Path) -> None:
        self._hosts, self._root = hosts, root
        self.sites: list[Site] = []

    def __call__(self, durable: Path | None = None, training: str | None = None) -> Site:
        """`training`: its interpreter, where it is not one without torch."""
        agent = quick(self._hosts)
        pythons = {"agent": agent, "training": training or agent}
        text = PROFILE.format(
            **pythons, data=self._hosts.data_dir, durable=durable or self._hosts.shared
        )
        (self._root / "profiles/lab.yaml").write_text(text)
        project = open_project(self._root / "job.yaml", "lab")
        self.sites.append(open_site(project, print))
        return self.sites[-1]


def report_of(site: Site) -> audit.Report:
    site.refresh()
    return audit.of_run(site, look_at_run(site, timestamp.utc_now()))


def refused(report: audit.Report) -> dict[str, Row]:
    return {f"{row.box} {row.what}": row for row in report.rows if row.verdict == "refuse"}


def test_three_boxes_with_one_tier_are_fit_and_keep_nothing_of_the_audit(hosts, opened, capsys):
    # With torch, whose import takes longer than all the rest; one test of them has it.
    assert audit.audit(opened(training=sys.executable).project) == 0, capsys.readouterr().out
    told = capsys.readouterr().out
    assert "reads what 2 other boxes wrote" in told
    assert "one of 3 won" in told
    assert list(hosts.seen("box-a", hosts.shared).rglob("*/*")) == []


def test_what_each_box_is_and_has_is_its_own(hosts, opened):
    hosts.limit("box-c", "size=20m,nr_inodes=300")
    report = report_of(opened())
    facts = {box: one for box, one in report.facts.items() if one}
    assert [facts[name].hostname for name in NAMES] == list(NAMES)
    assert len({one.boot_id for one in facts.values()}) == 3
    data = {name: one.places.data for name, one in facts.items()}
    assert data["box-a"].mount == str(hosts.data_dir)
    assert data["box-a"].file_system == "tmpfs"
    assert set(refused(report)) == {"box-c room: data"}
    reason = refused(report)["box-c room: data"].reason
    assert "are needed" in reason
    assert "inodes" in reason


def test_a_path_that_is_each_boxs_own_disk_is_no_shared_tier(hosts, opened):
    durable = hosts.data_dir / "fs"
    for name in NAMES:
        hosts.run(name, ["mkdir", str(durable)])
    found = refused(report_of(opened(durable)))
    assert {f"{name} tier shared" for name in NAMES} <= set(found)
    assert found["box-a tier shared"].found == "does not see the files of box-b, box-c"


def test_a_box_where_the_tier_is_not_mounted_is_refused_and_nothing_is_made_there(hosts, opened):
    found = refused(report_of(opened(Path("/not-mounted/fs"))))
    assert {f"{name} durable tier" for name in NAMES} == set(found)
    assert "not mounted" in found["box-a durable tier"].reason
    assert not hosts.seen("box-a", "/not-mounted").exists()


def test_a_box_that_does_not_answer_is_refused_and_the_others_are_audited(hosts, opened):
    hosts.stop_sshd("box-b")
    report = report_of(opened())
    assert set(refused(report)) == {"box-b box"}
    assert report.facts["box-b"] is None
    assert any(row.what == "claims" and row.verdict == "ok" for row in report.rows)
