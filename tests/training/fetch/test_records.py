"""A receipt fits the file that was fetched and no other; a crash leaves no file without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec
from boxcar.training.fetch import records
from boxcar.training.fetch.records import PartRecord, Receipt


def arrived(target: Path, content: bytes) -> Receipt:
    """NAME.part with this content, and the receipt that it would get."""
    part = records.part_of(target)
    part.write_bytes(content)
    stat = part.stat()
    return Receipt(
        "file:///x",
        "place",
        stat.st_size,
        stat.st_mtime_ns,
        digest.of_bytes(content),
        "size",
        "",
        "",
    )


def test_what_was_given_its_name_has_its_receipt(tmp_path: Path) -> None:
    target = tmp_path / "a.h5"
    receipt = arrived(target, b"abc")
    records.give_name(target, receipt)
    assert records.find_receipt(target, by_content=False) == receipt
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.h5.receipt.json", "a.h5"]


def test_a_crash_after_the_rename_leaves_a_file_with_its_receipt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.h5"
    records.give_name(target, arrived(target, b"old"))
    receipt = arrived(target, b"new one")

    def dies(folder: Path) -> None:
        if target.read_bytes() == b"new one":
            raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "sync_folder", dies)
    with pytest.raises(KeyboardInterrupt):
        records.give_name(target, receipt)
    assert records.find_receipt(target, by_content=False) == receipt


def test_a_crash_before_the_rename_leaves_the_former_file_with_its_receipt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.h5"
    former = arrived(target, b"old")
    records.give_name(target, former)
    receipt = arrived(target, b"new one")
    atomic.write_whole(records.next_receipt_of(target), codec.to_document(receipt))
    assert records.find_receipt(target, by_content=False) == former


def test_a_copy_with_another_time_is_known_by_its_content_alone(tmp_path: Path) -> None:
    target = tmp_path / "a.h5"
    receipt = arrived(target, b"abc")
    records.give_name(target, receipt)
    os.utime(target, ns=(1, 1))
    assert records.find_receipt(target, by_content=False) is None
    assert records.find_receipt(target, by_content=True) == receipt
    target.write_bytes(b"abd")
    assert records.find_receipt(target, by_content=True) is None


def test_a_file_without_receipt_has_none_and_a_damaged_one_is_said(tmp_path: Path) -> None:
    target = tmp_path / "a.h5"
    assert records.find_receipt(target, by_content=True) is None
    target.write_bytes(b"abc")
    assert records.find_receipt(target, by_content=True) is None
    records.receipt_of(target).write_bytes(b"{")
    with pytest.raises(DamagedError, match=r"a\.h5\.receipt\.json"):
        records.find_receipt(target, by_content=False)


def test_a_damaged_record_of_a_part_is_no_record(tmp_path: Path) -> None:
    target = tmp_path / "a.h5"
    assert records.read_part(target) is None
    record = PartRecord("s", 16, (0, 2))
    records.part_record_of(target).write_bytes(codec.to_document(record))
    assert records.read_part(target) == record
    records.part_record_of(target).write_bytes(b"{}")
    assert records.read_part(target) is None
