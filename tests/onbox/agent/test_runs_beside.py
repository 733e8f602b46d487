"""On a cluster's node an agent names another run of ours on the GPUs of its job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from onbox.agent.agent import Agent
from onbox.machine import gpus, process

RUNS = {11: {"BOXCAR_RUN": "mine"}, 12: {"BOXCAR_RUN": "other"}, 13: {}}


@pytest.mark.parametrize(
    ("on_gpus", "warned"), [([11, 12, 13], ["runs_beside"]), ([11, 13], []), ([], [])]
)
def test_only_another_run_on_the_same_gpus_is_warned_of(monkeypatch, on_gpus, warned):
    said: list[tuple[str, str]] = []
    monkeypatch.setattr(gpus, "pids_on_gpus", lambda: on_gpus)
    monkeypatch.setattr(process, "environment", RUNS.__getitem__)
    agent: Any = SimpleNamespace(
        place=SimpleNamespace(plan=SimpleNamespace(run="mine")),
        reporter=SimpleNamespace(warn=lambda what, text: said.append((what, text))),
    )
    Agent.warn_of_runs_beside(agent)
    assert [what for what, _ in said] == warned
    assert all("other also trains" in text and "mine" not in text for _, text in said)
