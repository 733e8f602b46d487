from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import LIMIT_S

from boxcar.shared.disk import pipeline
from boxcar.shared.disk.digest import BLOCK_BYTES


@pytest.fixture
def data() -> bytes:
    """More blocks than the pipeline has, and a bit: blocks are used again."""
    return os.urandom(9 * BLOCK_BYTES + 5)


@pytest.fixture
def fd(tmp_path: Path, data: bytes) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(data)
    with path.open("rb", buffering=0) as file:
        yield file.fileno()


def test_every_taker_gets_every_byte_in_order(fd, data):
    first, second = bytearray(), bytearray()
    assert pipeline.stream(fd, [first.extend, second.extend], BLOCK_BYTES) == len(data)
    assert first == data and second == data


def test_who_is_called_in_the_reading_thread_gets_every_byte_too(fd, data):
    there, here = bytearray(), bytearray()
    threads = set()

    def keep(block: memoryview) -> None:
        threads.add(threading.current_thread())
        here.extend(block)

    pipeline.stream(fd, [there.extend], BLOCK_BYTES, here=keep)
    assert here == there == data and threads == {threading.current_thread()}


def test_a_block_that_one_still_holds_is_not_filled_anew(fd, data):
    slow, quick = bytearray(), bytearray()
    is_all_read = threading.Event()

    def wait(block: memoryview) -> None:
        # The reader runs out of blocks here, unless it takes one that is still held.
        is_all_read.wait(0.02)
        slow.extend(block)

    pipeline.stream(fd, [wait, quick.extend], BLOCK_BYTES)
    assert slow == data and quick == data


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the blocks that were made."""
    found: list[int] = []

    def block(size_bytes: int) -> bytearray:
        found.append(size_bytes)
        return bytearray(size_bytes)

    monkeypatch.setattr(pipeline, "bytearray", block, raising=False)
    return found


def test_no_more_blocks_are_made_than_are_held_at_once(fd, data, made):
    taken = bytearray()
    pipeline.stream(fd, [], BLOCK_BYTES, here=taken.extend)
    assert (taken, made) == (data, [BLOCK_BYTES])  # who reads is the only one to hold one


def test_a_taker_that_is_slow_holds_eight_blocks_and_no_more(tmp_path, made):
    path = tmp_path / "long"
    path.write_bytes(bytes(100))
    with path.open("rb", buffering=0) as file:
        pipeline.stream(file.fileno(), [lambda block: time.sleep(0.005)], 1)
    assert len(made) <= 8


def test_what_a_taker_raises_is_raised_and_no_thread_stays(fd):
    before = threading.active_count()

    def refuse(_block: memoryview) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        pipeline.stream(fd, [refuse, len], BLOCK_BYTES)
    assert threading.active_count() == before


def test_what_the_progress_raises_is_raised_and_no_thread_stays(fd):
    before = threading.active_count()

    def stop(_size_bytes: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pipeline.stream(fd, [len], BLOCK_BYTES, stop)
    assert threading.active_count() == before


def test_who_gives_up_waits_for_no_block_that_is_still_queued(fd, monkeypatch):
    taken, is_given_up, end = [], threading.Event(), pipeline._Worker.end

    def slow(block: memoryview) -> None:
        taken.append(len(block))
        is_given_up.wait(LIMIT_S)

    def go_on_then_end(worker: pipeline._Worker) -> None:
        is_given_up.set()
        end(worker)

    def give_up_at_the_fifth(_size_bytes: int) -> None:
        if next(blocks) == 4:
            raise KeyboardInterrupt

    blocks = iter(range(9))
    monkeypatch.setattr(pipeline._Worker, "end", go_on_then_end)
    with pytest.raises(KeyboardInterrupt):
        pipeline.stream(fd, [slow], BLOCK_BYTES, give_up_at_the_fifth)
    assert taken in ([], [BLOCK_BYTES])
