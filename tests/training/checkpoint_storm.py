"""The end of a training that does nothing but save: at random moments, and before each step of a
save that the disk sees."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from pathlib import Path
from typing import Any, NoReturn

import torch
from tiny_training import Marked

_VALUES = 20_000  # a state of 1 MB, saved in some 5 ms
_LONGEST_S = 0.06


def storm(out: Path, kills: int, seed: int) -> list[int]:
    """The steps that each start went on from. Raises where one found a mixture, or went back."""
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    torch.set_num_threads(1)
    steps = [found_step(out)]  # what an optimizer imports is imported once, before the forks
    for number in range(kills):
        # The last one saves, however slow this machine is.
        one_start(out, chance.random() * _LONGEST_S, has_to_save=number == kills - 1)
        steps.append(found_step(out))
        assert steps == sorted(steps), f"a complete state was lost: {steps}"
    return steps


def before_each_step(out: Path, is_sharded: bool) -> int:
    """End before the first step of two saves, then before the second, and so on to their end; the
    number of steps. Raises where less is found than had been saved."""
    torch.set_num_threads(1)
    found_step(out, is_sharded=is_sharded)
    for number in itertools.count():
        returned, code = two_saves(out, number, is_sharded=is_sharded)
        assert found_step(out, is_sharded=is_sharded) >= returned, (
            f"a save that had returned was lost at step {number}"
        )
        if code == 0:
            return number
    raise AssertionError("the saves never came to their end")


def two_saves(out: Path, steps_left: int, *, is_sharded: bool) -> tuple[int, int]:
    """The step of the last one that returned (0 for none), and the exit code."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        save_twice(out, tell, steps_left, is_sharded=is_sharded)
    os.close(tell)
    said = b""
    while more := os.read(ready, 64):
        said += more
    os.close(ready)
    _, status = os.waitpid(pid, 0)
    return int(said.split()[-1]) if said else 0, os.waitstatus_to_exitcode(status)


def save_twice(out: Path, tell: int, steps_left: int, *, is_sharded: bool) -> NoReturn:
    code = 1
    try:
        training = Marked(out, values=_VALUES, keep=1, is_sharded=is_sharded)
        training.checkpointer.load_latest()
        end_after(steps_left)
        for _ in range(2):
            training.mark(training.state.step + 1)
            training.checkpointer.save()
            os.write(tell, b"%d " % training.state.step)
        training.checkpointer.wait()
        code = 0
    finally:
        os._exit(code)


def end_after(steps: int) -> None:
    """From now on, this process ends before its next step but `steps`, in whatever thread."""
    left = itertools.count(steps, -1)
    for name in ("fsync", "link", "mkdir", "rename", "replace", "rmdir", "unlink"):
        call = getattr(os, name)

        def step(*args: Any, call: Any = call, **more: Any) -> Any:
            if next(left) <= 0:
                os._exit(9)
            return call(*args, **more)

        setattr(os, name, step)


def found_step(out: Path, *, is_sharded: bool = False) -> int:
    """What is there now, checked."""
    training = Marked(out, values=_VALUES, is_sharded=is_sharded)
    if not training.checkpointer.load_latest():
        return 0
    step = training.state.step
    assert training.marks() == {float(step)}, f"step {step} holds {training.marks()}"
    for unfinished in ("*.part", "*.saving", "*.deleting"):
        assert not list(out.rglob(unfinished))
    assert not list(out.rglob("*.refused-*"))
    return step


def one_start(out: Path, after_s: float, *, has_to_save: bool) -> None:
    """Resume, save and save again, until it is killed."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        save_for_ever(out, tell)
    os.close(tell)
    assert os.read(ready, 1) == b"r", "it died by itself"
    os.close(ready)
    time.sleep(after_s)
    while has_to_save and not (out / "latest.pth").exists():
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def save_for_ever(out: Path, tell: int) -> NoReturn:
    try:
        training = Marked(out, values=_VALUES)
        training.checkpointer.load_latest()
        os.write(tell, b"r")
        while True:
            training.mark(training.state.step + 1)
            is_async = training.state.step % 2
            training.checkpointer.save_async() if is_async else training.checkpointer.save()
    finally:
        os._exit(1)
