"""What earlier looks have worked out: the same view as without it, and never more than a view."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import finished_run
import pytest
from run_on_disk import (
    MANIFEST,
    SHA256,
    RunOnDisk,
    agent_started,
    cell_failed,
    cell_progress,
    cell_started,
    cell_verified,
    from_now,
    make_run,
    queue_done,
)

from boxcar.laptop.common.home import Home
from boxcar.laptop.run import survey
from boxcar.laptop.run.journals import followed, known_manifests, looked_before
from boxcar.laptop.run.journals.looked_before import LookedBefore
from boxcar.laptop.run.look import look
from boxcar.laptop.run.view import RunView
from boxcar.laptop.verbs.down import down
from boxcar.laptop.verbs.verify import verify
from boxcar.shared import timestamp
from boxcar.shared.disk import digest
from boxcar.shared.files import codec, journal, receipt
from boxcar.shared.files.accepted import Accepted
from boxcar.shared.files.cell_claim import Claim
from boxcar.shared.files.journal import JournalEnd

ROOT = Path(__file__).parents[4]
YEAR_NS = 365 * 24 * 3600 * 10**9


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small runs too, whose files are as good as old."""
    monkeypatch.setattr(looked_before, "WORTH_EVENTS", 1)
    now_ns = known_manifests.time.time_ns
    monkeypatch.setattr(known_manifests.time, "time_ns", lambda: now_ns() + YEAR_NS)


@pytest.fixture
def run(tmp_path: Path) -> RunOnDisk:
    made = known(make_run(tmp_path))
    warning = ("box.warning", {"what": "disk", "text": "is nearly full"})
    made.say("queue_1", agent_started(), warning, cell_started("a"), cell_progress("a", 3, loss=1))
    made.say("queue_1", cell_verified("a"), cell_started("b"), cell_progress("b", 1))
    made.say("queue_2", agent_started(), cell_started("c"), cell_failed("c"), queue_done())
    return made


def known(run: RunOnDisk) -> RunOnDisk:
    """As a project that was opened to be shown is known by its files."""
    by = digest.of_bytes(repr(run.project.plan).encode())
    return RunOnDisk(replace(run.project, known_by=by))


def path_of(run: RunOnDisk) -> Path:
    return run.project.root / "looked.json"


def seen(run: RunOnDisk, at: str = "") -> RunView:
    """As by a verb that is typed anew: with what the file has."""
    before = LookedBefore(path_of(run))
    view = look(run.site, at or from_now(0), before)
    before.write()
    return view


def spelled(view: RunView) -> Any:
    queues = [replace(queue, events=tuple(queue.events)) for queue in view.queues]
    return replace(view, queues=tuple(queues))


def same(run: RunOnDisk) -> bool:
    at = from_now(0)
    return bool(spelled(seen(run, at)) == spelled(look(run.site, at)))


def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of how many bytes the lines are read from here on, each time."""
    found, parse = list[int](), journal.parse
    monkeypatch.setattr(journal, "parse", lambda d, *of: (found.append(len(d)), parse(d, *of))[1])
    return found


def test_a_view_is_the_same_with_it_while_the_journals_grow(run: RunOnDisk) -> None:
    assert same(run) and path_of(run).exists() and same(run)
    steps = [
        [cell_progress("b", 2), cell_verified("b")],
        [("cell.retried", {"cell": "d", "attempt": 1, "failure": "NET"})],
        [("cell.preempted", {"cell": "d", "attempt": 2})],
        [("cell.claimed", {"cell": "e"}), ("cell.succeeded", {"cell": "b", "attempt": 1})],
        [("cell.synced", {"cell": "f", "attempt": 1, "manifest_sha256": "0" * 64})],
        [agent_started(), ("cell.skipped", {"cell": "e"})],
        [queue_done()],
    ]
    for events in steps:
        run.say("queue_1", *events)
        assert same(run) and same(run), events


def test_what_was_followed_is_not_followed_again(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen(run)
    found = parsed(monkeypatch)
    assert seen(run).queue("queue_2").active is None
    assert found == [0, 0]
    size_bytes = run.site.tier.journal("queue_2").stat().st_size
    run.say("queue_2", agent_started())
    found.clear()
    seen(run)
    assert found == [0, run.site.tier.journal("queue_2").stat().st_size - size_bytes]


def test_the_newest_events_are_read_without_the_others(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen(run)
    found = parsed(monkeypatch)
    queue = seen(run).queue("queue_1")
    assert (len(queue.events), queue.events[-1].cell, len(queue.steps_at)) == (7, "b", 1)
    assert next(reversed(queue.events)).seq == 7 and sum(found) == 0
    assert [event.seq for event in queue.events] == [*range(1, 8)]
    assert queue.events[2].type == "cell.started" and len(queue.events[1:3]) == 2


# --- what was asked for


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """How often it is put together from here on."""
    found, ask = list[object](), survey._asked
    monkeypatch.setattr(survey, "_asked", lambda *of: (found.append(of), ask(*of))[1])
    return found


def test_what_was_asked_for_is_put_together_once_while_all_that_asks_is_the_same(
    run: RunOnDisk, asked: list[object]
) -> None:
    seen(run)
    assert seen(run).roster == look(run.site, from_now(0)).roster and len(asked) == 2
    asked.clear()
    run.say("queue_1", cell_progress("b", 2), cell_verified("b"), cell_started("b", 2))
    run.say("queue_2", cell_started("c", 2))
    seen(run, from_now(-3600))
    seen(run, from_now(3600))
    assert not asked


def edited(run: RunOnDisk) -> RunOnDisk:
    run.site.tier.queue("queue_1").write_text("configs/a.yaml recon 3\n# configs/b.yaml [red] 3\n")
    return run


def appended(run: RunOnDisk) -> RunOnDisk:
    with run.site.tier.queue("queue_2").open("a") as file:
        file.write("configs/more.yaml seg 3\nno cell\n")
    return run


def removed(run: RunOnDisk) -> RunOnDisk:
    run.site.tier.queue("queue_2").unlink()
    return run


def another_queue(run: RunOnDisk) -> RunOnDisk:
    run.site.tier.queue("queue_3").write_text("configs/d.yaml seg 3\n")
    return run


def another_plan(run: RunOnDisk) -> RunOnDisk:
    plan = run.project.plan
    cells = (*(replace(cell, epochs=cell.epochs + 1) for cell in plan.cells), plan.cells[0])
    return known(RunOnDisk(replace(run.project, plan=replace(plan, cells=cells))))


def a_release(run: RunOnDisk) -> RunOnDisk:
    folder = run.site.tier.releases / ("ab" * 32)
    folder.mkdir()
    (folder / "plan.json").write_text("{}")
    return run


def of_nobody(run: RunOnDisk) -> RunOnDisk:
    run.say("queue_1", cell_started("of_nobody"), cell_verified("of_nobody"))
    return run


def otherwise(run: RunOnDisk) -> RunOnDisk:
    type_, data = cell_started("b", 2)
    run.say("queue_1", (type_, data | {"epochs": 7}))
    return run


def cut(run: RunOnDisk) -> RunOnDisk:
    path = run.site.tier.journal("queue_1")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    return run


def lost(run: RunOnDisk) -> RunOnDisk:
    run.site.tier.journal("queue_1").unlink()
    return run


def replaced(run: RunOnDisk) -> RunOnDisk:
    """By one of the same length, which is right in itself."""
    path = run.site.tier.journal("queue_1")
    size_bytes = path.stat().st_size
    path.unlink()
    run.say("queue_1", agent_started(), cell_started("b"), cell_verified("b"))
    left = size_bytes - path.stat().st_size
    run.say("queue_1", ("box.warning", {"what": "disk", "text": ""}))
    left -= path.stat().st_size - (size_bytes - left)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    run.say("queue_1", ("box.warning", {"what": "disk", "text": "x" * left}))
    assert path.stat().st_size == size_bytes
    return run


@pytest.mark.parametrize(
    "change",
    [
        *(edited, appended, removed, another_queue, another_plan, a_release, of_nobody, otherwise),
        *(cut, lost, replaced),
    ],
)
def test_whatever_changes_is_seen_at_once(
    run: RunOnDisk, asked: list[object], change: Callable[[RunOnDisk], RunOnDisk]
) -> None:
    seen(run)
    asked.clear()
    run = change(run)
    assert same(run) and len(asked) == 2, "with it and without"
    assert same(run)


def test_a_cell_that_begins_as_the_plan_has_it_and_its_line_has_not_is_seen_at_once(
    run: RunOnDisk,
) -> None:
    path = run.site.tier.queue("queue_2")
    path.write_text("configs/c.yaml seg 3\nconfigs/more.yaml seg 3\n")
    more = replace(run.project.plan.cells[-1], name="more", cfg="configs/more.yaml", epochs=4)
    plan = replace(run.project.plan, cells=(*run.project.plan.cells, more))
    run = known(RunOnDisk(replace(run.project, plan=plan)))
    assert not seen(run).problems
    type_, data = cell_started("more")
    run.say("queue_2", (type_, data | {"task": "seg", "epochs": 4}))
    assert seen(run).problems and same(run)


def test_what_one_journal_said_while_another_could_not_be_read_is_not_passed_over(
    run: RunOnDisk,
) -> None:
    seen(run)
    end = run.journal("queue_1").end
    run.beat("queue_1", from_now(0), journal=replace(end, seq=end.seq + 1))
    run.say("queue_2", cell_started("of_nobody"), cell_verified("of_nobody"))
    assert seen(run).queue("queue_1").condition.word == "damaged"
    run.beat("queue_1", from_now(0), journal=end)
    assert "of_nobody" in [cell.name for cell in seen(run).cells] and same(run)


def test_a_stray_folder_a_claim_and_what_was_accepted_are_seen_at_once(run: RunOnDisk) -> None:
    seen(run)
    tier = run.site.tier
    (tier.cells / "of_nobody").mkdir()
    assert any("of_nobody" in what for what in seen(run).problems) and same(run)
    claim = Claim("claimed", "queue_2", "box-b", from_now(0))
    tier.claims.mkdir(exist_ok=True)
    tier.claim("claimed").write_bytes(codec.to_document(claim))
    assert "claimed" in [cell.name for cell in seen(run).cells] and same(run)
    proven = Accepted("demo", "c", SHA256, from_now(0), ("a.pkl",), "1")
    run.publish("c")
    tier.accepted_folder.mkdir(exist_ok=True)
    tier.accepted("c").write_bytes(codec.to_document(proven))
    assert [cell.word for cell in seen(run).cells if cell.name == "c"] == ["verified"]
    assert same(run)


# --- damage


def test_a_flipped_bit_of_what_was_followed_is_seen(run: RunOnDisk) -> None:
    seen(run)
    path = run.site.tier.journal("queue_1")
    data, times = path.read_bytes(), path.stat()
    path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert seen(run).queue("queue_1").condition.word == "damaged" and same(run)


def test_a_journal_that_is_shorter_than_its_heartbeat_knows_is_damaged(run: RunOnDisk) -> None:
    end = run.journal("queue_1").end
    run.beat("queue_1", from_now(0), journal=end)
    seen(run)
    assert seen(run).queue("queue_1").condition.word != "damaged"
    run.beat("queue_1", from_now(0), journal=replace(end, seq=3))
    assert seen(run).queue("queue_1").condition.word == "damaged", "no event 3 has that check"
    run.beat("queue_1", from_now(0), journal=replace(end, seq=end.seq + 1))
    assert seen(run).queue("queue_1").condition.word == "damaged" and same(run)


def test_a_heartbeat_that_is_further_behind_than_the_checks_that_are_kept_is_compared_all_the_same(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "CHECKS_KEPT", 2)
    seen(run)
    checks = journal.read(run.site.tier.journal("queue_1")).checks
    for seq in range(1, 8):
        run.beat("queue_1", from_now(0), journal=JournalEnd(seq, checks[seq - 1]))
        assert seen(run).queue("queue_1").condition.word != "damaged", seq


def test_a_torn_last_line_is_said_as_without_it(run: RunOnDisk) -> None:
    seen(run)
    path = run.site.tier.journal("queue_1")
    path.write_bytes(path.read_bytes() + b'{"v":2,"seq":8,')
    assert seen(run).queue("queue_1").is_torn and same(run)


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_manifest_is_hashed_again_only_where_it_has_changed(
    run: RunOnDisk, monkeypatch: pytest.MonkeyPatch, *, is_changed: bool
) -> None:
    seen(run)
    path = run.site.tier.manifest("a")
    if is_changed:
        path.write_bytes(MANIFEST[:-1] + b"!")
    hashed, of_bytes = list[bytes](), digest.of_bytes
    monkeypatch.setattr(digest, "of_bytes", lambda of: (hashed.append(of), of_bytes(of))[1])
    damage = {cell.name: cell.damage for cell in seen(run).cells}["a"]
    assert (path.read_bytes() in hashed, damage is not None) == (is_changed, is_changed)


def bodies(run: RunOnDisk) -> Iterator[bytes]:
    data = path_of(run).read_bytes()
    yield data[:-9]
    yield data.replace(b"27.25", b"72.25")
    yield b""
    yield b"{}"
    ours = json.loads(data.partition(b"\n")[2])
    for other in ([*ours[0][:-1], "another"], None):
        body = json.dumps([other, *ours[1:]]).encode()
        yield digest.of_bytes(body).encode() + b"\n" + body


def test_one_that_is_damaged_or_of_another_boxcar_is_removed_and_made_anew(run: RunOnDisk) -> None:
    seen(run)
    for data in bodies(run):
        path_of(run).write_bytes(data)
        LookedBefore(path_of(run))
        assert not path_of(run).exists(), data[:40]
        assert same(run) and path_of(run).exists()


def test_a_small_run_has_none(run: RunOnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looked_before, "WORTH_EVENTS", 1000)
    seen(run)
    assert not path_of(run).exists()


def test_a_disk_that_takes_none_keeps_nobody_from_a_look(run: RunOnDisk) -> None:
    path_of(run).mkdir()
    assert same(run)


# --- what decides


def lie(run: finished_run.FinishedRun, path: Path) -> None:
    """A cell that ran, that no line names and that has failed, is kept quiet."""
    before = LookedBefore(path)
    look(run.site, timestamp.utc_now(), before)
    known = before._journals["q1"]
    quiet = replace(known.state, cells={})
    before._journals["q1"] = replace(known, begun=(), state=quiet)
    before.write()


def test_neither_verify_nor_the_gate_believes_one_that_lies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished_run.make_run(tmp_path)
    run.copy_here()
    verify(run.project)
    approve = receipt.read_run(run.project.results.receipt).digest
    run.say("q1", cell_started("ran"), cell_failed("ran"))
    path = Home(run.project.root).looked("tiny")
    lie(run, path)
    view = look(run.site, timestamp.utc_now(), LookedBefore(path))
    assert "ran" not in [cell.name for cell in view.cells], "else it is no lie"
    assert down(run.project, approve=approve) == 1 and run.site.tier.root.exists()
    assert "ran" in capsys.readouterr().err
    assert verify(run.project) == 1
    found = receipt.read_run(run.project.results.receipt)
    assert "ran" in [verdict.cell for verdict in found.cells if verdict.missing]


def test_only_who_shows_a_run_has_it() -> None:
    modules = [path for room in ("boxcar", "onbox") for path in (ROOT / room).rglob("*.py")]
    users = {path.stem for path in modules if "looked_before import" in path.read_text()}
    assert users == {"look", "survey", "cell_views", "status", "watch"}
