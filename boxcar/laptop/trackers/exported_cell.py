"""One proven cell as a tracker gets it: what it was told, its curves, its numbers, and its proof.

Pure. The same result gives the same content, whatever else is in the run by then.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, TextIO

from boxcar.laptop.common.units import distinct
from boxcar.laptop.view.report import cell_series
from boxcar.laptop.view.report.settings import Value
from boxcar.shared.disk import atomic, digest
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.metrics import records
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# A cell's export that is a folder: made aside, and given its name once it is whole.


PARTIAL = ".partial"


def put_folder(
    folder: Path, make: Callable[[Path], Path], place: Callable[[str], str], before: Iterable[Path]
) -> str:
    """Have `make` write below the folder that it gets, and return what it made; where that lies
    then, as `place` says of its name. What lay there `before` goes once the new one is whole.
    """
    partial = folder / PARTIAL
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    made = make(partial)
    where = place(made.name)
    for path in {*before, folder / where}:
        if path.exists():
            shutil.rmtree(path)
    (folder / where).parent.mkdir(parents=True, exist_ok=True)
    made.rename(folder / where)
    shutil.rmtree(partial, ignore_errors=True)
    return where


# `export.json` in the folder of an export: what lies there of each cell. Laptop only.


RECORD_FILE, RECORD_LOCK = "export.json", ".lock"


@dataclass(frozen=True)
class Kept:
    """A cell as it was exported: the digest of its content, and where it lies below the folder."""

    content: str
    where: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ExportRecord:
    FORMAT: ClassVar[str] = "export"
    VERSION: ClassVar[int] = 1

    to: str
    cells: dict[str, Kept] = field(default_factory=dict)  # by run/cell
    extra: dict[str, Any] = field(default_factory=dict)


def read_export_record(folder: Path, to: str) -> ExportRecord:
    """An empty one where nothing was exported yet. Raises DamagedError, and InputError for the
    folder of another tracker, or of somebody else.
    """
    path = folder / RECORD_FILE
    if not path.exists():
        if any(path.name not in (RECORD_LOCK, PARTIAL) for path in folder.iterdir()):
            raise InputError(
                _("{folder}: expected an empty folder, or one made by export", folder=folder)
            )
        return ExportRecord(to)
    found = codec.from_document(ExportRecord, path.read_bytes(), str(path))
    if found.to != to:
        raise InputError(
            _(
                "{folder}: contains an export to {to}; choose another folder with --out",
                folder=folder,
                to=found.to,
            )
        )
    return found


def write_export_record(folder: Path, record: ExportRecord) -> None:
    atomic.write_whole(folder / RECORD_FILE, codec.to_document(record))


_ID_DIGITS = 16
# Another one exports everything again: what is written of a cell has changed.
_KIND = 2


@dataclass(frozen=True)
class Point:
    """What a cell reported at one step; `at` is in seconds since 1970. A value may be NaN."""

    step: int
    at: float
    values: Mapping[str, float]


@dataclass(frozen=True)
class ExportedCell:
    """`config` is flat. `began_s` and `ended_s` are seconds since 1970, of the last attempt.

    `manifest` is the digest that the receipt proves, `receipt` that of the receipt itself: it
    changes with every other cell of the run, and is no part of the content.
    """

    run: str
    name: str
    group: str
    seed: str
    box: str
    config: Mapping[str, Value]
    numbers: Mapping[str, float]
    points: tuple[Point, ...]
    began_s: float
    ended_s: float
    manifest: str
    receipt: str
    # On what it was trained, by what of it is known: GPUs, driver, ranks.
    trained_on: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.run}/{self.name}"

    @property
    def id(self) -> str:
        return id_of(self.key)

    @property
    def curves(self) -> list[str]:
        """The names of its curves."""
        return list(dict.fromkeys(key for point in self.points for key in point.values))

    @property
    def told(self) -> dict[str, Value]:
        """What a person compares it by: its config, and what Boxcar says of it under names that are
        free.
        """
        ours = {**self.tags, **self.proof}
        return {**self.config, **dict(zip(distinct(ours, self.config), ours.values(), strict=True))}

    @property
    def tags(self) -> dict[str, str]:
        seed = {"seed": self.seed} if self.seed else {}
        return {"run": self.run, "group": self.group, **seed}

    @property
    def finals(self) -> dict[str, float]:
        """Under names of their own: a curve may have the same one, and another meaning."""
        names = distinct([f"final/{name}" for name in self.numbers], self.curves)
        return dict(zip(names, self.numbers.values(), strict=True))

    @property
    def proof(self) -> dict[str, str]:
        """Where it comes from, for whoever finds it in a tracker."""
        return {
            "boxcar.id": self.id,
            "boxcar.box": self.box,
            "boxcar.manifest": self.manifest,
            "boxcar.receipt": self.receipt,
            **{f"boxcar.{name}": value for name, value in self.trained_on.items()},
        }

    @property
    def last_step(self) -> int:
        return self.points[-1].step if self.points else 0

    @property
    def content(self) -> str:
        """The digest of all that a tracker gets, but for the receipt."""
        fields = {k: v for k, v in codec.encode(self).items() if k != "receipt"}
        if not self.trained_on:  # as the digest was before anybody asked
            fields.pop("trained_on", None)
        return digest.of_json(codec.finite({"kind": _KIND, **fields}))


def id_of(key: str) -> str:
    """Of a cell, by run/cell: the same for ever, also once it was trained again."""
    return digest.of_bytes(key.encode())[:_ID_DIGITS]


# A cell's series as trackers take them: by whole steps, each with a time of the training.
#
# NaN stays NaN, and a gap stays a gap. Pure.


def points_of_series(
    series: Mapping[str, Sequence[records.Point]], began_s: float, ended_s: float
) -> tuple[Point, ...]:
    """In the order of the steps. Where a step was said twice, what was said last counts."""
    values: dict[int, dict[str, float]] = {}
    times: dict[int, float] = {}
    for key, points in series.items():
        is_timed = any(at is not None for _, at, _ in points)
        places = zip(_steps(points), cell_series.times(points, began_s, ended_s), strict=True)
        for (step, at), (_step, _at, value) in zip(places, points, strict=True):
            values.setdefault(step, {})[key] = value
            if is_timed or step not in times:
                times[step] = at
    return tuple(Point(step, times[step], values[step]) for step in sorted(values))


def _steps(points: Sequence[records.Point]) -> list[int]:
    """The script's own, else their numbers: half an epoch is no step to a tracker."""
    if any(step is not None and step != int(step) for step, _, _ in points):
        return list(range(1, len(points) + 1))
    return [
        number if step is None else int(step) for number, (step, _, _) in enumerate(points, start=1)
    ]


# The environment in which a tracker's library is used: nothing is sent, and nothing of the person's
# own settings for it counts. What it prints goes to `notes`.


_THEIRS = ("WANDB_", "SWANLAB_", "MLFLOW_")
_OURS = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "WANDB_ERROR_REPORTING": "false",
    "SWANLAB_MODE": "offline",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "DO_NOT_TRACK": "true",
}


@contextlib.contextmanager
def offline(notes: TextIO) -> Iterator[None]:
    """Put back at its end."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(_THEIRS)]:
        del os.environ[name]
    os.environ.update(_OURS)
    try:
        with contextlib.redirect_stdout(notes):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)
