"""A training that only its caller can end is seen in its source, and no other is."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from boxcar.laptop.habits import endless, script, worth
from boxcar.laptop.habits.endless import Endless

PARSER = "import argparse, math\np = argparse.ArgumentParser()\n"


def found(
    tmp_path: Path, source: str, given: dict[str, Any] | None = None, *, flag: str = ""
) -> Endless | None:
    head = f"{PARSER}p.add_argument({flag})\nargs = p.parse_args()\n" if flag else ""
    (tmp_path / "train.py").write_text(head + textwrap.dedent(source))
    one = script.read(tmp_path, tmp_path / "train.py")
    assert one is not None
    return endless.of(tmp_path, one, given or {})


def loop(head: str, way_out: str) -> str:
    return f"{head}\n    loss.backward()\n    {way_out}\n"


@pytest.mark.parametrize(
    ("flag", "head", "way_out"),
    [
        ("'--max-steps', default=-1", "while True:", "if args.max_steps >= 0 and n > 3: break"),
        ("'--max-steps', default=0", "while 1:", "if args.max_steps and n > 3: break"),
        (
            "'--epochs', default=None",
            "for e in itertools.count():",
            "if args.epochs is not None and e >= args.epochs: return",
        ),
        ("'--steps', default=-1", "while True:", "if n == args.steps: sys.exit()"),
        ("'--epochs', default=0", "while args.epochs <= 0 or e < args.epochs:", "e += 1"),
        ("'--iters', default=-1", "while n != args.iters:", "n += 1"),
        (
            "'--steps', default=-1",
            "most = args.steps if args.steps > 0 else math.inf\nwhile n < most:",
            "n += 1",
        ),
    ],
)
def test_a_loop_that_its_flag_leaves_open_is_told_with_the_flag(
    tmp_path: Path, flag: str, head: str, way_out: str
) -> None:
    seen = found(tmp_path, loop(head, way_out), flag=flag)
    assert seen is not None and seen.flag is not None
    assert seen.flag.names[0] in flag
    assert found(tmp_path, loop(head, way_out), {seen.key: 500}, flag=flag) is None
    assert found(tmp_path, loop(head, way_out), {seen.key: worth.UNKNOWN}, flag=flag) is None


@pytest.mark.parametrize(
    "source",
    [
        "while True:\n    loss.backward()\n",
        "while 1:\n    try:\n        train_epoch()\n    except KeyboardInterrupt:\n        break\n",
        "while True:\n    for x in y:\n        loss.backward()\n        break\n",
        "for n in tqdm(itertools.count(1)):\n    opt.step()\n    if bad: raise ValueError(n)\n",
    ],
)
def test_a_loop_without_a_way_out_is_told_by_its_line(tmp_path: Path, source: str) -> None:
    seen = found(tmp_path, source)
    assert seen == Endless("train.py", 1)


@pytest.mark.parametrize(
    ("flag", "source"),
    [
        ("", loop("while True:", "if n > 100: break")),
        ("", "def batches():\n    while True:\n        yield train_batch()\n"),
        ("", "def serve():\n    while True:\n        answer(input())\n"),
        ("", loop("while not self.done:", "n += 1")),
        ("", loop("running = True\nwhile running:", "running = n < 3")),
        ("", loop("while True:", "if n > 3: raise Done")),
        ("", "class T:\n    best = None\n" + loop("while self.best is None:", "self.best = 1")),
        ("", loop("stop.max_steps = 0\nwhile stop.max_steps == 0:", "stop.max_steps += 1")),
        ("'--max-steps', default=1000", loop("while True:", "if n >= args.max_steps: break")),
        ("'steps'", loop("while True:", "if args.steps and n > 3: break")),
        ("'--steps', required=True", loop("while True:", "if args.steps and n > 3: break")),
        (
            "'--max_steps', default=None",
            "if args.max_steps is None:\n    args.max_steps = args.epochs * 5\n"
            + loop("while True:", "if args.max_steps and n >= args.max_steps: break"),
        ),
        (
            "'--steps', default=0",
            "p.set_defaults(**config)\n" + loop("while True:", "if args.steps and n > 3: break"),
        ),
        ("'--max_steps', default=-1", "for e in range(3):\n    loss.backward()\n"),
    ],
)
def test_a_loop_that_may_end_is_left_alone(tmp_path: Path, flag: str, source: str) -> None:
    assert found(tmp_path, source, flag=flag) is None


def test_what_a_script_imports_of_the_project_by_name_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "trainer.py").write_text(
        "class Trainer:\n    def config():\n        C.max_iters = None\n    def run(self):\n"
        "        while True:\n            loss.backward()\n"
        "            if c.max_iters is not None and n >= c.max_iters:\n                break\n"
        "class Other:\n    def run(self):\n        while True:\n            loss.backward()\n"
    )
    source = "from lib.trainer import Trainer\nTrainer().run()\n"
    seen = found(tmp_path, source)
    assert seen == Endless("lib/trainer.py", 5, "max_iters")
    assert found(tmp_path, source, {"max_iters": 5}) is None
    assert found(tmp_path, "C.max_iters = 9\n" + source) is None
    assert found(tmp_path, source.replace("Trainer\n", "Nothing\n", 1)) is None


def test_lightnings_trainer_without_an_end(tmp_path: Path) -> None:
    source = "from lightning import Trainer\nTrainer(max_epochs={})\n"
    assert found(tmp_path, source.format("-1")) is not None
    assert found(tmp_path, source.format("-1, max_steps=100")) is None
    assert found(tmp_path, source.format("-1, max_time=x")) is None
    assert found(tmp_path, source.format("10")) is None
    seen = found(
        tmp_path,
        "from lightning import Trainer\nTrainer(max_epochs=args.max_epochs)\n",
        flag="'--max_epochs', default=-1",
    )
    assert seen is not None and seen.said == "--max_epochs"


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["train.py", "--max-steps", "5"], 5),
        (["train.py", "--max-steps=5"], 5),
        (["train.py", "-m", "5"], 5),
        (["train.py", "--max-st", "5"], 5),
        (["train.py", "--trainer.max_steps=5"], 5),
        (["train.py", "max_steps=5"], 5),
        (["train.py", "--max-steps", "-1", "--max-steps", "5"], 5),
        (["train.py", "--max-steps", "{epochs}"], worth.UNKNOWN),
    ],
)
def test_what_a_command_says_of_a_flag(tmp_path: Path, words: list[str], value: object) -> None:
    (tmp_path / "t.py").write_text(f"{PARSER}p.add_argument('--max-steps', '-m', default=-1)\n")
    one = script.read(tmp_path, tmp_path / "t.py")
    assert one is not None
    assert worth.given_by(one, words)["max_steps"] == value


def test_what_a_config_names_only_the_run_knows(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(f"{PARSER}p.add_argument('--max-steps', default=-1)\n")
    one = script.read(tmp_path, tmp_path / "t.py")
    assert one is not None
    assert worth.given_by(one, [], "max_steps: 10")["max_steps"] is worth.UNKNOWN
    assert "max_steps" not in worth.given_by(one, [], "lr: 10")
