"""What lies in a project's folder: scripts that may train, configs, and what is no code."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from boxcar.laptop.init import readme, source, trainers
from boxcar.laptop.init.readme import Typed
from boxcar.shared.record import dataclass

_DEPTH = 3
_MOST_FILES = 20_000
_MOST_LIKELY = 20
_CONFIGS = (".yaml", ".yml", ".json", ".toml", ".py")
_CONFIG_FOLDERS = ("configs", "config", "conf", "cfgs", "cfg", "experiments", "exps")
# What a file is called that configures the training, and not a tool.
_IS_CONFIG = re.compile(r"(?i)(config|cfg|hparams|params|train)[^/]*\.[a-z]+$")
_IS_PATH = re.compile(r"[^/\0\n][^\0\n]*")
# Folders in which no script of the project's own is looked for.
_SKIPPED = frozenset(
    {"tests", "test", "docs", "notebooks", "results", "outputs", "wandb", "data", "datasets"}
    | {"node_modules", "site-packages", "build", "dist", "venv", "env", "__pycache__", "queues"}
)


@dataclass(frozen=True)
class Folder:
    """`typed` are the commands of its own pages, `likely` the paths of scripts that may train, each
    the likeliest first. Paths are relative to `root`.
    """

    root: Path
    typed: tuple[Typed, ...]
    likely: tuple[str, ...]
    config_folders: tuple[str, ...]

    @property
    def scripts(self) -> tuple[str, ...]:
        """All that may train; those that its pages name come first."""
        named = (each.path for each in self.typed if each.path)
        return tuple(dict.fromkeys([*named, *self.likely]))

    @property
    def trainer_configs(self) -> list[str]:
        """YAML files whose keys are those of a program that trains by them alone."""
        folders = ("", *self.config_folders)
        names = [name for each in folders for name in self.configs(each) if name.endswith("ml")]
        return [name for name in names if trainers.of_config(self.root / name)]

    @property
    def all_configs(self) -> list[str]:
        """Those of the config folders; without any, the config files beside the scripts."""
        below = [name for each in self.config_folders for name in self.configs(each)]
        names = [name for name in self.configs("") if _IS_CONFIG.match(name)]
        return below or [name for name in names if not name.endswith(".py")]

    def paths_in(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Those texts that name a file or folder of the project by where it lies, sorted."""
        paths = (text for text in texts if _IS_PATH.fullmatch(text) and text.strip("./"))
        likely = (text for text in paths if not text.endswith((".py", ".md", "requirements.txt")))
        return tuple(sorted(text for text in likely if source.lies(self.root, text)))

    def configs(self, below: str) -> list[str]:
        """The config files right in a folder, by name; a package's own file is none."""
        found = sorted(path for path in (self.root / below).glob("*") if path.is_file())
        fit = (path for path in found if path.suffix in _CONFIGS and path.name != "__init__.py")
        return [path.relative_to(self.root).as_posix() for path in fit]


def read_folder(root: Path) -> Folder:
    """Nothing of it is run or changed."""
    folders = tuple(name for name in _CONFIG_FOLDERS if (root / name).is_dir())
    return Folder(root, tuple(readme.commands(root)), tuple(_likely(root)), folders)


def _likely(root: Path) -> Iterator[str]:
    paths = {path.relative_to(root).as_posix(): path for path in _python_files(root)}
    scores = {name: readme.score(name, source.data_of(path)) for name, path in paths.items()}
    order = sorted((p for p in scores if scores[p]), key=lambda p: (-scores[p], p.count("/"), p))
    programs = (path for path in order if readme.is_program_at(root / path))
    yield from itertools.islice(programs, _MOST_LIKELY)


def _python_files(root: Path) -> Iterator[Path]:
    left = _MOST_FILES
    for at, folders, files in os.walk(root):
        depth = len(Path(at).relative_to(root).parts)
        folders[:] = sorted(
            name
            for name in folders
            if depth < _DEPTH
            and not name.startswith(".")
            and name not in _SKIPPED
            and not (Path(at, name) / "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            left -= 1
            if left < 0:
                return
            if name.endswith(".py"):
                yield Path(at, name)
