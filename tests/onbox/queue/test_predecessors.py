from __future__ import annotations

from waiting import LIMIT_S, until

from boxcar.shared.files import manifest
from boxcar.shared.files.plan import Rule


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
    assert "takes {after}" in failed.data["reason"]


def test_a_cell_gets_the_folder_of_the_one_before(make_run):
    rule = Rule("b", command=("train.py", "{cfg}", "{out}", "{after}", "{after:a}"))
    run = make_run({"a": {}, "b": {}}, rules=(rule,))
    lines(run, "q1", "configs/a.json t 3", "configs/b.json t 3 after=a")
    assert run.finish() == 0
    folder = str(run.durable.cell("a"))
    assert manifest.read_manifest(run.durable.manifest("b")).words[-2:] == (folder, folder)
