"""A cell's hyper-parameters: read from configs/<cell>.yaml, checked, never changed afterwards.

Every key that a config may hold has an effect on its task; a key without effect is refused, because
a sweep over it would compare equal runs.
"""

from __future__ import annotations

import difflib
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import yaml

from boxcar.shared.errors import InputError

ABOVE_ZERO = ("samples", "batch", "lr", "width", "latent")


@dataclass(frozen=True, kw_only=True)
class Config:
    """What all three tasks understand."""

    seed: int = 0
    """Of weights, order, scenes and noise; the train/validation split does not depend on it."""
    samples: int
    """How many of the 1437 training digits the cell may see."""
    batch: int
    """Samples per step over all ranks together."""
    lr: float
    """Learning rate after warm-up."""
    weight_decay: float = 0.01
    width: int
    """Channels of the first layer (units of the hidden one for reconstruction)."""
    aug: bool = True
    """Draw new scenes for every epoch; otherwise the ones of the first epoch stay."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise that is added to the training inputs."""


@dataclass(frozen=True, kw_only=True)
class ReconstructionConfig(Config):
    """The autoencoder's."""

    latent: int
    """How many numbers an image is squeezed through."""


@dataclass(frozen=True, kw_only=True)
class SegmentationConfig(Config):
    """The U-Net's."""

    skip: bool = True
    """Join the fine features to the upsampled coarse ones."""


@dataclass(frozen=True, kw_only=True)
class DetectionConfig(Config):
    """The detector's: nothing beyond what all have."""


SHAPES = {
    "reconstruction": ReconstructionConfig,
    "segmentation": SegmentationConfig,
    "detection": DetectionConfig,
}


def load(path: Path, task: str) -> Config:
    """Read and check one YAML file for a task; all that is wrong with it is said at once."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected lines of `key: value`, found {type(values).__name__}")
    stated = values.pop("task", task)
    problems = [] if stated == task else [f"task is {stated!r}, but --task says {task!r}"]
    problems += [issue for issue in issues(values, SHAPES[task], task) if issue]
    if problems:
        raise InputError([f"{path}: {problem}" for problem in problems])
    return SHAPES[task](**values)


def issues(values: dict[str, object], shape: type[Config], task: str) -> list[str]:
    """What is wrong with the keys and values, one sentence each."""
    known = {field.name: field for field in fields(shape)}
    missing = [name for name, field in known.items() if field.default is MISSING]
    return [
        *(unknown(key, sorted(known), task) for key in values if key not in known),
        *(f"key {name!r} is missing" for name in missing if name not in values),
        *(bad(key, value, str(known[key].type)) for key, value in values.items() if key in known),
    ]


def unknown(key: object, known: list[str], task: str) -> str:
    """The sentence for a key that has no effect here."""
    near = difflib.get_close_matches(str(key), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"{task} knows {', '.join(known)}"
    return f"unknown key {key!r} ({hint})"


def bad(key: str, value: object, wanted: str) -> str:
    """The sentence for a value of the wrong kind or size, empty where it is fine."""
    # YAML reads `lr: 1` as an int, which is a fine float, and `true` as a bool, an int to Python.
    if type(value).__name__ != wanted and not (wanted == "float" and type(value) is int):
        return f"key {key!r} should be {wanted}, found {value!r}"
    if wanted == "bool" or value > 0 or (value == 0 and key not in ABOVE_ZERO):
        return ""
    return (
        f"key {key!r} should be {'above 0' if key in ABOVE_ZERO else '0 or more'}, found {value!r}"
    )
