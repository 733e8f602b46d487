"""Digests, one file beside another, and work that is done side by side."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib

import pytest

from boxcar.shared.disk import digest, tree_sync
from boxcar.shared.disk.digest import BLOCK_BYTES


def test_the_digest_of_bytes_is_their_sha256_in_hexadecimal():
    assert digest.of_bytes(b"abc") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


@pytest.mark.parametrize("size_bytes", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, 9 * BLOCK_BYTES + 1])
@pytest.mark.parametrize("from_disk", [False, True])
def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path, size_bytes, from_disk):
    data = os.urandom(size_bytes)
    (tmp_path / "file").write_bytes(data)
    told: list[int] = []
    found = digest.of_file(tmp_path / "file", from_disk=from_disk, on_chunk=told.append)
    assert found == hashlib.sha256(data).hexdigest()
    assert sum(told) == size_bytes
    assert digest.crc32_of_file(tmp_path / "file", from_disk=from_disk) == zlib.crc32(data)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot forget pages")
@pytest.mark.parametrize("from_disk", [False, True])
@pytest.mark.parametrize("of_file", [digest.of_file, digest.crc32_of_file])
def test_the_whole_file_is_asked_of_the_disk_where_that_is_wanted(
    tmp_path, monkeypatch, from_disk, of_file
):
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda fd, *what: asked.append(what))
    (tmp_path / "file").write_bytes(b"abc")
    of_file(tmp_path / "file", from_disk=from_disk)
    assert asked == [(0, 0, os.POSIX_FADV_DONTNEED)] * from_disk


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot forget pages")
def test_what_was_read_from_the_disk_leaves_memory_to_others(tmp_path, monkeypatch):
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, begin, size, __: asked.append((begin, size)))
    monkeypatch.setattr(digest, "_FORGOTTEN_AT_ONCE_BYTES", 2 * BLOCK_BYTES)
    told: list[int] = []
    (tmp_path / "file").write_bytes(bytes(9 * BLOCK_BYTES))
    digest.of_file(tmp_path / "file", from_disk=True, on_chunk=told.append)
    twos = [(begin * BLOCK_BYTES, 2 * BLOCK_BYTES) for begin in (0, 2, 4, 6)]
    assert asked == [(0, 0), *twos]
    assert told == [BLOCK_BYTES] * 9


def test_the_cache_is_left_alone_where_the_system_cannot_forget_it(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    (tmp_path / "file").write_bytes(b"abc")
    assert digest.of_file(tmp_path / "file", from_disk=True) == digest.of_bytes(b"abc")


def test_the_digest_of_json_does_not_change_from_one_version_of_boxcar_to_the_next():
    # Releases are named by it and approvals are bound to it: this text is a part of the format.
    value = {"b": [1, 2.5, None, True], "a": "größe"}
    assert digest.of_json(value) == digest.of_bytes('{"a":"größe","b":[1,2.5,null,true]}'.encode())


def test_the_digest_of_json_does_not_depend_on_the_order_of_keys_but_on_that_of_lists():
    assert digest.of_json({"a": 1, "b": 2}) == digest.of_json({"b": 2, "a": 1})
    assert digest.of_json([1, 2]) != digest.of_json([2, 1])
    assert digest.of_json({"a": 1}) != digest.of_json({"a": "1"})
    assert digest.of_json({"a": None}) != digest.of_json({})


def test_a_name_that_is_no_utf8_has_a_digest():
    assert digest.of_json(["\udcff"]) != digest.of_json(["\udcfe"])


def test_the_short_form_is_the_beginning():
    long = digest.of_bytes(b"abc")
    assert digest.short(long) == "ba7816bf8f01"


def test_two_that_differ_are_shown_as_far_as_that_is_seen():
    one, other = "a" * 64, "a" * 40 + "b" * 24
    assert digest.other(one, other) == f"has SHA-256 {one[:41]}…, expected {other[:41]}…"
    assert digest.other("b" + one[1:], one) == f"has SHA-256 b{'a' * 11}…, expected {'a' * 12}…"


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert digest.of_file(tmp_path / "pipe") == digest.of_bytes(b"")


# --- one file beside another


SOME = bytes(range(256))


@pytest.fixture(params=[3, 1 << 18])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_PIECE_BYTES", request.param)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("data", "other", "begins", "is_same"),
    [
        (SOME, SOME, True, True),
        (SOME, SOME[:-1], True, False),
        (SOME, b"", True, False),
        (b"", b"", True, True),
        (SOME[:-1], SOME, False, False),
        (b"", b"x", False, False),
        (SOME, SOME[:-1] + b"\0", False, False),
        (SOME, b"x" + SOME[1:], False, False),
    ],
)
def test_two_files_are_the_same_or_one_is_the_beginning_of_the_other(
    tmp_path, data, other, begins, is_same
):
    path, copy = tmp_path / "path", tmp_path / "copy"
    path.write_bytes(data)
    copy.write_bytes(other)
    assert digest.begins_with(path, copy) is begins
    assert digest.has_same_bytes(path, copy) is is_same


@pytest.mark.parametrize("gone", ["path", "copy"])
def test_a_file_that_is_not_there_is_no_other_one(tmp_path, gone):
    for name in {"path", "copy"} - {gone}:
        (tmp_path / name).write_bytes(b"")
    for ask in (digest.begins_with, digest.has_same_bytes):
        with pytest.raises(FileNotFoundError):
            ask(tmp_path / "path", tmp_path / "copy")


# --- side by side


MANY = range(tree_sync._MANY_THINGS + 2 * tree_sync._BLOCK)


def threads_of(these: range, monkeypatch: pytest.MonkeyPatch, *quick: int) -> list[str]:
    """In which thread each was done, where those that were tried alone were quick or not."""
    answers = iter(quick)
    monkeypatch.setattr(tree_sync, "is_quick", lambda *took: bool(next(answers, True)))
    return tree_sync.run_in_parallel(lambda one: threading.current_thread().name, these)


def test_what_is_done_in_no_time_is_done_one_after_another(monkeypatch):
    assert set(threads_of(MANY, monkeypatch)) == {threading.current_thread().name}


def test_after_one_that_takes_a_while_a_block_is_done_at_once(monkeypatch):
    here = threading.current_thread().name
    names = threads_of(MANY, monkeypatch, 1, 0, 1)
    beside = [at for at, name in enumerate(names) if name != here]
    assert beside == list(range(2, 2 + tree_sync._BLOCK))


def test_of_few_nobody_is_tried_alone(monkeypatch):
    names = threads_of(range(2), monkeypatch)
    assert threading.current_thread().name not in names


def test_one_is_done_here():
    assert tree_sync.run_in_parallel(lambda one: threading.current_thread().name, [1]) == [
        threading.current_thread().name
    ]


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, len(MANY)])
def test_what_came_of_each_stands_in_its_place(monkeypatch, count, is_quick):
    monkeypatch.setattr(tree_sync, "is_quick", lambda *took: is_quick)
    assert tree_sync.run_in_parallel(lambda one: -one, range(count)) == [
        -one for one in range(count)
    ]


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize("at", [0, 1, len(MANY) - 1])
def test_what_the_first_raises_is_raised(monkeypatch, at, is_quick):
    monkeypatch.setattr(tree_sync, "is_quick", lambda *took: is_quick)

    def fail(one: int) -> None:
        if one >= at:
            raise ValueError(one)

    with pytest.raises(ValueError, match=f"^{at}$"):
        tree_sync.run_in_parallel(fail, MANY)


@pytest.mark.parametrize(
    ("took_s", "cpu_s", "is_quick"),
    [(0.0005, 0.0005, True), (0.0005, 0.0001, False), (0.0015, 0.0015, False), (0.0, 0.0, False)],
)
def test_quick_is_who_waits_for_nobody(took_s, cpu_s, is_quick):
    assert tree_sync.is_quick(took_s, cpu_s) is is_quick
