"""As much of hydra-core as config_tree/train.py uses, where the real one is not installed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml


class Tree(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        found = self[name]
        return Tree(found) if isinstance(found, dict) else found


def main(
    version_base: str, config_path: str, config_name: str
) -> Callable[[Callable[[Tree], None]], Callable[[], None]]:
    def decorate(function: Callable[[Tree], None]) -> Callable[[], None]:
        folder = Path(sys.argv[0]).parent / config_path
        return functools.partial(_run, function, folder / f"{config_name}.yaml")

    return decorate


def _run(function: Callable[[Tree], None], file: Path) -> None:
    tree = yaml.safe_load(file.read_text())
    for word in sys.argv[1:]:
        key, _, value = word.partition("=")
        *parents, last = key.lstrip("+").split(".")
        at = tree
        for parent in parents:
            at = at.setdefault(parent, {}) if parents[0] == "hydra" else at[parent]
        if not key.startswith(("+", "hydra.")) and last not in at:
            sys.exit(f"Could not override {key!r}: it is not in the config")
        at[last] = yaml.safe_load(value)
    function(Tree(tree))
