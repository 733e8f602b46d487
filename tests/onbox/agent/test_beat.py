from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import until

from boxcar.shared.files import heartbeat
from boxcar.shared.files.heartbeat import Heartbeat, Seen
from boxcar.shared.files.journal import JournalEnd
from boxcar.shared.files.plan import Plan
from boxcar.shared.known_secrets import KnownSecrets
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.agent import beat
from onbox.agent.beat import Beat
from onbox.agent.live_metrics import LiveNumbers
from onbox.machine.place import Place

END = JournalEnd(7, "24736d6142afa1e3")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Every tick is due, and so is every event."""
    monkeypatch.setattr(beat, "EVERY_S", 0.0)
    monkeypatch.setattr(beat, "PROGRESS_EVENT_S", 0.0)
    tier, scratch = DurablePaths(tmp_path / "tier", "r"), ScratchPaths(tmp_path / "b", "r")
    for folder in (*tier.folders(), scratch.out("c"), scratch.out("d")):
        folder.mkdir(parents=True)
    plan: Any = Plan  # the heartbeat does not look into it
    return Place(plan, Path("/releases/abc"), "training.zip", "q", "box-a", tier, scratch)


def numbers(found: Callable[[], LiveNumbers]) -> Any:
    return SimpleNamespace(numbers=lambda cell, number: found(), forget=lambda cell: None)


# The job names no numbers.
none = numbers(LiveNumbers)


def tick(one: Beat, *, is_settling: bool = False, **webhooks: Any) -> dict[str, Any] | None:
    """The progress that is worth an event."""
    found = one.tick(journal=END, is_settling=is_settling, webhooks=webhooks)
    return found[0]["progress"] if found else None


def last(place: Place) -> Heartbeat:
    found = heartbeat.read_heartbeat(place.durable.heartbeat("q"))
    assert found
    return found


def progress(place: Place, cell: str, line: str) -> None:
    with (place.scratch.out(cell) / "progress.jsonl").open("a") as file:
        file.write(line + "\n")


def test_the_heartbeat_says_who_where_and_what(place):
    one = Beat(place, none)
    tick(one)
    found = last(place)
    assert (found.queue, found.box, found.release) == ("q", "box-a", "abc")
    assert (found.pid, found.phase, found.cell) == (os.getpid(), "idle", None)
    assert found.gauges["scratch_free_bytes"] > 0
    assert found.journal == END


def test_the_phase_follows_what_the_agent_does(place):
    one = Beat(place, none)
    tick(one, is_settling=True)
    assert last(place).phase == "syncing"
    one.begins("c", 2)
    tick(one, is_settling=True)
    assert (last(place).phase, last(place).cell, last(place).attempt) == ("running", "c", 2)
    one.ends("c")
    tick(one)
    assert (last(place).phase, last(place).cell, last(place).attempt) == ("idle", None, None)


def test_it_is_written_only_when_it_is_due_and_at_once_when_the_cell_changes(place, monkeypatch):
    monkeypatch.setattr(beat, "EVERY_S", 3600.0)
    one = Beat(place, none)
    tick(one)
    place.durable.heartbeat("q").unlink()
    assert tick(one) is None
    assert not place.durable.heartbeat("q").exists()
    one.begins("c", 1)
    tick(one)
    assert last(place).cell == "c"


def test_progress_is_in_every_heartbeat_and_worth_an_event_only_when_it_is_new(place):
    one = Beat(place, none)
    one.begins("c", 1)
    assert tick(one) is None
    progress(place, "c", '{"step": 1, "loss": 0.5}')
    assert tick(one) == {"step": 1, "loss": 0.5}
    assert tick(one) is None
    assert last(place).progress == {"step": 1, "loss": 0.5}
    progress(place, "c", '{"step": 2}')
    assert tick(one) == {"step": 2}


def test_progress_without_a_step_is_no_event(place):
    one = Beat(place, none)
    one.begins("c", 1)
    progress(place, "c", '{"loss": 0.5}')
    assert tick(one) is None
    assert last(place).progress == {"loss": 0.5}


def test_events_of_progress_keep_their_distance(place, monkeypatch):
    monkeypatch.setattr(beat, "PROGRESS_EVENT_S", 3600.0)
    one = Beat(place, none)
    one.begins("c", 1)
    progress(place, "c", '{"step": 1}')
    assert tick(one) is None
    assert last(place).progress == {"step": 1}


def test_the_last_line_of_an_earlier_attempt_is_no_news(place):
    progress(place, "c", '{"step": 9}')
    one = Beat(place, none)
    one.begins("c", 2)
    assert tick(one) is None
    progress(place, "c", '{"step": 10}')
    assert tick(one) == {"step": 10}


def test_the_same_step_of_another_cell_is_news(place):
    one = Beat(place, none)
    one.begins("c", 1)
    progress(place, "c", '{"step": 1}')
    tick(one)
    one.ends("c")
    one.begins("d", 1)
    progress(place, "d", '{"step": 1}')
    assert tick(one) == {"step": 1}


def test_how_the_webhooks_are_doing_is_told(place):
    one = Beat(place, none)
    tick(one, abc={"seq": 4})
    assert last(place).extra == {"webhooks": {"abc": {"seq": 4}}}


def test_every_json_reader_can_read_it_also_when_a_loss_became_nan(place):
    one = Beat(place, none)
    one.begins("c", 1)
    progress(place, "c", '{"step": 1, "loss": NaN}')
    tick(one)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    json.loads(place.durable.heartbeat("q").read_bytes(), parse_constant=refuse)


def test_a_tier_that_fails_for_a_moment_costs_a_heartbeat_and_not_the_agent(place):
    one = Beat(place, none)
    folder = place.durable.heartbeat("q").parent
    folder.rmdir()
    tick(one)
    folder.mkdir()
    tick(one)
    assert last(place).phase == "idle"


def test_numbers_that_the_job_names_come_before_what_the_script_reports(place):
    one = Beat(place, numbers(lambda: LiveNumbers({"val_loss": 0.5, "top1": 0.25})))
    one.begins("c", 1)
    progress(place, "c", '{"step": 3, "top1": 9, "lr": 1}')
    told = tick(one)
    assert list((told or {}).items()) == [("val_loss", 0.5), ("top1", 0.25), ("step", 3), ("lr", 1)]
    assert last(place).progress == told


def test_of_a_script_that_reports_no_step_a_new_number_is_worth_an_event(place):
    known = {"val_loss": 0.5}
    one = Beat(place, numbers(lambda: LiveNumbers(dict(known))))
    one.begins("c", 1)
    assert tick(one) == {"val_loss": 0.5}
    assert tick(one) is None
    known["val_loss"] = 0.25
    assert tick(one) == {"val_loss": 0.25}


def test_the_best_number_stands_beside_the_last_in_heartbeat_and_event(place):
    one = Beat(place, numbers(lambda: LiveNumbers({"val_loss": 5.7}, {"val_loss": 0.0667})))
    one.begins("c", 1)
    [told] = one.tick(journal=END, is_settling=False, webhooks={})
    assert (told["progress"], told["best"]) == ({"val_loss": 5.7}, {"val_loss": 0.0667})
    assert (last(place).progress, last(place).best) == ({"val_loss": 5.7}, {"val_loss": 0.0667})


def test_what_a_log_seems_to_say_is_displayed_and_is_no_event(place):
    known: Any = SimpleNamespace(known=lambda: KnownSecrets(["hunter22"]))
    one = Beat(place, none, known)
    place.scratch.log("c").write_text("epoch 3/20 hunter22_loss: 0.5\n")
    one.begins("c", 1)
    until(lambda: (tick(one), last(place).seen)[1])
    assert last(place).seen == Seen(epoch=3, epochs=20, numbers={"[…]_loss": 0.5})
    assert tick(one) is None and last(place).progress == {}
    one.ends("c")
    tick(one)
    assert last(place).seen is None
    assert b"seen" not in place.durable.heartbeat("q").read_bytes()


def test_gpus_that_idle_are_news_once(place, monkeypatch):
    clock = iter(range(10, 10**6, 10))
    monkeypatch.setattr(beat.time, "monotonic", lambda: float(next(clock)))
    one = Beat(place, none)
    monkeypatch.setattr(one._gpus, "read", lambda: [{"utilization_percent": 3}])
    one.begins("c", 1)
    for _ in range(99):
        tick(one)
    [found] = one.idle()
    assert (found["cell"], found["attempt"], found["percent"]) == ("c", 1, 3)
    assert one.idle() == []
