from __future__ import annotations

from dataclasses import replace

from big_run import view, watched
from run_on_disk import from_now

from boxcar.laptop.run.view import Condition, RunView
from boxcar.laptop.view.gpu_history import NOTHING_SEEN
from boxcar.laptop.view.needs import Need, Quiet, needs_of_run, with_alike_in_one_row
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.process import end_reason
from boxcar.shared.state import Session, State

NO_QUIET = Quiet()


def told(made: RunView, quiet: Quiet = NO_QUIET) -> list[Need]:
    return list(needs_of_run(made, NOTHING_SEEN, quiet, "en"))


def with_condition(word: str) -> RunView:
    made = view(3, 2)
    queues = [replace(made.queues[0], condition=Condition(word, "its sentence")), *made.queues[1:]]
    return replace(made, queues=tuple(queues), cells=())


def test_what_is_broken_comes_before_failed_cells_and_those_before_doubt() -> None:
    made = view(9, 3)
    queues = [replace(made.queues[0], condition=Condition("agent dead", "")), *made.queues[1:]]
    quiet = Quiet(("webhooks: off",))
    rows = told(replace(made, queues=tuple(queues)), quiet)
    failed = [cell.name for cell in made.cells if cell.word == "failed"]
    assert rows[0].who == "box-0" and rows[0].is_broken
    assert [row.who for row in rows[1:3]] == failed
    assert rows[3].who == "box-2" and rows[3].text.startswith(
        "unreachable 1s, but may well be running"
    )
    assert rows[-1].text == "webhooks: off" and rows[-1].is_quiet


def test_every_condition_that_is_no_ease_needs_a_person() -> None:
    for word in ("damaged", "agent dead", "trainer dead", "no room", "unknown", "unreachable",
                 "stalled agent", "step frozen", "incomplete", "stopped"):  # fmt: skip
        assert [row.who for row in told(with_condition(word))][:1] == ["box-0"], word
    for word in ("running", "idle", "done", "drained", "not started"):
        assert told(with_condition(word)) == [], word


def test_nothing_is_needed_of_a_run_that_was_torn_down() -> None:
    assert told(view(9, 3), Quiet(("webhooks: off",), is_billed=True, is_over=True)) == []


def test_a_box_that_bills_needs_a_person_once_no_agent_is_at_work() -> None:
    [queue] = view(1, 1).queues
    event = Event(1, "evt_1", from_now(-7300), "queue.done", {})
    over = replace(queue, events=(event,), is_alive=False, condition=Condition("done", ""))
    made = replace(view(1, 1), queues=(over,), cells=(), at=from_now(0))
    assert told(made) == []
    [row] = told(made, Quiet(is_billed=True))
    assert (row.who, row.text) == ("box-0", "no agent for 2h01m, and still bills")
    assert told(replace(made, queues=(queue,)), Quiet(is_billed=True)) == []


def test_a_queue_that_a_person_stopped_needs_none() -> None:
    made = with_condition("stopped")
    for by, rows in ((end_reason.STOP, 0), (end_reason.SIGNAL, 1)):
        session = Session("t", 7, "r", "box-0", 0, "agent.stopped", by=by)
        queues = [replace(made.queues[0], state=State(session=session)), *made.queues[1:]]
        assert len(told(replace(made, queues=tuple(queues)))) == rows, by


def test_a_failed_cell_says_its_class_its_reason_and_how_far_it_was() -> None:
    [row] = [row for row in told(view(3, 1)) if row.where]
    assert row.text == "M2 CUDA out of memory. Tried to allocate 2.00 GiB"
    assert (row.where, row.epoch) == ("box-0", "2/20")


def test_many_cells_that_failed_alike_are_one_row_that_opens_the_first() -> None:
    rows = [
        Need(f"c{n}", f"{kind} why", "box", cell=f"c{n}", kind=kind)
        for n, kind in enumerate("MNMNMNMM")
    ]
    found = with_alike_in_one_row((Need("box-a", "gone"), *rows))
    assert [(row.who, row.text[0]) for row in found] == [
        *(("box-a", "g"), ("5 cells", "M"), ("c1", "N"), ("c3", "N"), ("c5", "N"))
    ]
    assert found[1].cell == "c0"


def test_an_idle_gpu_is_told_of_the_box_and_its_cell() -> None:
    made = view(3, 1)
    rows = needs_of_run(made, watched(25, 2), NO_QUIET, "en")
    [row] = [row for row in rows if "GPU" in row.text]
    assert row.who == "box-0" and row.text.startswith("GPU at 2 % for 2")
    assert row.cell == made.queues[0].active
