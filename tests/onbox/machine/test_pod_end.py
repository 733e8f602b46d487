"""How the pod before ended. The whole way, over TLS and by an account, is in tests/kube."""

from __future__ import annotations

from typing import Any

import pytest

from onbox.machine import pod_end


def pod(name: str, at: str, ended: str = "", **status: Any) -> dict[str, Any]:
    state = {"terminated": {"reason": ended}} if ended else {"running": {}}
    made = {"name": name, "creationTimestamp": f"2026-11-29T09:{at}Z"}
    return {"metadata": made, "status": {"containerStatuses": [{"state": state}]} | status}


OWN = pod("c", "30:00")


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([], None),
        ([OWN], None),
        ([pod("a", "10:00", "OOMKilled"), OWN], "OOMKilled"),
        ([OWN, pod("b", "20:00", "Error"), pod("a", "10:00", "OOMKilled")], None),
        ([pod("b", "20:00", "Error", reason="Evicted"), OWN], "Evicted"),
        ([pod("b", "20:00", "Completed"), OWN], None),
        ([pod("d", "40:00", "OOMKilled"), OWN], None),
        ([pod("b", "20:00"), OWN], None),
    ],
)
def test_the_last_pod_before_this_one_tells(pods: list[dict[str, Any]], reason: str | None) -> None:
    assert pod_end.of_pods(pods, OWN) == reason


def test_outside_a_cluster_and_without_an_account_nobody_is_asked(tmp_path: Any) -> None:
    assert pod_end.before({}, tmp_path) is None
    address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    assert pod_end.before(address, tmp_path) is None
