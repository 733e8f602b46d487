"""A run on a platform without ssh: Kaggle, Colab. Its sessions run what `render` wrote.

Nothing is asked there. What a session leaves is brought by a person (`pull --from FOLDER`) into a
folder of this machine, and read there as a local run's tier is.
"""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.common.home import Home
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.project.profiles import training_here
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.open_run import Tell
from boxcar.shared import paths
from boxcar.shared.disk import atomic, checked_copy, lock
from boxcar.shared.disk.checked_tree import ToCopy, copy_all
from boxcar.shared.errors import Command, DamagedError, InputError, Message, TemporaryError
from boxcar.shared.files import journal
from boxcar.shared.sentence import _


class NotebookSite(LocalSite):
    """See Site."""

    def __init__(self, project: Project, tell: Tell) -> None:
        """The project with its paths on this machine: those of the plan are the platform's."""
        home = Home(project.root).folder / project.profile.name
        boxes = tuple(
            replace(
                box,
                data_dir=str(home / "boxes" / box.name),
                credentials=str(home / "boxes" / box.name / "none.json"),
            )
            for box in project.plan.boxes
        )
        plan = replace(project.plan, durable_dir=str(home / "durable"), boxes=boxes)
        super().__init__(replace(project, plan=plan), tell)

    def box_label(self, box: str) -> str:
        return _(
            "{box} (a session on {platform})",
            box=box,
            platform=self.project.profile.title or self.project.profile.name,
        )

    def python(self) -> str:
        return training_here.for_training()

    @property
    def launch_command(self) -> Command:
        return Command("render", ("--for", self.project.profile.name))

    def refuse_launch(self) -> None:
        raise InputError(
            Message(
                _(
                    "{platform} has no ssh. Boxcar writes files that you start there",
                    platform=self.project.profile.title or self.project.profile.name,
                ),
                self.launch_command,
            )
        )

    def is_tier_out_of_sight(self) -> bool:
        return False

    def tier_doubts(self) -> list[str]:
        if self.tier.root.exists():
            return []
        return [
            _(
                "nothing of {run} was brought from {platform} yet: download its output, then "
                "boxcar pull --from FOLDER",
                run=self.plan.run,
                platform=self.project.profile.title or self.project.profile.name,
            )
        ]

    def bring(self, folder: Path) -> None:
        """Take over what a session has left: files that are new, or longer than those here.

        Raises InputError for a folder that is no output of this run, DamagedError for journals
        that do not go on from those here.
        """
        source = _find_output(folder, self.plan.run)
        tier = self.tier.root
        atomic.make_folder(tier)
        held = lock.try_hold(tier / ".bring.lock")
        if held is None:
            raise TemporaryError(_("another pull --from is at work. Run this one again after it"))
        with open(held, "rb"):  # noqa: PTH123  (closes it)
            older = [path.name for path in _journals(source) if _is_older(path, tier)]
            if older:
                raise InputError(
                    _(
                        "{folder}: is older than what was brought before ({journals}). Download "
                        "the output of the newest session",
                        folder=folder,
                        journals=", ".join(older),
                    )
                )
            _copy_new(source, tier)


def _copy_new(source: Path, tier: Path) -> None:
    """What proves a cell comes last, so that a copy that was cut off is not taken for one."""
    found = [path for path in _files_below(source) if not _is_here(path, tier, source)]
    checked_copy.check_room(tier, (path.stat().st_size for path in found))
    for is_proof in (False, True):
        copies = []
        for path in found:
            if (path.name in (paths.MANIFEST, paths.RECEIPT)) == is_proof:
                name = path.relative_to(source)
                atomic.make_folder((tier / name).parent)
                copies.append(ToCopy(path, tier / name, name.as_posix()))
        copy_all(tier, copies)


def _is_here(path: Path, tier: Path, source: Path) -> bool:
    there = tier / path.relative_to(source)
    return there.is_file() and filecmp.cmp(path, there, shallow=False)


def _find_output(folder: Path, run: str) -> Path:
    """The run's folder in what was downloaded. Raises InputError where there is not one."""
    if not folder.is_dir():
        raise InputError(_("{folder}: there is no such folder", folder=folder))
    places = [folder, folder / run, folder / "boxcar" / run]
    places += [path.parent for path in sorted(folder.glob(f"*/boxcar/{run}/journal"))]
    found = [path for path in dict.fromkeys(places) if path.name == run and _journals(path)]
    if len(found) == 1:
        return found[0]
    if found:
        said = _("{folder}: holds several outputs of {run}; name one", folder=folder, run=run)
    else:
        said = _(
            "{folder}: holds no output of {run} (expected boxcar/{run}/journal there)",
            folder=folder,
            run=run,
        )
    raise InputError(said)


def _journals(tier: Path) -> Sequence[Path]:
    return sorted((tier / "journal").glob("*.jsonl"))


def _is_older(path: Path, tier: Path) -> bool:
    """Whether what is here has gone on from it. Raises DamagedError where neither has."""
    journal.read_journal(path)
    here = tier / "journal" / path.name
    there, known = path.read_bytes(), here.read_bytes() if here.exists() else b""
    if there.startswith(known):
        return False
    if known.startswith(there):
        return True
    raise DamagedError(
        _(
            "{path}: is another history than the one that was brought before ({here}): two "
            "sessions ran the same cells. Keep both folders apart, and pull one of them",
            path=path,
            here=here,
        )
    )


def _files_below(source: Path) -> list[Path]:
    found = [path for path in source.rglob("*") if path.is_file() and not path.is_symlink()]
    return sorted(path for path in found if not _is_left_out(path.relative_to(source)))


def _is_left_out(path: Path) -> bool:
    is_passing = path.suffix == ".lock" or any(map(atomic.is_temporary, path.parts))
    return is_passing or path.parts[0] == "releases"
