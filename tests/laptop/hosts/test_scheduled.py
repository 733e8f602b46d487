from __future__ import annotations

import pytest

from boxcar.laptop.hosts.scheduled import Scheduled


@pytest.mark.parametrize("reason", ["Priority", "Resources", "BeginTime", "None", "Dependency"])
def test_what_time_alone_helps_needs_nobody(reason: str) -> None:
    assert Scheduled("7_0", reason).need is None


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("PartitionTimeLimit", "shorten it"),
        ("QOSMaxGRESPerUser", "QOS limit"),
        ("AssocGrpGRES", "account limit"),
        ("ReqNodeNotAvail, UnavailableNodes:n1", "not available"),
        ("BadConstraints", "no node fits the request"),
        ("JobHeldAdmin", "held by an administrator"),
        ("JobHeldUser", "scontrol release"),
        ("launch failed requeued held", "a node failed to start it"),
        ("launch_failed_requeued_held", "a node failed to start it"),
    ],
)
def test_what_only_a_person_can_change_is_said_at_once(reason: str, said: str) -> None:
    waits = Scheduled("7_0", reason, "2026-11-22T10:00:00.000Z")
    assert said in str(waits.need) and waits.sentence.endswith(str(waits.need))
    assert "expects" not in waits.sentence


def test_the_expected_start_is_said_where_slurm_says_it() -> None:
    waits = Scheduled("7_0", "Priority", "2026-11-22T10:00:00.000Z")
    assert waits.sentence == (
        "its job 7_0 waits (Priority); Slurm expects to start it at 2026-11-22T10:00:00.000Z"
    )
