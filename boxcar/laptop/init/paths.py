"""What a path in a source comes to: text below a root, with * for what only the run knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from boxcar.laptop.init.reached import Part
from boxcar.laptop.init.source import assigned, children, dotted, is_text, last, text_of
from boxcar.shared.record import dataclass

ANY = "*"
_DEPTH = 24
_JOINS = ("join", "Path", "PurePath", "str", "joinpath", "normpath", "abspath", "realpath")
_KEEPS = ("resolve", "absolute", "expanduser", "as_posix", "format_map")
# What the source does not say stands in a text as its name between two of these.
_OPEN = re.compile(r"\0([^\0]*)\0")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Place:
    """`path` lies below `root`: "" is where the script was started, any other what the source
    calls it, which need not be its own flag.
    """

    path: str
    root: str


class Scope:
    """A function, a class or a file: what each name is given there, with its line."""

    def __init__(self, name: str, outer: Scope | None = None, node: ast.AST | None = None) -> None:
        self.name, self.outer, self.node = name, outer, node
        self.given: dict[str, list[tuple[int, ast.expr]]] = {}

    @property
    def parameters(self) -> list[tuple[str, ast.expr | None]]:
        if not isinstance(self.node, _FUNCTIONS):
            return []
        found = [*self.node.args.posonlyargs, *self.node.args.args]
        # Those with a default come last, whether they may be named or not.
        gap = [None] * (len(found) - len(self.node.args.defaults))
        pairs = zip(found, [*gap, *self.node.args.defaults], strict=False)
        more = zip(self.node.args.kwonlyargs, self.node.args.kw_defaults, strict=False)
        return [(each.arg, default) for each, default in (*pairs, *more)]


class Names:
    """`calls` are all of the parts, each with where it stands. `flags` are what `args.x` may be,
    `settings` globals that the source gives a value and its caller another.
    """

    def __init__(self, flags: Collection[str], settings: Collection[str]) -> None:
        self.flags, self.settings = frozenset(flags), frozenset(settings)
        self.calls: list[tuple[str, ast.Call, Scope]] = []
        self.functions: dict[str, list[Scope]] = {}
        self.attributes: dict[str, list[tuple[ast.expr, Scope, bool]]] = {}
        self.by_name: dict[str, list[tuple[ast.Call, Scope]]] = {}

    def place(self, node: ast.expr, scope: Scope) -> Place:
        names = re.split(r"[/\\]", self._text(node, scope, frozenset(), _DEPTH))
        # An unknown first part is where the script was told to write.
        is_open = _OPEN.fullmatch(names[0])
        known = names[1:] if is_open else names
        parts = [re.sub(r"\*+", ANY, _OPEN.sub(ANY, part)) for part in known]
        parts = [part for part in parts if part not in ("", ".")]
        # A folder whose name is put together is one of any name.
        folders = [ANY if part.count(ANY) > 2 else part for part in parts[:-1]]
        path = "/".join([*folders, *parts[-1:]])
        if is_open:
            return Place(path, is_open[1] or "?")
        # What begins with it may hold any folders.
        return Place(path, "/" if names[0] in ("", "~") else "?" * names[0].startswith("\0"))

    def _text(self, node: ast.expr, scope: Scope, seen: frozenset[int], depth: int) -> str:
        def value(inner: ast.expr, spec: str) -> str:
            return ANY if spec else self._value(inner, scope, seen, depth)

        return text_of(node, value)

    def _value(self, node: ast.expr, scope: Scope, seen: frozenset[int], depth: int) -> str:
        """Of what is no literal text."""
        if isinstance(node, ast.Constant):
            return ANY  # a number counts on
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            parts = (self._text(each, scope, seen, depth) for each in (node.left, node.right))
            return "/".join(parts)
        if isinstance(node, ast.Subscript):
            return _open(str(node.slice.value) if is_text(node.slice) else "")
        if isinstance(node, ast.Call):
            return self._call(node, scope, seen, depth)
        if isinstance(node, (ast.Name, ast.Attribute)):
            found = self._given(node, scope, seen) if depth else None
            told = self._text(*found, seen | {id(found[0])}, depth - 1) if found else _open("")
            return _open(last(node)) if told == _open("") else told
        one = node.body if isinstance(node, ast.IfExp) else None
        one = node.values[0] if isinstance(node, ast.BoolOp) else one
        if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1:
            one = node.elts[0]
        return self._text(one, scope, seen, depth) if one else _open("")

    def _call(self, node: ast.Call, scope: Scope, seen: frozenset[int], depth: int) -> str:
        name = last(node.func)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name == "format" and receiver:  # of a name that was given a text
            return re.sub(r"\{[^}]*\}", ANY, self._text(receiver, scope, seen, depth))
        if name in _KEEPS and receiver:
            return self._text(receiver, scope, seen, depth)
        if name in _JOINS or (name == "open" and node.args):
            own = [receiver] if name == "joinpath" and receiver else []
            given = [*own, *(node.args[:1] if name == "open" else node.args)]
            return "/".join(self._text(each, scope, seen, depth) for each in given)
        made = self.functions.get(name, []) if depth else []
        for inner in made[:1]:
            for returned in _returned(inner):
                if id(returned) not in seen:
                    return self._text(returned, inner, seen | {id(returned)}, depth - 1)
        return _open("")

    def _given(
        self, node: ast.Name | ast.Attribute, scope: Scope, seen: frozenset[int]
    ) -> tuple[ast.expr, Scope] | None:
        """What it was given last, before this line; never the same expression twice."""
        if isinstance(node, ast.Name) and node.id in self.settings:
            return None
        if isinstance(node, ast.Attribute) and node.attr in self.flags and not _is_own(node):
            return None
        if isinstance(node, ast.Attribute):
            found = self.attributes.get(node.attr, [])[::-1]
            # A plain value of a config is what another file replaces.
            return next(
                (
                    (given, where)
                    for given, where, is_self in found
                    if id(given) not in seen and (is_self or not isinstance(given, ast.Constant))
                ),
                None,
            )
        place: Scope | None = scope
        while place:
            values = [item for item in place.given.get(node.id, []) if id(item[1]) not in seen]
            before = [item for item in values if item[0] <= node.lineno] or values
            if before:
                return before[-1][1], place
            if node.id in (name for name, _ in place.parameters):
                return self._bound(node.id, place, seen)
            place = place.outer
        return None

    def _bound(
        self, name: str, function: Scope, seen: frozenset[int]
    ) -> tuple[ast.expr, Scope] | None:
        """What a parameter is given by the first call that gives it, else its default."""
        names = [each for each, _ in function.parameters]
        at = names.index(name) - (names[0] in ("self", "cls"))
        is_made = function.name == "__init__" and function.outer
        called = function.outer.name if is_made and function.outer else function.name
        for call, scope in self._calls_of(function, called):
            if any(item.arg is None for item in call.keywords):
                return None  # as **config may
            by_place = {
                n: arg for n, arg in enumerate(call.args) if not isinstance(arg, ast.Starred)
            }
            given = {item.arg: item.value for item in call.keywords}.get(name) or by_place.get(at)
            if given is not None and id(given) not in seen:
                return given, scope
        default = dict(function.parameters)[name]
        return (default, function) if default is not None and id(default) not in seen else None

    def _calls_of(self, function: Scope, called: str) -> list[tuple[ast.Call, Scope]]:
        """Of `__call__` those of what is named as its class: `early_stopping(loss, path)`."""
        if called != "__call__" or not function.outer:
            found = self.by_name.get(called, [])
            is_method = function.outer is not None and function.outer.node is not None
            # torch.save is not the project's own save.
            return [each for each in found if is_method or _is_plain(each[0], function)]
        name = function.outer.name.lower()
        named = (calls for key, calls in self.by_name.items() if key.replace("_", "") == name)
        return next(named, [])


def read_paths(
    parts: Iterable[Part], flags: Collection[str] = (), settings: Collection[str] = ()
) -> Names:
    """The names and calls of what a script runs."""
    names = Names(flags, settings)
    for part in parts:
        _gather(part.tree, Scope(part.path), names, part.path)
    for _, call, scope in names.calls:
        names.by_name.setdefault(last(call.func), []).append((call, scope))
    return names


def _gather(tree: ast.Module, file: Scope, names: Names, path: str) -> None:
    left: list[tuple[ast.AST, Scope]] = [(node, file) for node in tree.body[::-1]]
    while left:
        node, scope = left.pop()
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            scope = Scope(node.name, scope, node)
            names.functions.setdefault(node.name, []).append(scope)
        elif isinstance(node, ast.Call):
            names.calls.append((path, node, scope))
        for target, value in _pairs(node):
            if isinstance(target, ast.Name):
                scope.given.setdefault(target.id, []).append((target.lineno, value))
            elif isinstance(target, ast.Attribute):
                found = names.attributes.setdefault(target.attr, [])
                found.append((value, scope, _is_own(target)))
        left += [(child, scope) for child in children(node)[::-1]]


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from assigned(node)
    elif isinstance(node, ast.AnnAssign) and node.value:
        yield node.target, node.value
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, (ast.Name, ast.Attribute)):
        yield node.target, ast.BinOp(node.target, node.op, node.value)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield node.optional_vars, node.context_expr


def _is_plain(call: ast.Call, function: Scope) -> bool:
    """`save(...)`, and `utils.save(...)` of what stands in utils.py."""
    file = function.outer.name if function.outer else ""
    stem = file.rpartition("/")[2].removesuffix(".py")
    return not isinstance(call.func, ast.Attribute) or last(call.func.value) == stem


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and dotted(node.value) in ("self", "cls")


def _returned(function: Scope) -> Iterator[ast.expr]:
    for node in ast.walk(function.node) if isinstance(function.node, _FUNCTIONS) else ():
        if isinstance(node, ast.Return) and node.value:
            yield node.value


def _open(name: str) -> str:
    return f"\0{name}\0"
