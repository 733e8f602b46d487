"""profiles/NAME.yaml: one platform each, and what a person has to know about it.

A project's own `profiles/` comes first, then those that ship with Boxcar. Read on the laptop only.
Not covered yet: platforms that are reached over ssh.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from boxcar.formats.errors import InputError
from boxcar.laptop import assets, strict_yaml
from boxcar.laptop.strict_yaml import Model

AUTO = "auto"
_FOLDER = "profiles"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def _with_placeholders(*names: str) -> AfterValidator:
    """A path that holds exactly these placeholders: without one, two boxes would share a file."""

    def check(text: str) -> str:
        if sorted(_PLACEHOLDER.findall(text)) != sorted(names):
            wanted = " and ".join(f"{{{name}}}" for name in names) or "no placeholder"
            raise ValueError(f"expected a path that holds {wanted}, found {text!r}")
        return text

    return AfterValidator(check)


class Connection(Model):
    """How the box is reached."""

    kind: Literal["local"]


class Env(Model):
    """The interpreters on the box. The agent's needs Python 3.10 or newer and nothing installed."""

    agent_python: str = AUTO
    training_python: str = AUTO


class Storage(Model):
    """What lies where. Relative paths begin at the project's folder."""

    data: Annotated[str, _with_placeholders("box")]
    durable: Annotated[str, _with_placeholders()]
    credentials: Annotated[str, _with_placeholders("box", "run")]


class MeterStop(Model):
    """What ends the costs: the word that is approved, and what it does."""

    verb: str
    does: str


class Meter(Model):
    stop: MeterStop


class Profile(Model):
    """One platform. The last three groups are sentences for people."""

    name: str
    connection: Connection
    env: Env = Env()
    storage: Storage
    hook: str = ""
    meter: Meter
    conveniences: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    gotchas: tuple[str, ...] = ()

    def data_dir(self, root: Path, box: str) -> Path:
        """The fast disk of `box`, for a project that lies in `root`."""
        return _below(root, self.storage.data.replace("{box}", box))

    def durable_dir(self, root: Path) -> Path:
        return _below(root, self.storage.durable)

    def credentials(self, root: Path, box: str, run: str) -> Path:
        """The file of secrets on the box's own system disk."""
        filled = self.storage.credentials.replace("{box}", box).replace("{run}", run)
        return _below(root, filled)

    @property
    def agent_python(self) -> str:
        return _python(self.env.agent_python)

    @property
    def training_python(self) -> str:
        return _python(self.env.training_python)


def load_profile(name: str, project_root: Path) -> Profile:
    """The profile of that name. Raises InputError, for an unknown one with the known names."""
    known = _known(project_root)
    if name not in known:
        raise InputError(
            f"there is no profile {name!r}{strict_yaml.did_you_mean(name, known)}; "
            f"known: {', '.join(sorted(known))}. Yours go into {project_root / _FOLDER}"
        )
    profile = strict_yaml.load(known[name], Profile)
    if profile.name != name:
        raise InputError(
            f"{profile.at('name')}: expected {name!r} as the file is called, found {profile.name!r}"
        )
    return profile


def _known(project_root: Path) -> dict[str, Path]:
    folders = (assets.root() / _FOLDER, project_root / _FOLDER)  # the later ones win
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}


def _below(root: Path, text: str) -> Path:
    return root / Path(text).expanduser()


def _python(setting: str) -> str:
    # Not resolved: the link in a virtual environment is what makes its packages found.
    return sys.executable if setting == AUTO else setting
