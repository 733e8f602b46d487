"""What a cell was told, as flat keys: its config, its task and epochs, and the words of its line.

Two cells are compared by these. The text of a config comes from the manifest of what was run; a
word such as `lr=0.1`, `+model.depth=3` or `--lr 0.1` stands over the config's key of that name.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from boxcar.shared.disk import digest

CONFIG = "config"
_MOST_KEYS = 2000


def of_cell(
    config: str | None, cfg: str, task: str, epochs: int | None, overrides: Sequence[str]
) -> dict[str, str]:
    """Flat key to value, as text. A config that is no mapping is told apart by its digest; one
    whose text nobody has, by its path.
    """
    found = {"task": task, **({"epochs": str(epochs)} if epochs else {})}
    found |= {CONFIG: cfg} if config is None else _of_text(config)
    return found | _of_words(overrides, found)


def differences(settings: Mapping[str, str], base: Mapping[str, str]) -> list[str]:
    """`lr: 0.003→0.01` for each key that is not the same, in their order."""
    keys = [key for key in [*base, *settings] if settings.get(key) != base.get(key)]
    return [f"{key}: {base.get(key, '-')}→{settings.get(key, '-')}" for key in dict.fromkeys(keys)]


def _of_text(config: str) -> dict[str, str]:
    value = _parsed(config)
    if not isinstance(value, dict):
        return {CONFIG: digest.short(digest.of_bytes(config.encode()))}
    flat = dict(_flat("", value))
    if len(flat) > _MOST_KEYS:
        return {CONFIG: digest.short(digest.of_bytes(config.encode()))}
    return flat


def _parsed(config: str) -> Any:
    try:
        return json.loads(config)
    except (ValueError, RecursionError):
        pass
    try:
        return yaml.safe_load(config)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _flat(head: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _flat(f"{head}.{key}" if head else str(key), each)
    else:
        yield head, _spelled(value)


def _spelled(value: Any) -> str:
    """One spelling for one value: 1e-3 and 0.001 are the same, and so are true and True."""
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    text = "null" if value is None else str(value)
    if text in ("True", "False", "None"):
        return text.lower().replace("none", "null")
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number:.12g}"


def _of_words(overrides: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    left = list(overrides)
    while left:
        key, value = _taken(left)
        found[_named(key, known)] = _spelled(value)
    return found


def _taken(left: list[str]) -> tuple[str, str]:
    """The first setting of the words, which are taken from the list."""
    word = left.pop(0)
    name, equals, value = word.partition("=")
    if equals:
        return name.lstrip("-+"), value
    if not word.startswith("-"):
        return (f"~{word[1:]}", "removed") if word.startswith("~") else (word, "given")
    is_switch = not left or left[0].startswith("--") or "=" in left[0]
    return word.lstrip("-"), "true" if is_switch else left.pop(0)


def _named(key: str, known: Mapping[str, str]) -> str:
    """`--batch-size` means the config's `batch_size`, where it has one."""
    spelled = key.replace("-", "_")
    return spelled if key not in known and spelled in known else key
