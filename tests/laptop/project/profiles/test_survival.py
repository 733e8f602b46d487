from __future__ import annotations

from pathlib import Path

import pytest
from plans import make_plan
from test_profile import load

from boxcar.laptop.project.profiles import survival
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.shared.files.plan import EACH_BOX, SHARED


def mine(root: Path, base: str, text: str) -> Profile:
    return load(root, "mine", f"name: mine\nextends: {base}\n{text}\n")


def test_a_tier_that_the_verb_takes_away_is_refused_and_a_better_one_named(tmp_path: Path) -> None:
    profile = mine(tmp_path, "vastai", "storage: {durable: container, data: volume}")
    (told,) = survival.survival_problems(profile)
    assert told.startswith(
        f"{tmp_path}/profiles/mine.yaml:3: storage.durable: the tier 'container'"
    )
    assert "does not survive 'destroy', the way this platform ends a run (destroy)" in told
    assert "(destroy): it is deleted at once" in told


def test_the_tier_that_would_survive_is_named_with_its_path(tmp_path: Path) -> None:
    tiers = "tiers: {extra: {path: /root/extra, stop: keep, destroy: lose}}"
    kept = mine(tmp_path, "autodl", f"storage: {{durable: extra, {tiers}}}")
    assert survival.survival_problems(kept) == []
    text = f"meter: {{down: destroy}}\nstorage: {{durable: extra, {tiers}}}"
    lost = mine(tmp_path, "autodl", text)
    (told,) = survival.survival_problems(lost)
    assert "These tiers survive it: fs (/root/autodl-fs), legacy_nas (/root/autodl-nas)." in told
    assert "public_data" not in told
    assert "storage: {durable: fs}, or durable: null" in told


def test_a_tier_that_is_kept_for_a_while_does_not_survive(tmp_path: Path) -> None:
    profile = mine(tmp_path, "gpushare", "storage: {durable: scratch, data: system}")
    assert "kept for a while, then deleted" in survival.survival_problems(profile)[0]


def test_what_nobody_knows_counts_as_lost(tmp_path: Path) -> None:
    tiers = "tiers: {nas: {path: /mnt/nas, scope: cluster}}"
    profile = mine(tmp_path, "ssh", f"storage: {{durable: nas, {tiers}}}")
    (told,) = survival.survival_problems(profile)
    assert "what happens to it is unknown. No tier survives it" in told
    assert "durable: null" in told


def test_a_tier_that_goes_on_billing_survives(tmp_path: Path) -> None:
    assert survival.survival_problems(load_profile("lambda", tmp_path)) == []


@pytest.mark.parametrize("name", ["ssh", "runpod", "vastai"])
def test_without_a_durable_tier_nothing_has_to_survive(tmp_path: Path, name: str) -> None:
    profile = load_profile(name, tmp_path)
    assert profile.storage.durable is None
    assert survival.survival_problems(profile) == []


@pytest.mark.parametrize(("scope", "death"), [(EACH_BOX, "a box"), (SHARED, "the durable tier")])
def test_a_second_home_outlives_what_the_first_one_does_not(scope: str, death: str) -> None:
    one = survival.survivors(make_plan(durable_scope=scope), is_here=False)
    two = survival.survivors(make_plan(durable_scope=scope, second="s3://b/p"), is_here=False)
    assert [where for where in two if two[where] != one[where]] == [death]
    assert two[death].endswith("also results and live checkpoints copied to s3://b/p")
