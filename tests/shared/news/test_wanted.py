from __future__ import annotations

import pytest

from boxcar.shared.files.journal import PUBLIC_TYPES
from boxcar.shared.news import wanted
from boxcar.shared.news.wanted import needed_command
from boxcar.shared.process import ended_by
from boxcar.shared.triage.evidence import Course


@pytest.mark.parametrize(
    ("type", "data", "command"),
    [
        ("box.idle", {"cell": "a"}, "explain --cell a"),
        ("box.warning", {"what": "webhooks_off"}, "repair --put-back"),
        ("box.warning", {"what": "news_refused"}, "notify --test"),
        ("box.warning", {"what": "disk_full"}, "status"),
        ("box.warning", {"what": "waits_for_release"}, "push"),
        ("box.warning", {"what": "code_restored"}, None),
        ("box.warning", {}, None),
        ("queue.stopped", {"by": ended_by.TROUBLE}, "status"),
        ("queue.stopped", {"by": ended_by.DRAIN}, None),
        ("cell.failed", {"cell": "a", "class": Course.ASK.value}, "explain --cell a"),
        ("cell.failed", {"cell": "a", "class": Course.FIX_CODE.value}, None),
        ("cell.failed", {"cell": "a"}, None),
        ("queue.done", {"verified": 1, "failed": 0}, None),
    ],
)
def test_an_event_needs_a_person_where_the_run_does_not_get_on_by_itself(
    type: str, data: dict[str, object], command: str | None
) -> None:
    assert needed_command(type, data) == command


def test_each_command_is_a_verb_that_there_is() -> None:
    from test_frozen import VERBS

    for words in wanted._OF_WARNING.values():
        assert words.split()[0] in VERBS


def test_what_needs_a_person_goes_to_webhooks_too() -> None:
    assert "box.idle" in PUBLIC_TYPES
