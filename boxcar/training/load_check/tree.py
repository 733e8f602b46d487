"""What was loaded, as a tree of names: its leaves, and whether a dotted key is in it.

Pure, and without torch. The tree came from a file that may be damaged or made to harm: it may be
very deep, hold itself, or have names that are no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

LONGEST_PATH = 200
_NAMES_SHOWN = 8
_LONGEST_NAME = 40


def tree_leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    """Every value that holds no others, with its dotted path, one after the other.

    A container that is met again, in itself or elsewhere, is walked once.
    """
    if not _is_container(tree):
        yield "", tree
        return
    # The containers are kept, not only their ids: an id is free again when its object is gone.
    met = {id(tree): tree}
    stack = [("", _children(tree))]
    while stack:
        path, children = stack[-1]
        name, child = next(children, (None, None))
        if name is None:
            stack.pop()
        elif not _is_container(child):
            yield _join(path, name), child
        elif id(child) not in met:
            met[id(child)] = child
            stack.append((_join(path, name), _children(child)))


def missing_keys(tree: Any, keys: Iterable[str]) -> list[str]:
    """One sentence for each key that is not there."""
    return [f"lacks the key {key!r}; {_holds(tree)}" for key in keys if not has_key(tree, key)]


def has_key(tree: Any, key: str) -> bool:
    """Whether `model.encoder` is there: as a path, as one name, or as the start of such names.

    The last is how a state dict spells a module: `encoder.0.weight`.
    """
    if not _is_container(tree):
        return False
    for name, raw in _names(tree):
        if name == key or name.startswith(f"{key}."):
            return True
        rest = key[len(name) + 1 :]
        if key.startswith(f"{name}.") and has_key(_opened(tree)[raw], rest):
            return True
    return False


def _is_container(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple, set, frozenset)) or _has_state(value)


def _has_state(value: Any) -> bool:
    """Models, optimizers and schedulers, which only a file that may run code can hold."""
    return not isinstance(value, type) and callable(getattr(value, "state_dict", None))


def _opened(value: Any) -> Any:
    if _has_state(value):
        return value.state_dict()
    return list(value) if isinstance(value, (set, frozenset)) else value


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    opened = _opened(value)
    return ((name, opened[raw]) for name, raw in _names(opened))


def _names(value: Any) -> Iterator[tuple[str, Any]]:
    opened = _opened(value)
    raw_names = opened if isinstance(opened, Mapping) else range(len(opened))
    return ((_as_text(raw), raw) for raw in raw_names)


def _as_text(raw: Any) -> str:
    return str(raw) if isinstance(raw, (str, int, float)) else type(raw).__name__


def _join(path: str, name: str) -> str:
    joined = f"{path}.{name}" if path else name
    return joined if len(joined) <= LONGEST_PATH else joined[: LONGEST_PATH - 1] + "…"


def _holds(tree: Any) -> str:
    names = [name for name, _ in _names(tree)] if _is_container(tree) else []
    if not names:
        return "it holds none"
    shown = ", ".join(name[:_LONGEST_NAME] for name in names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"it holds {shown}" + (f" and {more} more" if more > 0 else "")
