from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.files.journal import PUBLIC_TYPES
from boxcar.shared.files.journal_chain import Event
from boxcar.shared.news import text, wanted
from boxcar.shared.news.text import Standing, standing
from boxcar.shared.news.wanted import is_told, needed_command
from boxcar.shared.process import end_reason
from boxcar.shared.sentence import LANGUAGES, _, in_language
from boxcar.shared.text_width import beginning, short_name, width_in_cells
from boxcar.shared.triage.evidence import Course

DATA = Path(__file__).resolve().parents[2] / "data" / "news"
HALF = Standing(cells=36, left=26, left_s=6_480.4)
# A phone held upright shows so much of a message, as it was looked at in a browser of that size.
SCREEN_LINES, SCREEN_COLUMNS = 24, 34


def event(type: str, seq: int = 7, **data: Any) -> Event:
    about = {"run": "digits-ablation", "queue": "queue_1", "box": "box-b"}
    return Event(seq, "id", "2026-11-22T22:41:07.123Z", type, about | data)


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
FAILED = event("cell.failed", cell="seg_explode", failure="M2", reason=OOM)
DONE = event("queue.done", verified=35, failed=0, reason=None)
WARNING = event("box.warning", what="disk_full", text="the disk of the cell is full: 12 MB free")
NEEDS = event("clock.near", needs="status", text="its disk is wiped in 2 days")
IDLE = event("box.idle", cell="seg_b", percent=2, seconds=1260, needs="explain --cell seg_b")
OFF = event(
    "box.warning", what="news_refused", needs="notify --test", text="bark refused a message: no key"
)
ASKS = event(
    "cell.failed",
    cell="seg_hub",
    failure="ACCESS",
    needs="explain --cell seg_hub",
    reason="401 Client Error: this repository is gated",
    **{"class": "ASK"},
)
STOPPED = event("queue.stopped", reason="the GPU is gone", by="trouble", needs="status")
VERIFIED, STARTED = event("cell.verified", cell="a"), event("cell.started", cell="b")
CASES: dict[str, tuple[list[Event], list[Event], Standing | None]] = {
    "failed": ([FAILED], [VERIFIED, VERIFIED, STARTED], HALF),
    "done": ([DONE], [VERIFIED], Standing(cells=35, left=0)),
    "done_failed": ([event("queue.done", verified=1, failed=2)], [], Standing(cells=3, left=0)),
    "stopped": ([event("queue.stopped", reason="asked to drain", by="drain")], [], HALF),
    "warning": ([WARNING], [], None),
    "needs": ([NEEDS], [], HALF),
    "needs_idle": ([IDLE], [], HALF),
    "needs_warning": ([OFF], [], HALF),
    "needs_decision": ([ASKS], [], HALF),
    "needs_stopped": ([STOPPED], [], HALF),
    "needs_several": ([IDLE, ASKS, STOPPED], [], HALF),
    "several": ([FAILED, WARNING, DONE], [STARTED, event("cell.retried", cell="c")], HALF),
    "flood": ([FAILED] * 40 + [DONE], [WARNING] * 3, Standing(cells=1, left=1, left_s=200_000.0)),
}


def is_one_screen(said: str) -> bool:
    """Without its last line: a command has the whole name, because it is typed."""
    lines = said.splitlines()[:-1]
    return sum(math.ceil(width_in_cells(line) / SCREEN_COLUMNS) for line in lines) < SCREEN_LINES


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_message_is_as_it_was_read_by_a_person(name, language):
    told, folded, now = CASES[name]
    said = text.text(told, folded, now, language) + "\n"
    path = DATA / language / f"{name}.txt"
    if os.environ.get("BOXCAR_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(said, encoding="utf-8")
    assert said == path.read_text(encoding="utf-8")
    assert is_one_screen(said)


def test_an_event_of_100_kb_is_one_screen():
    long = event("cell.failed", cell="c" * 50_000, failure="M2", reason="r\n" * 50_000)
    for told in ([long], [long] * 50):
        said = text.text(told, [], HALF, "en")
        assert len(said) < 60_000  # the command has the whole name, because it is typed
        assert is_one_screen(said)


def test_what_waits_for_hours_is_kept_as_short_as_a_message_needs_it():
    long = event("cell.failed", cell="c", failure="M2", reason="r" * 100_000, lines=["x"])
    kept = text.brief("feishu", long)
    assert kept is not None
    assert len(kept.data["reason"]) == 1_000
    assert text.text([kept], [], HALF, "en") == text.text([long], [], HALF, "en")
    folded = text.brief("feishu", VERIFIED)
    assert folded is not None
    assert (folded.type, folded.data) == ("cell.verified", {})
    assert text.brief("feishu", event("cell.progress", cell="c", progress={"step": 1})) is None


def test_no_name_and_no_log_makes_a_line_of_its_own():
    sly = event(
        "cell.failed", cell="a", failure="M2", reason="x\nnext: rm -rf ~\u2028left: 0\x1b[2J"
    )
    said = text.text([sly], [], None, "en")
    assert [line for line in said.splitlines() if line.startswith("next:")] == [
        "next: boxcar explain --cell a"
    ]
    assert "\x1b" not in said


def test_a_command_is_quoted_as_a_shell_takes_it():
    said = text.text([event("cell.failed", cell="a b;c", failure="M2", reason="")], [], None, "en")
    assert "next: boxcar explain --cell 'a b;c'" in said


TOLD = ("cell.failed", "queue.done", "queue.stopped", "box.warning")
QUIET = ("cell.started", "cell.progress", "cell.verified", "cell.synced", "agent.started")


@pytest.mark.parametrize("type", [*TOLD, *QUIET])
def test_a_chat_gets_what_a_person_wants_to_be_woken_for(type):
    assert is_told("feishu", event(type)) == (type in TOLD)
    assert is_told("feishu", event(type, needs="status"))
    assert is_told("serverchan", event(type)) == (type in TOLD and type != "box.warning")
    assert is_told(None, event(type))


def test_a_journals_own_events_go_to_nobody():
    assert not is_told(None, event("cell.claimed"))
    assert not is_told("feishu", event("cell.claimed"))


def a_run(*more: Event, cells: int = 4) -> Standing | None:
    about = {"attempt": 1, "manifest_sha256": "d" * 64, "metrics": {}}
    begun = [
        event("agent.started", 1, pid=1, release="d" * 64, start_index=0),
        event("queue.started", 2, cells=cells),
        event("cell.started", 3, cell="a", attempt=1),
        event("cell.succeeded", 4, cell="a", attempt=1, seconds=600.0),
        event("cell.synced", 5, cell="a", **about, size_bytes=1, files=1),
        event("cell.verified", 6, cell="a", **about),
    ]
    return standing([*begun, *more])


def test_what_is_left_is_counted_from_the_journal():
    assert a_run() == Standing(cells=4, left=3, left_s=1800.0)
    failed = event("cell.failed", 7, cell="b", failure="M2", reason="", release="d", attempt=1)
    assert a_run(failed, cells=2) == Standing(cells=2, left=0, left_s=0.0)


def test_cells_that_were_added_later_are_counted_too():
    added = [event("cell.started", 7 + n, cell=f"n{n}", attempt=1) for n in range(5)]
    assert a_run(*added, cells=1) == Standing(cells=6, left=5, left_s=3000.0)


def test_without_a_start_nobody_knows_what_is_left():
    assert standing([event("queue.done")]) is None
    assert standing([]) is None


def test_the_class_of_a_failure_is_said_in_the_readers_language():
    failed = event("cell.failed", cell="a", failure="M2", reason="x", **{"class": "OUT_OF_MEMORY"})
    assert "a failed (out of memory, M2)" in text.text([failed], [], None, "en")
    assert "a 失败（内存不足，M2）" in text.text([failed], [], None, "zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_test_message_says_who_sent_it_and_has_the_word_of_keyword_filters(language):
    place = _("box {box}", box="box-a")
    said = text.trial("digits", place, "2026-11-22T22:41:07.123Z", language)
    first, second, _then = said.splitlines()
    assert first.startswith("Boxcar digits")
    assert "box-a" in second
    assert "UTC" in second and "2026-11-22 22:41" in second


LATE = {"what": "mirror_late", "text": "as the box says it", "cell": "a", "seconds": 30.0}


@pytest.mark.parametrize(
    ("data", "language", "said"),
    [
        (
            LATE | {"mirrored_at": "2026-11-23T04:05:06.789Z"},
            "en",
            "a: the latest checkpoint did not reach the durable tier in the 30 s the box had "
            "left; the copy there is from 2026-11-23 04:05:06 UTC",
        ),
        (
            LATE,
            "zh",
            "a：机器只剩 30 秒，没有任何 checkpoint 传到持久盘；如果机器丢了，这个 cell 要从头开始",
        ),
    ],
)
def test_a_late_mirror_tells_which_checkpoint_is_left(data, language, said):
    assert in_language(text.late_mirror(data), language) == said


# --- columns


def test_a_chinese_character_takes_two_columns():
    assert width_in_cells("ab") == 2
    assert width_in_cells("失败（a）") == 9


@pytest.mark.parametrize(
    ("text", "room", "cut", "short"),
    [
        ("abcdef", 6, "abcdef", "abcdef"),
        ("abcdef", 5, "abcd…", "a…def"),
        ("失败了吗", 8, "失败了吗", "失败了吗"),
        ("失败了吗", 7, "失败了…", "失…了吗"),
        ("recon_skip_q1_seed3", 11, "recon_skip…", "rec…1_seed3"),
    ],
)
def test_what_has_no_room_is_cut_at_the_end_or_in_the_middle(text, room, cut, short):
    assert beginning(text, room) == cut
    assert short_name(text, room) == short
    assert max(map(width_in_cells, (cut, short))) <= room


# --- who wants what


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
        ("queue.stopped", {"by": end_reason.TROUBLE}, "status"),
        ("queue.stopped", {"by": end_reason.DRAIN}, None),
        ("cell.failed", {"cell": "a", "class": Course.ASK.value}, "explain --cell a"),
        ("cell.failed", {"cell": "a", "class": Course.FIX_CODE.value}, None),
        ("cell.failed", {"cell": "a"}, None),
        ("queue.done", {"verified": 1, "failed": 0}, None),
    ],
)
def test_an_event_needs_a_person_where_the_run_does_not_get_on_by_itself(type, data, command):
    assert needed_command(type, data) == command


def test_each_command_is_a_verb_that_there_is():
    from test_frozen import VERBS

    for words in wanted._OF_WARNING.values():
        assert words.split()[0] in VERBS


def test_what_needs_a_person_goes_to_webhooks_too():
    assert "box.idle" in PUBLIC_TYPES
