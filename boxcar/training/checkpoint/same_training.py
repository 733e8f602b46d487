"""Whether a checkpoint may be gone on from: the same settings, and a world that gives the same.

Pure: saved and present values in, sentences out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from boxcar.shared.errors import counted


def resume_problems(
    saved: Mapping[str, Any], identity: Mapping[str, Any], world: int, loader: Mapping[str, Any]
) -> list[str]:
    """Why this training must not go on from `saved`; empty where it may.

    `loader` is the present loader's state, {} where there is none.
    """
    if changed := differing_settings(saved["identity"], identity):
        return [
            f"it was saved with other settings ({'; '.join(changed)}): give the same ones, or "
            "another folder"
        ]
    if saved["world"] == world:
        return []
    why = _another_batch(saved.get("loader") or {}, loader)
    if why is None:
        return []
    return [
        f"it was saved by {counted(saved['world'], 'rank')}, there are {world} now, and {why}: "
        f"start {counted(saved['world'], 'rank')}"
    ]


def differing_settings(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`name was x, is y` for what is not the same, in the order of `now`."""
    absent = "not given"
    return [
        f"{name} was {saved.get(name, absent)}, is {now.get(name, absent)}"
        for name in {**now, **saved}
        if name not in saved or name not in now or not _is_equal(saved[name], now[name])
    ]


def _another_batch(saved: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Why the steps would not be the same; None where each step takes the same samples."""
    was, is_now = saved.get("global_batch"), now.get("global_batch")
    if None in (was, is_now):
        return "no loader in TrainingState says whether the global batch is the same"
    return None if was == is_now else f"the global batch was {was}, is {is_now}"


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and bool((one == other).all())
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return not differing_settings(one, other)
    # A tuple of the script may come back as one, a list from a YAML file as the other.
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return type(one) is type(other) and bool(one == other)
