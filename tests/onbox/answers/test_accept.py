from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec, receipt
from boxcar.shared.files.receipt import Accepted
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import accept, door

MANIFEST = b"a manifest"
MADE = Accepted(
    "tiny", "a", digest.of_bytes(MANIFEST), "2026-11-22T11:00:00.000Z", ("model.pkl",), "0.1.0"
)
NEW, KNOWN = run_asks.AcceptanceKept(is_new=True), run_asks.AcceptanceKept(is_new=False)


@pytest.fixture
def on_box(tmp_path: Path) -> RunOnBox:
    """The cell is published. The run was launched before there was a folder for this."""
    on_box = RunOnBox("tiny", str(tmp_path / "tier"), str(tmp_path / "data"))
    on_box.tier.cell("a").mkdir(parents=True)
    on_box.tier.manifest("a").write_bytes(MANIFEST)
    return on_box


def ask(on_box: RunOnBox, made: Accepted = MADE) -> run_asks.AcceptanceKept:
    return accept.answer(run_asks.Accept(made), on_box)


def test_what_is_proven_of_the_published_result_is_kept_for_the_agents(on_box):
    assert [ask(on_box), ask(on_box)] == [NEW, KNOWN]
    assert receipt.accepted_result(on_box.tier, "a") == MADE


def test_another_laptop_may_prove_it_again_and_what_is_damaged_is_written_anew(on_box):
    other = replace(MADE, at="2026-11-22T12:00:00.000Z", boxcar="0.2.0")
    assert [ask(on_box), ask(on_box, other)] == [NEW, NEW]
    assert receipt.accepted_result(on_box.tier, "a") == other
    on_box.tier.accepted("a").write_bytes(b"{")
    assert ask(on_box) == NEW
    assert receipt.accepted_result(on_box.tier, "a") == MADE


@pytest.mark.parametrize("published", [b"another manifest", None])
def test_what_was_published_again_or_never_is_not_proven_by_it(on_box, published):
    on_box.tier.manifest("a").unlink()
    if published is not None:
        on_box.tier.manifest("a").write_bytes(published)
    with pytest.raises(InputError, match="publish"):
        ask(on_box)
    assert not on_box.tier.accepted_folder.exists()


def test_what_was_proven_of_another_run_is_refused(on_box):
    with pytest.raises(InputError, match="other-run"):
        ask(on_box, replace(MADE, run="other-run"))


@pytest.mark.parametrize("is_folder", [True, False])
def test_nothing_is_written_behind_a_link(on_box, is_folder):
    elsewhere = on_box.tier.root / "elsewhere"
    elsewhere.mkdir()
    link = on_box.tier.accepted_folder if is_folder else on_box.tier.accepted("a")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    with pytest.raises(InputError, match="symbolic link"):
        ask(on_box)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("cell", ["../b", "", "a/b"])
def test_a_name_that_leads_elsewhere_is_refused(on_box, cell):
    words: dict[str, Any] = {"ask": "accept", "run": "tiny", "durable_dir": on_box.durable_dir}
    words |= {"data_dir": on_box.data_dir, "document": codec.encode(MADE) | {"cell": cell}}
    assert door.answer(json.dumps(words).encode())["error"]["kind"] == "InputError"
