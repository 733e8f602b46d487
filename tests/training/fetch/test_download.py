"""One file: cut, resumed, changed under way, damaged; it gets its name whole or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import odd_sources
import pytest

from boxcar.shared.errors import DamagedError, InputError, NoRoomError, TemporaryError
from boxcar.training.fetch import download, records, source
from boxcar.training.fetch.download import Download, ProgressLine

odd_sources.register()
CONTENT = bytes(range(200)) * 5
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def small_and_hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PIECE_BYTES", 256)
    monkeypatch.setattr(records, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(download, "RETRY_AFTER_S", (0.0, 0.0))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a.h5").write_bytes(CONTENT)
    return tmp_path / "store"


def begin(store: Path, sha256: str | None = None, **changes: Any) -> Download:
    found = source.look_at_source(f"odd://{store}/a.h5")
    assert found
    found = dataclasses.replace(found, **changes)
    return Download(found, store.parent / "a.h5", sha256, ProgressLine(0, 1), threading.Event())


def bring(one: Download) -> records.Receipt:
    for job in one.jobs():
        job()
    receipt = records.find_receipt(one.target, by_content=False)
    assert receipt and one.target.read_bytes() == CONTENT
    return receipt


def test_a_file_comes_in_pieces_with_its_receipt(store: Path) -> None:
    receipt = bring(begin(store))
    assert (receipt.sha256, receipt.checked_by) == (SHA256, "size")
    assert len(odd_sources.reads(store)) == 4


def test_a_file_without_a_byte_comes_too(store: Path) -> None:
    (store / "a.h5").write_bytes(b"")
    one = begin(store)
    for job in one.jobs():
        job()
    assert one.target.read_bytes() == b"" and records.find_receipt(one.target, by_content=False)


@pytest.mark.parametrize("how", [{"fail": 2}, {"short": 2}, {"fail": 2, "error": "RuntimeError"}])
def test_a_cut_or_short_read_is_asked_again(store: Path, how: dict[str, Any]) -> None:
    odd_sources.behave(store, **how)
    bring(begin(store))
    assert len(odd_sources.reads(store)) == 6


def test_a_source_that_stays_away_is_said_without_secrets_and_the_rest_is_not_fetched_again(
    store: Path,
) -> None:
    one = begin(store)
    jobs = one.jobs()
    jobs[2]()
    odd_sources.behave(store, fail=99)
    with pytest.raises(TemporaryError, match="could not be read to its end") as raised:
        jobs[0]()
    assert "hunter2" not in str(raised.value) and not one.target.exists()
    odd_sources.behave(store)
    bring(begin(store))
    assert [line.split()[1] for line in odd_sources.reads(store)] == ["0", "256", "768"]


def test_a_source_that_changed_since_the_cut_starts_anew(store: Path) -> None:
    begin(store).jobs()[1]()
    (store / "a.h5").unlink()
    (store / "a.h5").write_bytes(CONTENT)  # the same bytes; nobody can know that before
    odd_sources.behave(store)
    bring(begin(store))
    assert len(odd_sources.reads(store)) == 4


def test_a_source_that_changes_under_way_never_gets_a_name(store: Path) -> None:
    one = begin(store)
    jobs = one.jobs()
    for job in jobs[:-1]:
        job()
    (store / "a.h5").write_bytes(CONTENT[::-1])
    os.utime(store / "a.h5", ns=(1, 1))
    with pytest.raises(TemporaryError, match="changed while it was fetched"):
        jobs[-1]()
    assert not one.target.exists() and not one.part.path.exists()


def test_without_a_version_two_halves_are_not_joined_unless_a_digest_proves_them(
    store: Path,
) -> None:
    begin(store, version="").jobs()[0]()
    assert len(begin(store, version="", sha256=SHA256).jobs()) == 3
    begin(store, version="", sha256=SHA256).jobs()[0]()
    assert len(begin(store, version="").jobs()) == 4


@pytest.mark.parametrize(
    ("sha256", "checksum", "said"),
    [
        ("0" * 64, None, f"sha256 {SHA256} came, expected {'0' * 64}"),
        (None, ("md5", "0" * 32), "md5 .* came, expected 0.*put the sha256"),
    ],
)
def test_what_is_not_the_file_is_not_kept(
    store: Path, sha256: str | None, checksum: tuple[str, str] | None, said: str
) -> None:
    one = begin(store, sha256=sha256, checksum=checksum)
    with pytest.raises(DamagedError, match=said):
        bring(one)
    assert [path.name for path in store.parent.iterdir()] == ["store"]


def test_a_piece_that_the_disk_lost_is_seen_before_the_file_has_its_name(store: Path) -> None:
    one = begin(store, sha256=SHA256)
    jobs = one.jobs()
    for job in jobs[:-1]:
        job()
    one.part.write(b"\0" * 100, 300)
    with pytest.raises(DamagedError, match="nothing was kept"):
        jobs[-1]()
    assert not one.target.exists()


@pytest.mark.parametrize(
    ("sha256", "checksum", "checked_by"),
    [
        (SHA256, ("md5", "0" * 32), "sha256"),
        (None, ("md5", hashlib.md5(CONTENT).hexdigest()), "md5"),
    ],
)
def test_the_receipt_says_what_proved_it(
    store: Path, sha256: str | None, checksum: tuple[str, str], checked_by: str
) -> None:
    assert bring(begin(store, sha256=sha256, checksum=checksum)).checked_by == checked_by


def test_a_source_without_ranges_comes_in_one_go_over_what_was_left(store: Path) -> None:
    begin(store).jobs()[1]()
    bring(begin(store, has_ranges=False))
    assert not records.part_record_of(store.parent / "a.h5").exists()


def test_a_source_without_a_size_needs_a_digest(store: Path) -> None:
    with pytest.raises(InputError, match=r"does not say its size; give the sha256 of a\.h5"):
        begin(store, size_bytes=None, has_ranges=False).jobs()


def test_a_stream_that_ends_early_is_no_file(store: Path) -> None:
    one = begin(store, has_ranges=False, size_bytes=len(CONTENT) + 1)
    with pytest.raises(TemporaryError, match="1000 bytes came of 1001"):
        bring(one)
    assert not one.target.exists()


def test_a_disk_that_gets_full_is_not_asked_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def full(data: bytes, start: int) -> None:
        tries.append(start)
        raise NoRoomError("full")

    one = begin(store, has_ranges=False)
    monkeypatch.setattr(one.part, "write", full)
    with pytest.raises(NoRoomError, match="full"):
        bring(one)
    assert tries == [0]


def test_who_is_told_to_stop_waits_for_no_source(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "RETRY_AFTER_S", (600.0,))
    odd_sources.behave(store, fail=99)
    one = begin(store)
    one._stop.set()
    with pytest.raises(TemporaryError):
        one.jobs()[0]()
    assert len(odd_sources.reads(store)) == 1
