"""YAML that people wrote, as a checked pydantic model, with the file and line of every problem.

Each scalar is taken as the text that was typed, and the model makes a number of it where it wants
one: YAML 1.1 alone would read `no` as false, `010` as 8 and `1:30` as 90. Nothing of a file is ever
constructed: the node tree is walked here.

Not covered: writing YAML. Machines write JSON.
"""

from __future__ import annotations

import re
import shlex
import typing
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from boxcar.laptop.common.near import did_you_mean
from boxcar.shared.errors import InputError, reason_of
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark, quotation, said_by

LARGEST_FILE_BYTES = 1024 * 1024
# Aliases make a small file large: ten lines of them can mean a billion nodes.
MOST_NODES = 10_000
MOST_LEVELS = 50

M = TypeVar("M", bound="Model")
Place = tuple[str | int, ...]  # keys and positions, from the top of the file


class Mark(NamedTuple):
    """Where something was typed. Line 0: in no file."""

    file: str
    line: int


Problem = tuple[Mark, str]

_PLAIN_KEY = re.compile(r"[\w-]+")
_YAML = "tag:yaml.org,2002:"
# What a plain scalar may be resolved to; any other tag was typed.
_TAGS = frozenset(
    f"{_YAML}{tag}"
    for tag in ("bool", "float", "int", "map", "merge", "null", "seq", "str", "timestamp", "value")
)
_EXPECTED = {
    "int_type": mark("a whole number"),
    "int_parsing": mark("a whole number"),
    "int_parsing_size": mark("a smaller whole number"),
    "int_from_float": mark("a whole number"),
    "string_type": mark("text"),
    "tuple_type": mark("a list"),
    "dict_type": mark("keys with values"),
    "model_type": mark("keys with values"),
}


class Model(BaseModel):
    """Base of what is read with `load`: no unknown keys, never changed, and it knows its lines."""

    # Late: half of the models are of what most files do not say.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    _marks: dict[Place, Mark] = PrivateAttr(default_factory=dict)

    def at(self, *place: str | int) -> str:
        """`job.yaml:12: cells.base`, for a problem that is seen only later."""
        return f"{_at(*_mark(self._marks, place))}{spelled(place)}"


@dataclass(frozen=True)
class Document:
    """What a file says, not checked yet: dicts, lists and texts, and where each was typed."""

    value: Any
    marks: dict[Place, Mark]
    problems: list[Problem]


def load(path: Path, model: type[M]) -> M:
    """The file as a `model`. Raises InputError with all problems of the file."""
    return build(read_yaml(path), model)


def read_yaml(path: Path) -> Document:
    """What the file says. Raises InputError where it cannot be read as YAML."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError as error:
        folder = shlex.quote(str(path.parent))
        raise InputError(
            _(
                "{file}: no such file. To see what is there: ls {folder}",
                file=path,
                folder=folder,
            )
        ) from error
    except OSError as error:
        raise InputError(
            _("{file}: cannot be read: {why}", file=path, why=reason_of(error))
        ) from error
    return parse_document(data, str(path))


def parse(data: bytes, where: str, model: type[M]) -> M:
    """`data` as a `model`; `where` is the file's name in every problem. Raises InputError."""
    return build(parse_document(data, where), model)


def build(document: Document, model: type[M]) -> M:
    """The document as a `model`. Raises InputError with all problems, each with its file."""
    problems = list(document.problems)
    try:
        checked = model.model_validate(document.value)
    except ValidationError as error:
        problems += [
            _problem(model, document.marks, dict(detail))
            for detail in error.errors(include_url=False)
        ]
    if problems:
        raise InputError(
            [_("{at}{text}", at=_at(*mark), text=text) for mark, text in sorted(problems)]
        )
    checked._marks = document.marks
    return checked


def laid_over(own: Document, base: Document) -> Document:
    """What `own` says, and what `base` says where `own` is silent. A list is replaced whole."""
    marks = dict(own.marks)
    value = _laid_over(own.value, base.value, (), base.marks, marks)
    return Document(value, marks, [*base.problems, *own.problems])


def _laid_over(
    own: Any, base: Any, place: Place, base_marks: Mapping[Place, Mark], marks: dict[Place, Mark]
) -> Any:
    if not (isinstance(own, dict) and isinstance(base, dict)):
        return own
    merged = dict(own)
    for key, value in base.items():
        inner = (*place, key)
        if key in own:
            merged[key] = _laid_over(own[key], value, inner, base_marks, marks)
        else:
            merged[key] = value
            kept = (each for each in base_marks if each[: len(inner)] == inner)
            marks.update((each, base_marks[each]) for each in kept)
    return merged


def parse_document(data: bytes, where: str) -> Document:
    """`data` as a document; `where` is its file's name. Raises InputError for what is no YAML."""
    walk = _Walk(where)
    value = walk.value(_compose(_decode(data, where), where), ())
    return Document(value, walk.marks, walk.problems)


def spelled(place: Place) -> str:
    """`artifacts[1].keys` and `queues['queues/q.txt']`: the place as a person would write it."""
    steps = (
        f".{step}" if isinstance(step, str) and _PLAIN_KEY.fullmatch(step) else f"[{step!r}]"
        for step in place
    )
    return "".join(steps).removeprefix(".")


def _decode(data: bytes, where: str) -> str:
    if len(data) > LARGEST_FILE_BYTES:
        raise InputError(
            _(
                "{where}: larger than {largest_file_bytes} bytes, so this is not a settings file",
                where=where,
                largest_file_bytes=LARGEST_FILE_BYTES,
            )
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        raise InputError(
            _(
                "{where}not UTF-8 text (byte 0x{byte:02x}). Save the file as UTF-8",
                where=_at(where, line),
                byte=byte,
            )
        ) from error


class _Loader(yaml.SafeLoader):
    """Stops at MOST_NODES: to compose 1 MB of `- a` would take 12 seconds."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise ValueError(_("it has more than {most_nodes} values", most_nodes=MOST_NODES))
        return super().compose_node(parent, index)


def _compose(text: str, where: str) -> yaml.Node:
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise InputError(_syntax(error, where)) from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise InputError(
            _(
                "{where}the character {character!r} is not allowed",
                where=_at(where, line),
                character=chr(error.character),
            )
        ) from error
    except RecursionError as error:
        raise InputError(
            _(
                "{where}: nested deeper than {most_levels} levels",
                where=where,
                most_levels=MOST_LEVELS,
            )
        ) from error
    except (ValueError, OverflowError) as error:
        # Beside too many values, "\UFFFFFFFF" and a %YAML of 5,000 digits get through the scanner.
        raise InputError(
            _("{where}: cannot be read as YAML: {error}", where=where, error=error)
        ) from error
    if root is None:
        raise InputError(_("{file}: the file is empty", file=where))
    return root


# By words of PyYAML's own, which nobody has to read.
_CAUSES = (
    ("'\\t'", mark("a tab where only spaces are allowed: indent with spaces")),
    (
        "mapping values are not allowed",
        mark(
            "a second ': ' in this line, or the line is indented too far. A value that contains "
            "': ' must be quoted"
        ),
    ),
    ("could not find expected ':'", mark("a key without a ': ' behind it")),
    (
        "cannot start any token",
        mark("a value that begins with @, % or ` must be quoted"),
    ),
    (
        "alias",
        mark("a value that begins with * or & must be quoted"),
    ),
    (
        "unknown escape character",
        mark("in \"double quotes\" a backslash is special: use 'single quotes'"),
    ),
    (
        "flow",
        mark(
            "a bracket or a comma is missing here, or a value that begins with {{ or [ must be "
            "quoted"
        ),
    ),
    (
        "expected <block end>",
        mark("this line does not fit the lines above it: check its indent, and quotes above it"),
    ),
)


def _syntax(error: yaml.MarkedYAMLError, where: str) -> str:
    context, problem = error.context or "", error.problem or ""
    is_open = "end of stream" in problem or "stream end" in problem
    mark = error.context_mark if is_open else error.problem_mark
    at = _at(where, mark.line + 1 if mark else 0)
    if is_open and "quoted" in context:
        return _("{at}{text}", at=at, text=_("the quote that opens here is never closed"))
    if is_open and "flow" in context:
        return _("{at}{text}", at=at, text=_("the bracket that opens here is never closed"))
    said = ", ".join(filter(None, (context, problem)))
    cause = next((cause for words, cause in _CAUSES if words in said), "")
    if cause:
        return _("{at}{text}", at=at, text=_(cause))
    what = _(
        "not YAML ({said}). A value must be quoted if it begins with one of {{ [ * & ! @ % ` or "
        "contains ': '",
        said=quotation(said),
    )
    return _("{at}{text}", at=at, text=what)


class _Walk:
    """The node tree as dicts, lists and texts, with the mark of every place."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.marks: dict[Place, Mark] = {}
        self.problems: list[Problem] = []
        self._nodes = 0

    def value(self, node: yaml.Node, place: Place) -> Any:
        line = node.start_mark.line + 1
        self.marks.setdefault(place, Mark(self.where, line))
        self._check_size(place, line)
        if node.tag not in _TAGS:
            tag = node.tag.removeprefix(_YAML)
            self._note(line, place, _("the tag {tag!r} is not allowed here", tag=tag))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place, line)
        return [self.value(item, (*place, i)) for i, item in enumerate(node.value)]

    def _check_size(self, place: Place, line: int) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise InputError(
                _(
                    "{where}aliases make more than {most_nodes} values",
                    where=_at(self.where, line),
                    most_nodes=MOST_NODES,
                )
            )
        if len(place) > MOST_LEVELS:
            raise InputError(
                _(
                    "{where}nested deeper than {most_levels} levels, or an alias refers to itself",
                    where=_at(self.where, line),
                    most_levels=MOST_LEVELS,
                )
            )

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._note(line, place, _("a key must be text"))
                continue
            key, inner = key_node.value, (*place, key_node.value)
            if key in found:
                first = self.marks[inner].line
                self._note(
                    line, place, _("the key {key!r} is already on line {line}", key=key, line=first)
                )
                continue
            self.marks[inner] = Mark(self.where, line)
            found[key] = self.value(value_node, inner)
        return found

    def _scalar(self, node: yaml.ScalarNode, place: Place, line: int) -> str | None:
        text: str = node.value
        unseen = [char for char in text if unicodedata.category(char) in ("Cc", "Cs")]
        if bad := [char for char in unseen if char not in "\n\t"]:
            self._note(line, place, _("contains the character {bad!r}", bad=bad[0]))
        return None if text == "" and node.style is None else text

    def _note(self, line: int, place: Place, what: str) -> None:
        self.problems.append((Mark(self.where, line), _with_place(place, what)))


_MOST_KEYS_NAMED = 10


def _problem(model: type[Model], marks: Mapping[Place, Mark], error: dict[str, Any]) -> Problem:
    # Pydantic marks a bad key of a mapping by a last step '[key]'.
    place: Place = tuple(step for step in error["loc"] if step != "[key]")
    mark = _mark(marks, place)
    if error["type"] == "value_error":
        # What is seen of the whole file says itself which key it is: `slurm.queues: no such file`.
        key = said_by(error["ctx"]["error"]).partition(":")[0].partition(".")[0]
        mark = marks.get((*place, key), mark)
    if error["type"] == "extra_forbidden":
        key = str(place[-1])
        known = _known_keys(model, place[:-1])
        near = did_you_mean(key, known)
        if not near and place[:-1] and 0 < len(known) <= _MOST_KEYS_NAMED:
            near = _(" (here stand: {keys})", keys=", ".join(sorted(known)))
        if key == "gpus" and "gpus_per_cell" in known:
            near = _(
                ": write gpus_per_cell: for several cells on a box, nproc_per_node: for the ranks "
                "of all cells, or nproc= in a queue line"
            )
        return mark, _("unknown key {key!r}{near}", key=spelled(place), near=near)
    if error["type"] == "missing":
        return mark, _with_place(place[:-1], _("the key {key!r} is missing", key=place[-1]))
    return mark, _with_place(place, _sentence(error))


def _with_place(place: Place, what: str) -> str:
    return _("{head}: {text}", head=spelled(place), text=what) if place else what


def _sentence(error: dict[str, Any]) -> str:
    kind, context, found = error["type"], error.get("ctx", {}), _found(error["input"])
    if kind in _EXPECTED:
        return _expected(Sentence(_EXPECTED[kind]), found)
    if kind == "greater_than_equal":
        return _expected(_("a number of {n} or more", n=context["ge"]), found)
    if kind == "less_than_equal":
        return _expected(_("a number of {n} or less", n=context["le"]), found)
    if kind == "literal_error":
        first, is_choice, last = context["expected"].rpartition(" or ")
        choice = _("{first} or {last}", first=first, last=last) if is_choice else last
        return _expected(choice, found)
    if kind == "value_error":
        return said_by(context["error"])
    return f"{error['msg']}, found {found}"


def _expected(what: str, found: str) -> str:
    return _("expected {what}, found {found}", what=what, found=found)


def _found(value: object) -> str:
    if value is None:
        return _("nothing")
    if isinstance(value, (dict, list)):
        return _(mark("a list") if isinstance(value, list) else mark("keys with values"))
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _known_keys(model: type[BaseModel], place: Place) -> list[str]:
    """The keys that are known at `place`, by following the model's annotations."""
    hint: Any = model
    for step in place:
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            hint = _bare(hint.model_fields[str(step)].annotation)
        else:
            hint = _bare(typing.get_args(hint)[0 if isinstance(step, int) else 1])
    return [field.alias or name for name, field in hint.model_fields.items()]


def _bare(hint: Any) -> Any:
    """`X` for `Annotated[X, ...]` and for `X | None`."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Annotated or type(None) in arguments:
        return _bare(arguments[0])
    return hint


def _mark(marks: Mapping[Place, Mark], place: Place) -> Mark:
    """Where `place` was typed, or the nearest thing around it that was."""
    while place and place not in marks:
        place = place[:-1]
    return marks.get(place, Mark("", 0))


def _at(where: str, line: int) -> str:
    return f"{where}:{line}: " if line else f"{where}: " if where else ""
