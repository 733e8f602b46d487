from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from finished_run import steps_until_end

from boxcar.laptop.hosts.reported_files import Mirror
from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.wire.run_asks import FilePart
from onbox.answers import report

SEEN_AT = "2026-10-01T08:00:00.000Z"
JOURNAL = "journal/q1.jsonl"


class Told(NamedTuple):
    """What a report says of files."""

    files: list[FilePart]
    gone: list[str]
    is_more: bool


class Tier:
    """What a box has on its tier, and what its next report says of it."""

    def __init__(self, box: str = "box-a", most_bytes: int = 1_000_000) -> None:
        self.box = box
        self.most_bytes = most_bytes
        self.files: dict[str, bytes] = {}

    def tell(self, mirror: Mirror) -> Told:
        have = mirror.prefixes_here(self.box)
        parts = [report.part(name, data, have.get(name)) for name, data in self.files.items()]
        files = [report._cut(part, self.most_bytes) for part in parts if part]
        is_more = any(part and len(part.data) > self.most_bytes for part in parts)
        return Told(files, report.gone(self.files, have, None), is_more)

    def bring(self, mirror: Mirror) -> Told:
        told = self.tell(mirror)
        mirror.take_report(self.box, told.files, told.gone, SEEN_AT)
        return told


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "mirror", "tiny")


def held(mirror: Mirror) -> dict[str, bytes]:
    root = mirror.tier.root
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def sent(told: Told) -> dict[str, tuple[int, bytes]]:
    return {file.path: (file.offset, file.data) for file in told.files}


def test_a_new_mirror_knows_nothing(mirror: Mirror) -> None:
    assert (mirror.prefixes_here("box-a"), mirror.names_of("box-a"), mirror.seen_at("box-a")) == (
        {},
        [],
        None,
    )


def test_of_a_file_that_grew_only_the_rest_comes_and_nothing_where_it_did_not(
    mirror: Mirror,
) -> None:
    tier = Tier()
    tier.files = {JOURNAL: b"one\n", "control/q1.json": b"{}"}
    tier.bring(mirror)
    assert held(mirror) == tier.files
    assert mirror.seen_at("box-a") == SEEN_AT
    tier.files[JOURNAL] += b"two\n"
    assert sent(tier.bring(mirror)) == {JOURNAL: (4, b"two\n")}
    assert held(mirror) == tier.files
    assert sent(tier.bring(mirror)) == {}
    assert held(mirror) == tier.files


def test_a_file_that_was_replaced_comes_whole(mirror: Mirror) -> None:
    tier = Tier()
    tier.files = {"heartbeat/q1.json": b'{"at": 1, "more": 2}'}
    tier.bring(mirror)
    tier.files = {"heartbeat/q1.json": b'{"at": 2}'}
    with (mirror.tier.root / "heartbeat/q1.json").open("rb") as reader:
        assert sent(tier.bring(mirror)) == {"heartbeat/q1.json": (0, b'{"at": 2}')}
        assert reader.read() == b'{"at": 1, "more": 2}', "whoever reads meanwhile reads one of both"
    assert held(mirror) == tier.files


@pytest.mark.parametrize("damaged", [b"onE\n", b"", b"one\nand more than ever was\n"])
def test_a_damaged_copy_is_sent_anew(mirror: Mirror, damaged: bytes) -> None:
    tier = Tier()
    tier.files = {JOURNAL: b"one\n"}
    tier.bring(mirror)
    (mirror.tier.root / JOURNAL).write_bytes(damaged)
    tier.files[JOURNAL] += b"two\n"
    tier.bring(mirror)
    assert held(mirror) == tier.files


@pytest.mark.parametrize("damaged", [b"onE\n", b"on"])
def test_a_copy_that_was_damaged_after_the_question_is_not_built_upon(
    mirror: Mirror, damaged: bytes
) -> None:
    tier = Tier()
    tier.files = {JOURNAL: b"one\n"}
    tier.bring(mirror)
    tier.files[JOURNAL] += b"two\n"
    told = tier.tell(mirror)
    (mirror.tier.root / JOURNAL).write_bytes(damaged)
    mirror.take_report("box-a", told.files, told.gone, SEEN_AT)
    assert held(mirror) in ({}, {JOURNAL: damaged})
    tier.bring(mirror)
    assert held(mirror) == tier.files


def test_a_copy_that_vanished_after_the_question_comes_next_time(mirror: Mirror) -> None:
    tier = Tier()
    tier.files = {JOURNAL: b"one\n"}
    tier.bring(mirror)
    tier.files[JOURNAL] += b"two\n"
    told = tier.tell(mirror)
    (mirror.tier.root / JOURNAL).unlink()
    mirror.take_report("box-a", told.files, told.gone, SEEN_AT)
    assert held(mirror) == {}
    tier.bring(mirror)
    assert held(mirror) == tier.files


def test_what_is_gone_on_the_tier_goes_here_and_what_others_reported_stays(mirror: Mirror) -> None:
    one, other = Tier("box-a"), Tier("box-b")
    one.files = {"queues/q1.txt": b"a\n", JOURNAL: b"one\n"}
    other.files = {"queues/q2.txt": b"b\n"}
    one.bring(mirror)
    other.bring(mirror)
    del one.files[JOURNAL]
    assert one.bring(mirror).gone == [JOURNAL]
    assert held(mirror) == one.files | other.files
    assert mirror.names_of("box-a") == ["queues/q1.txt"]
    assert one.bring(mirror).gone == []


def test_a_long_file_comes_in_parts_that_make_the_whole(mirror: Mirror) -> None:
    tier = Tier(most_bytes=10)
    tier.files = {JOURNAL: bytes(range(95)), "control/q1.json": b"{}"}
    rounds = 1
    while tier.bring(mirror).is_more:
        rounds += 1
        assert rounds < 20
    assert rounds == 10
    assert held(mirror) == tier.files


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/x", "journal/../../../x", "journal//x", "", "locks/q1.lock", "x", "\0"],
)
@pytest.mark.parametrize("how", ["files", "gone"])
def test_a_name_that_leads_out_is_refused(mirror: Mirror, name: str, how: str) -> None:
    file = FilePart(name, 0, b"", 0, digest.of_bytes(b""))
    told = Told([file], [], False) if how == "files" else Told([], [name], False)
    outside = mirror.folder.parent / "x"
    outside.write_text("mine")
    with pytest.raises(DamagedError):
        mirror.take_report("box-a", told.files, told.gone, SEEN_AT)
    assert outside.read_text() == "mine"
    assert not held(mirror)


@pytest.mark.parametrize("index", [b"", b"{", b"[]", b"{}", b'{"names": 3}', b"null"])
def test_a_broken_index_costs_a_report_and_nothing_else(mirror: Mirror, index: bytes) -> None:
    tier = Tier()
    tier.files = {JOURNAL: b"one\n", "control/q1.json": b"{}"}
    tier.bring(mirror)
    (found,) = (mirror.folder / "reports" / "tiny").iterdir()
    found.write_bytes(index)
    assert mirror.seen_at("box-a") is None
    assert set(sent(tier.bring(mirror))) == set(tier.files)
    assert held(mirror) == tier.files
    assert json.loads(found.read_bytes())["seen_at"] == SEEN_AT


def test_who_has_a_file_is_known(mirror: Mirror) -> None:
    one, other = Tier("box-a"), Tier("box-b")
    one.files = {"cells/a/manifest.json": b"{}"}
    other.files = {"cells/b/manifest.json": b"{}"}
    one.bring(mirror)
    other.bring(mirror)
    boxes = ["box-a", "box-b", "box-c"]
    assert list(mirror.boxes_with("cells/b/manifest.json", boxes)) == ["box-b"]
    assert list(mirror.boxes_with("cells/c/manifest.json", boxes)) == []
    assert set(mirror.prefixes_here(*boxes)) == {"cells/a/manifest.json", "cells/b/manifest.json"}


def test_a_mirror_that_is_dropped_is_gone_and_that_of_another_run_is_not(mirror: Mirror) -> None:
    other = Mirror(mirror.folder, "other")
    for found in (mirror, other):
        tier = Tier()
        tier.files = {JOURNAL: b"one\n"}
        tier.bring(found)
    mirror.drop()
    assert not mirror.tier.root.exists() and mirror.seen_at("box-a") is None
    assert held(other) == {JOURNAL: b"one\n"}


def test_killed_between_any_two_lines_the_next_report_brings_it_right(tmp_path: Path) -> None:
    """Also then, nothing that is here is anything else than a beginning of what the tier has."""
    before = {JOURNAL: b"one\n", "heartbeat/q1.json": b"beat 1", "queues/q9.txt": b"c\n"}
    after = {JOURNAL: b"one\ntwo\n", "heartbeat/q1.json": b"beat 2", "control/q1.json": b"{}"}
    die_at, steps = 1, None
    while steps is None:
        mirror, tier = Mirror(tmp_path / str(die_at), "tiny"), Tier()
        tier.files = dict(before)
        tier.bring(mirror)
        tier.files = dict(after)
        told = tier.tell(mirror)

        def take(mirror: Mirror = mirror, told: Told = told) -> None:
            mirror.take_report("box-a", told.files, told.gone, SEEN_AT)

        steps = steps_until_end(take, mirror.folder, die_at)
        for name, data in held(mirror).items():
            assert data in (before.get(name), after.get(name)), f"{name} at step {die_at}"
        tier.bring(mirror)
        assert held(mirror) == after, f"killed at step {die_at}"
        assert sent(tier.bring(mirror)) == {}
        die_at += 1
    assert die_at > 10
