from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import lock
from boxcar.shared.paths import DurablePaths, ScratchPaths
from onbox.answers import credentials_in, door

RECORD = json.dumps({"env": {"KEY": "s3cr3t"}, "webhooks": []})


class Finished:
    """A box on which q1 was started and the cell a has run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tier = DurablePaths(root / "tier", "tiny")
        self.scratch = ScratchPaths(root / "box", "tiny")
        self.secrets = root / "own" / "credentials.json"
        for folder in (*self.tier.folders(), self.scratch.out("a"), self.secrets.parent):
            folder.mkdir(parents=True)
        self.secrets.write_text(RECORD)
        for path in (self.scratch.log("a"), self.scratch.agent_log("q1"), self.scratch.start("q1")):
            path.touch()

    def end(self, queues: tuple[str, ...] = ("q1",)) -> dict[str, Any]:
        places = {"durable_dir": str(self.root / "tier"), "data_dir": str(self.root / "box")}
        words = {"ask": "end", "run": "tiny", **places, "queues": queues}
        return door.answer(json.dumps(words | {"credentials": str(self.secrets)}).encode())

    @property
    def is_whole(self) -> bool:
        return self.secrets.read_text() == RECORD and self.scratch.start("q1").exists()


@pytest.fixture
def box(tmp_path: Path) -> Finished:
    return Finished(tmp_path)


@pytest.fixture
def hold() -> Iterator[Any]:
    fds = []

    def take(path: Path) -> None:
        fd = lock.try_hold(path)
        assert fd is not None
        fds.append(fd)

    yield take
    for fd in fds:
        os.close(fd)


def test_at_the_end_no_secret_and_nothing_to_resume_is_left(box):
    left = box.secrets.with_name(f".{box.secrets.name}.0a0a0a0a.part")
    left.write_text(RECORD)
    box.scratch.start("q2").touch()
    assert box.end() == {"alive": []}
    assert list(box.secrets.parent.iterdir()) == []
    assert box.scratch.started() == []
    assert box.scratch.log("a").exists()
    assert box.end() == {"alive": []}


@pytest.mark.parametrize("queues", [("q1",), ()])
def test_an_agent_at_work_is_named_and_nothing_is_removed(box, hold, queues):
    hold(box.tier.lock("q1"))
    assert box.end(queues) == {"alive": [{"queue": "q1"}]}
    assert box.is_whole


def test_an_agent_that_is_being_started_is_at_work(box, hold):
    hold(box.scratch.agent_log("q1"))
    assert box.end() == {"alive": [{"queue": "q1"}]}
    assert box.is_whole


def test_an_attempt_that_outlived_its_agent_is_named_and_nothing_is_removed(box, hold):
    box.scratch.out("b").mkdir(parents=True)
    for cell in ("a", "b"):
        hold(box.scratch.log(cell))
    assert box.end() == {"alive": [{"cell": "a"}, {"cell": "b"}]}
    assert box.is_whole


def test_another_boxs_agent_is_no_obstacle(box, hold):
    hold(box.tier.lock("q2"))
    assert box.end() == {"alive": []}


def test_nothing_starts_while_it_is_removed(box, monkeypatch):
    remove, seen = credentials_in.remove_unfinished, []

    def look(path: Path) -> None:
        locks = (box.tier.lock("q1"), box.scratch.agent_log("q1"), box.scratch.log("a"))
        seen.append([lock.is_held(one) for one in locks])
        remove(path)

    monkeypatch.setattr(credentials_in, "remove_unfinished", look)
    assert box.end() == {"alive": []}
    assert seen == [[True, True, True]]
    assert not lock.is_held(box.tier.lock("q1"))


@pytest.mark.parametrize("text", ["", "{}", "[]", "my notes", '{"env": {}}'])
def test_a_file_that_is_not_ours_stays_and_nothing_is_removed(box, text):
    box.secrets.write_text(text)
    error = box.end()["error"]
    assert error["kind"] == "InputError" and str(box.secrets) in error["text"]
    assert box.secrets.read_text() == text
    assert box.scratch.start("q1").exists()


def test_a_link_is_not_ours(box, tmp_path):
    box.secrets.rename(tmp_path / "other")
    box.secrets.symlink_to(tmp_path / "other")
    assert box.end()["error"]["kind"] == "InputError"
    assert (tmp_path / "other").exists() and box.secrets.is_symlink()


def test_secrets_that_others_could_read_are_removed_too(box):
    box.secrets.chmod(0o644)
    assert box.end() == {"alive": []}
    assert not box.secrets.exists()


def test_a_box_that_lost_everything_is_at_its_end(tmp_path):
    box = Finished(tmp_path / "x")
    (tmp_path / "x").rename(tmp_path / "lost")
    assert box.end() == {"alive": []}
    assert not (tmp_path / "x").exists()
