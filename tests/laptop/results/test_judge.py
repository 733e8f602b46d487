from __future__ import annotations

from dataclasses import replace

import pytest

from boxcar.laptop.results.judge import CellFacts, Pulled, judge_cell, missing
from boxcar.laptop.run.roster import Missing
from boxcar.shared.files.manifest import Difference, FileRecord, Manifest
from boxcar.shared.files.plan import Artifact
from boxcar.shared.files.receipt import Finding
from boxcar.shared.process.load_child import UNCHECKED

SHA, OTHER = "1" * 64, "2" * 64
FILES = ("best.pth", "shards/0.pt", "shards/deep/1.pt", "shards.json")
MANIFEST = Manifest(
    run="tiny", cell="a", queue="q1", box="box-a", release="r", attempt=1, task="t", cfg="a.yaml",
    epochs=1, started_at="", ended_at="", files=tuple(FileRecord(f, 1, OTHER) for f in FILES),
)  # fmt: skip
WHOLE = CellFacts("a", "q1", tier_sha256=SHA, pulled=Pulled(MANIFEST, SHA))
LOADED = (Finding("best.pth", "torch"),)


def _missing(facts: CellFacts, *, is_tier_there: bool = True) -> tuple[Missing, ...]:
    return missing(facts, LOADED, artifacts=[Artifact("best.pth")], is_tier_there=is_tier_there)


def test_a_cell_that_is_here_whole_and_loaded_lacks_nothing() -> None:
    assert _missing(WHOLE) == ()


@pytest.mark.parametrize(
    ("facts", "command"),
    [
        (CellFacts("a", "q1"), "invoke launch"),
        (CellFacts("a", "q1", is_at_work=True), "invoke watch"),
        (CellFacts("a", "q1", has_failed=True, is_at_work=True), "invoke explain --cell a"),
        (CellFacts("a", "q1", tier_sha256=SHA), "invoke pull"),
        (replace(WHOLE, tier_sha256=OTHER), "invoke pull"),
        (replace(WHOLE, tier_sha256=None), "invoke explain --cell a"),
        (CellFacts("a", "q1", damage="its manifest is gone"), "invoke repair"),
        (CellFacts("a", "q1", tier_sha256=OTHER, damage="it is damaged"), "invoke repair"),
        (replace(WHOLE, tier_sha256=None, damage="its manifest is gone"), "invoke repair"),
        (replace(WHOLE, damage="it is not the one that the journal names"), "invoke repair"),
        (replace(WHOLE, problem="a symbolic link"), "invoke pull"),
        (
            replace(WHOLE, pulled=Pulled(MANIFEST, SHA, (Difference("best.pth", "is missing"),))),
            "invoke pull",
        ),
    ],
)
def test_whatever_it_lacks_has_a_command(facts: CellFacts, command: str) -> None:
    assert [(row.cell, str(row.command)) for row in _missing(facts)] == [("a", command)]


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (CellFacts("a", "q1"), "missing"),
        (CellFacts("a", "q1", tier_sha256=SHA), "missing"),
        (replace(WHOLE, tier_sha256=OTHER), "missing"),  # what was published again is not here
        (WHOLE, "bad"),
        (CellFacts("a", "q1", damage="its manifest is gone"), "damaged"),
        (replace(WHOLE, tier_damage="the manifest was damaged since"), "damaged"),
        (replace(WHOLE, problem="a symbolic link"), "damaged"),
        (
            replace(WHOLE, pulled=Pulled(MANIFEST, SHA, (Difference("best.pth", "is missing"),))),
            "damaged",
        ),
    ],
)
def test_what_is_the_matter_is_told_in_a_word(facts: CellFacts, word: str) -> None:
    assert facts.lack == word


@pytest.mark.parametrize(
    ("kind", "command"), [("torch", "invoke explain --cell a"), (UNCHECKED, "invoke verify")]
)
def test_what_could_not_be_checked_is_verified_again(kind: str, command: str) -> None:
    findings = (Finding("best.pth", kind, ("a problem",)),)
    rows = missing(WHOLE, findings, artifacts=[Artifact("best.pth")], is_tier_there=True)
    assert [(row.what, str(row.command)) for row in rows] == [("best.pth: a problem", command)]


def test_every_file_that_differs_is_named() -> None:
    differences = tuple(Difference(name, "is missing") for name in FILES)
    rows = _missing(replace(WHOLE, pulled=Pulled(MANIFEST, SHA, differences)))
    assert [row.what for row in rows] == [f"{name} is missing" for name in FILES]


def test_without_a_tier_the_copy_is_judged_by_itself() -> None:
    assert _missing(replace(WHOLE, tier_sha256=None), is_tier_there=False) == ()


def test_an_empty_file_has_to_be_loaded_only_where_it_is_the_artifact() -> None:
    empty = replace(MANIFEST, files=(FileRecord("art/_SUCCESS", 0, OTHER), FileRecord("x", 0, "")))
    rows = missing(
        replace(WHOLE, pulled=Pulled(empty, SHA)),
        (),
        artifacts=[Artifact("art"), Artifact("x")],
        is_tier_there=True,
    )
    assert [row.what for row in rows] == ["art contains only empty files", "x was not loaded"]


def test_every_file_of_an_artifact_has_to_be_loaded() -> None:
    rows = missing(
        WHOLE, LOADED, artifacts=[Artifact("best.pth"), Artifact("shards")], is_tier_there=True
    )
    assert [row.what for row in rows] == [
        "shards/0.pt was not loaded",
        "shards/deep/1.pt was not loaded",
    ]


def test_each_problem_of_a_file_is_named() -> None:
    bad = Finding("best.pth", "torch", ("a holds NaN", "b holds Inf"))
    rows = missing(WHOLE, [bad], artifacts=[Artifact("best.pth")], is_tier_there=True)
    assert [row.what for row in rows] == ["best.pth: a holds NaN", "best.pth: b holds Inf"]


def test_what_does_not_hash_right_is_not_judged_by_its_load() -> None:
    damaged = replace(WHOLE, pulled=Pulled(MANIFEST, SHA, (Difference("best.pth", "differs"),)))
    rows = missing(damaged, [], artifacts=[Artifact("best.pth")], is_tier_there=True)
    assert [row.what for row in rows] == ["best.pth differs"]


def test_a_cell_that_lacks_nothing_is_never_abandoned() -> None:
    assert judge_cell(WHOLE, (), LOADED, "it diverged").because is None
    lost = CellFacts("a", "q1")
    verdict = judge_cell(lost, _missing(lost), (), "it diverged")
    assert (verdict.because, verdict.missing) == ("it diverged", ("is not published",))
    assert verdict.is_settled and not judge_cell(lost, _missing(lost), (), None).is_settled
