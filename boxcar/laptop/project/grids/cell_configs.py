"""One config file for each cell of a grid, from a base in YAML or JSON.

For scripts that take no overrides. A key with dots leads into the base, `opt.lr=1e-3`; one that the
base lacks is a slip of the fingers, unless it is typed as `+key=`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from boxcar.laptop.common.near import did_you_mean
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.cell.cell_name import config_path
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError, reason_of
from boxcar.shared.sentence import _, quotation

_JSON, _YAML = (".json",), (".yaml", ".yml")
_NEW = "+"
# PyYAML takes these for text, because YAML 1.1 wants a dot in them; people mean a number.
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+")


def folder(text: str) -> str:
    """The folder for the files, below the code folder. Raises InputError."""
    parts = text.split("/")
    if not config_path(text) or text.startswith("/") or ".." in parts or "\0" in text:
        raise InputError(
            _(
                "--configs {text!r}: expected a folder below the code folder, without '..'",
                text=text,
            )
        )
    return config_path(text)


def files(code: Path, cfg: str, into: str, cells: Sequence[CellLine]) -> dict[str, bytes]:
    """The path below the code folder and the content of each cell's config, in their order.

    Raises InputError; nothing is written.
    """
    suffix = Path(cfg).suffix
    base = _base(code / cfg, suffix)
    made = {}
    for cell in cells:
        value: Any = base
        for word in cell.overrides:
            value = _with(value, word, cfg)
        made[f"{into}/{cell.name}{suffix}"] = _spelled(value, suffix)
    _refuse_others(code, made)
    return made


def write_configs(code: Path, made: Mapping[str, bytes]) -> int:
    """Each file whole; those that are there with this content stay. How many were written.

    Raises InputError where somebody wrote another one meanwhile.
    """
    written = 0
    for path in made:
        atomic.make_folder((code / path).parent)
        written += atomic.create_once(code / path, made[path])
    _refuse_others(code, made)
    return written


def _base(path: Path, suffix: str) -> dict[str, Any]:
    if suffix not in (*_JSON, *_YAML):
        raise InputError(
            _(
                "{path}: --configs needs a base in YAML or JSON, known by the file's suffix",
                path=path,
            )
        )
    try:
        text = path.read_text("utf-8")
        base = json.loads(text) if suffix in _JSON else yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        told = quotation(" ".join(str(error).split()))
        why = reason_of(error) if isinstance(error, OSError) else told
        raise InputError(
            _("{path}: cannot be read as the base of --configs: {why}", path=path, why=why)
        ) from error
    if not isinstance(base, dict):
        raise InputError(
            _("{path}: expected keys with values, as the base of --configs", path=path)
        )
    return dict(base)


def _with(base: dict[str, Any], word: str, cfg: str) -> dict[str, Any]:
    """The base with one value set; what it shares with others by an anchor stays as it was."""
    head, _equals, text = word.partition("=")
    key = head.removeprefix(_NEW)
    if not key or key.startswith(("-", "+", "~")) or "=" not in word:
        raise InputError(
            _("{word!r}: --configs sets key=value, or +key=value for a new key", word=word)
        )
    return _set(base, key.split("."), _value(word, text), (word, cfg))


def _set(node: Any, keys: Sequence[str], value: Any, said: tuple[str, str]) -> dict[str, Any]:
    word, cfg = said
    key, *rest = keys
    is_new = word.startswith(_NEW)
    if not isinstance(node, dict):
        raise InputError(
            _(
                "{word!r}: the part before .{key} in {cfg} has no keys of its own",
                word=word,
                key=key,
                cfg=cfg,
            )
        )
    if key not in node and not is_new:
        near = did_you_mean(key, map(str, node))
        raise InputError(
            _(
                "{word!r}: {cfg} has no key {key!r}{near}. To add one: +{word}",
                word=word,
                cfg=cfg,
                key=key,
                near=near,
            )
        )
    if rest:
        return {**node, key: _set(node.get(key, {}), rest, value, said)}
    if key in node and is_new:
        raise InputError(
            _(
                "{word!r}: {cfg} already has this key: {new}",
                word=word,
                cfg=cfg,
                new=word.removeprefix(_NEW),
            )
        )
    return {**node, key: value}


def _value(word: str, text: str) -> Any:
    """As it would be read from a file."""
    try:
        return float(text) if _NUMBER.fullmatch(text) else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise InputError(
            _("{word!r}: its value cannot be read as YAML; quote it", word=word)
        ) from error


def _spelled(value: dict[str, Any], suffix: str) -> bytes:
    if suffix in _JSON:
        return (json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n").encode()
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    return text.encode()


def _refuse_others(code: Path, made: Mapping[str, bytes]) -> None:
    for path, data in made.items():
        try:
            found = (code / path).read_bytes()
        except FileNotFoundError:
            continue
        if found != data:
            raise InputError(
                _(
                    "{path}: exists with other content and is not overwritten. Name another "
                    "folder, or move it away",
                    path=code / path,
                )
            )
