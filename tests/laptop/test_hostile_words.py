"""Boxes that answer, and whose words are wrong: each is one box's trouble, said in a sentence, and
what they leave out is never taken for good news.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from far_boxes import FarRun, make_far_run
from run_on_disk import (
    LINES,
    agent_started,
    cell_progress,
    cell_started,
    from_now,
    held,
    queue_done,
)

from boxcar.laptop.common import run_program, show
from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import identify
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.places import mirrored_site
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.results.failed_logs import pull_failed_logs
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.still_running import find_alive
from boxcar.laptop.verbs.status import status
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError, InputError, TemporaryError
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.wire import box_asks, envelope

END = box_asks.End((), "/credentials.json")
Told = dict[str, Any]
GONE = object()
WRONG: list[object] = [GONE, None, "yes", 10**30, -1, {"a": 1}, [["x"]], "\ud800"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FarRun:
    made = make_far_run(tmp_path, monkeypatch)
    made.agents.say("queue_1", agent_started(), cell_started("a"), cell_progress("a", 1))
    made.agents.say("queue_2", agent_started(), queue_done())
    made.agents.beat("queue_1", from_now(0), cell="a")
    return made


def lies(run: FarRun, lie: Callable[[Told], None], box: str = "box-a") -> None:
    """From now on every report of the box goes through `lie`."""

    def change(name: str, told: Told) -> None:
        if name == box and "files" in told:
            lie(told)

    run.world.change = change


def file(path: object, data: bytes, **fields: Any) -> Told:
    """As a report has it."""
    size_bytes, sha256 = len(data), digest.of_bytes(data)
    spelled = base64.b64encode(data).decode()
    told = {"path": path, "offset": 0, "data": spelled, "size_bytes": size_bytes, "sha256": sha256}
    return told | fields


# --- what an answer has to hold


@pytest.mark.parametrize(
    "field",
    ["at", "is_tier_there", "agents", "attempts", "progress_at", "files", "gone", "is_more"],
)
def test_a_report_with_a_wrong_field_silences_its_box_and_hides_no_other(
    run: FarRun, field: str
) -> None:
    for wrong in WRONG:

        def lie(told: Told, wrong: object = wrong) -> None:
            told.pop(field)
            if wrong is not GONE:
                told[field] = wrong

        lies(run, lie)
        run.site._pauses.clear()
        view = run.look()
        assert "box-a" in run.site.silent_boxes(), f"{field} = {wrong!r} was taken"
        assert "box-b" not in run.site.silent_boxes()
        assert run.condition("queue_2").word == "done" and view.problems
        (row,) = find_alive(run.site, ["a"])
        assert "cannot tell whether" in row.what


@pytest.mark.parametrize("at", ["yesterday", "", "T Z", "2026-13-99T00:00:00Z", "2026-01-01"])
def test_a_time_that_is_none_is_no_time_of_a_box(run: FarRun, at: str) -> None:
    lies(run, lambda told: told.update(at=at))
    run.look()
    assert "its answer to 'report' is not as expected" in run.site.silent_boxes()["box-a"]


def test_a_bomb_of_brackets_is_no_answer() -> None:
    with pytest.raises(TemporaryError, match="did not answer"):
        envelope.read_answer(END, "box-a", 0, envelope.MARK + b"[" * 200_000 + b"\n", "")


def test_what_no_terminal_can_show_is_still_one_json_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "\ud800 \x1b[31m \u202e \x9b2J \U000e0001 é 你"
    show.json_document("made-up", {"text": text})
    said = capsys.readouterr().out
    assert json.loads(said)["text"] == text
    said.encode()
    assert not set("\x1b\x9b\u202e\U000e0001") & set(said) and "é 你" in said


@pytest.mark.parametrize("at", ["yesterday", "2026-13-99T00:00:00Z", "9999-12-31T23:59:59.999Z"])
def test_a_time_of_an_agent_that_is_none_hides_no_other_queue(run: FarRun, at: str) -> None:
    run.agents.beat("queue_1", at, cell="a")
    view = run.look()
    assert view.queue("queue_2").condition.word == "done"
    assert view.queue("queue_1").condition.word != "done"
    path = run.agents.site.tier.journal("queue_1")
    event = json.loads(path.read_bytes().split(b"\n")[0]) | {"at": at}
    path.write_bytes(json.dumps(event).encode() + b"\n")
    view = run.look()
    assert view.queue("queue_2").condition.word == "done"


@pytest.mark.parametrize("progress", ["far", 3, ["step"], [["step", 1]]])
def test_progress_or_metrics_that_are_none_damage_one_journal(
    run: FarRun, progress: object, capsys: pytest.CaptureFixture[str]
) -> None:
    verified = {"cell": "a", "attempt": 1, "manifest_sha256": "ab" * 32, "metrics": progress}
    data = {"cell": "a", "attempt": 1, "progress": progress}
    for event in (("cell.verified", verified), ("cell.progress", data)):
        run.agents.say("queue_1", event)
        assert status(run.project, as_json=True) == 1
        rows = json.loads(capsys.readouterr().out)["queues"]
        words = {row["queue"]: row["condition"] for row in rows}
        assert words == {"queue_1": "damaged", "queue_2": "done"}


# --- what the mirror takes


@pytest.mark.parametrize(
    "path",
    [
        *("queues", "journal", "cells", "journal/a/b.jsonl", "cells/a", "cells/a/best.pth"),
        *("queues/.x.txt", "queues/a\x1b[31m.txt", "releases/x/plan.json", "locks/queue_1.lock"),
        *("/etc/passwd", "../x", "cells/../../x", "cells/\0/manifest.json", "", "journal//x.jsonl"),
    ],
)
def test_only_control_files_of_a_run_come_into_the_mirror(run: FarRun, path: str) -> None:
    run.look()
    before = sorted(run.project.root.rglob("*"))
    lies(run, lambda told: told.update(files=[file(path, b"x")]))
    run.look()
    assert "box-a" in run.site.silent_boxes()
    assert sorted(run.project.root.rglob("*")) == before
    # And it heals: nothing lies in the place of a folder.
    lies(run, lambda told: None)
    run.site._pauses.clear()
    run.look()
    assert run.site.silent_boxes() == {}


def test_a_box_that_never_has_told_all_is_a_doubt(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not here may be a queue, and with it cells that nobody would miss."""
    monkeypatch.setattr(mirrored_site, "MOST_ANSWERS", 3)
    lies(run, lambda told: told.update(is_more=True))
    run.look()
    assert "did not finish reporting" in run.site.silent_boxes()["box-a"]
    assert [doubt.split()[0] for doubt in run.site.doubts()] == ["box-a"]


@pytest.mark.parametrize(
    "wrong", [{"sha256": "ab" * 32}, {"size_bytes": 10**9}, {"size_bytes": 0}, {"offset": 5}]
)
def test_a_file_that_does_not_fit_is_a_doubt_and_no_smaller_roster(
    run: FarRun, monkeypatch: pytest.MonkeyPatch, wrong: Told
) -> None:
    monkeypatch.setattr(mirrored_site, "MOST_ANSWERS", 3)
    lines = b"configs/z.yaml late\n"
    name = "queues/queue_9.txt"

    def lie(told: Told) -> None:
        told["files"] = [f for f in told["files"] if f["path"] != name]
        told["files"].append(file(name, lines, **wrong))

    lies(run, lie)
    assert "z" in run.look().roster.names or run.site.doubts()
    assert run.site.doubts()


def test_a_box_takes_nothing_back_that_it_was_not_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_far_run(tmp_path, monkeypatch, scope="box")
    before = run.look().roster.names
    mirrored = run.site.mirror.tier.queue("queue_1")
    assert mirrored.exists()
    index = run.site.mirror._index("box-b")
    atomic.write_whole(index, json.dumps({"seen_at": from_now(0), "names": []}).encode())
    lies(run, lambda told: told.update(gone=["queues/queue_1.txt"]), box="box-b")
    run.world.cut.add("box-a")
    now = run.look().roster.names
    assert mirrored.exists()
    assert now == before


@pytest.mark.parametrize("queue", ["plan", "release", "manifest", "receipt"])
def test_a_queue_may_be_called_as_a_control_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    lines = {"queue_1": LINES["queue_1"], queue: LINES["queue_2"]}
    run = make_far_run(tmp_path, monkeypatch, lines=lines)
    tier = run.agents.site.tier
    release = tier.release("ab" * 32)
    for path in (tier.manifest("a"), tier.receipt("a"), release / "plan.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
    run.look()
    mirror = run.site.mirror.tier
    for path in (tier.manifest("a"), tier.receipt("a"), release / "plan.json"):
        assert (mirror.root / path.relative_to(tier.root)).exists()


# --- boxes that were said to be gone


def test_an_agent_that_another_box_sees_at_work_is_not_gone(run: FarRun) -> None:
    run.world.cut.add("box-a")
    run.look()
    run.site.give_up_boxes(["box-a"])
    assert find_alive(run.site, ["a"]) == ()
    with held(run.agents.site.tier.lock("queue_1")):
        run.look()
        (row,) = find_alive(run.site, ["a"])
    assert "the agent of queue_1 is running" in row.what


def test_the_verb_is_not_run_on_a_box_that_was_said_to_be_gone(
    run: FarRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be back, with results that nobody saw, or be somebody else's by now."""
    ran: list[str] = []
    monkeypatch.setattr(SshSite, "_end", lambda *words: [])
    monkeypatch.setattr(SshSite, "_stop", lambda self, steps, words, box: ran.append(box))
    stop = run.project.profile.meter_stop
    monkeypatch.setattr(type(run.project.profile), "meter_stop", _with_verb(stop))
    teardown = Teardown("demo", "ab" * 32, "stop", from_now(0), "typed", gone={"box-a": "lost"})
    run.project.results.root.mkdir(parents=True)
    steps = Steps(run.project.results.teardown, teardown)
    run.site.refresh()
    run.site.end_boxes(steps)
    assert ran == ["box-b"]


def _with_verb(stop: Any) -> property:
    class WithVerb:
        from_box = "/usr/bin/shutdown"

        def __getattr__(self, name: str) -> Any:
            return getattr(stop, name)

    return property(lambda self: WithVerb())


# --- the first words, and words without end


class Says:
    """An Ssh whose box says these lines."""

    def __init__(self, folder: Path, *lines: bytes) -> None:
        self.alias = self.disk_name = "box-a"
        self.home, self._lines = Home(folder), lines

    def run(self, words: Any, data: bytes = b"", **more: Any) -> Any:
        from boxcar.laptop.hosts.connection import Ran

        return Ran(0, b"".join(identify.MARK + line + b"\n" for line in self._lines), "")


NOBODY = type("Nobody", (), {"hostname": None, "env": None})()


@pytest.mark.parametrize(
    "lines",
    [
        [b"end ."],
        [b"hostname a", b"hostname b", b"home /r", b"data_dir /d", b"end ."],
        [b"hostname a", b"data_dir /d", b"end ."],
        [b"hostname a", b"home /r", b"end ."],
        [b"hostname a", b"home /r", b"data_dir /d", b"interpreter x.y /bin/python", b"end ."],
        [b"hostname a", b"home /r", b"data_dir /d", b"interpreter", b"end ."],
        [b"hostname a", b"home /r", b"data_dir /d", b"marker [[[[", b"end ."],
    ],
)
def test_a_box_that_does_not_say_plainly_who_it_is_is_refused(
    tmp_path: Path, lines: list[bytes]
) -> None:
    ssh: Any = Says(tmp_path, *lines)
    with pytest.raises((DamagedError, InputError), match="box-a"):
        identify.greet(ssh, NOBODY, "/d", "auto")


def test_words_without_end_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_program, "MOST_BYTES", 1_000_000)
    for stream in ("stdout", "stderr"):
        flood = f"import sys\nwhile True: sys.{stream}.write('x' * 65536)"
        with pytest.raises(run_program.TooMuchSaid):
            run_program.run([sys.executable, "-c", flood], b"", timeout_s=30)


def test_what_is_typed_and_said_arrives_whole_and_who_does_not_listen_is_no_error() -> None:
    data = os.urandom(3_000_000)
    done = run_program.run(["sh", "-c", "cat; echo end >&2; exit 3"], data, timeout_s=30)
    assert (done.stdout, done.stderr, done.returncode) == (data, b"end\n", 3)
    assert run_program.run(["sh", "-c", "echo x"], data, timeout_s=30).stdout == b"x\n"


def test_who_says_nothing_is_given_up_with_all_that_it_started() -> None:
    mark = f"boxcar-{os.getpid()}"
    with pytest.raises(subprocess.TimeoutExpired):
        run_program.run(
            ["sh", "-c", f"sleep 60.{os.getpid()} & : {mark}; wait"], b"", timeout_s=0.3
        )
    left = subprocess.run(["pgrep", "-f", f"sleep 60.{os.getpid()}"], stdout=-1, check=False)
    assert left.stdout == b""


def test_a_flood_from_a_box_is_an_error_of_that_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flood(*words: Any, **more: Any) -> Any:
        raise run_program.TooMuchSaid

    ssh = Ssh("box-a", Home(tmp_path), print)
    monkeypatch.setattr(ssh, "_control", lambda timeout_s: tmp_path / "socket")
    monkeypatch.setattr(run_program, "run", flood)
    with pytest.raises(DamagedError, match="box-a: printed more than 32 MiB"):
        ssh.run(["true"])


def test_a_broken_box_keeps_nobody_from_a_status(
    run: FarRun, capsys: pytest.CaptureFixture[str]
) -> None:
    lies(run, lambda told: [told.pop(key) for key in list(told) if key != "files"])
    assert status(run.project, as_json=True) == 1
    document = json.loads(capsys.readouterr().out)
    words = {queue["queue"]: queue["condition"] for queue in document["queues"]}
    assert words == {"queue_1": "unreachable", "queue_2": "done"}


def test_a_failed_log_that_is_none_holds_up_no_pull(run: FarRun) -> None:
    def change(box: str, told: Told) -> None:
        told.pop("is_there", None)

    run.agents.say(
        "queue_1",
        ("cell.failed", {"cell": "a", "attempt": 1, "failure": "OOM", "reason": "x", "rc": 1,
                         "is_final": True, "seconds": 1.0, "release": "ab" * 32}),
    )  # fmt: skip
    cells = [cell for cell in run.look().cells if cell.name == "a"]
    run.world.change = change
    (log,) = pull_failed_logs(run.site, cells)
    assert log.path is None and "its answer to 'log' is not as expected" in log.problem
