"""Programs that train by a config alone, by the words that start them and the keys of a config.

Read from examples of LLaMA-Factory 0.9, axolotl 0.13, trl 0.2x, torchtune 0.6, ultralytics 8.4 and
openmim 0.3. Each starts its ranks itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from boxcar.laptop.init.frameworks import Kept
from boxcar.laptop.init.source import data_of
from boxcar.shared.files.plan import NEWEST, TRUSTED
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Trainer:
    """`begins` are its first words, `config` and `place` those of the config and of where to write.
    `open`: words that only a person knows, said as they stand in `begins`.
    """

    name: str
    begins: tuple[str, ...]
    config: tuple[str, ...]
    place: tuple[str, ...]
    artifacts: tuple[Kept, ...]
    resume: str = ""
    resume_args: str = ""
    smoke: str = ""
    open: tuple[str, ...] = ()


_ADAPTER = (Kept("adapter_model.safetensors"),)
_MODEL = (Kept("*.safetensors"),)
_LLAMA_FACTORY = Trainer(
    "LLaMA-Factory", ("llamafactory-cli", "train"), ("{cfg}",), ("output_dir={out}",), _ADAPTER,
    "checkpoint-*/", "resume_from_checkpoint={resume}", "max_steps=2 save_steps=2",
)  # fmt: skip
_AXOLOTL = Trainer(
    "axolotl", ("axolotl", "train"), ("{cfg}",), ("--output-dir", "{out}"), _ADAPTER,
    "checkpoint-*/", "--resume-from-checkpoint {resume}", "--max-steps 2",
)  # fmt: skip
_TRL = Trainer(
    "trl", ("trl", "sft"), ("--config", "{cfg}"), ("--output_dir", "{out}"), _MODEL,
    "checkpoint-*/", "--resume_from_checkpoint {resume}", "--max_steps 2 --save_steps 2", ("sft",),
)  # fmt: skip
_TORCHTUNE = Trainer(
    "torchtune", ("tune", "run", "RECIPE"), ("--config", "{cfg}"), ("output_dir={out}",),
    (Kept("epoch_*/", NEWEST),), smoke="epochs=1 max_steps_per_epoch=2", open=("RECIPE",),
)  # fmt: skip
_YOLO = Trainer(
    "ultralytics", ("yolo",), ("cfg={cfg}", "mode=train"), ("project={out}",),
    (Kept("train*/weights/best.pt", NEWEST, TRUSTED),), "train*/weights/last.pt",
    "resume={resume}", "epochs=1 imgsz=64 fraction=0.05 workers=0",
)  # fmt: skip
_YOLO_DATA = Trainer(
    "ultralytics", ("yolo", "detect", "train"), ("data={cfg}", "model=MODEL"), ("project={out}",),
    _YOLO.artifacts, _YOLO.resume, _YOLO.resume_args, _YOLO.smoke, ("detect", "model=MODEL"),
)  # fmt: skip
# No words to resume: `--resume` alone begins anew on a new box, and which words take a path differs
# from package to package.
_MIM = Trainer(
    "mmengine", ("mim", "train", "PACKAGE"), ("{cfg}",), ("--work-dir", "{out}"),
    (Kept("epoch_*.pth", NEWEST, TRUSTED),),
    smoke="--cfg-options train_cfg.max_epochs=1", open=("PACKAGE",),
)  # fmt: skip
# The first whose keys a config has all of.
_BY_KEYS: tuple[tuple[frozenset[str], Trainer], ...] = (
    (frozenset({"model_name_or_path", "stage", "finetuning_type"}), _LLAMA_FACTORY),
    (frozenset({"base_model", "datasets", "micro_batch_size"}), _AXOLOTL),
    (frozenset({"task", "mode", "model", "data"}), _YOLO),
    (frozenset({"train", "val", "names"}), _YOLO_DATA),
    (frozenset({"model", "train_dataloader", "train_cfg"}), _MIM),
    (frozenset({"model_name_or_path", "dataset_name"}), _TRL),
)
_BY_WORDS = (_LLAMA_FACTORY, _AXOLOTL, _TRL, _TORCHTUNE, _YOLO, _MIM)
_RECIPE = re.compile(r"tune run\s+(?:--?\S+\s+(?:\d+\s+)?)*([a-z]\w+)\s+--config")


def of_words(words: Sequence[str]) -> Trainer | None:
    """Whose words these are, where they train."""
    for known in _BY_WORDS:
        begins = [word for word in known.begins if word not in known.open]
        if list(words[: len(begins)]) == begins and len(words) > len(begins):
            is_yolo = known is not _YOLO or "train" in words or "mode=train" in words
            return known if is_yolo and "help" not in words and "--help" not in words else None
    return None


def of_config(path: Path) -> Trainer | None:
    """Whose keys a YAML file has."""
    data = data_of(path)
    try:
        found = yaml.safe_load(data) if data else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return _by_keys(found, data.decode("utf-8", "replace")) if isinstance(found, dict) else None


def _by_keys(found: Mapping[Any, Any], text: str) -> Trainer | None:
    if "_component_: torchtune." in text or "_component_: recipes." in text:
        return _of_recipe(text)
    made = next((known for keys, known in _BY_KEYS if keys <= found.keys()), None)
    is_whole = found.get("finetuning_type") == "full" or not found.get("adapter", True)
    if made in (_LLAMA_FACTORY, _AXOLOTL) and (
        is_whole or (made is _AXOLOTL and "adapter" not in found)
    ):
        return replace(made, artifacts=_MODEL)
    return made


def _of_recipe(text: str) -> Trainer:
    """The recipe is named in the comment of each config that torchtune copies."""
    if not (named := _RECIPE.search(text)):
        return _TORCHTUNE
    return replace(_TORCHTUNE, begins=("tune", "run", named[1]), open=())
