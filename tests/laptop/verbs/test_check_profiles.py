from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from test_profile import own_profile

from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.verbs.check_profiles import check_profiles, stale_facts
from boxcar.shared.errors import InputError

NOW = date(2026, 11, 21)
OLD = "name: old\nextends: ssh\nmeter:\n  verified: MONTH\n"


def check(root: Path, capsys: pytest.CaptureFixture[str], code: int) -> dict[str, list[object]]:
    assert check_profiles(root, as_json=True, today=NOW) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("month", "is_stale"),
    [("2026-05", False), ("2026-04", True), ("2025-11", True), ("2026-11", False)],
)
def test_a_fact_older_than_six_months_is_named(tmp_path: Path, month: str, is_stale: bool) -> None:
    own_profile(tmp_path, "old", OLD.replace("MONTH", month))
    found = list(stale_facts(load_profile("old", tmp_path), NOW))
    assert [stale.group for stale in found] == (["meter"] if is_stale else [])


def test_a_month_that_is_still_to_come_is_named_too(tmp_path: Path) -> None:
    own_profile(tmp_path, "old", OLD.replace("MONTH", "2026-12"))
    (found,) = stale_facts(load_profile("old", tmp_path), NOW)
    assert found.months == -1


def test_the_line_of_the_month_is_told_once_for_all_who_take_it_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own_profile(tmp_path, "old", OLD.replace("MONTH", "2026-01"))
    own_profile(tmp_path, "older", "name: older\nextends: old\n")
    found = check(tmp_path, capsys, 1)
    assert [stale["at"] for stale in found["stale"]] == [f"{path}:4: meter.verified"]
    assert {"old", "older", "autodl"} <= set(found["profiles"])


def test_a_tier_that_would_be_lost_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "name: mine\nextends: vastai\nstorage: {data: volume, durable: container}\n"
    own_profile(tmp_path, "mine", text)
    (lost,) = check(tmp_path, capsys, 1)["lost"]
    assert "does not survive 'destroy'" in lost
    assert check_profiles(tmp_path, today=NOW) == 1
    assert "does not survive 'destroy'" in capsys.readouterr().out


def test_a_profile_that_cannot_be_read_hides_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_profile(tmp_path, "broken", "name: broken\nextends: nowhere\n")
    own_profile(tmp_path, "old", OLD.replace("MONTH", "2026-01"))
    with pytest.raises(InputError, match="no profile 'nowhere'"):
        check_profiles(tmp_path, today=NOW)
    assert "2026-01" in capsys.readouterr().out


def test_the_shipped_profiles_were_fresh_when_they_were_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = check(tmp_path, capsys, 0)
    assert (found["stale"], found["lost"], found["unreadable"]) == ([], [], [])
    assert len(found["profiles"]) == 15
