"""Boxes of this machine, served as those that each have a durable tier of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from apart import apart

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.project import Project
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import Question

Heard = Callable[[str, Question[Any]], None]


def with_a_tier_per_box(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    *,
    dying: str = "",
    hear: Heard = lambda box, question: None,
) -> Project:
    """`dying` boxes are cut off when they are asked for the release; `hear` gets each question."""
    ask = LocalSite.ask

    def note(self: LocalSite, box: str, question: Any, **more: Any) -> Any:
        hear(box, question)
        if box in dying and isinstance(question, run_asks.FindRelease):
            raise TemporaryError(f"{box} cannot be reached: the connection was lost")
        return ask(self, box, question, **more)

    monkeypatch.setattr(LocalSite, "ask", apart(note))
    monkeypatch.setattr(LocalSite, "reach_tiers", lambda self, boxes: list(boxes))
    return replace(project, plan=replace(project.plan, durable_scope=EACH_BOX))
