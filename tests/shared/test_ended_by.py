from __future__ import annotations

import pytest

from boxcar.shared.process import ended_by


@pytest.mark.parametrize(
    ("event_type", "reason", "by"),
    [
        ("queue.done", None, ended_by.DONE),
        ("agent.stopped", "the queue is done", ended_by.DONE),
        ("queue.stopped", "told to end by SIGTERM", ended_by.SIGNAL),
        ("agent.stopped", "told to end by SIGINT", ended_by.SIGNAL),
        ("queue.stopped", "asked to drain", ended_by.DRAIN),
        ("queue.stopped", "asked to stop", ended_by.STOP),
        ("queue.stopped", "a: the script was told to end by SIGTERM", ended_by.TROUBLE),
        ("queue.stopped", "asked to drain the pool", ended_by.TROUBLE),
        ("queue.stopped", None, ended_by.TROUBLE),
    ],
)
def test_an_end_of_v1_is_read_from_the_sentence_that_was_written_then(
    event_type: str, reason: str | None, by: str
) -> None:
    assert ended_by.of_v1(event_type, reason) == by
