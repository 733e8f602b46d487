from __future__ import annotations

from waiting import LIMIT_S, until

from boxcar.shared.files import manifest, queue_line
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.files.plan import Rule
from boxcar.shared.state import replay
from onbox.queue.next_cell import (
    Above,
    Begin,
    above,
    cells_in_turn,
    changes,
    is_same_trouble,
    left_open,
    to_settle,
)

QUEUE = queue_line.parse_queue(b"# head\nc/a.yaml t 1\nc/b.yaml t\n\nc/c.yaml t 3\n")
BASE = {"run": "r", "queue": "q", "box": "b"}


def state_of(*events: tuple[str, dict]):
    return replay(
        Event(seq, f"evt_{seq}", "2026-11-21T02:00:00.000Z", type, BASE | data)
        for seq, (type, data) in enumerate(events, start=1)
    )


STARTED = ("agent.started", {"pid": 1, "release": "one", "start_index": 0})


def failed(cell: str, **flags: bool):
    data = {"cell": cell, "attempt": 1, "failure": "EXIT1", "reason": "x", "release": "one"}
    return ("cell.failed", data | flags)


def verified(cell: str):
    return ("cell.verified", {"cell": cell, "attempt": 1, "manifest_sha256": "0"})


def choose(state, *, release: str = "one", passed_over=()):
    found = next(
        cells_in_turn(QUEUE.cells, state.cell, release=release, passed_over=passed_over), None
    )
    return found.name if found else None


def test_cells_come_in_the_order_of_the_file():
    assert choose(state_of()) == "a"
    assert choose(state_of(verified("a"))) == "b"
    assert choose(state_of(verified("a"), verified("b"), verified("c"))) is None


def test_start_index_passes_over_complete_lines_that_are_no_comments():
    assert above(Begin(), QUEUE, ()) == Above(frozenset(), 2)
    assert above(Begin(1), QUEUE, ()) == Above(frozenset("a"), 3)
    for beyond in (3, 9):
        assert above(Begin(beyond), QUEUE, ()) == Above(frozenset("abc"), 6)
    assert above(Begin(2), queue_line.parse_queue(b""), ()) == Above()


def test_a_named_beginning_counts_whatever_stands_above_it_now():
    assert above(Begin(1, "b"), QUEUE, ()) == Above(frozenset("a"), 3)
    data = b"# head\n#c/a.yaml t 1\nc/b.yaml t\n\nc/c.yaml t 3\n"
    commented = queue_line.commented_out(data)
    assert above(Begin(1, "b"), queue_line.parse_queue(data), commented) == Above(frozenset(), 3)


def test_a_beginning_that_was_dropped_keeps_its_place_and_one_that_is_gone_has_none():
    data = b"# head\nc/a.yaml t 1\n#c/b.yaml t\n\nc/c.yaml t 3\n"
    commented = queue_line.commented_out(data)
    assert above(Begin(1, "b"), queue_line.parse_queue(data), commented) == Above(frozenset("a"), 3)
    assert above(Begin(1, "z"), queue_line.parse_queue(data), commented) is None


def test_a_failed_cell_waits_for_a_later_agent():
    assert choose(state_of(STARTED, failed("a"))) == "b"
    assert choose(state_of(STARTED, failed("a"), STARTED)) == "a"


def test_a_cell_that_said_42_waits_for_another_release():
    after = state_of(STARTED, failed("a", is_final=True), STARTED)
    assert choose(after) == "b"
    assert choose(after, release="two") == "a"


def test_of_a_line_that_runs_from_an_older_release_that_one_counts():
    """It said 42 there: a newer agent runs it from the same release, and it would say it again."""
    after = state_of(STARTED, failed("a", is_final=True), STARTED)

    def first(elsewhere):
        cells = QUEUE.cells
        found = cells_in_turn(cells, after.cell, release="two", passed_over=(), elsewhere=elsewhere)
        return next(found).name

    assert first({"a": "one"}) == "b"
    assert first({"a": "three"}) == first({"a": None}) == first({}) == "a"


def test_a_result_that_is_kept_is_judged_anew_and_never_trained_again():
    after = state_of(STARTED, failed("a", is_kept=True), STARTED)
    assert choose(after) == choose(after, release="two") == "b"
    assert to_settle(after) == [("a", 1)]


def test_a_preempted_or_interrupted_cell_is_run_again_first():
    preempted = ("cell.preempted", {"cell": "a", "attempt": 1})
    assert choose(state_of(STARTED, preempted)) == "a"
    started = ("cell.started", {"cell": "a", "attempt": 1})
    assert choose(state_of(STARTED, started)) == "a"


def test_a_result_that_waits_to_be_settled_is_not_run_again():
    succeeded = ("cell.succeeded", {"cell": "a", "attempt": 2})
    synced = ("cell.synced", {"cell": "b", "attempt": 1, "manifest_sha256": "0"})
    state = state_of(STARTED, succeeded, synced)
    assert choose(state) == "c"
    assert to_settle(state) == [("a", 2), ("b", 1)]


def test_a_cell_of_another_queue_is_passed_over():
    assert choose(state_of(), passed_over={"a"}) == "b"


def test_two_fast_failures_alike_are_the_same_trouble():
    first = ("MOD", "no module timm", 3.0)
    assert is_same_trouble(first, ("MOD", "no module timm", 2.0))
    assert not is_same_trouble(first, ("MOD", "no module yaml", 2.0))
    assert not is_same_trouble(first, ("MOD", "no module timm", 600.0))
    assert not is_same_trouble(None, first)


def test_an_edit_in_the_middle_is_named_and_an_appended_line_is_not():
    appended = queue_line.parse_queue(b"c/a.yaml t 1\nc/b.yaml t\nc/c.yaml t 3\nc/d.yaml t\n")
    assert changes(QUEUE, appended) == []
    edited = queue_line.parse_queue(b"c/a.yaml t 1\nc/z.yaml t\nc/c.yaml t 3\n")
    assert changes(QUEUE, edited) == ["cell 1 was 'c/b.yaml t' and is now 'c/z.yaml t'"]
    now = queue_line.parse_queue(b"c/a.yaml t 1\n")
    assert changes(QUEUE, now) == ["2 lines removed at the end"]


def test_a_line_is_left_open_where_it_is_bad_or_its_cell_is_anothers():
    text = b"configs/a.json t 3\nconfigs/b.json t many\nconfigs/c.json t 3\n"
    queue = queue_line.parse_queue(text)
    assert left_open(queue, Above(), passed_over=()) == ["line 2 cannot be read"]
    assert left_open(queue, Above(end=2), passed_over=()) == ["line 2 cannot be read"]
    assert left_open(queue, Above(end=3), passed_over=()) == []
    others = left_open(queue, Above(frozenset("a"), 3), passed_over={"a", "c"})
    assert others == ["c belongs to another queue, which has not verified it"]


def test_a_line_that_was_commented_out_is_named_once_and_moves_no_other():
    data = b"# head\n# c/a.yaml t 1\nc/b.yaml t\n\nc/c.yaml t 3\nc/d.yaml t\n"
    now, commented = queue_line.parse_queue(data), queue_line.commented_out(data)
    assert changes(QUEUE, now, commented) == ["a was commented out"]


# --- predecessors


def lines(run, queue: str, *texts: str) -> None:
    run.durable.queue(queue).write_text("".join(f"{text}\n" for text in texts))


def order(run, *queues: str) -> list[str]:
    """The cells as they were begun."""
    begun = [(e.at, e.cell) for queue in queues for e in run.events("cell.started", queue=queue)]
    return [cell for _, cell in sorted(begun)]


def test_a_cell_comes_after_the_one_that_it_names_wherever_its_line_stands(make_run):
    run = make_run({"a": {}, "b": {}, "c": {}})
    lines(run, "q1", "configs/b.json t 3 after=a", "configs/c.json t 3", "configs/a.json t 3")
    assert run.finish() == 0
    assert order(run, "q1") == ["c", "a", "b"]
    assert run.warnings("waits_for_cell") == ["b waits for a"]


def test_who_comes_after_a_cell_that_failed_is_blocked_and_the_queue_says_so(make_run):
    run = make_run({"a": {"exits": [1]}, "b": {}, "c": {}})
    lines(run, "q1", "configs/a.json t 3", "configs/b.json t 3 after=a", "configs/c.json t 3")
    assert run.finish() == 1
    assert [run.state(cell) for cell in "abc"] == ["failed", "queued", "verified"]
    [done] = run.events("queue.done")
    assert done.data["reason"] == "b is blocked by a"


def test_the_next_launch_looks_again(make_run):
    run = make_run({"a": {"exits": [1, 0]}, "b": {}})
    lines(run, "q1", "configs/a.json t 3", "configs/b.json t 3 after=a")
    assert run.finish() == 1
    assert run.finish() == 0
    assert [run.state(cell) for cell in "ab"] == ["verified", "verified"]


def test_cells_of_one_circle_end_the_queue_and_do_not_hang_it(make_run):
    run = make_run({"a": {}, "b": {}})
    lines(run, "q1", "configs/a.json t 3 after=b", "configs/b.json t 3 after=a")
    assert run.finish() == 1
    assert [run.state(cell) for cell in "ab"] == ["queued", "queued"]


def test_who_waits_for_a_line_that_no_release_can_run_does_not_hold_up_the_end(make_run):
    run = make_run({"b": {}})
    lines(run, "q1", "configs/b.json t 3 after=later", "configs/later.json t 3")
    assert run.finish() == 1
    assert [run.state(cell) for cell in ("b", "later")] == ["queued", "failed"]


def test_a_cell_is_waited_for_that_another_queue_trains(make_run):
    run = make_run({"a": {"gate": 1}, "b": {}})
    lines(run, "q1", "configs/b.json t 3 after=a")
    lines(run, "q2", "configs/a.json t 3")
    first = run.start("q1")
    until(lambda: run.warnings("waits_for_cell"))
    assert run.warnings("waits_for_cell") == [
        "b waits for a of q2, where no agent is at work: launch it"
    ]
    second = run.start("q2")
    run.open_gate()
    assert (second.wait(LIMIT_S), first.wait(LIMIT_S)) == (0, 0)
    assert run.state("b") == "verified"


def test_what_the_other_queue_has_given_up_blocks(make_run):
    run = make_run({"a": {"exits": [1]}, "b": {}})
    lines(run, "q1", "configs/b.json t 3 after=a")
    lines(run, "q2", "configs/a.json t 3")
    assert run.finish("q2") == 1
    assert run.finish("q1") == 1
    assert run.state("b") == "queued"


def test_of_queues_that_are_launched_together_none_is_taken_for_ended_before_it_began(make_run):
    """The one that waits may look first: what the other's agent of before had given up is tried
    again by the one that is just being started."""
    run = make_run({"a": {"exits": [1, 0]}, "b": {}}, together_s=LIMIT_S)
    lines(run, "q1", "configs/b.json t 3 after=a")
    lines(run, "q2", "configs/a.json t 3")
    assert run.finish("q2") == 1
    first = run.start("q1")
    until(lambda: run.warnings("waits_for_cell"))
    second = run.start("q2")
    assert (second.wait(LIMIT_S), first.wait(LIMIT_S)) == (0, 0)
    assert run.state("b") == "verified"


def test_what_a_queue_launched_together_gives_up_blocks_at_once(make_run):
    run = make_run({"a": {"exits": [1]}, "b": {}}, together_s=LIMIT_S)
    lines(run, "q1", "configs/b.json t 3 after=a")
    lines(run, "q2", "configs/a.json t 3")
    assert run.finish("q2") == 1
    first = run.start("q1")
    until(lambda: run.warnings("waits_for_cell"))
    assert run.finish("q2") == 1
    assert first.wait(LIMIT_S) == 1
    assert run.events("queue.done")[-1].data["reason"] == "b is blocked by a"


def test_cells_of_a_circle_over_two_queues_end_both_and_say_so(make_run):
    run = make_run({"a": {}, "b": {}, "c": {}})
    lines(run, "q1", "configs/a.json t 3 after=b")
    lines(run, "q2", "configs/b.json t 3 after=a", "configs/c.json t 3 after=b")
    first, second = run.start("q1"), run.start("q2")
    assert (first.wait(LIMIT_S), second.wait(LIMIT_S)) == (1, 1)
    # Who looks second may find the other one ended.
    told = run.warnings("after_circle") + run.warnings("after_circle", queue="q2")
    assert any("after= leads in a circle: " in text for text in told)
    assert all("a after b after a" in text or "b after a after b" in text for text in told)
    [done] = run.events("queue.done", queue="q2")
    assert done.data["reason"] == "b is blocked by a; c is blocked by b"
    assert not run.events("cell.started") + run.events("cell.started", queue="q2")


def test_a_line_of_another_queue_that_has_begun_makes_no_circle(make_run):
    """Its after= was written behind it while it ran."""
    run = make_run({"a": {}, "b": {"gate": 1}})
    lines(run, "q1", "configs/a.json t 3 after=b")
    lines(run, "q2", "configs/b.json t 3")
    second = run.start("q2")
    until(lambda: run.starts("b", "box-b"))
    lines(run, "q2", "configs/b.json t 3 after=a")
    first = run.start("q1")
    until(lambda: run.warnings("waits_for_cell"))
    run.open_gate()
    assert (second.wait(LIMIT_S), first.wait(LIMIT_S)) == (0, 0)
    assert run.state("a") == "verified"


def test_the_result_of_the_one_before_is_handed_on(make_run):
    run = make_run({"a": {}, "b": {}}, command=("train.py", "{cfg}", "{out}", "{after}"))
    lines(run, "q1", "configs/a.json t 3 name=x", "configs/b.json t 3 after=x")
    assert run.finish() == 1  # `a` has no after=, and this command takes {after}
    [failed] = run.events("cell.failed")
    assert (failed.cell, failed.data["failure"]) == ("x", "NOCFG")
    assert "uses {after}" in failed.data["reason"]


def test_a_cell_gets_the_folder_of_the_one_before(make_run):
    rule = Rule("b", command=("train.py", "{cfg}", "{out}", "{after}", "{after:a}"))
    run = make_run({"a": {}, "b": {}}, rules=(rule,))
    lines(run, "q1", "configs/a.json t 3", "configs/b.json t 3 after=a")
    assert run.finish() == 0
    folder = str(run.durable.cell("a"))
    assert manifest.read_manifest(run.durable.manifest("b")).words[-2:] == (folder, folder)
