"""One script, read and never run: what it and all that it reaches take, save and call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from boxcar.laptop.init import flags, paths, reached, saves, source
from boxcar.laptop.init.flags import Flag
from boxcar.laptop.init.saves import Saved
from boxcar.shared.errors import InputError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Who calls one of these takes flags.
_PARSERS = frozenset(
    {"argparse", "click", "typer", "fire", "absl", "jsonargparse", "tyro", "simple_parsing"}
    | {"parse_args", "parse_known_args", "get_args", "get_parser", "LightningCLI", "Fire"}
    | {"HfArgumentParser", "parse_args_into_dataclasses", "get_args_parser", "build_parser"}
    | {"add_dict_to_argparser", "from_cli", "merge_from_args"}
)
_TRAINS = frozenset({"backward", "zero_grad", "fit", "partial_fit", "learn"})
GROUPS = frozenset({"init_process_group", "DistributedDataParallel", "init_distributed"})
# What is put back so that a training goes on, and not only its weights.
_GOES_ON = frozenset(
    {
        "epoch",
        "epochs",
        "step",
        "steps",
        "global_step",
        "iteration",
        "iter_num",
        "optimizer",
        "optim",
        "opt",
        "optimizer_state_dict",
        "iter",
    }
)
_GOES_ON_CALLS = frozenset(
    {"load_state", "load_checkpoint", "auto_resume_helper", "resume_or_load"}
)
_LONGEST = 200
_LOOKS = (
    "open",
    "listdir",
    "scandir",
    "walk",
    "glob",
    "iglob",
    "Path",
    "exists",
    "load",
    "read_csv",
)


@dataclass(frozen=True)
class Script:
    """`path` is relative to the project. `calls` are the last names of all that the script calls,
    `words` all texts, names behind a dot and names of arguments in it. Of all that it reaches,
    `reads` are texts that may be a path from where it is started, `reaches` and `reaches_imports`
    the calls and imports; `maybe` are calls of imported files that it is not seen to reach.
    `unnamed`: where a model is saved under a name that was not seen. `goes_on`: more than weights
    is loaded somewhere. `reads_words`: by sys.argv[1], sys.argv[2] ...
    """

    path: str
    imports: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    flags: tuple[Flag, ...] = ()
    settings: tuple[Flag, ...] = ()
    saves: tuple[Saved, ...] = ()
    unnamed: tuple[str, ...] = ()
    is_hydra: bool = False
    reads_words: bool = False
    reaches: frozenset[str] = frozenset()
    reaches_imports: frozenset[str] = frozenset()
    maybe: frozenset[str] = frozenset()
    goes_on: bool = False
    is_cut: bool = False

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
        """Whether something that it calls makes flags which nobody sees."""
        is_parser = bool(_PARSERS & (self.calls | self.imports))
        return is_parser and not (self.flags or self.settings or self.is_hydra)

    @property
    def trains(self) -> bool:
        return bool(_TRAINS & self.reaches)

    @property
    def forms_group(self) -> bool:
        return bool(GROUPS & self.reaches) or any(
            name.startswith("torch.distributed") for name in self.imports
        )


def read_script(root: Path, path: Path) -> Script | None:
    """None for what is no Python, is far larger than a script, or cannot be read.

    Raises InputError for one of which no sense could be made: it is a stranger's, and of a kind
    that nobody has thought of.
    """
    if (tree := source.parsed(path)) is None:
        return None
    try:
        return _judged(root, path, tree)
    except Exception as error:
        about = {"file": path.relative_to(root).as_posix(), "why": error}
        raise InputError(
            _(
                "{file} could not be read as a script: {kind}: {why}",
                **about,
                kind=type(error).__name__,
            )
        ) from error


def _judged(root: Path, path: Path, tree: ast.Module) -> Script:
    relative = path.relative_to(root).as_posix()
    code = reached.reached_modules(root, path, tree)
    settings = flags.settings(tree, relative)
    said = [(part.path, node) for part in code.parts for node in source.walk(part.tree)]
    found = flags.read_flags(said)
    names = paths.read_paths(code.parts, {f.key for f in found}, {f.key for f in settings})
    nodes = [node for _, node in said]
    own = [node for path, node in said if path == relative]
    saved, unnamed = saves.read_saves(names)
    return Script(
        path=relative,
        imports=frozenset(_imports(own)),
        calls=frozenset(_calls(own)),
        words=frozenset(word for node in own if (word := _word(node)) and len(word) < _LONGEST),
        reads=frozenset(_paths(nodes)),
        flags=found,
        settings=settings,
        saves=saved,
        unnamed=unnamed,
        is_hydra=any(map(_is_hydra, own)),
        reads_words=any(map(_is_argv, own)),
        reaches=frozenset(_calls(nodes)),
        reaches_imports=frozenset(_imports(nodes)),
        maybe=frozenset(_calls(n for part in code.others for n in source.walk(part.tree))),
        goes_on=any(map(_puts_back, nodes)),
        is_cut=code.is_cut,
    )


def _imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _calls(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (source.last(node.func) for node in nodes if isinstance(node, ast.Call))


def _paths(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Texts that may be a path from where the script is started: a bare name only where something
    is looked for there, and none that stands behind another part of a path.
    """
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    behind = {
        id(arg) for call in calls if source.last(call.func) == "join" for arg in call.args[1:]
    }
    behind |= {id(n.right) for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)}
    looked = {
        id(arg) for call in calls if source.last(call.func) in _LOOKS for arg in call.args[:1]
    }
    for node in nodes:
        text = _text(node) or ""
        is_likely = "/" in text or "." in text or id(node) in looked
        if is_likely and len(text) < _LONGEST and id(node) not in behind:
            yield text


def _puts_back(node: ast.AST) -> bool:
    """`start = state["epoch"]`, `optimizer.load_state_dict(...)`, `accelerator.load_state(...)`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return _text(node.slice) in _GOES_ON
    if not isinstance(node, ast.Call):
        return False
    if source.last(node.func) == "load_state_dict" and isinstance(node.func, ast.Attribute):
        name = source.last(node.func.value).lower()
        return name.startswith(("opt", "sched", "lr_", "scaler")) or "optim" in name
    keys = {item.arg for item in node.keywords}
    is_trainers = bool(keys & {"resume_from_checkpoint", "ckpt_path"})
    return source.last(node.func) in _GOES_ON_CALLS or is_trainers


def _is_argv(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and source.dotted(node.value) in ("sys.argv", "argv")


def _is_hydra(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or source.dotted(node.func) not in ("hydra.main", "main"):
        return False
    return any(item.arg in ("config_path", "config_name") for item in node.keywords)


def _word(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.arg if isinstance(node, ast.keyword) else _text(node)


def _text(node: ast.AST) -> str | None:
    return str(node.value) if source.is_text(node) else None
