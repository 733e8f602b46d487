from __future__ import annotations

from dataclasses import replace

import pytest

from boxcar.laptop.results.judge import CellFacts, Pulled, kept
from boxcar.shared.files.manifest import Difference, Manifest
from boxcar.shared.files.receipt import CellVerdict, Finding

SHA, AT = "1" * 64, "2026-11-22T11:00:00.000Z"
MANIFEST = Manifest(
    run="tiny", cell="a", queue="q1", box="box-a", release="r", attempt=1, task="t", cfg="a.yaml",
    epochs=1, started_at="", ended_at="", files=(),
)  # fmt: skip
FACTS = CellFacts("a", "q1", tier_sha256=SHA, pulled=Pulled(MANIFEST, SHA))
GOOD, OTHER = Finding("m.pkl", "pickle"), Finding("n.json", "json")
EARLIER = CellVerdict("a", "q1", SHA, findings=(GOOD, OTHER), unpickled={"m.pkl": AT})


def test_what_a_person_had_allowed_is_not_unpickled_again() -> None:
    assert kept(FACTS, EARLIER) == {"a/m.pkl": (GOOD, AT)}


@pytest.mark.parametrize(
    ("facts", "earlier"),
    [
        (FACTS, replace(EARLIER, manifest_sha256="2" * 64)),
        (FACTS, replace(EARLIER, unpickled={})),
        (FACTS, replace(EARLIER, findings=(replace(GOOD, problems=("cut off",)),))),
        (
            replace(FACTS, pulled=Pulled(MANIFEST, SHA, (Difference("m.pkl", "is cut"),))),
            EARLIER,
        ),
        (replace(FACTS, pulled=None), replace(EARLIER, manifest_sha256=None)),
    ],
)
def test_of_other_bytes_nothing_is_known(facts: CellFacts, earlier: CellVerdict) -> None:
    assert kept(facts, earlier) == {}
