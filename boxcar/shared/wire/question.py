"""What a question to a box is, and the run that is meant by each.

A question's class names its answer's class, so who asks gets the right type, and spells the name
that travels. How both become JSON is envelope.py's. The questions stand in *_asks.py beside this
file, each with its answer, so that a reader who changes one side has the other before their eyes.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from boxcar.shared import names, paths, timestamp
from boxcar.shared.cell.cell_name import CELL_NAME, LONGEST_BYTES
from boxcar.shared.errors import DamagedError, words_of
from boxcar.shared.files import codec
from boxcar.shared.paths import DataPaths, DurablePaths, ScratchPaths
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# The kinds of fields that questions and answers are made of.
#
# Each has a rule that is checked where the field is decoded: on the box before a name becomes a
# path or a word, on the laptop before anybody relies on an answer. A rule raises ValueError; which
# box, question and field it was, the codec says. A name is shown there, and no other value.


def _named(rule: re.Pattern[str]) -> Callable[[str], None]:
    def check(name: str) -> None:
        if not rule.fullmatch(name):
            raise ValueError(
                _("{name!r} cannot be a name; expected {pattern}", name=name, pattern=rule.pattern)
            )

    return check


def one_of(*words: str) -> Callable[[str], None]:
    def check(word: str) -> None:
        if word not in words:
            raise ValueError(
                _("expected {words}, found {word!r}", words=" or ".join(words), word=word)
            )

    return check


def _check_cell(name: str) -> None:
    if not CELL_NAME.fullmatch(name) or len(name.encode()) > LONGEST_BYTES or name[-1] == ".":
        raise ValueError(_("expected the name of a cell, found {name!r}", name=name))


def _check_count(number: int) -> None:
    if number < 0:
        raise ValueError(_("expected 0 or more, found {number}", number=number))


def _check_box_path(text: str) -> None:
    try:
        paths.on_box(text)
    except DamagedError as error:
        raise ValueError(words_of(error)) from None


def _check_time(text: str) -> None:
    timestamp.parse_utc(text)


RunName = Annotated[str, _named(names.RUN)]
QueueName = Annotated[str, _named(names.QUEUE)]
ArrayIndex = Annotated[str, _named(re.compile(r"0|[1-9][0-9]{0,8}"))]
ScriptName = Annotated[str, _named(re.compile(r"run_slurm(?:_[0-9]{1,6})?\.sh"))]
BoxName = Annotated[str, _named(names.PLACE)]
CellName = Annotated[str, _check_cell]
Digest = Annotated[str, _named(names.DIGEST)]
# As the plan spells it: absolute, or below the box's home by `~/`.
BoxPath = Annotated[str, _check_box_path]
Count = Annotated[int, _check_count]
Time = Annotated[str, _check_time]
Token = Annotated[str, _named(re.compile(r"[0-9a-f]{16,64}"))]
# The size in bytes and the SHA-256 of what the laptop has of a file.
Prefix = tuple[Count, Digest]
# Of a field with the default None: it is spelled only where there is something to say.
SILENT: dict[str, Any] = codec.LATER


A = TypeVar("A")


class Question(Generic[A]):
    """`class Start(Question[Started], name="start")`: the name that travels, and the answer."""

    NAME: ClassVar[str]
    ANSWER: ClassVar[type[Any]]

    def __init_subclass__(cls, name: str) -> None:
        super().__init_subclass__()
        cls.NAME = name
        cls.ANSWER = typing.get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]

    def check(self, answer: A) -> None:
        """Raise ValueError for an answer that is well formed, but none to this question."""


@dataclass(frozen=True)
class RunOnBox:
    """Which run is meant, and where it lies on the box that is asked: in every question."""

    run: RunName
    durable_dir: BoxPath
    data_dir: BoxPath

    @property
    def tier(self) -> DurablePaths:
        return DurablePaths(paths.on_box(self.durable_dir), self.run)

    @property
    def scratch(self) -> ScratchPaths:
        return ScratchPaths(paths.on_box(self.data_dir), self.run)

    def data_store(self, *, is_on_tier: bool) -> DataPaths:
        return DataPaths(paths.on_box(self.durable_dir if is_on_tier else self.data_dir))
