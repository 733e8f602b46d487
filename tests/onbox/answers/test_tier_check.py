from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.errors import InputError
from boxcar.shared.wire import envelope
from boxcar.shared.wire.box_asks import TierProbe, TierProbed
from onbox.answers import tier_check

TOKEN = "0123456789abcdef"
Ask = Callable[..., TierProbed]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def ask(step: str, durable_dir: Path = tmp_path, **words: Any) -> TierProbed:
        places = {"run": "tiny", "durable_dir": str(durable_dir), "data_dir": str(tmp_path)}
        what = {"step": step, "token": TOKEN, "name": "box-x", "names": []}
        data = json.dumps({"ask": "tier_probe", **places, **what, **words}).encode()
        question, run = envelope.read_question(data)
        assert isinstance(question, TierProbe)
        return tier_check.answer(question, run)

    return ask


def test_what_one_box_wrote_another_reads_byte_for_byte(ask):
    written = ask("write", name="box-a").sha256
    assert ask("read", names=["box-a"]) == TierProbed(files={"box-a": written})


def test_two_boxes_and_two_probes_never_write_the_same(ask):
    told = [
        ask("write", name=name, token=token).sha256
        for name in ("box-a", "box-b")
        for token in (TOKEN, "f" * 16)
    ]
    assert len(set(told)) == 4


def test_what_was_changed_on_the_way_is_read_as_another(ask, tmp_path):
    written = ask("write", name="box-a").sha256
    path = next(tmp_path.rglob("from-box-a"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert ask("read", names=["box-a"]).files["box-a"] not in (written, None)


def test_a_tier_of_ones_own_has_nothing_from_the_others(ask, tmp_path):
    ask("write", name="box-a", durable_dir=tmp_path / "one")
    told = ask("read", names=["box-a"], durable_dir=tmp_path / "other")
    assert told == TierProbed(files={"box-a": None})


def test_of_all_who_claim_at_once_one_wins_and_all_read_its_name(ask):
    ask("write", name="box-0")
    names = [f"box-{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda name: ask("claim", name=name), names))
    winners = [name for name, said in zip(names, told, strict=True) if said.has_won]
    assert len(winners) == 1
    assert ask("owner") == TierProbed(owner=winners[0])


def test_cleaning_removes_all_of_it_and_nothing_of_the_runs(ask, tmp_path):
    ask("write", name="box-a")
    assert ask("clean") == TierProbed()
    assert not (tmp_path / "boxcar/tiny").exists()
    ask("write", name="box-a")
    (tmp_path / "boxcar/tiny/queues").mkdir()
    ask("clean")
    ask("clean")
    assert [path.name for path in (tmp_path / "boxcar/tiny").iterdir()] == ["queues"]


def test_a_tier_that_cannot_be_written_is_a_problem_in_words(ask, tmp_path):
    (tmp_path / "boxcar").write_text("")
    assert "boxcar" in ask("write", name="box-a").problem


@pytest.mark.parametrize(
    "words",
    [
        {"step": "write", "name": "../box"},
        {"step": "write", "name": ""},
        {"step": "read", "names": ["a", "/etc/passwd"]},
        {"step": "read", "names": [3]},
        {"step": "claim", "name": "a/b"},
        {"step": "remove"},
        {"step": "clean", "token": "../../.."},
        {"step": "clean", "token": ""},
        {"step": "clean", "token": "0123"},
        {"step": "clean", "run": "../other"},
    ],
)
def test_what_could_leave_the_probes_folder_is_refused(ask, tmp_path, words):
    with pytest.raises(InputError):
        ask(**words)
    assert list(tmp_path.iterdir()) == []
