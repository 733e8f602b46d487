"""One script, read and never run: what it imports, takes, saves, and whether it trains."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.habits import config_nodes, flags, imported, omegaconf_words, saves
from boxcar.laptop.habits.flags import Flag
from boxcar.laptop.habits.saves import Saved
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.errors import InputError
from boxcar.shared.record import dataclass

# What a source says that trains, and how sure that makes one.
_SIGNS = {
    "backward": 3, "zero_grad": 3, "fit": 2, "Trainer": 2, "SFTTrainer": 2, "LightningCLI": 4,
    "save": 1, "train": 1, "step": 1, "DataLoader": 1, "YOLO": 3, "Runner": 2, "instantiate": 1,
}  # fmt: skip
_NAMES = {"train": 4, "main": 3, "finetune": 2, "pretrain": 2, "run": 1, "fit": 2}
_TRAINS = {"backward", "zero_grad", "step"}
_OTHER_NAMES = (
    "test", "eval", "sample", "generate", "predict", "infer", "demo", "plot", "bench", "setup",
    "export", "convert", "download", "prepare",
)  # fmt: skip
# Who calls one of these takes flags.
_PARSERS = frozenset(
    {"argparse", "click", "typer", "fire", "absl", "jsonargparse", "tyro", "simple_parsing"}
    | {"parse_args", "parse_known_args", "get_args", "get_parser", "LightningCLI", "Fire"}
    | {"HfArgumentParser", "parse_args_into_dataclasses", "get_args_parser", "build_parser"}
)


@dataclass(frozen=True)
class Hydra:
    """`folder` holds its configs, relative to the script's folder; None where it is not said."""

    folder: str | None
    config: str | None


@dataclass(frozen=True)
class Script:
    """`path` is relative to the project. `calls` are the last names of all that it calls.

    `texts` are the words and sentences that stand in it, `attributes` the names behind a dot,
    `keywords` those of arguments.
    `score` says how likely it trains; 0: it is no program, or does something else.
    """

    path: str
    imports: frozenset[str]
    calls: frozenset[str]
    texts: frozenset[str]
    attributes: frozenset[str]
    keywords: frozenset[str]
    flags: tuple[Flag, ...]
    settings: tuple[Flag, ...]
    saves: tuple[Saved, ...]
    hydra: Hydra | None
    reads_words: bool  # by sys.argv[1], sys.argv[2] ...
    score: int

    def flag(self, *keys: str) -> Flag | None:
        """The first flag of the script that has one of these names, in the order of the names; of
        `--system.work_dir` the last part is one too.
        """
        flags = (*reversed(self.settings), *reversed(self.flags))
        found = {flag.key.lower().rpartition(".")[2]: flag for flag in flags}
        found |= {flag.key.lower(): flag for flag in flags}
        return next((found[key] for key in keys if key in found), None)

    def with_flags(self, more: Iterable[Flag]) -> Script:
        """With those that its source does not say; what it says is surer."""
        known = {flag.key for flag in (*self.flags, *self.settings)}
        return replace(self, flags=(*self.flags, *(f for f in more if f.key not in known)))

    @property
    def hides_flags(self) -> bool:
        """Whether something that it calls makes flags which do not stand in it."""
        is_parser = bool(_PARSERS & (self.calls | self.imports))
        return is_parser and not (self.flags or self.settings or self.hydra)


def read(root: Path, path: Path) -> Script | None:
    """None for what is no Python, is far larger than a script, or cannot be read.

    Raises InputError for one of which no sense could be made: it is a stranger's, and of a kind
    that nobody has thought of.
    """
    if (tree := imported.parsed(path)) is None:
        return None
    try:
        return _judged(root, path, tree)
    except Exception as error:
        about = {"file": path.relative_to(root).as_posix(), "why": error}
        raise InputError(Sentence("init.not_judged", **about, kind=type(error).__name__)) from error


def _judged(root: Path, path: Path, tree: ast.Module) -> Script:
    settings = (
        flags.settings(tree)
        or omegaconf_words.read(tree, (root, path.parent))
        or config_nodes.read(root, path, tree)
    )
    found = flags.read(tree) or (() if settings else flags.words(tree))
    calls = frozenset(_calls(tree))
    relative = path.relative_to(root).as_posix()
    return Script(
        path=relative,
        imports=frozenset(_imports(tree)),
        calls=calls,
        texts=frozenset(_texts(tree)),
        attributes=frozenset(n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)),
        keywords=frozenset(n.arg for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg),
        flags=found,
        settings=settings,
        saves=saves.read(tree, {flag.key for flag in settings}),
        hydra=_hydra(tree),
        reads_words=_reads_words(tree),
        score=_score(relative, tree, calls, has_words=bool(found or settings)),
    )


def _score(path: str, tree: ast.Module, calls: frozenset[str], *, has_words: bool) -> int:
    stem = path.rpartition("/")[2].removesuffix(".py").lower()
    if not _is_program(tree):
        return 0
    if any(name in stem for name in _OTHER_NAMES):
        # Some call a training so, as TCN's add_test.py; the others come first.
        return int(has_words and calls >= _TRAINS)
    signs = sum(points for name, points in _SIGNS.items() if name in calls)
    if not signs and not has_words:
        return 0
    named = max((points for name, points in _NAMES.items() if name in stem), default=0)
    return max(0, signs + named + 2 * has_words - path.count("/"))


def _is_program(tree: ast.Module) -> bool:
    """Whether it does something when it is started, and not only when it is imported."""
    for node in tree.body:
        if isinstance(node, (ast.For, ast.While, ast.With)):
            return True
        if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return True
    return False


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _calls(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr
            elif isinstance(node.func, ast.Name):
                yield node.func.id


def _texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield node.value


def _reads_words(tree: ast.Module) -> bool:
    subscripts = (node for node in ast.walk(tree) if isinstance(node, ast.Subscript))
    return any(ast.unparse(node.value) in ("sys.argv", "argv") for node in subscripts)


def _hydra(tree: ast.Module) -> Hydra | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("hydra.main", "main"):
            keys = {item.arg: item.value for item in node.keywords if item.arg}
            if "config_path" in keys or "config_name" in keys:
                return Hydra(_text(keys.get("config_path")), _text(keys.get("config_name")))
    return None


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
