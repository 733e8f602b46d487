"""Where `up` and `launch` lay a deadline: on boxes in whose question it was, and on no others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boxcar.laptop.project.profiles.profile import load_profile
from boxcar.laptop.providers.rented_record import RentedBox, write_record
from boxcar.laptop.verbs.box_deadline import lay_deadlines
from boxcar.shared.errors import TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.wire.box_asks import DeadlineKept, KeepDeadline

SAMPLE = Path(__file__).parents[2] / "data" / "v1" / "laptop" / "rented.json"
BOXES = ["box-a", "box-b"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = SimpleNamespace(profile=load_profile("vastai", tmp_path), root=tmp_path)
    asked: list[tuple[str, KeepDeadline]] = []

    def ask(box: str, question: KeepDeadline) -> DeadlineKept:
        asked.append((box, question))
        if box == "box-b":
            raise TemporaryError("box-b does not answer")
        return DeadlineKept()

    return SimpleNamespace(project=project, ask=ask, asked=asked)


def rented(site: SimpleNamespace, **changes: Any) -> None:
    record = codec.from_document(RentedBox, SAMPLE.read_bytes(), str(SAMPLE))
    about = {"job": str(site.project.root / "job.yaml"), "quiet_s": 21600, "most_s": 604800}
    known = {"box": "box-a", "provider": "vastai", "up_at": "2026-11-29T01:05:44.300Z"}
    write_record(RentedBox(**{**vars(record), **known, **about, **changes}))


def test_it_is_laid_as_the_record_has_it(site: SimpleNamespace) -> None:
    rented(site)
    lay_deadlines(site, BOXES)  # type: ignore[arg-type]
    assert site.asked == [("box-a", KeepDeadline("vast", 21600, 604800))]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"quiet_s": 0, "most_s": 0}, id="an older up, whose question had none"),
        pytest.param({"up_at": None}, id="not up yet"),
        pytest.param({"replaced_at": "2026-11-29T02:00:00Z"}, id="another took its place"),
        pytest.param({"end_asked_at": "2026-11-29T02:00:00Z"}, id="its end was asked for"),
        pytest.param({"provider": "runpod"}, id="of another provider"),
        pytest.param({"box": "box-c"}, id="not of this run"),
        pytest.param({"job": "/elsewhere/job.yaml"}, id="of another project"),
    ],
)
def test_on_no_other_box(site: SimpleNamespace, changes: dict[str, Any]) -> None:
    rented(site, **changes)
    lay_deadlines(site, BOXES)  # type: ignore[arg-type]
    assert site.asked == []


def test_a_box_that_cannot_have_it_is_said_and_holds_up_no_other(
    site: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    rented(site, box="box-b", nonce="b" * 12)
    rented(site)
    lay_deadlines(site, BOXES)  # type: ignore[arg-type]
    assert sorted(box for box, _question in site.asked) == BOXES
    said = capsys.readouterr().err
    assert "box-b: no deadline lies on it, and nothing stops it by itself" in said
    assert "box-a" not in said
