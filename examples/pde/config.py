"""A cell's settings: read from configs/<cell>.yaml, checked, never changed afterwards."""

from __future__ import annotations

import difflib
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import yaml

from boxcar.shared.errors import InputError

TASKS = ("burgers1d", "advection1d", "darcy2d")
ABOVE_ZERO = ("batch", "accumulate", "lr", "layers", "patch")


@dataclass(frozen=True, kw_only=True)
class Config:
    """One key of the YAML file each."""

    tasks: list
    """Learned by one transformer; with several they take turns, micro-batch by micro-batch."""
    seed: int = 0
    """Of the weights and of the order of the samples."""
    batch: int
    """Samples of a micro-batch over all ranks together."""
    accumulate: int = 1
    """Micro-batches of one optimizer step."""
    lr: float
    weight_decay: float = 0.01
    layers: int
    """Blocks of the transformer; each has two residual branches."""
    patch: int
    """Points or cells a side that the encoder makes one token of."""
    workers: int = 0
    """Processes of each rank that read each task's latents."""
    compile: bool = True
    compile_mode: str = "default"


def load(path: Path) -> Config:
    """Read and check one YAML file; all that is wrong with it is said at once."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected lines of `key: value`, found {type(values).__name__}")
    kinds = {field.name: str(field.type) for field in fields(Config)}
    needed = [field.name for field in fields(Config) if field.default is MISSING]
    problems = [f"key {name!r} is missing" for name in needed if name not in values]
    problems += [issue for item in values.items() if (issue := issue_of(*item, kinds))]
    if problems:
        raise InputError([f"{path}: {problem}" for problem in problems])
    return Config(**values)


def issue_of(key: object, value: object, kinds: dict[str, str]) -> str:
    """What is wrong with one line, empty where it is fine."""
    if key not in kinds:
        near = difflib.get_close_matches(str(key), kinds, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(kinds)}"
        return f"unknown key {key!r} ({hint})"
    # YAML reads `lr: 1` as an int, which is a fine float, and `true` as a bool, an int to Python.
    if type(value).__name__ != kinds[key] and not (kinds[key] == "float" and type(value) is int):
        return f"key {key!r} should be {kinds[key]}, found {value!r}"
    if key == "tasks" and (not value or set(value) - set(TASKS) or len(set(value)) < len(value)):
        return f"key 'tasks' should list some of {', '.join(TASKS)}, each once, found {value!r}"
    least = "above 0" if key in ABOVE_ZERO else "0 or more"
    is_fine = not isinstance(value, (int, float)) or value > 0 or (value == 0 and least[0] == "0")
    return "" if is_fine else f"key {key!r} should be {least}, found {value!r}"
