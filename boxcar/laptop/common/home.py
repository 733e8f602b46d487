"""`.boxcar/` beside job.yaml: what Boxcar keeps on this machine for one project."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import boxcar
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import InputError, reason_of
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Which runs were launched from this machine by this person, whatever folder they are in.
#
# One line of JSON for each launch, below $XDG_STATE_HOME. No run is lost with it: `runs` forgets,
# and where a run's results were removed as well nobody knows by itself where that run is.


@dataclass(frozen=True)
class KnownRun:
    """`job` is the path of its job file; `at` when it was launched last."""

    run: str
    job: Path
    profile: str
    at: str


def known_runs_file(environ: Mapping[str, str]) -> Path:
    """Where they stand. A relative XDG_STATE_HOME counts for nothing, by its own specification."""
    given = Path(environ.get("XDG_STATE_HOME", ""))
    home = given if given.is_absolute() else Path.home() / ".local" / "state"
    return home / "boxcar" / "runs.jsonl"


def remember_run(run: str, job: Path, profile: str) -> None:
    """Never raises: a home that cannot be written keeps nobody from launching."""
    path = known_runs_file(os.environ)
    record = {"run": run, "job": str(job), "profile": profile, "at": timestamp.utc_now()}
    with contextlib.suppress(OSError):
        atomic.make_folder(path.parent)
        # Behind a line that a crash has torn.
        atomic.append(path, b"\n" * _is_torn(path) + json.dumps(record).encode() + b"\n")


def known_runs() -> list[KnownRun]:
    """The newest launch of each, those launched last first; a line that is none is left out."""
    found: dict[tuple[str, Path], KnownRun] = {}
    for one in _launches():
        found.pop((one.run, one.job), None)  # launched again, it comes last
        found[one.run, one.job] = one
    return list(found.values())[::-1]


def profiles_of(run: str, folder: Path) -> list[str]:
    """The profile of each launch of this run from this folder, the last one last."""
    return [one.profile for one in _launches() if (one.run, one.job.parent) == (run, folder)]


def _launches() -> Iterator[KnownRun]:
    try:
        lines = known_runs_file(os.environ).read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            record = json.loads(line)
            yield KnownRun(
                str(record["run"]), Path(record["job"]), str(record["profile"]), str(record["at"])
            )


def _is_torn(path: Path) -> bool:
    return path.exists() and not path.read_bytes().endswith(b"\n")


# Where the files lie that Boxcar ships but does not import: templates, profiles, onbox, examples.
#
# An installed wheel holds them in `boxcar/assets/` (pyproject.toml, force-include), a checkout at
# its root, in the same arrangement.


def training_program(name: str) -> str:
    """The text of a program of boxcar/training, which the laptop ships and never imports."""
    return (Path(boxcar.__file__).resolve().parent / "training" / f"{name}.py").read_text("utf-8")


def assets_root() -> Path:
    """The folder that holds `templates/`, `profiles/`, `onbox/` and `examples/`."""
    package = Path(boxcar.__file__).resolve().parent
    installed = package / "assets"
    return installed if installed.is_dir() else package.parent


# What to type for a library that is missing where Boxcar runs.


def has_pip() -> bool:
    """An environment of pipx or uv has no pip of its own."""
    return importlib.util.find_spec("pip") is not None


def install_line(*libraries: str, index: str = "") -> str:
    """`index` is one beside the usual. Of uv the tool is named as it was installed: a name alone
    would be looked for on an index, also where it came from a folder.
    """
    extra = ["--extra-index-url", index] if index else []
    receipt = Path(sys.prefix, "uv-receipt.toml")
    if has_pip():
        words = [sys.executable, "-m", "pip", "install", *libraries, *extra]
    elif receipt.exists():
        kept = 'name = "boxcar-run", (?:path|directory|editable) = "([^"]+)"'
        found = re.search(kept, receipt.read_text("utf-8"))
        words = ["uv", "tool", "install", "--with", ",".join(libraries)]
        words += ["--index", index] if index else []
        words.append(found[1] if found else "boxcar-run")
    else:
        by_pip = ["--pip-args", shlex.join(extra)] if extra else []
        words = ["pipx", "inject", "boxcar-run", *libraries, *by_pip]
    return shlex.join(words)


# A folder of a person's that cannot be written to: said with what helps.


_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextlib.contextmanager
def results_to(folder: Path) -> Iterator[None]:
    """Raise InputError with advice where `folder` or what is in it may not be written."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
        raise InputError(
            _(
                "{what}: {error}. This machine's record of the run is in {folder}. Make it "
                "writable (owner: `ls -ld`; is its disk mounted read-only?), then repeat the "
                "command. Nothing changed on the boxes",
                what=error.filename or folder,
                error=reason_of(error),
                folder=folder,
            )
        ) from error


FOLDER = ".boxcar"
_JOB_SCHEMA = "job.schema.json"
# As the YAML extension of VS Code reads it: a path from the folder of job.yaml.
SCHEMA_COMMENT = f"# yaml-language-server: $schema={FOLDER}/{_JOB_SCHEMA}"


@dataclass(frozen=True)
class Home:
    """Every path below `.boxcar/`. Nobody else joins these names. `root` is the project's folder.

    Lost with it are only the addresses of boxes, what was tried and shown already, and copies.
    """

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / FOLDER

    def release(self, digest: str) -> Path:
        return self.folder / "releases" / digest

    def agent(self, file_name: str) -> Path:
        """The agent's zipapp, which boxes of this machine run from here."""
        return self.folder / "onbox" / file_name

    @property
    def mirror(self) -> Path:
        """The copy of what the boxes of all runs reported, laid out as a durable tier."""
        return self.folder / "mirror"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        """The aliases of boxes that `up` rented, for a person's own ssh."""
        return self.folder / "ssh_config"

    def host(self, alias: str) -> Path:
        """Which box answered under this name in ~/.ssh/config."""
        return self.folder / "hosts" / f"{alias}.json"

    def smoke(self, run: str) -> Path:
        """Where the cells of a run are tried."""
        return self.folder / "smoke" / run

    @property
    def smoke_passes(self) -> Path:
        return self.folder / "smoke" / "passes"

    def seen(self, profile: str) -> Path:
        """That the dangers of a platform were shown."""
        return self.folder / "seen" / f"{profile}.json"

    def hashed(self, run: str) -> Path:
        """Which files of the results `pull` has hashed before, and how they looked then."""
        return self.folder / "hashed" / f"{run}.json"

    @property
    def data_read(self) -> Path:
        """Which files of data folders were read before, and how they looked then."""
        return self.folder / "data-read.json"

    @property
    def fetched(self) -> Path:
        """Data from URLs, which smoke has fetched."""
        return self.folder / "fetched"

    def reported(self, run: str) -> Path:
        """What `watch --once-if-changed` said last."""
        return self.folder / "watch" / f"{run}.json"

    def told(self, run: str, queue: str) -> Path:
        """How far each endpoint is that this machine sends to."""
        return self.folder / "told" / run / f"{queue}.json"

    @property
    def job_schema(self) -> Path:
        """What an editor checks job.yaml with."""
        return self.folder / _JOB_SCHEMA

    @property
    def split(self) -> Path:
        """There while the queue files are being rewritten."""
        return self.folder / "split.json"

    @property
    def listen_secret(self) -> Path:
        """The secret of `listen`, alone, for a shell to read."""
        return self.folder / "listen.secret"

    @property
    def demo(self) -> Path:
        """The demo's port and secret."""
        return self.folder / "demo.json"
