"""What a cell was told, as flat keys: its config, its task and epochs, and the words of its line.

Two cells are compared by these as text; a tracker gets the values, of the types that JSON and YAML
give them. The text of a config comes from the manifest of what was run; a word such as `lr=0.1`,
`+model.depth=3` or `--lr 0.1` stands over the config's key of that name. Pure.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from boxcar.laptop.common.units import distinct
from boxcar.shared.disk import digest

Value = str | int | float | bool
CONFIG = "config"
_MOST_KEYS = 2000
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_HEX = re.compile(r"[0-9]+e[0-9]+")  # 1234e12 is a commit, 1e5 is none
_LONG, _LONGEST_INT = 7, 18


def of_cell(
    config: str | None, cfg: str, task: str, epochs: int | None, overrides: Sequence[str]
) -> dict[str, Value]:
    """Flat key to value. A config that is no mapping is told apart by its digest; one whose text
    nobody has, by its path.
    """
    found: dict[str, Value] = {"task": task, **({"epochs": epochs} if epochs else {})}
    found |= {CONFIG: cfg} if config is None else _of_text(config)
    return found | _of_words(overrides, found)


def spelled(values: Mapping[str, Value]) -> dict[str, str]:
    """As text, one spelling for one value: 1e-3 and 0.001 are the same."""
    return {key: _spelled(value) for key, value in values.items()}


def _spelled(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def of_word(text: str) -> Value:
    """What a word means: a plain decimal number or a truth value, where it is one. `007`, `1_2`,
    `nan` and a commit such as `12e4567` are text.
    """
    if text in ("true", "false", "True", "False"):
        return text in ("true", "True")
    is_number = _DECIMAL.fullmatch(text) and not (len(text) >= _LONG and _HEX.fullmatch(text))
    if not is_number:
        return "null" if text == "None" else text
    if text.lstrip("-").isdigit():
        return int(text) if len(text) <= _LONGEST_INT else text
    return float(text) if math.isfinite(float(text)) else text


def differences(settings: Mapping[str, str], base: Mapping[str, str]) -> list[str]:
    """`lr: 0.003→0.01` for each key that is not the same, in their order."""
    keys = [key for key in [*base, *settings] if settings.get(key) != base.get(key)]
    return [f"{key}: {base.get(key, '-')}→{settings.get(key, '-')}" for key in dict.fromkeys(keys)]


def _of_text(config: str) -> dict[str, Value]:
    value, is_json = _parsed(config)
    flat = list(_flat("", value)) if isinstance(value, dict) else []
    if not isinstance(value, dict) or len(flat) > _MOST_KEYS:
        return {CONFIG: digest.short(digest.of_bytes(config.encode()))}
    # {"a.b": 1, "a": {"b": 2}} has two of them.
    names = distinct([key for key, _ in flat])
    return {
        name: _value(each, is_json=is_json) for name, (_, each) in zip(names, flat, strict=True)
    }


def _parsed(config: str) -> tuple[Any, bool]:
    """And whether it is JSON."""
    try:
        return json.loads(config), True
    except (ValueError, RecursionError):
        pass
    try:
        return yaml.safe_load(config), False
    except (yaml.YAMLError, RecursionError, ValueError):
        return None, False


def _flat(head: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _flat(f"{head}.{key}" if head else str(key), each)
    else:
        yield head, value


def _value(value: Any, *, is_json: bool) -> Value:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        # To YAML's own reader 1e-3 is text, and to no script that takes it for a number.
        return value if is_json or "e" not in value.lower() else of_word(value)
    return "null" if value is None else str(value)


def _of_words(overrides: Sequence[str], known: Mapping[str, Value]) -> dict[str, Value]:
    """A word that names nothing is the value of its place, as a shell calls it: `$1`."""
    found: dict[str, Value] = {}
    left, place = list(overrides), 0
    while left:
        key, value = _taken(left)
        place += not key
        found[_named(key or f"${place}", known)] = of_word(value)
    return found


def _taken(left: list[str]) -> tuple[str, str]:
    """The first setting of the words, which are taken from the list; '' of one without a name."""
    word = left.pop(0)
    name, equals, value = word.partition("=")
    if equals:
        return name.lstrip("-+"), value
    if not word.startswith("-"):
        return (f"~{word[1:]}", "removed") if word.startswith("~") else ("", word)
    is_switch = not left or left[0].startswith("--") or "=" in left[0]
    return word.lstrip("-"), "true" if is_switch else left.pop(0)


def _named(key: str, known: Mapping[str, Value]) -> str:
    """`--batch-size` means the config's `batch_size`, where it has one."""
    spelled = key.replace("-", "_")
    return spelled if key not in known and spelled in known else key
