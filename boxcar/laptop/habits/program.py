"""Whether a source is a program, and how likely it trains; most of it from the bytes alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from boxcar.laptop.habits.source import data_of, dotted, last, parsed

# What a source says that trains, and how sure that makes one.
_SIGNS = {
    b".backward(": 3,
    b"zero_grad(": 3,
    b".fit(": 2,
    b"Trainer(": 2,
    b"LightningCLI(": 4,
    b"save(": 1,
    b"train(": 1,
    b".step(": 1,
    b"DataLoader(": 1,
    b"YOLO(": 3,
    b"Runner": 2,
    b"instantiate(": 1,
    b".learn(": 2,
    b"lgb.train": 2,
    b"xgb.train": 2,
}
_TAKES_WORDS = (
    b"add_argument(",
    b"argv[",
    b"click",
    b"typer",
    b"fire",
    b"absl",
    b"hydra",
    b"HfArgumentParser",
    b"parse_args(",
    b"tyro",
    b"configurator",
)
_NAMES = {"train": 4, "main": 3, "finetune": 2, "pretrain": 2, "run": 1, "fit": 2}
OTHER_NAMES = (
    "test",
    "eval",
    "sample",
    "generate",
    "predict",
    "infer",
    "demo",
    "plot",
    "bench",
    "setup",
    "export",
    "convert",
    "download",
    "prepare",
    "detect",
    "visualiz",
    "inspect",
    "preprocess",
    "hubconf",
    "submitit",
    "tok_",
    "server",
    "enjoy",
    "gradio",
    "merge",
    "report",
)
# What only sets up, at the top of a module that is imported.
_SETS_UP = (
    "append",
    "insert",
    "extend",
    "use",
    "filterwarnings",
    "simplefilter",
    "basicConfig",
    "update",
    "setLevel",
    "addHandler",
    "setdefault",
    "load_dotenv",
    "setrecursionlimit",
    "seed",
    "manual_seed",
    "seed_everything",
    "setup_root",
    "switch_backend",
    "freeze_support",
    "clear",
)
_BEGINS_TO = ("set_", "register", "add_", "check_", "require", "enable", "disable", "setup_logg")


def stem_of(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".py").lower()


def is_other(path: str) -> bool:
    """Whether its name says that it does something else than train."""
    return any(name in stem_of(path) for name in OTHER_NAMES)


def score(path: str, data: bytes) -> int:
    """How likely it trains; 0: it does something else. Whether it is a program is not known yet."""
    signs = sum(points for sign, points in _SIGNS.items() if sign in data)
    has_words = any(sign in data for sign in _TAKES_WORDS)
    if is_other(path):
        # Some call a training so, as TCN's add_test.py; the others come first.
        return int(has_words and all(sign in data for sign in (*[*_SIGNS][:2], b".step(")))
    if not (signs or has_words or b"import " in data) or b"(" not in data:
        return 0
    named = max((points for name, points in _NAMES.items() if name in stem_of(path)), default=0)
    if not signs and not named:
        return 0
    return max(0, signs + named + 2 * has_words - path.count("/"))


def is_program(tree: ast.Module) -> bool:
    """Whether it does something when it is started, and not only when it is imported."""
    for node in tree.body:
        if isinstance(node, (ast.For, ast.While, ast.With)):
            return True
        if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = last(node.value.func)
            sets_up = name in _SETS_UP or name.startswith(_BEGINS_TO)
            if not sets_up and not dotted(node.value.func).startswith(("os.environ.", "logging.")):
                return True
    return False


def is_program_at(path: Path) -> bool:
    if re.search(rb"^if\s+__name__", data_of(path), re.M):
        return True  # a parse of all that pages name takes a second
    tree = parsed(path)
    return tree is not None and is_program(tree)
