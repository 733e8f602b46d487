"""A progress as bars on a terminal, drawn a few times a second from what was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Column
from rich.text import Text

from boxcar.laptop.common import progress
from boxcar.laptop.common.progress import Part

_A_SECOND = 5
_BAR_CELLS = 16
_MOST_ROWS = 8


class Bars(Progress):
    """Within `start` and `stop`: a row for all of it, and below it one for each part at work."""

    def __init__(
        self, shown: progress.Progress, console: Console, spell: Callable[[str], str]
    ) -> None:
        self._shown, self._spell = shown, spell
        self._rows: dict[Part, TaskID] = {}
        self._all: TaskID | None = None
        super().__init__(
            *_columns(shown.unit),
            console=console,
            transient=True,
            refresh_per_second=_A_SECOND,
            expand=True,
        )
        self._all = self.add_task(spell(shown.what), total=None)
        shown.tell_parts(self._add)

    def get_renderables(self) -> Iterable[RenderableType]:
        # Not where it is counted: to draw is dear, and to count has to cost nothing.
        if self._all is not None:  # rich asks once before there is a row
            self._look(self._all)
        yield self.make_tasks_table(self.tasks)

    def _add(self, part: Part) -> None:
        self._rows[part] = self.add_task("", total=part.total, visible=False)

    def _look(self, all_row: TaskID) -> None:
        shown, parts = self._shown, list(self._rows)
        names = (parts[0].name, parts[0].doing) if parts and shown.is_one else ()
        what = self._joined(shown.what, *names)
        self.update(all_row, description=what, completed=shown.done, total=shown.total or None)
        if shown.is_left_told:
            self.update(all_row, left_s=shown.left_s)
        at_work = [part for part in parts if part.is_at_work and not shown.is_one][:_MOST_ROWS]
        for part, row in self._rows.items():
            if part in at_work:
                what = f"  {self._joined(part.name, part.doing)}"
                self.update(row, description=what, completed=part.done, visible=True)
                if shown.is_left_told:
                    self.update(row, left_s=part.left_s)
            else:
                self.update(row, visible=False)

    def _joined(self, *words: str) -> str:
        return " ".join(self._spell(word) for word in words if word)


class _TimeLeft(TimeRemainingColumn):
    """As it was told, where it was; else by the speed."""

    def render(self, task: Task) -> Text:
        if "left_s" not in task.fields:
            return super().render(task)
        left_s = task.fields["left_s"]
        return Text("-:--:--" if left_s is None else str(timedelta(seconds=round(left_s))))


def _columns(unit: str) -> list[ProgressColumn]:
    what = TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)
    )
    rest: list[ProgressColumn] = [MofNCompleteColumn(), _TimeLeft()]
    if unit == progress.BYTES:
        rest = [DownloadColumn(), TransferSpeedColumn(), _TimeLeft()]
    return [SpinnerColumn(), what, BarColumn(_BAR_CELLS), *rest]
