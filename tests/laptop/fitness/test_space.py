from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from box_facts import facts_of, good
from plans import make_plan

from boxcar.laptop.fitness.rules import Row, Told
from boxcar.laptop.fitness.space import (
    FILES_A_CELL,
    OWN_BYTES,
    OWN_FILES,
    Measured,
    check_space,
    room_of_box,
)
from boxcar.laptop.project.resources import Resources
from boxcar.shared.files.plan import Cell, Plan

GB = 10**9
ONE = Measured(GB, 10)


def plan(scope: str = "shared", resume: str | None = None) -> Plan:
    """Three cells on box-a, one on box-b."""
    names = {"queue_1": ["a1", "a2", "a3"], "queue_2": ["b1"]}
    cells = [
        Cell(name, f"configs/{name}.yaml", "seg", 1, queue, index, None)
        for queue, listed in names.items()
        for index, name in enumerate(listed)
    ]
    return make_plan(cells=tuple(cells), artifacts=(), resume=resume, durable_scope=scope)


def told(
    box: str = "box-a", data: float = 1000.0, durable: float = 1000.0, **changed: Any
) -> dict[str, Told]:
    """A box with so many GB free on its tiers, each a disk of its own."""
    common = {"size_bytes": 1000 * GB, "free_inodes": 10**6} | changed
    places = good()["places"]
    places["data"] |= common | {"free_bytes": int(data * GB), "device": 1}
    places["durable"] |= common | {"free_bytes": int(durable * GB), "device": 2}
    return {box: Told(facts_of(good() | {"hostname": box, "boot_id": box, "places": places}))}


def changed(one: Told, folder: str, **fields: Any) -> Told:
    """The same, with another `data` or `durable` folder."""
    assert one.facts
    places = one.facts.places
    places = replace(places, **{folder: replace(getattr(places, folder), **fields)})
    return replace(one, facts=replace(one.facts, places=places))


def verdicts(rows: list[Row]) -> dict[str, str]:
    return {f"{row.box} {row.what}": row.verdict for row in rows}


def both(**changed: Any) -> dict[str, Told]:
    return told("box-a", **changed) | told("box-b", **changed)


def test_a_run_that_fits_is_ok_on_each_disk_and_once_on_the_shared_tier():
    assert verdicts(check_space(both(), plan(), ONE)) == {
        "box-a room: data": "ok",
        "box-b room: data": "ok",
        "all room: durable": "ok",
    }


@pytest.mark.parametrize(("free_bytes", "verdict"), [(0, "ok"), (-1, "refuse")])
def test_a_data_disk_needs_a_place_for_every_cell_of_its_queue(free_bytes, verdict):
    needs = (3 * GB + OWN_BYTES + free_bytes) / GB
    found = verdicts(check_space(told(data=needs), plan(), ONE))
    assert found["box-a room: data"] == verdict


@pytest.mark.parametrize(("cells", "verdict"), [(4.1, "ok"), (3.9, "refuse")])
def test_the_shared_tier_needs_a_place_for_the_cells_of_all_boxes(cells, verdict):
    found = verdicts(check_space(both(durable=cells + OWN_BYTES / GB), plan(), ONE))
    assert found["all room: durable"] == verdict


def test_a_tier_that_each_box_has_for_itself_holds_its_own_cells():
    found = verdicts(check_space(both(durable=2), plan("box"), ONE))
    assert found["box-a room: durable"] == "refuse"
    assert found["box-b room: durable"] == "ok"


def test_the_checkpoint_of_a_running_cell_needs_a_place_beside_the_results():
    free = 4.5 + OWN_BYTES / GB
    assert verdicts(check_space(both(durable=free), plan(), ONE))["all room: durable"] == "ok"
    found = verdicts(check_space(both(durable=free), plan(resume="latest.pth"), ONE))
    assert found["all room: durable"] == "refuse"


def test_cells_side_by_side_need_a_place_for_each_checkpoint_and_each_copy_of_the_code():
    free = 6.5 + OWN_BYTES / GB  # of four cells, and of one checkpoint for each of two queues
    one_each = plan(resume="latest.pth")
    assert set(verdicts(check_space(both(durable=free), one_each, ONE)).values()) == {"ok"}
    three = replace(one_each, slots=3)
    assert verdicts(check_space(both(durable=free), three, ONE))["all room: durable"] == "refuse"
    box, code = told(data=4 + OWN_BYTES / GB), replace(ONE, code_bytes=GB)
    assert verdicts(check_space(box, plan(), code))["box-a room: data"] == "ok"
    three = replace(plan(), slots=3)
    assert verdicts(check_space(box, three, code))["box-a room: data"] == "refuse"


def test_the_box_that_sees_the_least_left_of_the_shared_tier_is_believed():
    found = verdicts(check_space(told("box-a") | told("box-b", durable=1), plan(), ONE))
    assert found["all room: durable"] == "refuse"


def test_cells_that_are_verified_need_nothing_more():
    found = check_space(both(data=0.5, durable=0.5), plan(), ONE, verified={"a1", "a2", "a3", "b1"})
    assert set(verdicts(found).values()) == {"ok"}
    found = check_space(both(data=1.5, durable=100), plan(), ONE, verified={"a1", "a2"})
    assert set(verdicts(found).values()) == {"ok"}


def test_inodes_are_counted_like_bytes_and_the_mend_is_another():
    needs = OWN_FILES + 3 * (10 + FILES_A_CELL)
    assert (
        verdicts(check_space(told(free_inodes=needs), plan("box"), ONE))["box-a room: data"] == "ok"
    )
    row = check_space(told(free_inodes=needs - 1), plan("box"), ONE)[0]
    assert row.verdict == "refuse"
    assert f"{needs} inodes are needed" in row.reason


def test_a_file_system_that_counts_no_inodes_has_enough():
    facts = told(free_inodes=None)
    assert set(verdicts(check_space(facts, plan(), ONE)).values()) == {"ok"}


def test_two_tiers_on_one_disk_share_what_it_has_left():
    facts = told(data=7, durable=7)
    assert set(verdicts(check_space(facts, plan("box"), ONE)).values()) == {"ok"}
    facts = {"box-a": changed(told(data=5, durable=5)["box-a"], "durable", device=1)}
    assert verdicts(check_space(facts, plan("box"), ONE)) == {
        "box-a room: data and durable": "refuse"
    }


def test_boxes_that_are_folders_of_one_machine_share_its_disk():
    facts = {}
    for box, one in both(data=9, durable=9).items():
        here = replace(one, facts=replace(one.facts, hostname="laptop", boot_id="1"))
        facts[box] = changed(here, "durable", device=1)
    found = verdicts(check_space(facts, plan(), ONE))
    assert found == {"all room: data and durable": "ok"}
    facts["box-a"] = changed(facts["box-a"], "data", free_bytes=7 * GB)
    assert set(verdicts(check_space(facts, plan(), ONE)).values()) == {"refuse"}


def test_without_a_measure_the_job_says_how_large_a_disk_it_wants():
    wished = Resources(disk="100GB").disk
    assert verdicts(check_space(told(size_bytes=98 * GB), plan("box"), None, wished)) == {
        "box-a room: data": "ok",
        "box-a room: durable": "ok",
    }
    found = verdicts(check_space(told(size_bytes=50 * GB), plan("box"), None, wished))
    assert found["box-a room: data"] == "refuse"
    found = verdicts(check_space(told(data=60, durable=60), plan("box"), None, wished))
    assert set(found.values()) == {"warn"}
    found = check_space(told(data=60, durable=60), plan("box"), None, wished, verified={"a1", "a2"})
    assert set(verdicts(found).values()) == {"ok"}


def test_what_was_measured_is_believed_before_what_was_wished():
    wished = Resources(disk="100GB").disk
    found = verdicts(check_space(told(data=60, durable=60), plan("box"), ONE, wished))
    assert set(found.values()) == {"ok"}


def test_where_nobody_knows_the_size_of_a_cell_that_is_said():
    row = check_space(both(), plan(), None)[-1]
    assert (row.box, row.verdict) == ("all", "warn")
    assert str(row.reason).endswith("measure the cells: invoke smoke")


def test_a_full_disk_is_refused_even_where_nobody_knows_the_size_of_a_cell():
    assert verdicts(check_space(told(data=0), plan("box"), None))["box-a room: data"] == "refuse"


def test_a_box_that_said_nothing_and_a_tier_that_cannot_be_read_have_no_row_here():
    assert check_space({"box-a": Told(None, why="gone")}, plan(), ONE) == []
    facts = {"box-a": changed(told()["box-a"], "durable", free_bytes=None)}
    assert verdicts(check_space(facts, plan(), ONE)) == {"box-a room: data": "ok"}


def test_a_box_to_be_rented_has_room_for_the_cells_of_the_fullest() -> None:
    # Three cells and the checkpoint of the one that runs; a tier of its own holds them once more.
    assert room_of_box(plan(), ONE) == OWN_BYTES + 4 * GB
    assert room_of_box(plan("box"), ONE) == 2 * (OWN_BYTES + 4 * GB)
