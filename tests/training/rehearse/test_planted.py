"""Each part of the state left out of a real training: it is seen, and named where it shows."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from boxcar.training import data_order
from boxcar.training.rehearse import compare, curve, verdict
from boxcar.training.rehearse.verdict import Evidence, Killed, Verdict

SCRIPT = Path(__file__).with_name("planted.py")
KILLED_AT = 15
# What is not in the file differs in nothing that could be read there.
UNSEEN = {("optimizer", "unsaved"), ("scheduler", "unsaved"), ("ema", "unsaved")}


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("planted", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


planted = load_script()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    planted.torch.set_num_threads(1)


class Runs:
    """The script run to its end in a folder, and in another one with a death in between."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.monkeypatch = root, monkeypatch
        self.lengths: list[int] = []

    def once(self, name: str, start: str, **options: object) -> None:
        drawn, out = self.root / "order" / start, self.root / name
        drawn.mkdir(parents=True)
        out.mkdir(exist_ok=True)
        self.monkeypatch.setenv(data_order.FOLDER, str(drawn))
        with contextlib.suppress(planted.Died):
            planted.train(out, **options)

    def lines(self, name: str) -> list[dict[str, object]]:
        text = (self.root / name / "progress.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def verdict(self, without: str, how: str) -> Verdict:
        self.once("whole", "whole", without=without, how=how)
        self.once("killed", "first", without=without, how=how, die_at=KILLED_AT)
        self.once("killed", "second", without=without, how=how)
        lines = self.lines("killed")
        starts = [lines[:KILLED_AT], lines[KILLED_AT:]]
        step = starts[1][0]["step"]
        drawn = {n: curve.read_order(self.root / "order" / n) for n in ("whole", "first", "second")}
        files = {}
        for name in ("latest.pth", "best.pth"):
            one, other = (
                compare.load_left(self.root / run / name)[0] for run in ("whole", "killed")
            )
            files[name] = compare.compare(one, other, 1e-6)
        return verdict.decide(
            Evidence(
                files=files,
                curve=curve.compare_curves(self.lines("whole"), starts, 1e-6),
                order=curve.compare_orders(drawn["whole"], [drawn["first"], drawn["second"]]),
                kills=(Killed(KILLED_AT, True, step, is_restarted=step == 1),),
                resume="latest.pth",
            )
        )


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


def test_a_full_resume_is_bit_equal(runs: Runs) -> None:
    assert runs.verdict("", "") == Verdict(verdict.BIT_EQUAL)


@pytest.mark.parametrize("how", ["unrestored", "unsaved"])
@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("model", ()),
        ("optimizer", ("optimizer",)),
        ("scheduler", ("scheduler",)),
        ("ema", ("ema",)),
        ("rng", ()),
        ("loader", ("loader position",)),
        ("step", ("step counter",)),
    ],
)
def test_a_part_that_was_left_out_differs_and_no_other_is_named(
    runs: Runs, part: str, named: tuple[str, ...], how: str
) -> None:
    found = runs.verdict(part, how)
    assert found.word == verdict.DIFFERS
    named = () if (part, how) in UNSEEN else named
    assert tuple(suspect.state for suspect in found.suspects) == named, found
