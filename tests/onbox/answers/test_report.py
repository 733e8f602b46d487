from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finished_run import FinishedRun, make_run
from run_on_disk import cell_started, cell_verified

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic, digest, lock
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.answers import damages, door, report

DIGEST = "0a" * 32


@pytest.fixture
def tier(tmp_path: Path) -> DurablePaths:
    made = DurablePaths(tmp_path / "tier", "tiny")
    for folder in made.folders():
        folder.mkdir(parents=True)
    return made


@pytest.fixture
def scratch(tmp_path: Path) -> ScratchPaths:
    return ScratchPaths(tmp_path / "box", "tiny")


class Laptop:
    """What the laptop would hold after each report, by what the report told it to do."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, bytes] = {}
        self.sent = 0

    def ask(self, *, everything: bool = True, queues: tuple[str, ...] = ("q1",)) -> dict[str, Any]:
        words = {
            "ask": "report",
            "run": "tiny",
            "durable_dir": str(self.root / "tier"),
            "data_dir": str(self.root / "box"),
            "queues": queues,
            "everything": everything,
            "have": {name: [len(d), digest.of_bytes(d)] for name, d in self.files.items()},
        }
        reply = door.answer(json.dumps(words).encode())
        assert "error" not in reply, reply
        for file in reply["files"]:
            self._take(file)
        for name in reply["gone"]:
            del self.files[name]
        return reply

    def _take(self, file: dict[str, Any]) -> None:
        data = base64.b64decode(file["data"])
        self.sent += len(data)
        whole = self.files.get(file["path"], b"")[: file["offset"]] + data
        if len(whole) == file["size_bytes"]:
            assert digest.of_bytes(whole) == file["sha256"]
        self.files[file["path"]] = whole


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    return Laptop(tmp_path)


@pytest.fixture
def held() -> Iterator[list[int]]:
    fds: list[int] = []
    yield fds
    for fd in fds:
        os.close(fd)


def fill(tier: DurablePaths) -> dict[str, bytes]:
    """A file of each kind, for two queues, a cell and a release."""
    files = {f"queues/{queue}.txt": b"a b\n" for queue in ("q1", "q2")}
    for folder, ending in (("control", "json"), ("journal", "jsonl"), ("heartbeat", "json")):
        files |= {f"{folder}/{queue}.{ending}": folder.encode() for queue in ("q1", "q2")}
    files |= {
        "delivered/q1.json": b"d",
        "claims/a.json": b"c",
        "cells/a/manifest.json": b"m",
        "cells/a/receipt.json": b"r",
        "cells/b/resume/resume.json": b"p",
        f"releases/{DIGEST}/plan.json": b"p",
        f"releases/{DIGEST}/release.json": b"l",
    }
    for name, data in files.items():
        (tier.root / name).parent.mkdir(parents=True, exist_ok=True)
        (tier.root / name).write_bytes(data)
    return files


def test_everything_is_sent_once_and_nothing_that_is_no_control_file(tier, laptop):
    files = fill(tier)
    for name in (
        *("cells/b/resume/1-2-latest.pth", "cells/b/resume.json"),
        *("cells/a/best.pth", "cells/a/a.log", f"releases/{DIGEST}/run_queue.sh"),
        *("queues/.q1.txt.0a0a0a0a.part", "queues/q1.txt~", "journal/q1.jsonl.torn-3"),
        *("claims/.a.json.0a0a0a0a.part", "claims/a.txt", "locks/q1.lock"),
    ):
        (tier.root / name).write_bytes(b"x")
    for name in ("cells/.a.0a0a0a0a.part", f"releases/.{DIGEST}.0a0a0a0a.part"):
        (tier.root / name).mkdir()
        (tier.root / name / "manifest.json").write_bytes(b"x")
        (tier.root / name / "plan.json").write_bytes(b"x")
    reply = laptop.ask()
    assert laptop.files == files
    assert (reply["is_tier_there"], reply["is_more"], reply["gone"]) == (True, False, [])
    assert laptop.ask()["files"] == []


def test_a_box_that_reads_only_for_itself_sends_its_own_queues_files(tier, laptop):
    files = fill(tier)
    own = {name: data for name, data in files.items() if "/q1." in name}
    laptop.ask(everything=False)
    assert laptop.files == own


def test_of_a_file_that_grew_only_the_end_is_sent(tier, laptop):
    path = tier.journal("q1")
    path.write_bytes(b"1" * 5000)
    laptop.ask()
    laptop.sent = 0
    with path.open("ab") as file:
        file.write(b"22")
    reply = laptop.ask()
    assert [(file["offset"], laptop.sent) for file in reply["files"]] == [(5000, 2)]
    assert laptop.files["journal/q1.jsonl"] == path.read_bytes()


@pytest.mark.parametrize("now", [b"", b"oth", b"other", b"other and longer"])
def test_a_file_that_was_replaced_is_sent_anew(tier, laptop, now):
    path = tier.heartbeat("q1")
    path.write_bytes(b"first")
    laptop.ask()
    atomic.write_whole(path, now)
    assert [file["offset"] for file in laptop.ask()["files"]] == [0]
    assert laptop.files["heartbeat/q1.json"] == now


def test_a_new_file_is_sent_also_when_it_is_empty(tier, laptop):
    tier.queue("q1").touch()
    laptop.ask()
    assert laptop.files == {"queues/q1.txt": b""}
    assert laptop.ask()["files"] == []


@pytest.mark.parametrize("everything", [True, False])
def test_what_was_removed_is_gone(tier, laptop, everything):
    fill(tier)
    laptop.ask(everything=everything)
    tier.control("q1").unlink()
    assert laptop.ask(everything=everything)["gone"] == ["control/q1.json"]


def test_of_what_was_not_asked_for_nothing_is_said(tier, laptop):
    fill(tier)
    laptop.ask()
    tier.control("q2").unlink()
    tier.manifest("a").unlink()
    assert laptop.ask(everything=False)["gone"] == []


def test_a_tier_that_is_not_mounted_has_lost_nothing_and_calls_no_agent_dead(
    tier, laptop, tmp_path
):
    fill(tier)
    laptop.ask()
    (tmp_path / "tier").rename(tmp_path / "unmounted")
    reply = laptop.ask()
    assert (reply["is_tier_there"], reply["gone"], reply["files"]) == (False, [], [])
    assert reply["agents"] == {"q1": None}


def test_a_tier_that_is_unmounted_during_the_look_has_lost_nothing(
    tier, laptop, tmp_path, monkeypatch
):
    fill(tier)
    laptop.ask()
    look = report._attempts
    monkeypatch.setattr(report, "mark", lambda run, queues: DIGEST)

    def unmount(scratch: ScratchPaths) -> list[str]:
        (tmp_path / "tier").rename(tmp_path / "unmounted")
        return look(scratch)

    monkeypatch.setattr(report, "_attempts", unmount)
    reply = laptop.ask()
    assert (reply["is_tier_there"], reply["gone"], reply["files"]) == (False, [], [])


def test_a_file_that_vanishes_between_list_and_read_is_left_out(tier, laptop, monkeypatch):
    fill(tier)
    read = report.read_plain

    def removed_first(folder: Path, name: str) -> bytes | None:
        tier.control("q1").unlink(missing_ok=True)
        return read(folder, name)

    monkeypatch.setattr(report, "read_plain", removed_first)
    reply = laptop.ask()
    assert "control/q1.json" not in laptop.files
    assert "control/q2.json" in laptop.files
    assert reply["gone"] == []


def test_a_file_that_cannot_be_read_is_named_and_hides_no_other(tier, laptop, monkeypatch):
    tier.claim("a").write_bytes(b"a")
    tier.claim("b").write_bytes(b"b")
    assert "unread" not in laptop.ask()
    tier.claim("b").write_bytes(b"newer")
    read = report.read_plain

    def broken(folder: Path, name: str) -> bytes | None:
        if name == "claims/a.json":
            raise PermissionError(13, "Permission denied", name)
        return read(folder, name)

    monkeypatch.setattr(report, "read_plain", broken)
    told = laptop.ask()
    assert told["unread"] == {"claims/a.json": "Permission denied"} and told["gone"] == []
    assert (laptop.files["claims/a.json"], laptop.files["claims/b.json"]) == (b"a", b"newer")


def test_a_log_that_cannot_be_asked_hides_no_other_and_may_be_held(tier, scratch, laptop):
    for cell in ("a", "b"):
        scratch.cell(cell).mkdir(parents=True)
    scratch.log("a").symlink_to(scratch.log("a").name)
    scratch.log("b").touch()
    held = lock.try_hold(scratch.log("b"))
    assert held is not None
    assert list(laptop.ask()["attempts"]) == ["a", "b"]
    os.close(held)


def test_a_link_on_the_tier_shows_no_other_file(tier, laptop, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    for name in ("manifest.json", "q1.json"):
        (secret / name).write_bytes(b"not yours")
    tier.cell("a").symlink_to(secret)
    tier.control("q1").symlink_to(secret / "q1.json")
    (tier.root / "heartbeat").rmdir()
    (tier.root / "heartbeat").symlink_to(secret)
    laptop.ask()
    laptop.ask(everything=False)
    assert laptop.files == {}


def test_more_than_one_answer_holds_comes_in_several(tier, laptop, monkeypatch):
    monkeypatch.setattr(report, "MOST_BYTES", 1000)
    files = fill(tier)
    for queue, size_bytes in (("q1", 2500), ("q2", 700)):
        files[f"journal/{queue}.jsonl"] = os.urandom(size_bytes)
        tier.journal(queue).write_bytes(files[f"journal/{queue}.jsonl"])
    answers = 0
    is_more = True
    while is_more:
        laptop.sent = 0
        is_more = laptop.ask()["is_more"]
        answers += 1
        assert 0 < laptop.sent <= 1000
    assert laptop.files == files
    assert answers >= 4


def test_a_large_file_arrives_although_what_is_sent_before_it_changes_each_time(
    tier, laptop, monkeypatch
):
    monkeypatch.setattr(report, "MOST_BYTES", 1000)
    files = fill(tier)
    plan = next(name for name in files if name.endswith("/plan.json"))
    files[plan] = os.urandom(5500)
    (tier.root / plan).write_bytes(files[plan])
    for second in range(30):
        files["heartbeat/q1.json"] = f"beat {second:02}".encode()
        tier.heartbeat("q1").write_bytes(files["heartbeat/q1.json"])
        if not laptop.ask()["is_more"]:
            break
    assert laptop.files == files


def test_what_lives_is_told_by_its_lock(tier, scratch, laptop, held):
    for cell in ("a", "b"):
        scratch.out(cell).mkdir(parents=True)
        scratch.log(cell).touch()
    reply = laptop.ask(queues=("q1", "q2"))
    assert (reply["agents"], reply["attempts"]) == ({"q1": False, "q2": False}, [])
    for path in (tier.lock("q2"), scratch.log("b")):
        fd = lock.try_hold(path)
        assert fd is not None
        held.append(fd)
    reply = laptop.ask(queues=("q1", "q2"))
    assert (reply["agents"], reply["attempts"]) == ({"q1": False, "q2": True}, ["b"])
    assert not reply.get("written")
    scratch.log("b").write_text("it begins\n")
    assert laptop.ask()["written"] == ["b"]
    # Its plan may be an earlier one.
    assert laptop.ask()["agents"] == {"q1": False, "q2": True}
    assert reply["progress_at"] == {}
    path = scratch.out("b") / "progress.jsonl"
    path.touch()
    os.utime(path, (1_700_000_000, 1_700_000_000.25))
    assert laptop.ask()["progress_at"] == {"b": "2023-11-14T22:13:20.250Z"}


def test_a_box_without_anything_of_the_run_answers(laptop):
    reply = laptop.ask()
    assert (reply["is_tier_there"], reply["attempts"], reply["files"]) == (False, [], [])
    assert reply["boot_id"]
    timestamp.parse_utc(reply["at"])


def test_what_the_box_has_left_is_told(tier, laptop):
    assert laptop.ask()["gauges"]["durable_free_bytes"] > 0


# --- damages


RELEASE = "ab" * 32
FILES = (
    "journal/q1.jsonl", "claims/a.json", "cells/a/manifest.json", "cells/a/receipt.json",
    "accepted/a.json", f"releases/{RELEASE}/release.json", "heartbeat/q1.json",
    "delivered/q1.json",
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    run: FinishedRun = make_run(tmp_path)
    for cell in ("a", "b"):
        sha256 = digest.of_file(run.site.tier.manifest(cell))
        run.say("q2", cell_started(cell), cell_verified(cell, sha256))
    return run


def as_a_folder(path: Path) -> None:
    (path / "deep").mkdir(parents=True)


def as_a_circle(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(path.name)


@pytest.mark.parametrize("spoil", [as_a_folder, as_a_circle])
@pytest.mark.parametrize("name", FILES)
def test_what_cannot_be_read_is_named_and_hides_no_other(run, name, spoil):
    tier = run.site.tier
    path = tier.root / name
    if path.is_file():
        path.unlink()
    spoil(path)
    others = [tier.manifest("b"), tier.heartbeat("q9"), tier.delivered("q9"), tier.accepted("b")]
    for other in others:
        other.write_bytes(b"{")
    found = {one.path: one.problem for one in damages.find(tier, {})}
    assert {str(other.relative_to(tier.root)) for other in others} <= found.keys()
    if spoil is as_a_folder:
        assert {name, name.rpartition("/")[0]} & found.keys()


def test_a_member_of_a_pool_is_reported_with_its_files_queue(tier, scratch, tmp_path):
    for path in (tier.queue("all@box-a"), tier.control("all@box-a"), tier.journal("all@box-b")):
        path.write_bytes(b"x")
    with_lock = lock.try_hold(tier.lock("all@box-a"))
    assert with_lock is not None
    laptop = Laptop(tmp_path)
    reply = laptop.ask(everything=False, queues=("all@box-a",))
    assert set(laptop.files) == {"queues/all.txt", "control/all@box-a.json"}
    assert reply["agents"]["all@box-a"] is True
    laptop.ask()
    assert "journal/all@box-b.jsonl" in laptop.files
    os.close(with_lock)
