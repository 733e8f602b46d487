"""What `OmegaConf.from_cli()` takes, `optim.lr=0.1`: the keys of what it is merged with."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from boxcar.laptop.habits.called import dotted
from boxcar.laptop.habits.flags import Flag
from boxcar.shared.disk import regular_file

_MOST_BYTES = 1_000_000


def read(tree: ast.Module, folders: Sequence[Path]) -> tuple[Flag, ...]:
    """Of YAML files that the source names, found in one of the folders, and of dicts in it."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not any(dotted(call.func).endswith(".from_cli") for call in calls):
        return ()
    found: dict[str, Flag] = {}
    for call in (call for call in calls if call.args):
        for key, value in _leaves(_config(call, folders)):
            found[key] = Flag((key,), call.lineno, value, is_setting=True)
    return tuple(found.values())


def _config(call: ast.Call, folders: Sequence[Path]) -> Any:
    name = dotted(call.func).rpartition(".")[2]
    try:
        given = ast.literal_eval(call.args[0])
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if name == "create":
        return given
    return _loaded(given, folders) if name == "load" and isinstance(given, str) else None


def _loaded(name: str, folders: Sequence[Path]) -> Any:
    for path in (folder / name for folder in folders):
        try:
            with regular_file.open_followed(path) as file:
                data = file.read(_MOST_BYTES + 1)
            if len(data) <= _MOST_BYTES:
                return yaml.safe_load(data)
        except (OSError, ValueError, yaml.YAMLError, RecursionError):
            continue
    return None


def _leaves(config: Any, path: str = "", depth: int = 10) -> Iterator[tuple[str, Any]]:
    if isinstance(config, dict) and depth:
        for key, value in config.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key), depth - 1)
    elif path:
        yield path, config
