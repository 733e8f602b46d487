from __future__ import annotations

from boxcar.shared.files import queue_line
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.state import replay
from onbox.queue.next_cell import (
    Above,
    Begin,
    above,
    changes,
    is_same_trouble,
    left_open,
    next_cell,
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
    found = next_cell(QUEUE.cells, state.cell, release=release, passed_over=passed_over)
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
        return next_cell(cells, after.cell, release="two", passed_over=(), elsewhere=elsewhere).name

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
