"""The lines that are there already, and what each line says: none is written a second time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from boxcar.laptop.grids.grid_lines import Known
from boxcar.laptop.project import queue_files
from boxcar.laptop.project.project import Project
from boxcar.laptop.project.queue_files import QueueFile
from boxcar.laptop.queues import rewrite
from boxcar.shared.cell import saying
from boxcar.shared.cell.cell_line import CellLine
from boxcar.shared.disk import digest
from boxcar.shared.files import queue_line


def known_lines_of_queues(queues: Sequence[QueueFile]) -> list[Known]:
    """The lines of all queues, and those with a # before them."""
    found = [Known(line, queue.at(line)) for queue, line in queue_files.queue_lines(queues)]
    for queue in queues:
        dropped = queue_line.commented_out(rewrite.content(queue.path))
        found += [Known(line, queue.at(line), is_dropped=True) for line in dropped]
    return found


def sayings_of_lines(project: Project, configs: Mapping[str, bytes]) -> Callable[[CellLine], str]:
    """A line's saying, with its config as it is here or as it will be."""
    code = project.root / project.job.code
    known = {path: digest.of_bytes(data) for path, data in configs.items()}

    def config_sha256(cfg: str) -> str:
        if cfg not in known:
            path = code / cfg
            known[cfg] = digest.of_file(path) if path.is_file() else ""
        return known[cfg]

    def of_line(line: CellLine) -> str:
        sha256 = config_sha256(line.cfg) if line.has_config else None
        return saying.saying_of(project.plan, line, sha256)

    return of_line
