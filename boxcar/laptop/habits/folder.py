"""What lies in a project's folder: scripts that may train, configs, and what is no code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from boxcar.laptop.habits import script
from boxcar.laptop.habits.script import Script
from boxcar.shared.errors import InputError
from boxcar.shared.message import Message
from boxcar.shared.record import dataclass

_DEPTH = 3
_MOST_FILES = 20_000
_CONFIGS = (".yaml", ".yml", ".json", ".toml", ".py")
_CONFIG_FOLDERS = ("configs", "config", "conf", "cfgs", "cfg", "experiments", "exps")
# What a file is called that configures the training, and not a tool.
_IS_CONFIG = re.compile(r"(?i)(config|cfg|hparams|params|train)[^/]*\.[a-z]+$")
# A word such as `data` alone may be a key.
_IS_PATH = re.compile(r"[^/\0\n][^\0\n]*[/.][^\0\n]*")
# Folders in which no script of the project's own is looked for.
_SKIPPED = frozenset(
    {"tests", "test", "docs", "notebooks", "results", "outputs", "wandb", "data", "datasets"}
    | {"node_modules", "site-packages", "build", "dist", "venv", "env", "__pycache__", "queues"}
)


@dataclass(frozen=True)
class Folder:
    """`scripts` are those that may train, the likeliest first. Paths are relative to `root`.
    `not_judged` says of which files no sense could be made, and why.
    """

    root: Path
    scripts: tuple[Script, ...]
    config_folders: tuple[str, ...]
    not_judged: tuple[Message, ...] = ()

    @property
    def all_configs(self) -> list[str]:
        """Those of the config folders; without any, the config files beside the scripts."""
        below = [name for each in self.config_folders for name in self.configs(each)]
        names = [name for name in self.configs("") if _IS_CONFIG.match(name)]
        return below or [name for name in names if not name.endswith(".py")]

    def paths_in(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Those texts that name a file or folder of the project by where it lies, sorted."""
        paths = (text for text in texts if _IS_PATH.fullmatch(text) and text.strip("./"))
        likely = (text for text in paths if not text.endswith((".py", ".md")))
        return tuple(sorted(text for text in likely if (self.root / text).exists()))

    def configs(self, below: str) -> list[str]:
        """The config files right in a folder, by name; a package's own file is none."""
        try:
            found = sorted(path for path in (self.root / below).iterdir() if path.is_file())
        except OSError:
            return []
        return [
            path.relative_to(self.root).as_posix()
            for path in found
            if path.suffix in _CONFIGS and path.name != "__init__.py"
        ]


def read(root: Path) -> Folder:
    """Nothing of it is run or changed."""
    found: list[Script] = []
    not_judged: list[Message] = []
    for path in _python_files(root):
        try:
            found += filter(None, [script.read(root, path)])
        except InputError as error:
            not_judged += error.messages
    likely = sorted((each for each in found if each.score), key=_order)
    folders = tuple(name for name in _CONFIG_FOLDERS if (root / name).is_dir())
    return Folder(root, tuple(likely), folders, tuple(not_judged))


def _order(one: Script) -> tuple[int, int, str]:
    return -one.score, one.path.count("/"), one.path


def _python_files(root: Path) -> Iterator[Path]:
    left = _MOST_FILES
    for at, folders, files in os.walk(root):
        depth = len(Path(at).relative_to(root).parts)
        folders[:] = sorted(
            name
            for name in folders
            if depth < _DEPTH and not name.startswith(".") and name not in _SKIPPED
            and not (Path(at, name) / "pyvenv.cfg").exists()
        )  # fmt: skip
        for name in sorted(files):
            left -= 1
            if left < 0:
                return
            if name.endswith(".py"):
                yield Path(at, name)
