"""What runs out next for a run: its last cell, or a person's money."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from big_run import view

from boxcar.laptop.run.view import Condition, RunView
from boxcar.laptop.view.run_rows import nearest_clock
from boxcar.shared import timestamp
from boxcar.shared.files.journal_chain import Event


def ended(given: RunView, *hours_ago: float) -> RunView:
    """The same where the agents of the first queues have said their last word so long ago."""
    over = Condition("done", "all lines were run")
    queues = list(given.queues)
    for at, hours in enumerate(hours_ago):
        then = timestamp.parse_utc(given.at) - timedelta(hours=hours)
        event = Event(1, "evt_1", timestamp.utc(then), "queue.done", {})
        queues[at] = replace(queues[at], events=(event,), is_alive=False, condition=over)
    return replace(given, queues=tuple(queues))


def test_a_run_at_work_ends_with_its_last_cell_where_that_is_known() -> None:
    given = view(9, 1)
    assert str(nearest_clock(given, is_billed=True)).startswith("ends in ")
    unknown = replace(given, cells=tuple(replace(cell, epochs=None) for cell in given.cells))
    assert nearest_clock(unknown, is_billed=True) is None


def test_a_box_that_bills_while_no_agent_works_comes_first_and_the_longest_is_named() -> None:
    given = ended(view(9, 2), 3, 5)
    assert nearest_clock(given, is_billed=True) == "idle for 5h00m"
    assert nearest_clock(given, is_billed=False) is None
    assert nearest_clock(ended(view(9, 2), 3), is_billed=True) == "idle for 3h00m"


def test_a_box_of_which_nobody_knows_whether_its_agent_lives_is_not_called_idle() -> None:
    given = ended(view(9, 1), 3)
    doubt = replace(given.queues[0], is_alive=None, condition=Condition("unreachable", "silent"))
    found = nearest_clock(replace(given, queues=(doubt,)), is_billed=True)
    assert found is None or "idle" not in found
