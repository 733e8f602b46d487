"""Event files for TensorBoard, one folder for each cell: the same cell gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from boxcar.laptop.trackers import exported_cell
from boxcar.laptop.trackers.exported_cell import ExportedCell
from boxcar.laptop.view.report.settings import Value

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

_VERSION = "brain.Event:2"


def write(folder: Path, cell: ExportedCell) -> str:
    from tensorboard.summary.writer.record_writer import RecordWriter

    def make(partial: Path) -> Path:
        made = partial / cell.name
        made.mkdir()
        name = f"events.out.tfevents.{int(cell.began_s)}.{cell.id}"
        with (made / name).open("wb") as file:
            writer = RecordWriter(file)
            for event in _events(cell):
                writer.write(event.SerializeToString(deterministic=True))
        return made

    return exported_cell.put_folder(folder, make, lambda name: f"{cell.run}/{name}", ())


def _events(cell: ExportedCell) -> Iterator[Event]:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.plugins.text.summary_v2 import text_pb

    yield Event(wall_time=cell.began_s, file_version=_VERSION)
    begin = {"trial_id": cell.id, "start_time_secs": cell.began_s}
    for begun in (
        hparams_pb(cell.told, **begin),
        text_pb("config", _table(cell.config)),
        text_pb("boxcar", _table({**cell.tags, **cell.proof})),
    ):
        yield Event(wall_time=cell.began_s, step=0, summary=begun)
    for point in cell.points:
        yield _scalars(point.at, point.step, point.values)
    yield _scalars(cell.ended_s, cell.last_step, cell.finals)
    yield Event(wall_time=cell.ended_s, step=0, summary=_end(cell))


def _end(cell: ExportedCell) -> Summary:
    """As hparams.summary makes it, which wants the whole of TensorFlow."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    info = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS, end_time_secs=cell.ended_s)
    about = metadata.create_summary_metadata(
        plugin_data_pb2.HParamsPluginData(session_end_info=info)
    )
    return Summary(value=[Summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=about)])


def _scalars(at: float, step: int, values: Mapping[str, float]) -> Event:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    named = [Summary.Value(tag=key, simple_value=value) for key, value in values.items()]
    return Event(wall_time=at, step=step, summary=Summary(value=named))


def _table(values: Mapping[str, Value]) -> str:
    """In Markdown, which the text plugin shows; nothing of a name is a column or a line."""
    rows = (f"| {_plain(key)} | {_plain(value)} |" for key, value in values.items())
    return "\n".join(["| key | value |", "| --- | --- |", *rows])


def _plain(value: Value) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
