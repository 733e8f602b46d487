from __future__ import annotations

from dataclasses import replace

import pytest

from boxcar.laptop.results.judge import CellFacts, Pulled, how_checked, missing, vouched_by_receipt
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import BYTES_ONLY, SAFE, TRUSTED, Artifact
from boxcar.shared.files.receipt import CellReceipt, CellVerdict, Finding, RunReceipt

SHA = "1" * 64
MADE = Manifest(
    run="tiny", cell="a", queue="q1", box="box-a", release="r", attempt=2, task="t", cfg="a.yaml",
    epochs=1, started_at="", ended_at="", files=(FileRecord("last.ckpt", 9, "2" * 64),),
)  # fmt: skip
LISTED = Finding("last.ckpt", "torch", facts={"globals": ["src.Net"]}, load=TRUSTED)
LOADED = Finding("last.ckpt", "torch", facts={"tensors": 3}, load=TRUSTED)
RECEIPT = CellReceipt("tiny", "a", 2, SHA, "then", (LOADED,))
NOT_LOADED = (
    "can only be loaded on box-a (load: trusted), and that box's receipt for exactly these bytes "
    "is not here"
)


def test_what_its_box_has_loaded_is_told_by_the_boxs_word() -> None:
    (found,) = vouched_by_receipt([LISTED], MADE, SHA, RECEIPT)
    facts = {"tensors": 3, "globals": ["src.Net"], "loaded_on": "box-a"}
    assert found == replace(LISTED, facts=facts)
    assert how_checked([found]) == "1 trusted (loaded on box-a)"
    assert vouched_by_receipt([found], MADE, SHA, RECEIPT) == [found]


@pytest.mark.parametrize(
    "receipt",
    [
        None,
        replace(RECEIPT, manifest_sha256="3" * 64),
        replace(RECEIPT, cell="b"),
        replace(RECEIPT, run="other"),
        replace(RECEIPT, findings=()),
        replace(RECEIPT, findings=(replace(LOADED, path="best.pth"),)),
        replace(RECEIPT, findings=(replace(LOADED, load=BYTES_ONLY),)),
        replace(RECEIPT, findings=(replace(LOADED, load=SAFE),)),
    ],
    ids=["none", "of other bytes", "of another cell", "of another run", "of nothing",
         "of another file", "not looked into", "loaded safely"],
)  # fmt: skip
def test_nothing_but_the_boxs_receipt_for_these_bytes_vouches(receipt: CellReceipt | None) -> None:
    (found,) = vouched_by_receipt([LISTED], MADE, SHA, receipt)
    assert found.problems == (NOT_LOADED,)
    facts = CellFacts("a", "q1", tier_sha256=SHA, pulled=Pulled(MADE, SHA, (), receipt))
    wanted = [Artifact("last.ckpt", load=TRUSTED)]
    # The gate asks with what the receipt kept, also of a time when the box had vouched for it.
    for kept in (LISTED, found, vouched_by_receipt([LISTED], MADE, SHA, RECEIPT)[0]):
        (row,) = missing(facts, [kept], artifacts=wanted, is_tier_there=True)
        assert row.what == f"last.ckpt: {NOT_LOADED}"
        assert str(row.command).startswith("invoke pull (once its box has loaded it), or invoke l")


def test_what_is_bad_on_its_box_is_bad_here_in_the_same_words() -> None:
    bad = replace(LOADED, problems=("needs the module 'src'",))
    facts = CellFacts(
        "a", "q1", SHA, pulled=Pulled(MADE, SHA, (), replace(RECEIPT, findings=(bad,)))
    )
    wanted = [Artifact("last.ckpt", load=TRUSTED)]
    (row,) = missing(facts, [LISTED], artifacts=wanted, is_tier_there=True)
    assert (row.what, str(row.command)) == (
        "last.ckpt: needs the module 'src'", "invoke explain --cell a",
    )  # fmt: skip


def test_what_a_person_let_load_here_needs_no_word_of_a_box() -> None:
    assert vouched_by_receipt([LOADED], MADE, SHA, None) == [LOADED]


def test_a_file_that_is_loaded_otherwise_by_now_is_verified_again() -> None:
    facts = CellFacts("a", "q1", SHA, pulled=Pulled(MADE, SHA, (), RECEIPT))
    skipped = Finding("last.ckpt", "bytes", load=BYTES_ONLY)
    wanted = [Artifact("last.ckpt", load=TRUSTED)]
    (row,) = missing(facts, [skipped], artifacts=wanted, is_tier_there=True)
    assert (row.what, str(row.command)) == (
        "last.ckpt was checked with `load: bytes`, but the job now says `load: trusted`",
        "invoke verify",
    )  # fmt: skip


HASHED_HERE = Finding("last.ckpt", "unchecked", facts={"hashed_here": True})


def test_what_was_only_hashed_here_is_loaded_by_the_word_of_its_box() -> None:
    safely = replace(RECEIPT, findings=(replace(LOADED, load=SAFE),))
    (found,) = vouched_by_receipt([HASHED_HERE], MADE, SHA, safely)
    assert found.is_good and found.kind == "torch"
    assert how_checked([found]) == "1 hashed (loaded on box-a)"
    facts = CellFacts("a", "q1", tier_sha256=SHA, pulled=Pulled(MADE, SHA, (), safely))
    assert missing(facts, [found], artifacts=[Artifact("last.ckpt")], is_tier_there=True) == ()


@pytest.mark.parametrize(
    "receipt",
    [
        None,
        replace(RECEIPT, manifest_sha256="3" * 64, findings=(replace(LOADED, load=SAFE),)),
        RECEIPT,
    ],
    ids=["none", "of other bytes", "loaded as trusted"],
)
def test_without_that_word_a_hashed_file_is_missing(receipt: CellReceipt | None) -> None:
    (found,) = vouched_by_receipt([HASHED_HERE], MADE, SHA, receipt)
    assert found.problems == (NOT_LOADED.replace("load: trusted", "no torch on this machine"),)


def test_what_its_box_called_bad_is_bad_here() -> None:
    bad = replace(LOADED, load=SAFE, problems=("holds NaN",))
    (found,) = vouched_by_receipt([HASHED_HERE], MADE, SHA, replace(RECEIPT, findings=(bad,)))
    assert found.problems == ("holds NaN",)


def test_a_receipt_of_hashed_files_has_another_digest() -> None:
    verdicts = [
        CellVerdict("a", "q1", SHA, findings=(finding,))
        for finding in (replace(LOADED, load=SAFE), HASHED_HERE)
    ]
    assert len({RunReceipt("tiny", "now", (verdict,)).digest for verdict in verdicts}) == 2
