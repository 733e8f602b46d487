"""profiles/NAME.yaml: one platform each, and what a person has to know about it.

A project's own `profiles/` comes first, then those that ship with Boxcar. `extends: NAME` takes
over what another one says wherever this one is silent. Read on the laptop only. What a profile may
say is in `schema.py`, what must hold between its groups in `rules.py`.
"""

from __future__ import annotations

import posixpath
import sys
from pathlib import Path

from boxcar.laptop.common import home, yaml_models
from boxcar.laptop.common.near import did_you_mean, nearest
from boxcar.laptop.common.yaml_models import Document
from boxcar.laptop.project.profiles import training_here
from boxcar.laptop.project.profiles.rules import inconsistencies
from boxcar.laptop.project.profiles.schema import (
    OWN_DURABLE,
    OWN_SCOPES,
    ProfileModel,
    Sentence,
    Tier,
)
from boxcar.shared.errors import Command, InputError
from boxcar.shared.files.plan import AUTO, EACH_BOX, SHARED
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Where the agent's Python is looked for on a box whose profile says `agent_python: auto`.


# What an image may hold, in this order. conda's may not be on the PATH of a command over ssh.
INTERPRETERS = (
    *("python3.13", "python3.12", "python3.11", "python3.10", "python3", "python"),
    *("/root/miniconda3/bin/python", "/opt/conda/bin/python", "~/miniconda3/bin/python"),
)

FOLDER = "profiles"
# On a cluster: the data folders of its queues.
OF_BOXES = "boxcar-boxes"


@dataclass(frozen=True)
class MeterStop:
    """The verb that ends a run's costs; `preserves` are the names of the tiers that outlive it.
    `ending`: stop or destroy.
    """

    verb: str
    does: Sentence
    preserves: tuple[str, ...]
    is_reversible: bool
    still_bills: tuple[str, ...]
    from_box: str | None
    own_key: str | None
    ending: str
    where: Sentence


class Profile(ProfileModel):
    """One platform. Paths are as the box sees them; for `local` they begin at the project."""

    def data_dir(self, root: Path, box: str) -> str:
        """The fast disk of `box`. Raises InputError where the profile leaves its path open.

        Of Slurm it is a folder for each queue, since two may be on one node; on the durable
        tier where none is named, which outlives a requeue.
        """
        data = self.storage.tiers[self.storage.data]
        is_on_claim = self.connection.kind == "kubernetes" and data.scope not in OWN_SCOPES
        if self.is_slurm or is_on_claim:
            is_on_tier = data.path is None and data.scope not in OWN_SCOPES
            home = (
                self.durable_dir(root) if is_on_tier else self._path_of("data", self.storage.data)
            )
            return posixpath.join(home, OF_BOXES, box)
        return self._placed(root, self._path_of("data", self.storage.data), box)

    def durable_dir(self, root: Path) -> str:
        """What survives the boxes, or each box's own folder. Raises InputError as `data_dir`."""
        if self.storage.durable is None:
            return posixpath.join(self._path_of("data", self.storage.data), OWN_DURABLE)
        return self._placed(root, self._path_of("durable", self.storage.durable))

    @property
    def durable_scope(self) -> str:
        """SHARED, or EACH_BOX: then results are pulled to the laptop as cells end."""
        tier = self.durable_tier
        return EACH_BOX if tier is None or tier.scope in OWN_SCOPES else SHARED

    @property
    def durable_tier(self) -> Tier | None:
        name = self.storage.durable
        return None if name is None else self.storage.tiers[name]

    def credentials(self, root: Path, box: str, run: str) -> str:
        """The file of secrets on the box's own system disk."""
        return self._placed(root, self.storage.credentials, box, run)

    @property
    def keeps_data_on_tier(self) -> bool:
        """Whether what all boxes read lies once on the tier: a folder of a box here is no other
        disk, and a job of a cluster has none before it runs.
        """
        return self.is_cluster or self.connection.kind == "local"

    @property
    def hook(self) -> str:
        return self.network.hook

    @property
    def agent_python(self) -> str:
        return self._python(self.env.agent_python)

    @property
    def training_python(self) -> str:
        is_here = self.connection.kind == "local" and self.env.training_python == AUTO
        return training_here.for_training() if is_here else self.env.training_python

    @property
    def is_this_machine(self) -> bool:
        return self.connection.kind == "local"

    @property
    def is_cluster(self) -> bool:
        """Whether a scheduler starts the agents."""
        return self.connection.kind in ("slurm", "kubernetes")

    @property
    def is_slurm(self) -> bool:
        return self.connection.kind == "slurm"

    @property
    def is_billed(self) -> bool:
        return self.meter.is_billed

    def with_stop_by_api(self) -> Profile:
        """The same, where `down` has its provider stop the boxes, and no box ends itself. Its stop
        must be known.
        """
        assert self.meter.stop is not None
        by_hand = self.meter.stop.model_copy(update={"from_box": None, "own_key": None})
        meter = self.meter.model_copy(update={"down": "stop", "stop": by_hand})
        return self.model_copy(update={"meter": meter})

    @property
    def meter_stop(self) -> MeterStop:
        """What `down` does to the meter."""
        verb = getattr(self.meter, self.meter.down)
        return MeterStop(
            verb=verb.verb,
            does=verb.does,
            preserves=self.preserved_by(self.meter.down),
            is_reversible=verb.is_reversible,
            still_bills=tuple(map(str, verb.still_bills)),
            from_box=verb.from_box,
            own_key=verb.own_key,
            ending=self.meter.down,
            where=verb.where,
        )

    def preserved_by(self, ending: str) -> tuple[str, ...]:
        """The tiers that `stop` or `destroy` keeps. What nobody knows counts as lost."""
        fates = {name: getattr(tier, ending) for name, tier in self.storage.tiers.items()}
        return tuple(name for name, fate in fates.items() if fate in ("keep", "keep-billed"))

    def _path_of(self, role: str, name: str) -> str:
        path = self.storage.tiers[name].path
        if path is None:
            here = f"storage: {{tiers: {{{name}: {{path: …}}}}}}"
            raise InputError(
                _(
                    "{at}: the path of the tier {name!r} differs from account to account. Write "
                    "yours in a profile of your own: extends: {profile}, {here}. For its usual "
                    "path",
                    at=self.at("storage", role),
                    name=name,
                    profile=self.name,
                    here=here,
                ),
                Command("explain", ("--profile", self.name)),
            )
        return path

    def _placed(self, root: Path, text: str, box: str = "", run: str = "") -> str:
        filled = text.replace("{box}", box).replace("{run}", run)
        if not self.is_this_machine:
            return filled
        return str(root / Path(filled).expanduser())

    def _python(self, setting: str) -> str:
        if not self.is_this_machine or setting != AUTO:
            return setting
        # Not resolved: the link in a virtual environment is what makes its packages found.
        return sys.executable


def load_profile(name: str, project_root: Path) -> Profile:
    """The profile of that name. Raises InputError, for an unknown one with the known names."""
    return load_file(_find(name, known(project_root), project_root), project_root)


def load_file(path: Path, project_root: Path) -> Profile:
    """As `load_profile`, for one of the files that `known` names."""
    profile = yaml_models.build(_document(path, project_root, ()), Profile)
    if profile.name != path.stem:
        raise InputError(
            _(
                "{at}: expected {stem!r}, the name of the file, found {found!r}",
                at=profile.at("name"),
                stem=path.stem,
                found=profile.name,
            )
        )
    if problems := list(inconsistencies(profile)):
        raise InputError(problems)
    return profile


def known(project_root: Path) -> dict[str, Path]:
    """The file of every profile that can be named here; the project's own come first."""
    return _files(home.assets_root() / FOLDER) | _files(project_root / FOLDER)


def _files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _find(name: str, files: dict[str, Path], project_root: Path, at: str = "") -> Path:
    if name in files:
        return files[name]
    said = _(
        "{at}there is no profile {name!r}{near}; known: {known}. Put your own into {folder}. For "
        "example",
        at=at,
        name=name,
        near=did_you_mean(name, files),
        known=", ".join(sorted(files)),
        folder=project_root / FOLDER,
    )
    meant = (*nearest(name, files), "local")[0]
    raise InputError(said, Command("plan", ("--profile", meant)))


def _document(path: Path, project_root: Path, above: tuple[Path, ...]) -> Document:
    """What the file says, laid over what the profile says that it extends."""
    own = yaml_models.read_yaml(path)
    name = own.value.get("extends") if isinstance(own.value, dict) else None
    if not isinstance(name, str):
        return own  # what is no text is told by the schema
    mark = own.marks["extends",]
    at = f"{mark.file}:{mark.line}: extends: "
    base = _find(name, _extensible(path, project_root), project_root, at)
    if base in (*above, path):
        chain = " → ".join(file.stem for file in (*above, path, base))
        raise InputError(
            _("{at}the profiles extend each other in a circle: {chain}", at=at, chain=chain)
        )
    found = _document(base, project_root, (*above, path))
    # Each file says its own name.
    inherited = {key: value for key, value in found.value.items() if key != "name"}
    return yaml_models.laid_over(own, Document(inherited, found.marks, found.problems))


def _extensible(path: Path, project_root: Path) -> dict[str, Path]:
    """What the file may extend; with its own name it means the shipped profile of that name."""
    shipped = _files(home.assets_root() / FOLDER)
    same = {path.stem: shipped[path.stem]} if path.stem in shipped else {}
    return known(project_root) | same
