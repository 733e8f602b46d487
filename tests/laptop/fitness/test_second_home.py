from __future__ import annotations

from typing import Any

import pytest
from plans import make_plan

from boxcar.laptop.fitness import second_home
from boxcar.laptop.fitness.rules import Row
from boxcar.shared.errors import TemporaryError
from boxcar.shared.wire import box_asks


def test_without_a_second_home_nobody_is_asked() -> None:
    def ask(*words: Any, **more: Any) -> Any:
        pytest.fail("it was asked")

    assert second_home.check(ask, make_plan(), ["box-a"], "", {}) == []


def test_each_box_tries_it_below_the_run_s_name_and_has_a_row() -> None:
    asked: list[box_asks.TrySecondHome] = []

    def ask(box: str, question: Any, **more: Any) -> Any:
        asked.append(question)
        if box == "box-b":
            raise TemporaryError("box-b: the link is down")
        return box_asks.SecondHomeTried()

    plan = make_plan(second="s3://b/p", env={"HTTPS_PROXY": "x"})
    rows = second_home.check(ask, plan, ["box-a", "box-b"], "hook", {"AWS_ACCESS_KEY_ID": "k"})
    assert rows[0] == Row("box-a", "second home", "ok", "s3://b/p")
    assert (rows[1].verdict, str(rows[1].reason)[:23]) == ("refuse", "box-b: the link is down")
    assert {(one.url, one.hook) for one in asked} == {("s3://b/p/boxcar/digits", "hook")}
    assert asked[0].env == {"HTTPS_PROXY": "x"}
    assert asked[0].secrets == {"AWS_ACCESS_KEY_ID": "k"}
    assert "def main()" in asked[0].program


def test_the_credentials_that_a_job_does_not_hand_over_are_named() -> None:
    names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
    row = second_home.judge("box-a", "s3://b", "PermissionError: Forbidden", names[:1])
    assert "no AWS_SECRET_ACCESS_KEY: where it is credentials" in str(row.reason)
    assert "secrets: [AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY]" in str(row.reason)
    missing = "the package s3fs is not installed for python3; type on that machine: …"
    assert second_home.judge("box-a", "s3://b", missing, ()).reason == missing, "one thing first"
    row = second_home.judge("box-a", "s3://b", "PermissionError: Forbidden", names)
    assert row.reason == "PermissionError: Forbidden"


@pytest.mark.parametrize(
    ("url", "package"),
    [
        ("s3://b/p", "s3fs"),
        ("gs://b/p", "gcsfs"),
        ("abfs://c/p", "adlfs"),
        ("abfss://c/p", "adlfs"),
    ],
)
def test_a_plan_names_the_package_that_its_second_home_needs(url: str, package: str) -> None:
    [said] = second_home.needs(make_plan(second=url))
    assert url in said and f"pip install {package} for the training's Python on each box" in said


def test_a_second_home_that_needs_no_package_and_none_are_not_spoken_of() -> None:
    assert second_home.needs(make_plan()) == []
    assert second_home.needs(make_plan(second="file:///mnt/nas")) == []
