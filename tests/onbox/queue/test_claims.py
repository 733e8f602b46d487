from __future__ import annotations

import errno
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from waiting import LIMIT_S

from boxcar.shared import timestamp
from boxcar.shared.cell import cell_line
from boxcar.shared.disk import atomic
from boxcar.shared.files import attempt, codec, journal, manifest
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.paths import DurablePaths
from onbox.machine.place import Place
from onbox.machine.room_wait import RoomWait
from onbox.queue.claims import Claims
from onbox.queue.next_cell import Standing, turns
from onbox.queue.reporter import Reporter

AT = "2026-11-21T03:27:43.973Z"


class Queue1:
    """The claims of q1 on box-a, or of another queue there, and what its journal says."""

    def __init__(self, root: Path, box: str = "box-a", name: str = "q1") -> None:
        self.name = name
        self.tier = DurablePaths(root, "tiny")
        for folder in self.tier.folders():
            folder.mkdir(parents=True, exist_ok=True)
        common = {"run": "tiny", "queue": name, "box": box}
        self.reporter = Reporter(Journal(self.tier.journal(name), common), None)
        place = cast(Place, SimpleNamespace(durable=self.tier, queue=name, box=box))
        room = RoomWait(0, lambda wait_s: None, lambda: True, lambda text: None)
        self.claims = Claims(place, self.reporter, room, self.reporter.say)

    def claimed_by(self, queue: str, moved_from: str = "") -> None:
        claim = Claim("a", queue, "box-b", AT, moved_from=moved_from)
        atomic.write_whole(self.tier.claim("a"), codec.to_document(claim))

    def said(self) -> list[tuple[str, dict[str, Any]]]:
        path = self.tier.journal(self.name)
        events = journal.read_journal(path).events if path.exists() else ()
        return [(event.type, event.data) for event in events]


@pytest.fixture
def q1(tmp_path: Path) -> Queue1:
    return Queue1(tmp_path)


def test_a_cell_that_nobody_has_is_claimed_once_and_stays_ours(q1):
    assert q1.claims.take("a", None) and q1.claims.take("a", None)
    owner = attempt.read_claim(q1.tier.claim("a"))
    assert owner and (owner.queue, owner.box) == ("q1", "box-a")
    assert [type_ for type_, _ in q1.said()] == ["cell.claimed"]
    assert not q1.claims.leave_what_is_anothers("a")


def test_another_queues_cell_is_said_once_and_left(q1):
    q1.claimed_by("q2")
    assert not q1.claims.take("a", None) and not q1.claims.take("a", None)
    assert q1.claims.leave_what_is_anothers("a")
    [(type_, data)] = q1.said()
    assert (type_, data["what"]) == ("box.warning", "claimed_elsewhere")
    assert "a is claimed by q2 on box-b" in data["text"]
    assert q1.claims.not_verified() == {"a"}


@pytest.fixture
def member(tmp_path: Path) -> Queue1:
    return Queue1(tmp_path, name="q@box-a")


def test_what_another_member_of_the_pool_has_is_passed_over_without_a_word(member):
    member.claimed_by("q@box-b")
    assert member.claims.pass_over("a") and member.claims.take("a", None) is None
    assert member.said() == []
    assert member.claims.not_verified() == set() and not member.claims.of_others
    assert not member.claims.pass_over("nobodys")


def test_what_a_member_gives_back_is_this_queues_again_and_what_is_published_never(member):
    member.claimed_by("q@box-b")
    assert member.claims.pass_over("a")
    assert not member.claims.take_back()
    member.claimed_by("q@box-a", moved_from="q@box-b")
    assert not member.claims.take_back(), "not with each look"
    assert member.claims.take_back(at_once=True)
    assert not member.claims.pass_over("a")
    assert member.claims.take("a", None)
    [(type_, data)] = member.said()
    assert (type_, data["from"]) == ("cell.claimed", "q@box-b")


def test_a_published_cell_of_a_member_is_not_asked_for_again(member, monkeypatch):
    member.claimed_by("q@box-b")
    assert member.claims.pass_over("a")
    member.tier.manifest("a").parent.mkdir(parents=True)
    member.tier.manifest("a").write_bytes(b"{}")
    assert not member.claims.take_back(at_once=True)
    monkeypatch.setattr(attempt, "claim_of_another", lambda *_: pytest.fail("it is asked again"))
    assert not member.claims.take_back(at_once=True)


def test_a_member_that_comes_back_leaves_what_it_had_begun_and_others_got(member):
    assert member.claims.take("a", None)
    member.claimed_by("q@box-b", moved_from="q@box-a")
    assert member.claims.leave_what_is_anothers("a") and member.claims.pass_over("a")
    assert [type_ for type_, _ in member.said()] == ["cell.claimed", "cell.skipped"]


def test_a_queue_of_another_file_is_no_member_and_is_said(member):
    member.claimed_by("other")
    assert not member.claims.pass_over("a") and member.claims.take("a", None) is None
    assert [data["what"] for _, data in member.said()] == ["claimed_elsewhere"]


def test_a_queue_in_no_pool_has_no_members(q1):
    q1.claimed_by("q2")
    assert not q1.claims.pass_over("a") and not q1.claims.take_back(at_once=True)


def test_a_cell_that_was_moved_here_says_from_where(q1):
    q1.claimed_by("q1", moved_from="q2")
    assert q1.claims.take("a", None) and q1.claims.take("a", None)
    [(type_, data)] = q1.said()
    assert (type_, data["cell"], data["from"]) == ("cell.claimed", "a", "q2")


def test_a_cell_that_was_moved_away_after_it_began_is_skipped_in_the_journal(q1):
    q1.claims.take("a", None)
    q1.claimed_by("q2", moved_from="q1")
    assert q1.claims.leave_what_is_anothers("a")
    assert [type_ for type_, _ in q1.said()] == ["cell.claimed", "box.warning", "cell.skipped"]


def test_a_claim_and_its_name_are_on_the_disk_before_the_journal_says_so(q1, monkeypatch):
    done: list[object] = []
    monkeypatch.setattr(atomic, "sync_folder", done.append)
    monkeypatch.setattr(q1.claims, "_say", lambda type_, **more: done.append(type_))
    q1.claims.take("a", None)
    assert done == [q1.tier.claims, "cell.claimed"]


def test_what_an_agent_claimed_that_was_killed_is_made_durable_and_said(q1, monkeypatch):
    q1.claimed_by("q1")
    synced: list[Path] = []
    monkeypatch.setattr(atomic, "sync_folder", synced.append)
    assert q1.claims.take("a", None) and q1.claims.take("a", None)
    assert synced[0] == q1.tier.claims
    assert [type_ for type_, _ in q1.said()] == ["cell.claimed"]


def test_a_claim_that_could_not_be_written_is_none(q1, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(atomic, "_write_beside", failing)
        with pytest.raises(OSError, match="failed"):
            q1.claims.take("a", None)
    assert not [*q1.tier.claims.iterdir()]
    assert q1.said() == []


def failing(*_: object) -> None:
    raise OSError(errno.EIO, "it failed")


def left_by_a_power_cut(q1: Queue1, queue: str) -> None:
    """As agents of one day made claims beforehand: without a cell, filled up with blanks."""
    atomic.write_whole(q1.tier.claim("a"), codec.to_document(Claim("", queue, "box-b", AT)))


@pytest.mark.parametrize("started", [None, "c" * 64])
def test_after_a_power_cut_its_own_is_ours_and_says_of_which_cell_and_what_it_was_again(
    q1, started
):
    left_by_a_power_cut(q1, "q1")
    found = attempt.read_claim(q1.tier.claim("a"))
    assert found and (found.cell, found.queue) == ("", "q1")
    if started:
        q1.reporter.say("cell.started", cell="a", attempt=1, saying=started)
    claim = q1.claims.take("a", "b" * 64)
    assert claim and (claim.cell, claim.saying) == ("a", started or "b" * 64)
    assert attempt.read_claim(q1.tier.claim("a")) == claim


def test_after_a_power_cut_anothers_stays_anothers(q1):
    left_by_a_power_cut(q1, "q2")
    assert q1.claims.take("a", None) is None
    assert q1.claims.leave_what_is_anothers("a")


# --- turns


V, C, L = Standing.VERIFIED, Standing.TO_COME, Standing.LOST


@pytest.mark.parametrize(
    ("after", "standings", "waiting", "blocked"),
    [
        pytest.param({"b": ("a",)}, {"a": V}, {}, {}, id="what is verified keeps nobody"),
        pytest.param({"b": ("a",)}, {"a": C}, {"b": "a"}, {}, id="what is to come is waited for"),
        pytest.param({"b": ("a",)}, {"a": L}, {}, {"b": "a"}, id="what is lost blocks"),
        pytest.param({"c": ("a", "b")}, {"a": V, "b": C}, {"c": "b"}, {}, id="all count"),
        pytest.param({"c": ("a", "b")}, {"a": C, "b": L}, {}, {"c": "b"}, id="one lost is enough"),
        pytest.param(
            {"c": ("b",), "b": ("a",)},
            {"a": L, "b": C},
            {},
            {"b": "a", "c": "b"},
            id="who comes after a blocked one is blocked",
        ),
        pytest.param(
            {"c": ("b",), "b": ("a",)}, {"a": C, "b": C}, {"c": "b", "b": "a"}, {}, id="a chain"
        ),
        pytest.param(
            {"a": ("b",), "b": ("a",)}, {"a": C, "b": C}, {}, {"a": "b", "b": "a"}, id="a circle"
        ),
        pytest.param(
            {"a": ("a",), "c": ("a",)}, {"a": C}, {}, {"a": "a", "c": "a"}, id="after itself"
        ),
    ],
)
def test_whose_turn_it_is(after, standings, waiting, blocked):
    found = turns(after, standings)
    assert (found.waiting, found.blocked) == (waiting, blocked)


def test_a_circle_may_lead_over_other_queues():
    """`x` and `y` are lines of another queue, that wait; `z` is one that waits for nobody here."""
    after = {"a": ("x",), "b": ("a",), "c": ("z",)}
    standings = dict.fromkeys("xaz", C)
    found = turns(after, standings, {"x": ("y",), "y": ("a",), "z": ("n",)})
    assert found.blocked == {"a": "x", "b": "a"}
    assert found.circles == {"a": ("a", "x", "y", "a"), "b": ("b", "a", "x", "y", "a")}
    assert found.waiting == {"c": "z"}


# --- what was accepted elsewhere


BAD = {"writes": ["{"]}
REFUSED = ["claimed", "started", "succeeded", "synced", "failed"]


def accept(run: Any, cell: str, sha256: str = "") -> None:
    """As `verify` has it written."""
    bound_to = sha256 or manifest.sha256(run.durable.manifest(cell))
    made = Accepted("tiny", cell, bound_to, timestamp.utc_now(), ("m.json",), "0.1.0")
    atomic.write_whole(run.durable.accepted(cell), codec.to_document(made))


def test_a_launch_after_it_was_accepted_does_not_train(make_run):
    run = make_run({"a": BAD, "b": {}})
    assert run.finish() == 1
    before = run.durable.manifest("a").read_bytes()
    accept(run, "a")
    assert run.finish() == 0
    assert run.life("a") == [*REFUSED, "verified"]
    said = run.events("cell.verified", cell="a")[0].data
    assert (said["by"], said["attempt"], said["unpickled"]) == ("laptop", 1, ["m.json"])
    assert run.durable.manifest("a").read_bytes() == before
    assert len(run.starts("a")) == 1
    assert run.events("queue.done")[-1].data["verified"] == 2
    assert run.finish() == 0
    assert len(run.events("cell.verified", cell="a")) == 1, "it is said once"


def test_an_agent_at_work_takes_it_at_its_next_look_and_what_comes_after_it_runs(make_run):
    run = make_run({"a": BAD, "b": {}}, linger_s=int(LIMIT_S))
    run.durable.queue("q1").write_text("configs/a.json count 3\n")
    agent = run.start()
    run.wait_for("cell.failed", "a")
    accept(run, "a")
    run.wait_for("cell.verified", "a")
    run.append("configs/b.json count 3 after=a")
    run.wait_for("cell.verified", "b")
    run.ask("drain")
    assert agent.wait(LIMIT_S) == 0
    assert len(run.starts("a")) == 1


def test_what_was_accepted_of_another_result_stops_no_training(make_run):
    run = make_run({"a": {"writes": ["{", json.dumps({"step": 1})]}})
    assert run.finish() == 1
    accept(run, "a", sha256="0" * 64)
    assert run.finish() == 0
    assert len(run.starts("a")) == 2


def test_an_acceptance_that_is_damaged_begins_nothing_and_is_told_by_name(make_run):
    run = make_run({"a": BAD, "b": {}})
    assert run.finish() == 1
    accept(run, "a")
    good = run.durable.accepted("a").read_bytes()
    run.durable.accepted("a").write_bytes(good[:-9])
    assert run.finish() == 1
    assert len(run.starts("a")) == 1
    [told] = run.warnings("accepted_damaged")
    assert "accepted/a.json" in told and "`verify` on the laptop" in told
    assert "accepted/a.json" in run.events("queue.done")[-1].data["reason"]
    run.durable.accepted("a").write_bytes(good)
    assert run.finish() == 0
    assert run.state("a") == "verified"


def test_what_nobody_could_check_on_the_box_is_taken_from_the_laptop(make_run, tmp_path):
    python = tmp_path / "without-checker"
    checks = "[[ $* = *load_check* ]] && exit 9"
    python.write_text(f'#!/bin/bash\n{checks}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    run = make_run({"a": {}}, training_python=str(python))
    assert run.finish() == 1
    assert run.events("cell.failed", cell="a")[-1].data["failure"] == "UNCHECKED"
    accept(run, "a")
    assert run.finish() == 0
    assert run.life("a")[-1] == "verified"
    assert len(run.starts("a")) == 1


def lose_all_but_what_is_lent(run: Any, *cells: str) -> None:
    """A box that was rented anew: of these cells it has what `launch` lends, and no files."""
    kept = {
        path: path.read_bytes()
        for cell in cells
        for path in (run.durable.manifest(cell), run.durable.receipt(cell))
    }
    for folder in (run.durable.cells, run.durable.claims, run.durable.journals):
        shutil.rmtree(folder)
    for name in ("heartbeat", "locks"):
        shutil.rmtree(run.durable.root / name)
    shutil.rmtree(run.scratch().root)
    for path, data in kept.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for folder in run.durable.folders():
        folder.mkdir(parents=True, exist_ok=True)
    for cell in cells:
        lend(run, cell)


def lend(run: Any, cell: str) -> None:
    made = manifest.read_manifest(run.durable.manifest(cell))
    sha256 = manifest.sha256(run.durable.manifest(cell))
    now = timestamp.utc_now()
    document = Accepted("tiny", cell, sha256, now, (), "0.1.0", is_lent=True)
    atomic.write_whole(run.durable.accepted(cell), codec.to_document(document))
    claim = Claim(cell, "q1", "box-a", now, saying=made.saying)
    atomic.write_whole(run.durable.claim(cell), codec.to_document(claim))


def test_what_was_lent_to_a_box_that_was_rented_anew_is_not_trained_there(make_run):
    run = make_run({"a": {}, "b": {}})
    assert run.finish() == 0
    lose_all_but_what_is_lent(run, "a")
    assert run.finish() == 0
    assert run.life("a") == ["verified"]
    assert run.life("b")[-1] == "verified" and len(run.starts("b")) == 1
    assert not run.scratch().cell("a").exists()
    said = run.events("cell.verified", cell="a")[0].data
    assert (said["by"], said["is_lent"], said["attempt"]) == ("laptop", True, 1)
    assert said["metrics"]["step"] == 1
    assert run.warnings("said_otherwise") == []


def test_a_line_that_asks_for_something_else_than_what_was_lent_is_told(make_run):
    run = make_run({"a": {}})
    run.durable.queue("q1").write_text("configs/a.json count 3 env.X=1\n")
    assert run.finish() == 0
    lose_all_but_what_is_lent(run, "a")
    assert run.finish() == 0
    assert run.warnings("said_otherwise") == []
    [event] = run.events("cell.verified", cell="a")
    assert cell_line.begun_line(event).own.env == {"X": "1"}
    lose_all_but_what_is_lent(run, "a")
    run.durable.queue("q1").write_text("configs/a.json count 4\n")
    assert run.finish() == 0
    assert run.life("a") == ["verified"]
    [told] = run.warnings("said_otherwise")
    assert "a was begun as" in told and "has a result" in told


def test_who_comes_after_a_result_whose_files_are_elsewhere_waits_for_them(make_run):
    run = make_run({"a": {}, "b": {}})
    run.durable.queue("q1").write_text("configs/a.json count 3\nconfigs/b.json count 3 after=a\n")
    assert run.finish() == 0
    files = {path.name: path.read_bytes() for path in run.durable.cell("a").iterdir()}
    lose_all_but_what_is_lent(run, "a")
    assert run.finish() == 1
    assert [run.state(cell) for cell in "ab"] == ["verified", "queued"]
    [told] = run.warnings("files_elsewhere")
    assert told.startswith("only the laptop has the files of a")
    for name, data in files.items():
        (run.durable.cell("a") / name).write_bytes(data)
    assert run.finish() == 0
    assert run.state("b") == "verified"
