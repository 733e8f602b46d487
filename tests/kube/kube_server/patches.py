"""The patches that kubectl sends: merge, strategic merge, JSON, and apply on the server's side."""

from __future__ import annotations

import copy
from typing import Any

from .store import ApiError, Object

# By which key a strategic merge finds an element of a list again.
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "ownerReferences": "uid",
    "conditions": "type",
}


def patched(one: Object, patch: Any, content_type: str) -> Object:
    new = copy.deepcopy(one)
    if content_type == "application/json-patch+json":
        for step in patch:
            _step(new, step)
        return new
    strategic = content_type == "application/strategic-merge-patch+json"
    return _merge(new, patch, strategic=strategic)  # type: ignore[no-any-return]


def _merge(old: Any, patch: Any, *, strategic: bool, key: str = "") -> Any:
    if isinstance(patch, dict) and isinstance(old, dict):
        for name, value in patch.items():
            if name.startswith("$"):
                continue
            if value is None:
                old.pop(name, None)
            elif name in old:
                old[name] = _merge(old[name], value, strategic=strategic, key=name)
            else:
                old[name] = _without_nulls(value)
        return old
    if strategic and isinstance(patch, list) and isinstance(old, list):
        if key == "finalizers":
            return old + [one for one in patch if one not in old]
        if by := _KEYS.get(key):
            return _merge_lists(old, patch, by)
    return patch


def _merge_lists(old: list[Any], patch: list[Any], by: str) -> list[Any]:
    for one in patch:
        same = next((have for have in old if have.get(by) == one.get(by)), None)
        if one.get("$patch") == "delete":
            old = [have for have in old if have is not same]
        elif same is None:
            old.append(one)
        else:
            _merge(same, one, strategic=True)
    return old


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return value


def _step(one: Object, step: dict[str, Any]) -> None:
    *parents, last = [
        word.replace("~1", "/").replace("~0", "~") for word in step["path"].split("/")[1:]
    ]
    at: Any = one
    for part in parents:
        at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
    if isinstance(at, list):
        place = len(at) if last == "-" else int(last)
        if step["op"] == "add":
            at.insert(place, step["value"])
        elif step["op"] == "remove":
            del at[place]
        else:
            at[place] = step["value"]
    elif step["op"] == "remove":
        at.pop(last)
    elif step["op"] == "test":
        if at.get(last) != step["value"]:
            raise ApiError(422, "Invalid", "the server rejected our request: test failed")
    else:
        at[last] = step["value"]
