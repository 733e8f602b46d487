"""Solve random problems of the three equations and write them as {task}_{split}.pt.

    python generate.py --task burgers1d --samples 1024 --out /tmp/pde

The same command gives the same files, byte for byte, on the same machine. A sample depends on the
seed, its task, split and number alone: more samples or a finer grid keep the problems that were
there. A file that is there already with these settings is left as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from solvers import advection1d, burgers1d, darcy2d
from torch import Generator, Tensor

TASKS = {"burgers1d": burgers1d, "advection1d": advection1d, "darcy2d": darcy2d}
RESOLUTIONS = {"burgers1d": 128, "advection1d": 128, "darcy2d": 64}
CHANNELS = {
    "burgers1d": (["u at 0", "log10 of the viscosity"], ["u at 1"]),
    "advection1d": (["u at 0", "speed"], ["u at 1"]),
    "darcy2d": (["a"], ["u"]),
}
CHUNK = 32


def main(words: list[str] | None = None) -> int:
    flags = parser().parse_args(words)
    flags.out.mkdir(parents=True, exist_ok=True)
    held_out = max(1, flags.samples // 8)
    for task in flags.task or list(TASKS):
        for split, count in {"train": flags.samples, "val": held_out, "test": held_out}.items():
            resolution = flags.resolution or RESOLUTIONS[task]
            write(
                flags.out / f"{task}_{split}.pt",
                settings(task, split, count, resolution, flags.seed),
            )
    return 0


def parser() -> argparse.ArgumentParser:
    said = argparse.ArgumentParser(
        description="Write the data sets of burgers1d, advection1d, darcy2d."
    )
    add = said.add_argument
    add("--task", action="append", choices=list(TASKS), help="may be given several times (all)")
    add("--samples", type=positive, default=1024, help="of train; val and test get an eighth")
    add(
        "--resolution",
        type=positive,
        help="points (burgers1d, advection1d), cells a side (darcy2d)",
    )
    add("--seed", type=int, default=0, help="default 0")
    add("--out", type=Path, required=True, help="the folder that gets the files")
    return said


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, found {text!r}")
    return int(text)


def settings(task: str, split: str, count: int, resolution: int, seed: int) -> dict[str, Any]:
    """All that a file depends on; it lies in the file beside the tensors."""
    inputs, targets = CHANNELS[task]
    return {
        "task": task,
        "split": split,
        "samples": count,
        "resolution": resolution,
        "seed": seed,
        "input_channels": inputs,
        "target_channels": targets,
    }


def write(path: Path, facts: dict[str, Any]) -> None:
    """Solve and write one file, whole or not at all."""
    if is_there(path, facts):
        print(f"{path}: is there", file=sys.stderr)
        return
    inputs, targets = zip(*solved(facts), strict=True)
    content = facts | {"inputs": torch.cat(inputs), "targets": torch.cat(targets)}
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def is_there(path: Path, facts: dict[str, Any]) -> bool:
    if not path.exists():
        return False
    try:
        content = torch.load(path, weights_only=True, mmap=True)
    except Exception:  # cut or damaged: torch raises half a dozen kinds
        return False
    return isinstance(content, dict) and {key: content.get(key) for key in facts} == facts


def solved(facts: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor]]:
    """Chunks of inputs and targets, float32, with a line that says how far it is."""
    equation, count = TASKS[facts["task"]], facts["samples"]
    for first in range(0, count, CHUNK):
        numbers = range(first, min(first + CHUNK, count))
        drawn = torch.stack([equation.draw(generator(facts, number)) for number in numbers])
        inputs, targets = equation.pairs(drawn, facts["resolution"])
        yield inputs.float(), targets.float()
        show(f"{facts['task']} {facts['split']}: {numbers.stop} of {count}", numbers.stop == count)


def generator(facts: dict[str, Any], number: int) -> Generator:
    """Of one sample alone, so that no two splits share a problem."""
    name = f"{facts['seed']} {facts['task']} {facts['split']} {number}"
    digest = hashlib.sha256(name.encode()).digest()
    return Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def show(text: str, is_last: bool) -> None:
    """On a terminal one line that moves on, in a log only the last."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="\n" if is_last else "", file=sys.stderr, flush=True)
    elif is_last:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
