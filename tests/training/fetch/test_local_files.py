"""What lies here already is taken only where a receipt or a digest proves it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from boxcar.shared.errors import InputError
from boxcar.training.fetch import data_spec, fetch, lookup, records

CONTENT = b"ten bytes!"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def spec(tmp_path: Path, store: str = "store", **more: object) -> data_spec.Spec:
    document = {
        "to": str(tmp_path / "data"),
        "tasks": ["a"],
        "splits": {"train": "required"},
        "patterns": [f"file://{tmp_path}/{store}/{{task}}_{{split}}.h5"],
    }
    return data_spec.parse(document | more, "spec")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Fetched, and then its source gone: whoever asks it fails."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a_train.h5").write_bytes(CONTENT)
    path = fetch(spec(tmp_path))["a", "train"]
    (tmp_path / "store" / "a_train.h5").unlink()
    return path


def test_what_was_fetched_is_found_and_its_source_is_not_asked(tmp_path: Path, file: Path) -> None:
    assert fetch(spec(tmp_path)) == {("a", "train"): file}


@pytest.mark.parametrize(
    "change", [{"store": "other"}, {"sha256": {"a_train.h5": "0" * 64}}], ids=["place", "digest"]
)
def test_a_spec_that_wants_another_file_does_not_take_this_one(
    tmp_path: Path, file: Path, change: dict[str, object]
) -> None:
    [wants] = spec(tmp_path, **change).files
    assert lookup.find_here(file.parent, wants, by_content=True) is None


def test_a_touched_file_is_read_once_and_then_known(tmp_path: Path, file: Path) -> None:
    os.utime(file, ns=(1, 1))
    [wants] = spec(tmp_path).files
    assert lookup.find_here(file.parent, wants, by_content=False) is None
    assert fetch(spec(tmp_path))
    assert lookup.find_here(file.parent, wants, by_content=False)


def test_a_file_brought_by_hand_is_taken_where_the_spec_has_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "data" / "a_train.h5"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    assert fetch(spec(tmp_path, sha256={"a_train.h5": SHA256})) == {("a", "train"): path}
    receipt = records.find_receipt(path, by_content=False)
    assert receipt and (receipt.sha256, receipt.checked_by) == (SHA256, "sha256")


@pytest.mark.parametrize("by", ["hand", "change"])
def test_a_file_that_was_not_fetched_is_never_overwritten(tmp_path: Path, by: str) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a_train.h5").write_bytes(CONTENT)
    path = tmp_path / "data" / "a_train.h5"
    if by == "change":
        fetch(spec(tmp_path))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"TEN bytes!")
    with pytest.raises(InputError, match=r"a_train\.h5: exists but differs from the fetched file"):
        fetch(spec(tmp_path))
    assert path.read_bytes() == b"TEN bytes!"


def test_what_was_fetched_is_replaced_where_the_spec_says_another_place(
    tmp_path: Path, file: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a_train.h5").write_bytes(b"another")
    assert fetch(spec(tmp_path, store="other"))["a", "train"].read_bytes() == b"another"
