"""A line a minute, and a ring of the last minutes that a crash leaves readable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxcar.laptop.view import box_gauges
from boxcar.shared import timestamp
from onbox.machine import gauge_log
from onbox.machine.gauge_log import SLOT_BYTES, SLOTS, GaugeLog, read_ring


class Minutes:
    def __init__(self, folder: Path) -> None:
        self.now_s, self.file, self.ring = 0.0, folder / "gauges" / "q.jsonl", folder / "q.ring"
        self.log = GaugeLog(self.file, self.ring, lambda: self.now_s)

    def pass_by(self, seconds: float, **gauges: object) -> None:
        for _ in range(int(seconds / 5)):
            self.now_s += 5.0
            self.log.take(gauges, {})

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.file.read_bytes().splitlines()]


@pytest.fixture
def minutes(tmp_path: Path) -> Minutes:
    return Minutes(tmp_path)


def test_a_minute_is_a_line_with_its_most_memory_and_the_mean_of_each_card(minutes):
    card = {"uuid": "GPU-1", "temperature_c": 70}
    minutes.pass_by(30, memory_used_bytes=9, gpus=[{**card, "utilization_percent": 100}])
    minutes.pass_by(30, memory_used_bytes=5, gpus=[{**card, "utilization_percent": 50}])
    [line] = minutes.lines()
    timestamp.parse_utc(line.pop("at"))
    assert line == {
        "memory_used_bytes": 9,
        "gpus": [{"temperature_c": 70, "utilization_percent": 75}],
    }


def test_the_file_never_grows_beyond_its_size_and_keeps_what_is_newest(minutes, monkeypatch):
    monkeypatch.setattr(gauge_log, "MOST_BYTES", 2000)
    for number in range(200):
        minutes.pass_by(60, memory_used_bytes=number)
        assert minutes.file.stat().st_size <= 2000
    assert [line["memory_used_bytes"] for line in minutes.lines()][-3:] == [197, 198, 199]
    assert len(minutes.lines()) > 10


def test_the_ring_holds_ten_minutes_in_their_order_and_no_more(minutes, monkeypatch):
    at = iter(range(10**6))
    monkeypatch.setattr(
        timestamp, "utc_now", lambda: timestamp.after("2026-11-29T00:00:00.000Z", next(at) * 5.0)
    )
    for number in range(SLOTS + 7):
        minutes.log.take({"n": number}, {"a": 3})
    assert [one["n"] for one in read_ring(minutes.ring)] == list(range(7, SLOTS + 7))
    assert minutes.ring.stat().st_size == SLOTS * SLOT_BYTES
    minutes.log.keep_ring(minutes.file.parent / "failed" / "a.jsonl")
    kept = (minutes.file.parent / "failed" / "a.jsonl").read_text().splitlines()
    assert json.loads(kept[0])["steps"] == {"a": 3} and len(kept) == SLOTS


def test_a_torn_slot_costs_that_slot_only(minutes):
    minutes.pass_by(60, n=1)
    with minutes.ring.open("r+b") as file:
        file.seek(2 * SLOT_BYTES)
        file.write(b'{"at": "2026-1')
        file.seek(5 * SLOT_BYTES)
        file.write(b"\0" * SLOT_BYTES)
    assert len(read_ring(minutes.ring)) == 10
    assert read_ring(minutes.ring.with_name("none")) == []


def test_many_cards_do_not_burst_a_slot(minutes):
    cards = [{"uuid": "GPU-" + "f" * 36, "problem": "x" * 200} for _ in range(64)]
    minutes.log.take({"gpus": cards, "memory_used_bytes": 7}, {})
    [one] = read_ring(minutes.ring)
    assert one["memory_used_bytes"] == 7 and "gpus" not in one


def test_a_tier_that_is_away_costs_lines_and_nothing_else(tmp_path):
    (tmp_path / "gauges").write_text("in the way")
    minutes = Minutes(tmp_path)
    minutes.pass_by(300, n=1)
    assert len(read_ring(minutes.ring)) == 60


def test_a_link_in_the_place_of_either_file_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "gauges").mkdir()
    for name in ("gauges/q.jsonl", "q.ring"):
        (tmp_path / name).symlink_to(victim)
    Minutes(tmp_path).pass_by(120, n=1)
    assert victim.read_text() == "mine"


V1 = Path(__file__).parents[2] / "data" / "v1" / "gauges"


def test_the_files_that_version_1_wrote_are_read() -> None:
    in_ring = read_ring(V1 / "gauges-q.ring")
    assert len(in_ring) == 3
    shown = box_gauges.gauges_of(box_gauges.read_lines((V1 / "q.jsonl").read_bytes()))
    of_ring = box_gauges.gauges_of(in_ring)
    assert shown and [one.name for one in shown] == [one.name for one in of_ring]
