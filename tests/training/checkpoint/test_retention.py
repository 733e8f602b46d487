from __future__ import annotations

import itertools

import pytest

from boxcar.training.checkpoint import checkpoint_folder
from boxcar.training.checkpoint.checkpoint_folder import Plan

A, B, C, D = "step_00000010", "step_00000020", "step_00000030", "step_00000040"


@pytest.mark.parametrize(
    ("names", "keep", "verified", "expected"),
    [
        ([A, B], 2, {A}, Plan([], None)),
        ([A, B, C], 2, {B}, Plan([A], None)),
        ([A, B, C], 2, {A}, Plan([A], C)),
        ([A, B, C, D], 2, set(), Plan([B, A], D)),
        ([A, B], 1, {A}, Plan([A], B)),
        ([], 1, set(), Plan([], None)),
        (["step_00000010-1", A, B], 2, {A}, Plan([A], B)),
    ],
)
def test_what_may_go(names: list[str], keep: int, verified: set[str], expected: Plan) -> None:
    assert checkpoint_folder.plan_retention(names, keep, verified) == expected


def test_there_is_always_a_verified_one_on_the_disk() -> None:
    """The anchor of the resume first, and later whatever took its place."""
    for keep in (1, 2, 3):
        names, verified = [A], {A}
        for step in range(20, 300, 10):
            names.append(checkpoint_folder.name_checkpoint(step, names))
            plan = checkpoint_folder.plan_retention(names, keep, verified)
            verified |= {plan.verify} if plan.verify else set()
            names = [name for name in names if name not in plan.delete]
            assert verified & set(names)
            assert len(names) <= keep


def test_other_files_are_nobodys_business() -> None:
    for name in ("best", "history", "latest", "step_12", "step_00000010.refused-1", ".step_0"):
        assert checkpoint_folder.age_of_checkpoint(name) is None
    assert checkpoint_folder.plan_retention(["best", "mine", A], 1, set()) == Plan([], None)


def test_a_name_is_never_taken_twice_and_newer_names_sort_first() -> None:
    names: list[str] = []
    for step in (120, 120, 120, 130, 100_000_000, 123_456_789):
        names.append(checkpoint_folder.name_checkpoint(step, names))
    assert len(set(names)) == len(names)
    for shuffled in itertools.islice(itertools.permutations(names), 50):
        assert checkpoint_folder.newest_first(shuffled) == names[::-1]
