"""What new lines would run on while an agent keeps the release that it was started with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plans import make_plan

from boxcar.laptop.run.mixed_code import NewLines, ToPush, new_lines, without_config
from boxcar.laptop.run.view import CellView, QueueView, RunView
from boxcar.shared.disk import digest
from boxcar.shared.files import codec, release
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.plan import Box, Cell, Plan, unlike
from boxcar.shared.files.release import CODE, PLAN, Code, Release
from boxcar.shared.paths import DurablePaths
from boxcar.shared.state import CellRecord, Session, State

CODE_FILES = {"train.py": "1", "cfg/a.yaml": "a"}


def cells(*names: str) -> tuple[Cell, ...]:
    return tuple(
        Cell(name, f"cfg/{name}.yaml", "t", 1, "q1", i, None) for i, name in enumerate(names)
    )


def plan_of(*names: str, **own: Any) -> Plan:
    boxes = (Box("box-a", "/data", "/c.json"),)
    return make_plan(**({"cells": cells(*names), "queues": {"q1": "box-a"}, "boxes": boxes} | own))


def release_of(code: dict[str, str], plan: Plan) -> Release:
    files = [
        FileRecord(f"{CODE}/{name}", len(text), digest.of_bytes(text.encode()))
        for name, text in code.items()
    ]
    document = codec.to_document(plan)
    files.append(FileRecord(PLAN, len(document), digest.of_bytes(document)))
    return Release("r", "onbox.pyz", "training.zip", Code(None, False), tuple(files))


@pytest.fixture
def tier(tmp_path: Path) -> DurablePaths:
    return DurablePaths(tmp_path, "r")


def put(tier: DurablePaths, made: Release, plan: Plan) -> Release:
    folder = tier.release(made.digest)
    folder.mkdir(parents=True)
    (folder / release.FILE).write_bytes(codec.to_document(made))
    (folder / PLAN).write_bytes(codec.to_document(plan))
    return made


def at_work(own: Release, *begun: str) -> RunView:
    session = Session("2026-11-22T00:00:00.000Z", 7, own.digest, "box-a", 0)
    queue = QueueView("q1", "box-a", state=State(session=session), is_alive=True)
    views = tuple(
        CellView(name, "q1", "box-a", f"cfg/{name}.yaml", "t", 1, 0, CellRecord(attempts=1))
        for name in begun
    )
    return RunView("r", "2026-11-22T00:00:00.000Z", (queue,), views)


def found(tier: DurablePaths, code: dict[str, str], plan: Plan, view: RunView) -> list[NewLines]:
    return new_lines(view, ToPush(tier, release_of(code, plan), plan))


@pytest.fixture
def own(tier: DurablePaths) -> Release:
    return put(tier, release_of(CODE_FILES, plan_of("a")), plan_of("a"))


def test_a_new_config_alone_is_no_other_code(tier, own):
    code = CODE_FILES | {"cfg/b.yaml": "b", "cfg/unused.yaml": "u", "cfg/a.yaml": "a2"}
    (lines,) = found(tier, code, plan_of("a", "b"), at_work(own, "a"))
    assert lines == NewLines("q1", own.digest, ("b",), (), ())


def test_what_else_differs_is_named(tier, own):
    code = {"train.py": "2", "cfg/b.yaml": "b", "lib.py": "x"}
    plan = plan_of("a", "b", env={"A": "1"})
    (lines,) = found(tier, code, plan, at_work(own, "a"))
    assert lines.other == ("lib.py", "train.py", "env of the plan")


def test_a_line_whose_config_the_running_release_has_is_none_of_these(tier, own):
    assert found(tier, CODE_FILES | {"train.py": "2"}, plan_of("a"), at_work(own)) == []


def test_a_cell_that_was_begun_keeps_its_release(tier, own):
    code = CODE_FILES | {"train.py": "2", "cfg/b.yaml": "b"}
    assert found(tier, code, plan_of("a", "b"), at_work(own, "a", "b")) == []


def test_what_was_pushed_before_is_not_asked_again(tier, own):
    code, plan = CODE_FILES | {"train.py": "2", "cfg/b.yaml": "b"}, plan_of("a", "b")
    put(tier, release_of(code, plan), plan)
    assert len(found(tier, code, plan, at_work(own))) == 1
    tier.queue("q1").parent.mkdir()
    tier.queue("q1").write_text("cfg/a.yaml t\ncfg/b.yaml t\n")
    assert found(tier, code, plan, at_work(own)) == []


def test_a_plan_that_a_running_agent_cannot_take_over_is_told_by_its_fields(tier, own):
    plan = plan_of("a", "b", launcher="python")
    (lines,) = found(tier, CODE_FILES | {"cfg/b.yaml": "b"}, plan, at_work(own))
    assert (lines.refused, lines.other) == (("launcher",), ())


def test_where_no_agent_is_at_work_nothing_is_mixed(tier, own):
    view = at_work(own)
    idle = replace(view, queues=(replace(view.queues[0], is_alive=False),))
    assert found(tier, {"cfg/b.yaml": "b"}, plan_of("a", "b"), idle) == []


def test_a_line_on_the_tier_whose_config_no_release_has_is_named_by_its_place(tier, own):
    tier.queue("q1").parent.mkdir()
    tier.queue("q1").write_text("# mine\ncfg/a.yaml t\ncfg/x.yaml t\ncfg/b.yaml t\n")
    made = release_of(CODE_FILES | {"cfg/b.yaml": "b"}, plan_of("a"))
    assert without_config(tier, ["q1", "q2"], made) == {"q1": ["line 3: cfg/x.yaml"]}


def test_boxes_that_join_and_leave_are_nothing_that_an_agent_was_started_with():
    a, b, c = (Box(name, "/data", "/c.json") for name in ("box-a", "box-b", "box-c"))
    own = plan_of("a", boxes=(a, b), queues={"q1": "box-a", "q2": "box-b"})
    joined = plan_of("a", boxes=(a, c), queues={"q1": "box-a", "q3": "box-c"})
    assert unlike(own, joined, "q1") == []
    assert unlike(own, joined, "q2") == ["queues"]
    moved = plan_of("a", boxes=(Box("box-a", "/other", "/c.json"), b), queues=own.queues)
    assert unlike(own, moved, "q1") == ["boxes"] and unlike(own, moved, "q2") == []
    assert unlike(own, plan_of("a", queues={"q1": "box-b"}), "q1") == ["queues"]


def test_a_box_that_joins_is_no_other_code(tier, own):
    boxes = tuple(Box(name, "/data", "/c.json") for name in ("box-a", "box-b"))
    plan = plan_of("a", "b", boxes=boxes, queues={"q1": "box-a", "q2": "box-b"})
    (lines,) = found(tier, CODE_FILES | {"cfg/b.yaml": "b"}, plan, at_work(own, "a"))
    assert (lines.refused, lines.other) == ((), ())
