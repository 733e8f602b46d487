"""What a notebook reads: the runs that this person launched here, their cells and numbers.

    import boxcar

    boxcar.runs().to_frame()
    boxcar.run("mnist-lr").metrics().to_frame()

Nothing is changed. Records are those of the verbs' `--json`; what a verb would say on stderr is
raised as its error.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxcar.laptop.common import home
from boxcar.laptop.common.near import no_such
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.view.report import gather
from boxcar.laptop.view.report.groups import SEED, ReportCell
from boxcar.laptop.view.report.run_report import Asked
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

if TYPE_CHECKING:
    import pandas

# What asks boxes is imported where it is used: numbers alone come in half the time.


class Records(list[dict[str, Any]]):
    """A list of plain records."""

    def to_frame(self) -> pandas.DataFrame:
        """A column for each field, `settings.lr` for one within another. Needs pandas."""
        import pandas as pd

        return pd.json_normalize(list(self))


@dataclass(frozen=True)
class Run:
    """One run that was launched from this machine."""

    name: str
    job: Path
    profile: str

    def cells(self) -> Records:
        """Each cell as it stands now: `cells` of `boxcar status --json`. This asks the boxes.

        Raises BoxcarError, such as InputError where its job file cannot be read, and OSError.
        """
        from boxcar.laptop.places.open_site import open_site
        from boxcar.laptop.run.look import look_at_run
        from boxcar.laptop.verbs import status
        from boxcar.shared import timestamp

        with open_site(self._opened(), lambda _text: None) as site:
            site.refresh()
            return Records(status.document(site, look_at_run(site, timestamp.utc_now()))["cells"])

    def metrics(self) -> Records:
        """Each cell's settings and its verified numbers, those of `boxcar report`. Asks no box.

        A record has run, cell, task, seed, settings, numbers, lack (why there are no numbers, or
        None), doubt and attempts. Raises InputError where nothing is verified, DamagedError.
        """
        project = self._opened()
        asked = Asked((self.name,), seed_key=project.job.report.seed)
        made = gather.report_of(project, asked)
        return Records(
            _numbers(cell, seed)
            for group in made.groups
            for seed, cell in zip(group.seeds, group.cells, strict=True)
        )

    def _opened(self) -> Project:
        found = open_project(self.job, self.profile, despite_faults=True)
        if found.plan.run == self.name:
            return found
        from boxcar.laptop.verbs.runs import open_known_run

        return open_known_run(self.name, self.job, self.profile)[0]


def runs() -> Records:
    """Every run that was launched from this machine, as it was last seen. Asks no box.

    The records are those of `boxcar runs --json`.
    """
    from boxcar.laptop.verbs.runs import seen_runs

    return Records(codec.encode(one) for one in seen_runs())


def run(name: str) -> Run:
    """The run of that name. Raises InputError where none was launched from this machine."""
    known = home.known_runs()  # the newest first: a name may come again in another folder
    for one in known:
        if one.run == name:
            return Run(name, one.job, one.profile)
    raise InputError(no_such(name, (one.run for one in known), what="run", of=_("this machine")))


def _numbers(cell: ReportCell, seed: str) -> dict[str, Any]:
    return {
        "run": cell.run,
        "cell": cell.name,
        "task": cell.task,
        SEED: seed or None,
        "settings": dict(cell.values),
        "numbers": dict(cell.numbers),
        "lack": cell.lack or None,
        "doubt": cell.doubt or None,
        "attempts": cell.attempts,
    }
