from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tiny_project import TinyProject, make_project

from boxcar.laptop.project import short_run
from boxcar.laptop.project.project import open_project
from boxcar.laptop.project.short_run import ShortRun, describe_short_run
from boxcar.shared.cell.said import Places
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Plan

PLACES = Places("/o", "/c")
COMMAND = "train.py {cfg} {epochs} --name={epochs}-{name} 60 {more} '{{1}}'"


@pytest.fixture
def tiny(tmp_path: Path) -> TinyProject:
    lines = ["configs/a.json recon 50 lr=1e-3 steps=900", "configs/b.json recon 50 lr=2e-3"]
    made = make_project(tmp_path / "p", {"q1": lines}, command=COMMAND, smoke="-s", resume=None)
    made.write_config("a")
    made.write_config("b")
    return made


@pytest.fixture
def plan(tiny: TinyProject) -> Plan:
    return open_project(tiny.root / "job.yaml", "local").plan


def words(plan: Plan, **short: Any) -> list[str]:
    asked = ShortRun.model_validate(short)
    return list(describe_short_run(plan, plan.cells[0], PLACES, asked).words)


WHOLE = [
    "train.py", "configs/a.json", "50", "--name=50-a_lr1e-3_steps900", "60", "lr=1e-3", "steps=900",
    "{1}",
]  # fmt: skip


def test_words_are_added_at_the_end(plan: Plan) -> None:
    assert ShortRun.model_validate(short_run.of_text("--limit 2")).add == ("--limit", "2")
    assert words(plan, add="--limit 2 {task}") == [*WHOLE, "--limit", "2", "recon"]


def test_a_placeholder_becomes_another_value_wherever_it_stands(plan: Plan) -> None:
    found = words(plan, replace={"{epochs}": "1"}, add="--e {epochs}")
    assert found[2:4] == ["1", "--name=1-a_lr1e-3_steps900"]
    assert found[-2:] == ["--e", "1"]
    odd = words(plan, replace={"{epochs}": "{cfg} }$x '"})
    assert odd[2] == "{cfg} }$x '", "literally"


def test_a_word_is_swapped_where_it_stands_alone_also_among_the_overrides(plan: Plan) -> None:
    found = words(plan, replace={"60": "2", "steps=900": "steps=3"}, add="60")
    assert found == [*WHOLE[:4], "2", "lr=1e-3", "steps=3", "{1}", "60"]


def test_variables_with_a_placeholder_get_its_value_too(plan: Plan) -> None:
    env = {"A": "{epochs}/{{epochs}}", "B": '{"epochs": 1}'}
    short = ShortRun.model_validate({"replace": {"{epochs}": "1"}})
    said = describe_short_run(replace(plan, job_env=env), plan.cells[0], PLACES, short)
    assert (said.env["A"], said.env["B"]) == ("1/{epochs}", '{"epochs": 1}')


def refused(tiny: TinyProject, **job: Any) -> str:
    tiny.write_job(**({"command": COMMAND, "smoke": "-s", "resume": None} | job))
    with pytest.raises(InputError) as error:
        open_project(tiny.root / "job.yaml", "local")
    return str(error.value)


def test_what_matches_nothing_is_refused_by_the_plan(tiny: TinyProject) -> None:
    text = refused(tiny, smoke={"replace": {"61": 1, "{task}": "x", "steps=900": 1}})
    assert "smoke.replace: no cell's command has '61' (did you mean '60'?)" in text
    assert "no cell's command has '{task}'" in text
    assert "steps" not in text
    assert "rehearse.replace: no cell's command" in refused(tiny, rehearse={"replace": {"x": 1}})


def test_a_cell_that_is_skipped_has_to_be_one(tiny: TinyProject) -> None:
    text = refused(tiny, smoke={"add": "-s", "skip": {"b_lr2": "no GPU", "z*": "later"}})
    assert "smoke.skip: no queue has a cell named 'b_lr2' (did you mean 'b_lr2e-3'?)" in text
    assert "z*" not in text


@pytest.mark.parametrize(
    ("short", "why"),
    [
        ({"replace": {"{epoch}": 1}}, "unknown placeholder {epoch}"),
        ({"replace": {"{more}": "x"}}, "{more} cannot be replaced"),
        ({"skip": {"a": " "}}, "expected a reason,"),
        ({"add": ["--x"]}, "expected one string"),
        ({"adds": "--x"}, "adds"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_stands(short: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as error:
        ShortRun.model_validate(
            {key: value if key != "replace" else {k: str(v) for k, v in value.items()}
             for key, value in short.items()}
        )  # fmt: skip
    assert why in str(error.value)


def test_an_exact_name_counts_before_a_pattern() -> None:
    short = ShortRun.model_validate({"skip": {"fsdp*": "no GPU here", "fsdp_1": "one rank"}})
    assert short.why_skipped("fsdp_1") == "one rank"
    assert short.why_skipped("fsdp_2") == "no GPU here"
    assert short.why_skipped("ddp") is None
    assert not short.is_given
