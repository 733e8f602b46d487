"""A verified cell counts as safe only where the manifest that its journal names is on the tier."""

from __future__ import annotations

import json
import shutil

import pytest
from far_boxes import make_far_run
from run_on_disk import (
    MANIFEST,
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_verified,
    make_run,
    queue_done,
)

from boxcar.laptop.places.mirrored_site import OLDEST_LISTING_S
from boxcar.laptop.verbs.explain import next_for
from boxcar.laptop.verbs.logs import find
from boxcar.laptop.verbs.next_step import next_step
from boxcar.laptop.verbs.status import status
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command
from boxcar.shared.files import codec
from boxcar.shared.files.receipt import CellVerdict, RunReceipt


@pytest.fixture
def run(tmp_path) -> RunOnDisk:
    """Every cell verified, and no agent left."""
    made = make_run(tmp_path)
    for queue, cells in (("queue_1", "ab"), ("queue_2", "c")):
        verified = [cell_verified(cell) for cell in cells]
        made.say(queue, agent_started(), *verified, queue_done())
    return made


def words(run: RunOnDisk) -> dict[str, str]:
    return {cell.name: cell.word for cell in run.look().cells}


def test_a_manifest_that_is_as_the_journal_says_is_verified(run):
    assert words(run) == dict.fromkeys("abc", "verified")


def test_a_cell_whose_manifest_is_gone_is_not_verified(run):
    run.site.tier.manifest("b").unlink()
    assert words(run) == {"a": "verified", "b": "damaged", "c": "verified"}
    assert any("b: is verified in its event log" in problem for problem in run.look().problems)


@pytest.mark.parametrize("data", [b"", MANIFEST[:-3], b'{"format": "boxcar.manifest/1"}\n'])
def test_a_manifest_that_is_not_as_it_was_published_is_not_verified(run, data):
    run.site.tier.manifest("b").write_bytes(data)
    assert words(run)["b"] == "damaged"


def test_status_ends_with_1_and_names_repair(run, capsys):
    assert status(run.project) == 0
    run.site.tier.manifest("b").unlink()
    assert status(run.project) == 1
    said = capsys.readouterr().err
    assert "b: is verified in its event log, but its manifest is gone from the durable tier" in said
    assert "next: invoke repair" in said


def test_the_document_says_damaged(run, capsys):
    run.site.tier.manifest("b").unlink()
    status(run.project, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [cell["state"] for cell in found["cells"]] == ["verified", "damaged", "verified"]
    assert found["next"]["command"] == "invoke repair"


def test_the_cell_itself_is_explained_by_repair(run):
    run.site.tier.manifest("b").unlink()
    view = run.look()
    assert next_for(find(view, "b"), view).command == Command("repair")


def test_a_failed_cell_beside_it_does_not_hide_it(run):
    run.say("queue_2", cell_failed("c"))
    run.site.tier.manifest("b").unlink()
    assert next_step(run.look(), run.site).command == Command("repair")


def test_one_that_was_abandoned_is_not_asked_for_again(run):
    run.site.tier.manifest("b").unlink()
    sha256 = {cell.name: cell.record.state.manifest_sha256 for cell in run.look().cells}
    verdicts = (
        CellVerdict("a", "queue_1", sha256["a"], ()),
        CellVerdict("b", "queue_1", None, ("is not published",), because="nothing proves it"),
        CellVerdict("c", "queue_2", sha256["c"], ()),
    )
    path = run.project.results.receipt
    shutil.copytree(run.site.tier.journals, run.project.results.journals)
    made = RunReceipt("demo", "2026-11-21T03:27:30.329Z", verdicts)
    atomic.write_whole(path, codec.to_document(made))
    assert next_step(run.look(), run.site).command == Command("down")


def test_without_its_tier_a_run_is_judged_by_what_was_pulled(run):
    """After a teardown no tier is left to be compared with."""
    run.project.results.root.mkdir(parents=True)
    run.site.tier.journals.rename(run.project.results.journals)
    run.site.tier.root.rename(run.site.tier.root.with_name("removed"))
    assert words(run)["b"] == "verified"


def test_a_network_disk_may_show_another_box_a_folder_as_it_was_a_minute_ago(tmp_path, monkeypatch):
    run = make_far_run(tmp_path, monkeypatch)
    run.agents.say("queue_1", agent_started(), cell_verified("a"))
    run.agents.say("queue_2", agent_started(), cell_verified("c"))
    for cell in "ac":
        run.agents.site.tier.manifest(cell).unlink()
    # The tier is listed by box-a, so of its own cell nothing is hidden from it.
    assert {c.name: c.word for c in run.look().cells} == {
        "a": "damaged", "b": "queued", "c": "verified",
    }  # fmt: skip
    later = run.look(in_s=OLDEST_LISTING_S + 1)
    assert {c.name: c.word for c in later.cells}["c"] == "damaged"
