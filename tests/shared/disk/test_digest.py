from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import digest
from boxcar.shared.disk.digest import BLOCK_BYTES


def test_the_digest_of_bytes_is_their_sha256_in_hexadecimal() -> None:
    assert digest.of_bytes(b"abc") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


@pytest.mark.parametrize("size_bytes", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, 9 * BLOCK_BYTES + 1])
@pytest.mark.parametrize("from_disk", [False, True])
def test_the_digest_of_a_file_is_that_of_its_bytes(
    tmp_path: Path, size_bytes: int, from_disk: bool
) -> None:
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_disk: bool, of_file: Any
) -> None:
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda fd, *what: asked.append(what))
    (tmp_path / "file").write_bytes(b"abc")
    of_file(tmp_path / "file", from_disk=from_disk)
    assert asked == [(0, 0, os.POSIX_FADV_DONTNEED)] * from_disk


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot forget pages")
def test_what_was_read_from_the_disk_leaves_memory_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, begin, size, __: asked.append((begin, size)))
    monkeypatch.setattr(digest, "_FORGOTTEN_AT_ONCE_BYTES", 2 * BLOCK_BYTES)
    told: list[int] = []
    (tmp_path / "file").write_bytes(bytes(9 * BLOCK_BYTES))
    digest.of_file(tmp_path / "file", from_disk=True, on_chunk=told.append)
    twos = [(begin * BLOCK_BYTES, 2 * BLOCK_BYTES) for begin in (0, 2, 4, 6)]
    assert asked == [(0, 0), *twos]
    assert told == [BLOCK_BYTES] * 9


def test_the_cache_is_left_alone_where_the_system_cannot_forget_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    (tmp_path / "file").write_bytes(b"abc")
    assert digest.of_file(tmp_path / "file", from_disk=True) == digest.of_bytes(b"abc")


def test_the_digest_of_json_does_not_change_from_one_version_of_boxcar_to_the_next() -> None:
    # Releases are named by it and approvals are bound to it: this text is a part of the format.
    value = {"b": [1, 2.5, None, True], "a": "größe"}
    assert digest.of_json(value) == digest.of_bytes('{"a":"größe","b":[1,2.5,null,true]}'.encode())


def test_the_digest_of_json_does_not_depend_on_the_order_of_keys_but_on_that_of_lists() -> None:
    assert digest.of_json({"a": 1, "b": 2}) == digest.of_json({"b": 2, "a": 1})
    assert digest.of_json([1, 2]) != digest.of_json([2, 1])
    assert digest.of_json({"a": 1}) != digest.of_json({"a": "1"})
    assert digest.of_json({"a": None}) != digest.of_json({})


def test_a_name_that_is_no_utf8_has_a_digest() -> None:
    assert digest.of_json(["\udcff"]) != digest.of_json(["\udcfe"])


def test_the_short_form_is_the_beginning() -> None:
    long = digest.of_bytes(b"abc")
    assert digest.short(long) == "ba7816bf8f01"


def test_two_that_differ_are_shown_as_far_as_that_is_seen() -> None:
    one, other = "a" * 64, "a" * 40 + "b" * 24
    assert digest.other(one, other) == f"has SHA-256 {one[:41]}…, expected {other[:41]}…"
    assert digest.other("b" + one[1:], one) == f"has SHA-256 b{'a' * 11}…, expected {'a' * 12}…"


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert digest.of_file(tmp_path / "pipe") == digest.of_bytes(b"")
