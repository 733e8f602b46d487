"""How much a plan is, from what earlier runs took."""

from __future__ import annotations

from boxcar.laptop.project.queues.cell_cost import Expected, Sample, expected_time
from boxcar.shared.files.plan import Cell

QUEUES = {"q1": ("box-a",), "q2": ("box-b",), "q3": ("box-c",)}


def cell(name: str, queue: str, epochs: int = 10) -> Cell:
    return Cell(name, f"{name}.json", "recon", epochs, queue, 0, None)


def test_the_longest_queue_says_how_long_it_takes() -> None:
    cells = [cell("a", "q1"), cell("b", "q1"), cell("c", "q2", epochs=30)]
    measured = [Sample("x", "recon", 5, 500.0, "box-z")]
    assert expected_time(cells, QUEUES, measured) == Expected(3, 2, 3000.0)


def test_the_boxes_of_a_pool_share_the_time_of_its_file() -> None:
    measured = [Sample("x", "recon", 5, 500.0, "box-z")]
    pool = {"all": ("box-a", "box-b", "box-c")}
    assert expected_time([cell("a", "all", epochs=30)], pool, measured) == Expected(1, 3, 1000.0)


def test_without_an_earlier_run_no_time_is_said() -> None:
    assert expected_time([cell("a", "q1")], QUEUES, []) == Expected(1, 1, None)


def test_no_cell_is_no_time() -> None:
    assert expected_time([], QUEUES, [Sample("x", "recon", 5, 500.0, "b")]) == Expected(0, 0, None)
