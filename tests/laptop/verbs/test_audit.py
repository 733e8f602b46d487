"""The local profile's boxes tell real facts; what no machine here can be, a callable tells."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from apart import apart
from box_facts import facts_of

from boxcar.laptop.fitness.rules import Row, Wanted
from boxcar.laptop.fitness.space import Measured
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.verbs import audit
from boxcar.shared import timestamp
from boxcar.shared.errors import Command, InputError, TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.wire import box_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import audit as on_box_audit
from onbox.answers import tier_check as on_box

REMOTE = Wanted("python", ("tmux", "setsid"), has_mounted_tier=True)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for name in ("configs/a.yaml", "configs/b.yaml", "train.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    for number, cell in enumerate("ab"):
        (tmp_path / f"q{number}.txt").write_text(f"configs/{cell}.yaml seg 1\n")
    (tmp_path / "job.yaml").write_text(
        "name: demo\ncommand: train.py --config {cfg} --out {out}\nlauncher: python\n"
        "queues: {q0.txt: box-a, q1.txt: box-b}\nartifacts: [m.json]\n"
    )
    return open_project(tmp_path / "job.yaml", "local")


def wish(project: Project, text: str) -> Project:
    with (project.root / "job.yaml").open("a") as file:
        file.write(f"resources: {text}\n")
    return open_project(project.root / "job.yaml", "local")


def refused(report: audit.Report) -> set[tuple[str, str]]:
    return {(row.box, row.what) for row in report.rows if row.verdict == "refuse"}


def test_the_boxes_of_this_machine_are_fit_and_the_next_command_is_said(project, capsys):
    assert audit.audit(project) == 0
    told = capsys.readouterr()
    assert "training Python" in told.out
    assert "refuse" not in told.out
    assert told.err.strip().endswith("Next: invoke launch")


def test_an_audit_leaves_no_folder_of_the_run_behind(project):
    audit.audit(project)
    left = {path.name for path in (project.root / ".boxcar").iterdir()}
    assert left == {"onbox"}


def test_a_wish_that_no_box_here_can_grant_is_refused_in_table_and_document(project, capsys):
    project = wish(project, "{shm: 999TB}")
    assert audit.audit(project) == 1
    told = capsys.readouterr()
    assert "refuse" in told.out
    assert "(box-a, box-b)" in told.err
    assert audit.audit(project, as_json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["is_refused"] is True
    assert {row["what"] for row in document["rows"] if row["verdict"] == "refuse"} == {"/dev/shm"}
    assert document["facts"]["box-b"]["cpu_count"] >= 1


def report_of(site: LocalSite, **words: Any) -> audit.Report:
    return audit.of_run(site, look_at_run(site, timestamp.utc_now()), **words)


def test_only_the_named_boxes_are_asked_and_an_unknown_one_is_refused(project, capsys):
    report = report_of(LocalSite(project, print), boxes=["box-b"])
    assert set(report.facts) == {"box-b"}
    with pytest.raises(InputError, match="box-bb"):
        audit.audit(project, boxes=["box-bb"])


def test_what_a_smoked_cell_left_is_what_the_budget_counts_with(project, monkeypatch):
    monkeypatch.setattr(audit.passes, "measured", lambda project: Measured(10**18, 1))
    report = report_of(LocalSite(project, print))
    assert refused(report) == {("all", "room: data and durable")}


class Told:
    """Boxes whose answers start from this machine's and are then changed; the tier is real."""

    def __init__(self, project: Project, **tiers: Path) -> None:
        path = str(project.root / "x")
        question = box_asks.Audit(path, project.plan.training_python, hook="")
        facts = on_box_audit.answer(question, RunOnBox("demo", path, path))
        self.facts: dict[str, Any] = codec.encode(facts)
        for place in self.facts["places"].values():
            place |= {"is_there": True, "mount": f"/{place['path']}"}
        self.tiers = tiers
        self.changed: dict[str, dict[str, Any]] = {}
        self.silent: set[str] = set()

    def ask(self, box: str, question: Any, **more: Any) -> Any:
        if box in self.silent:
            raise TemporaryError(f"{box}: the link is down")
        if isinstance(question, box_asks.TierProbe):
            folder = str(self.tiers[box.replace("-", "_")])
            return on_box.answer(question, RunOnBox("demo", folder, folder))
        facts = copy.deepcopy(self.facts) | {"at": timestamp.utc_now(), "hostname": box}
        return facts_of(facts | self.changed.get(box, {}))


@pytest.fixture
def told(project: Project, tmp_path: Path) -> Told:
    made = Told(project, box_a=tmp_path / "fs", box_b=tmp_path / "fs")
    (tmp_path / "fs").mkdir()
    return made


def test_boxes_that_share_a_tier_pass_and_a_silent_one_is_refused(project, told):
    assert refused(audit.run_audit(apart(told.ask), project.plan, REMOTE)) == set()
    told.silent = {"box-b"}
    report = audit.run_audit(apart(told.ask), project.plan, REMOTE)
    assert refused(report) == {("box-b", "box")}
    assert report.facts["box-b"] is None


def test_a_tier_that_another_box_does_not_see_is_refused(project, told, tmp_path):
    (tmp_path / "other").mkdir()
    told.tiers["box_b"] = tmp_path / "other"
    report = audit.run_audit(apart(told.ask), project.plan, REMOTE)
    assert refused(report) == {("box-a", "tier shared"), ("box-b", "tier shared")}


def test_a_tier_that_is_not_there_is_not_made_by_trying_it(project, told):
    places = copy.deepcopy(told.facts["places"])
    places["durable"] |= {"is_there": False, "mount": "/"}
    told.changed = {"box-a": {"places": places}, "box-b": {"places": places}}
    told.tiers = {}
    report = audit.run_audit(apart(told.ask), project.plan, REMOTE)
    assert refused(report) == {("box-a", "durable tier"), ("box-b", "durable tier")}


def test_a_tier_on_the_system_disk_that_another_box_reads_is_only_warned_of(project, told):
    places = copy.deepcopy(told.facts["places"])
    places["durable"] |= {"mount": "/"}
    told.changed = {"box-a": {"places": places}}
    report = audit.run_audit(apart(told.ask), project.plan, REMOTE)
    assert refused(report) == set()
    assert ("box-a", "warn") in {
        (r.box, r.verdict) for r in report.rows if r.what == "durable tier"
    }


def test_a_box_whose_clock_is_off_is_told_of(project, told):
    told.changed = {"box-b": {"at": "2020-01-01T00:00:00.000Z"}}
    report = audit.run_audit(apart(told.ask), project.plan, REMOTE)
    clocks = {row.box: row for row in report.rows if row.what == "clock"}
    assert (clocks["box-a"].verdict, clocks["box-b"].verdict) == ("ok", "warn")
    assert clocks["box-b"].found.endswith("behind")


@pytest.mark.parametrize(
    ("at", "seconds"),
    [("12:00:00", 0), ("12:00:40", 0), ("12:01:00", 0), ("11:59:50", -10), ("12:01:05", 5)],
)
def test_a_clock_is_off_by_what_no_slow_answer_explains(at, seconds):
    before, told, after = (f"2026-01-01T{t}.000Z" for t in ("12:00:00", at, "12:01:00"))
    assert audit.skew_s(before, told, after) == seconds


@pytest.mark.parametrize(
    ("verdicts", "next_"),
    [
        (("ok", "ok"), "no problems. Next: invoke launch"),
        (("ok", "warn"), "no problems, 1 warning. Next: invoke launch"),
        (("warn", "refuse"), "1 problem (box-a). Fix it, then: invoke audit"),
    ],
)
def test_the_worst_row_says_what_to_type(verdicts, next_):
    rows = [Row("box-a", "x", verdict, "", "") for verdict in verdicts]
    assert str(audit._end(rows, Command("launch"))) == next_


def test_boxes_that_are_alike_are_one_row_of_the_table(project, capsys):
    rows = [Row(box, "clock", "ok", "as here") for box in ("box-a", "box-b")]
    rows.append(Row("box-b", "GPU", "warn", "none"))
    report = audit.Report(tuple(rows), {"box-a": None, "box-b": None})
    audit.present(project, report, Command("launch"), as_json=False)
    told = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert ["all", "box", "clock"] in told and ["box-b", "GPU", "warn"] in told
    assert not [row for row in told if row[:1] == ["box-a"]]


def test_a_second_home_is_tried_by_each_box_and_its_secrets_are_asked_for_by_name(
    project, tmp_path, monkeypatch
):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "local.yaml").write_text(
        f"name: local\nextends: local\nstorage: {{second: 'file://{tmp_path}/second'}}\n"
    )
    with (tmp_path / "job.yaml").open("a") as file:
        file.write("secrets: [BUCKET_KEY]\n")
    project = open_project(tmp_path / "job.yaml", "local")
    site = LocalSite(project, print)
    monkeypatch.delenv("BUCKET_KEY", raising=False)
    [row] = [row for row in report_of(site).rows if row.what == "second home"]
    assert (row.box, row.verdict) == ("all", "refuse")
    assert "export BUCKET_KEY=" in str(row.reason)
    monkeypatch.setenv("BUCKET_KEY", "s3cret")
    rows = [row for row in report_of(site).rows if row.what == "second home"]
    assert [(row.box, row.verdict) for row in rows] == [("box-a", "ok"), ("box-b", "ok")]
