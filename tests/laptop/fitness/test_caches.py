"""A cache that goes with the box is said only where the platform has a disk that stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from box_facts import facts_of, good

from boxcar.laptop.fitness.caches import judge_caches
from boxcar.laptop.project.profiles.profile import load_profile


def rows(tmp_path: Path, name: str, home: str, env: dict[str, str]) -> list[tuple[str, str, str]]:
    facts: Any = good()
    credentials = facts["places"]["credentials"] | {"path": f"{home}/.boxcar"}
    facts["places"] = facts["places"] | {"credentials": credentials}
    profile = load_profile(name, tmp_path)
    told = judge_caches({"box-a": facts_of(facts)}, profile, {**profile.network.env, **env})
    return [(row.verdict, str(row.found), str(row.reason)) for row in told]


def test_a_cache_on_the_disk_that_goes_is_said_with_the_place_that_stays(tmp_path):
    (hub, torch) = rows(tmp_path, "featurize", "/home/featurize", {})
    assert hub[:2] == ("warn", "/home/featurize/.cache/huggingface")
    assert "HF_HOME: /home/featurize/work/huggingface" in hub[2]
    assert "TORCH_HOME: /home/featurize/work/torch" in torch[2]


@pytest.mark.parametrize("name", ["HF_HOME", "TORCH_HOME"])
def test_one_that_was_put_on_the_disk_that_stays_is_no_news(tmp_path, name):
    found = rows(tmp_path, "featurize", "/home/featurize", {name: "/home/featurize/work/x"})
    assert len(found) == 1 and name not in found[0][2]


@pytest.mark.parametrize(
    ("platform", "home"),
    [
        ("autodl", "/root"),  # every disk of it survives the stop
        ("local", "/root"),  # nothing bills, nothing goes
        ("featurize", "/srv/elsewhere"),  # of which the profile says nothing
    ],
)
def test_where_nothing_goes_or_nobody_knows_nothing_is_said(tmp_path, platform, home):
    assert rows(tmp_path, platform, home, {}) == []
