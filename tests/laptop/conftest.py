"""What a local box answers, it answers from a process that is forked (tests/forked_answer.py); each
`--json` document is held against its schema.
"""

from __future__ import annotations

import forked_answer
import published_schemas
import pytest

from boxcar.laptop.hosts import ask_over_ssh

published_schemas.hold_all()


@pytest.fixture(autouse=True)
def _answers_are_forked(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    # The tests of that call itself start the program.
    if request.path.name != "test_local_boxes.py":
        monkeypatch.setattr(ask_over_ssh, "subprocess", forked_answer)
