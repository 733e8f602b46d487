from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.receipt import Accepted, CellReceipt, Finding
from boxcar.shared.paths import DurablePaths
from onbox.result import published

NOW = "2026-11-21T02:00:00.000Z"


@pytest.fixture
def tier(tmp_path: Path) -> DurablePaths:
    tier = DurablePaths(tmp_path, "r")
    tier.cell("c").mkdir(parents=True)
    return tier


def publish(tier: DurablePaths) -> None:
    tier.manifest("c").write_bytes(b"any manifest")


def write_receipt(tier: DurablePaths, *problems: str, of: str | None = None) -> None:
    made = CellReceipt(
        run="r",
        cell="c",
        attempt=1,
        manifest_sha256=of or manifest.sha256(tier.manifest("c")),
        checked_at=NOW,
        findings=(Finding("m.json", "json", problems),),
    )
    tier.receipt("c").write_bytes(codec.to_document(made))


def test_nothing_stands_before_the_manifest(tier):
    assert not published.stands(tier, "c")


def test_a_result_stands_before_and_after_it_was_found_good(tier):
    publish(tier)
    assert published.stands(tier, "c")
    write_receipt(tier)
    assert published.stands(tier, "c")


def test_a_result_that_was_found_bad_does_not_stand(tier):
    publish(tier)
    write_receipt(tier, "is not JSON")
    assert published.is_known_bad(tier, "c")
    assert not published.stands(tier, "c")


def test_a_receipt_of_another_result_condemns_nothing(tier):
    publish(tier)
    write_receipt(tier, "is not JSON", of="0" * 64)
    assert published.stands(tier, "c")


def test_a_receipt_that_is_damaged_decides_nothing(tier):
    publish(tier)
    tier.receipt("c").write_bytes(b"{")
    with pytest.raises(DamagedError, match=r"receipt\.json"):
        published.stands(tier, "c")


def test_a_result_is_verified_by_its_own_good_receipt_only(tier):
    assert not published.is_verified(tier, "c")
    publish(tier)
    assert not published.is_verified(tier, "c")
    write_receipt(tier, of="0" * 64)
    assert not published.is_verified(tier, "c")
    write_receipt(tier, "is not JSON")
    assert not published.is_verified(tier, "c")
    write_receipt(tier)
    assert published.is_verified(tier, "c")
    tier.receipt("c").write_bytes(b"{")
    assert not published.is_verified(tier, "c")


def accept(tier: DurablePaths, of: str | None = None, **others: str) -> None:
    sha256 = of or manifest.sha256(tier.manifest("c"))
    bound_to = {"run": "r", "cell": "c", "manifest_sha256": sha256} | others
    made = Accepted(**bound_to, at=NOW, unpickled=("m.pkl",), boxcar="0.1.0")
    tier.accepted_folder.mkdir(exist_ok=True)
    tier.accepted("c").write_bytes(codec.to_document(made))


def test_a_bad_result_that_the_laptop_has_proven_stands_and_is_verified(tier):
    publish(tier)
    write_receipt(tier, "would execute code")
    accept(tier)
    assert published.stands(tier, "c")
    assert published.is_verified(tier, "c")
    assert not published.is_known_bad(tier, "c")


def test_an_unchecked_result_that_the_laptop_has_proven_is_verified(tier):
    publish(tier)
    accept(tier)
    assert published.is_verified(tier, "c")


@pytest.mark.parametrize("other", [{"of": "0" * 64}, {"cell": "d"}, {"run": "s"}])
def test_what_was_proven_of_another_result_says_nothing(tier, other):
    publish(tier)
    write_receipt(tier, "would execute code")
    accept(tier, **other)
    assert published.is_known_bad(tier, "c")
    assert not published.is_verified(tier, "c")


def test_an_acceptance_that_is_damaged_is_doubt_and_never_success(tier):
    publish(tier)
    write_receipt(tier, "would execute code")
    accept(tier)
    tier.accepted("c").write_bytes(b"{")
    assert not published.is_verified(tier, "c")
    with pytest.raises(DamagedError, match=r"accepted/c\.json.*`verify`"):
        published.stands(tier, "c")
    write_receipt(tier)
    assert published.is_verified(tier, "c"), "its own receipt needs nobody else"
