"""An MLflow store in one SQLite file: an experiment for each run, in it a run for each cell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from boxcar.laptop.common.units import distinct
from boxcar.laptop.trackers.exported_cell import ExportedCell

if TYPE_CHECKING:
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

T = TypeVar("T")
FILE, ARTIFACTS = "mlflow.db", "artifacts"
# What its store takes at once, and of one value.
_MOST_METRICS, _MOST_PARAMS, _MOST_CHARACTERS, _MOST_NAME = 1000, 100, 6000, 240
_ODD = re.compile(r"[^\w./ :-]")


def write(folder: Path, cell: ExportedCell) -> str:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=_uri(folder))
    experiment = _experiment(client, folder, cell.run)
    before = _runs(client, experiment, cell.id)
    tags = {**cell.tags, **cell.proof, "boxcar.content": cell.content}
    run = client.create_run(
        experiment, start_time=_ms(cell.began_s), tags=tags, run_name=cell.name
    ).info.run_id
    for metrics in _parts(list(_metrics(cell)), _MOST_METRICS):
        client.log_batch(run, metrics=metrics)
    for params in _parts(list(_params(cell)), _MOST_PARAMS):
        client.log_batch(run, params=params)
    client.set_terminated(run, "FINISHED", end_time=_ms(cell.ended_s))
    for old in before:
        client.delete_run(old)
    return FILE


def _uri(folder: Path) -> str:
    return f"sqlite:///{folder.absolute() / FILE}"


def _experiment(client: MlflowClient, folder: Path, run: str) -> str:
    if found := client.get_experiment_by_name(run):
        return str(found.experiment_id)
    return str(client.create_experiment(run, artifact_location=str(folder.absolute() / ARTIFACTS)))


def _runs(client: MlflowClient, experiment: str, id: str) -> list[str]:
    """What an earlier export has made of a cell, also one that was killed."""
    found = client.search_runs([experiment], filter_string=f"tags.`boxcar.id` = '{id}'")
    return [run.info.run_id for run in found]


def _metrics(cell: ExportedCell) -> Iterator[Metric]:
    from mlflow.entities import Metric

    names = _names([*cell.curves, *cell.finals])
    for point in cell.points:
        for key, value in point.values.items():
            yield Metric(names[key], value, _ms(point.at), point.step)
    for key, value in cell.finals.items():
        yield Metric(names[key], value, _ms(cell.ended_s), cell.last_step)


def _params(cell: ExportedCell) -> Iterator[Param]:
    from mlflow.entities import Param

    names = _names(cell.config)
    for key, value in cell.config.items():
        yield Param(names[key], str(value)[:_MOST_CHARACTERS])


def _names(keys: Collection[str]) -> dict[str, str]:
    """Its store takes few characters in a name, not too many of them, and no path such as a//b."""
    allowed = (_ODD.sub("_", key)[:_MOST_NAME].split("/") for key in keys)
    paths = ["/".join(part for part in parts if part.strip(".")) or "_" for parts in allowed]
    return dict(zip(keys, distinct(paths), strict=True))


def _parts(items: list[T], most: int) -> Iterator[list[T]]:
    yield from (items[at : at + most] for at in range(0, len(items), most))


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
