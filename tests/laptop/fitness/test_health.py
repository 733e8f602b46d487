"""Whether cards are sound and free, and whether a torch has code for them."""

from __future__ import annotations

from typing import Any

import pytest
from box_facts import A100, facts_of, good

from boxcar.laptop.fitness.health import has_code, judge_health
from boxcar.laptop.fitness.mirrors import judge_mirrors
from boxcar.laptop.fitness.rules import ALL, Row, Told
from boxcar.shared.wire.box_asks import OthersSeen, Stranger

GIB = 1 << 30
# As torch says them, of wheels on its index.
TORCH_2_0_CU118 = ("sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
TORCH_2_9_CU128 = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


def rows(others: OthersSeen | None = None, **told: Any) -> list[Row]:
    return list(judge_health({"box-a": Told(facts_of(good() | told), others=others)}))


def card(**facts: Any) -> dict[str, Any]:
    return A100 | {"temperature_c": 64, "memory_used_bytes": 0} | facts


@pytest.mark.parametrize(
    ("capability", "built_for", "runs"),
    [
        ("8.0", TORCH_2_0_CU118, True),
        ("8.9", TORCH_2_0_CU118, True),  # a 4090 runs code of sm_86
        ("9.0", TORCH_2_0_CU118, True),
        ("12.0", TORCH_2_0_CU118, False),  # a 5090
        ("10.0", TORCH_2_0_CU118, False),  # a B200
        ("12.0", TORCH_2_9_CU128, True),
        ("6.1", TORCH_2_9_CU128, False),  # a 1080
        ("7.0", ("sm_75", "sm_80"), False),
        ("12.0", ("sm_80", "compute_90"), True),  # PTX is translated by the driver
        ("8.0", ("compute_90",), False),
        ("9.0", ("sm_90a",), True),
        ("12.1", ("sm_120a",), False),
        ("10.3", ("sm_100f",), True),
        ("9.4", ("gfx942",), True),
        ("9.0", (), True),
        ("9.0", ("sm_new",), True),
    ],
)
def test_a_torch_has_code_for_a_card_or_not(capability, built_for, runs):
    assert has_code(capability, built_for) is runs


def test_a_card_that_no_code_is_for_is_refused_by_name():
    training = good()["training"] | {
        "built_for": [*TORCH_2_0_CU118],
        "capabilities": ["12.0", "8.0"],
    }
    [row] = rows(training=training)
    assert (row.what, row.verdict) == ("CUDA", "refuse") and "12.0" in row.reason


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"ecc_errors": 3}, "3 memory errors that nothing corrected"),
        ({"slowed_by": ["heat (hardware)"], "temperature_c": 93}, "heat (hardware), at 93 °C"),
        ({"memory_used_bytes": 12 * GIB}, "12.9 GB are in use"),
    ],
)
def test_a_card_that_is_not_sound_or_not_free_is_told_with_its_number(facts, words):
    [row] = rows(gpus=[card(), card(**facts)])
    assert (row.what, row.verdict) == ("GPU health", "warn")
    assert row.reason.startswith("GPU 1") and words in row.reason


def test_whoever_is_seen_on_a_card_has_a_row_of_its_own():
    seen = OthersSeen((), (Stranger(7, "python", "root"),))
    assert rows(seen, gpus=[card(memory_used_bytes=12 * GIB)]) == []


def test_a_sound_box_and_one_that_says_nothing_of_it_have_no_row():
    assert rows(gpus=[card(slowed_by=[], ecc_errors=0, memory_used_bytes=300 << 20)]) == []
    assert rows() == []
    assert list(judge_health({"box-a": Told(None)})) == []


@pytest.mark.parametrize(("has", "limit", "is_told"), [(60, 245, True), (60, 3932, False)])
def test_few_processes_are_told_before_a_data_loader_fails(has, limit, is_told):
    found = rows(processes=has, processes_limit=limit)
    assert [row.found for row in found] == (["185 left of 245"] if is_told else [])


def test_versions_that_change_numbers_are_compared_where_both_are_known():
    one, other = good()["training"], good()["training"]
    other = other | {"packages": {"torch": "2.8", "accelerate": "1.9"}, "cuda": "12.6"}
    one = one | {"requirements": {"flash-attn": None, "transformers": "4.57", "rich": "13.1"}}
    other |= {"requirements": {"flash-attn": "2.8", "transformers": "4.56", "rich": "13.2"}}
    boxes = {"box-a": one, "box-b": other, "box-c": one}
    told = {box: Told(facts_of(good() | {"training": each})) for box, each in boxes.items()}
    [row] = judge_health(told)
    assert (row.box, row.what, row.verdict) == (ALL, "versions alike", "warn")
    assert row.found == (
        "torch (box-a: 2.9, box-b: 2.8, box-c: 2.9); CUDA (box-a: 12.8, box-b: 12.6, box-c: 12.8); "
        "transformers (box-a: 4.57, box-b: 4.56, box-c: 4.57)"
    )


def test_a_mirror_that_is_dead_from_the_box_is_said_and_one_that_answers_is_named():
    mirrors = [
        {"name": "HF_ENDPOINT", "url": "https://m", "problem": "it answers HTML"},
        {"name": "PIP_INDEX_URL", "url": "https://p", "problem": None},
    ]
    told = {"a": Told(facts_of(good() | {"mirrors": mirrors}))}
    dead, alive = judge_mirrors(told)
    assert (dead.what, dead.verdict, dead.found) == ("mirror", "warn", "https://m")
    assert "HF_ENDPOINT is dead from here and is not used: it answers HTML" in dead.reason
    assert (alive.verdict, alive.found, alive.reason) == ("ok", "https://p", "")


def test_an_xid_of_the_card_is_warned_of_and_one_of_a_program_is_not():
    [row] = rows(gpus=[card(xid=79)])
    assert (row.what, row.verdict) == ("GPU health", "warn") and "Xid 79" in row.reason
    assert rows(gpus=[card(xid=31)]) == []


@pytest.mark.parametrize(
    ("driver", "cuda", "has_cuda", "is_refused"),
    [
        ("470.82.01", "12.8", False, True),
        ("525.60.13", "12.8", False, False),  # something else is wrong
        ("550.54.15", "13.0", False, True),
        ("418.87", "11.8", False, True),
        ("470.82.01", "12.8", True, False),  # by a package for compatibility
        ("470.82.01", None, False, False),  # built for the CPU, which has a row of its own
        ("made up", "12.8", False, False),
    ],
)
def test_a_driver_older_than_the_wheel_needs_is_named_with_what_it_needs(
    driver, cuda, has_cuda, is_refused
):
    training = good()["training"] | {"cuda": cuda, "has_cuda": has_cuda}
    found = rows(gpus=[card(driver=driver)], training=training)
    assert [row.what for row in found] == (["driver"] if is_refused else [])
    assert all(f"older than CUDA {cuda}" in row.reason for row in found)
