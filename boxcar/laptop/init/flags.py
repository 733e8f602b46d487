"""The flags of a script, read from its source: argparse, click, dataclass parsers, bare globals."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeGuard

from boxcar.laptop.init.source import UNKNOWN, dotted, is_text, last, literal
from boxcar.shared.record import dataclass

# What people call the flags that mean something to Boxcar. Of several the first counts.


CONFIG = ("config", "cfg", "config_file", "config_path", "conf", "yaml", "c")
OUT = (
    "output_dir", "out_dir", "outdir", "out", "output", "save_dir", "work_dir", "workdir", "logdir",
    "results_dir", "result_dir", "exp_dir", "run_dir", "checkpoint_dir", "checkpoints_dir",
    "ckpt_dir", "log_dir", "outf", "default_root_dir", "save_folder", "results_folder",
    "save_model_dir", "checkpoint_model_dir", "log_folder", "saved_dir", "logs", "model_dir",
    "save_root", "output_directory", "output_folder", "log_root", "checkpoints", "logging_dir",
)  # fmt: skip
# A file to save to, such as `--save model.pt`.
SAVE_AS = ("save", "save_path", "model_path", "checkpoint_path", "output_path", "save_file")
SAVE_AT_ALL = ("save_model", "save")
EPOCHS = (
    "epochs", "num_epochs", "num_train_epochs", "max_epochs", "n_epochs", "nepochs", "total_epochs",
    "epoch", "niter",
)  # fmt: skip
# How long a training takes, in steps of some kind.
STEPS = (
    "max_steps", "max_iters", "max_iter", "num_steps", "train_steps", "num_train_steps",
    "max_train_steps", "total_steps", "num_iterations", "max_iterations", "iterations",
    "train_iters", "num_iters", "total_iters", "n_iters", "total_timesteps", "steps",
)  # fmt: skip
RESUME = (
    "resume", "resume_from_checkpoint", "resume_from", "ckpt_path", "resume_path", "restore",
    "load_checkpoint", "snapshot_path", "checkpoint", "ckpt", "load",
)  # fmt: skip
# Below these something is saved, and they do not say where to write.
NO_PLACE = frozenset(
    {"data", "data_dir", "data_path", "root", "root_path", "model", "name", "dataset"}
)
TASK = "task"
SEED = ("seed", "manual_seed", "manualseed", "random_seed")
DATA = ("data", "data_dir", "data_path", "dataroot", "dataset_path", "root")
DRY = ("dry_run", "fast_dev_run", "smoke_test")
# Switches: off the GPU, and onto it, where that is the default and the word is its end.
ON_CPU = ("cpu", "use_cpu", "no_cuda", "disable_cuda", "no_gpu", "force_cpu")
ON_GPU = ("cuda", "use_cuda", "gpu", "use_gpu")
BACKEND = ("backend", "dist_backend", "ddp_backend")
# What makes a run short, where the script takes it.
SHORT = dict.fromkeys(STEPS, "2") | {
    "limit_train_batches": "2", "limit_val_batches": "2", "limit_batches": "2", "eval_iters": "1",
    "num_workers": "0", "workers": "0", "device": "cpu", "compile": "False",
}  # fmt: skip


_ADDS = ("add_argument", "option", "argument", "add_arg")
_DATACLASS_PARSERS = ("HfArgumentParser", "tyro", "simple_parsing", "pyrallis", "chz")


@dataclass(frozen=True)
class Flag:
    """`names` as they are typed, such as `-b`, `--batch-size`; of a positional one its name.

    `default` is UNKNOWN where the source does not say it as a literal. `is_switch`: it takes no
    value; `is_off`: it switches off what is on. `is_setting`: it is typed as one word,
    `--name=value` or `name=value`. `line`, of the file at `path`, counts from 1; 0 is that of a
    flag which only the script's `--help` names.
    """

    names: tuple[str, ...]
    line: int
    default: Any = None
    is_switch: bool = False
    is_off: bool = False
    is_required: bool = False
    is_setting: bool = False
    path: str = ""

    @property
    def is_positional(self) -> bool:
        return not self.is_setting and not self.names[0].startswith("-")

    @property
    def word(self) -> str:
        """How it is typed in full."""
        return max(self.names, key=lambda name: (name.startswith("--"), len(name)))

    @property
    def where(self) -> str:
        """Where it is said."""
        return f"{self.path}, line {self.line}" if self.line else "the script's --help"

    @property
    def key(self) -> str:
        """What it is called, however it is spelled: `batch_size`."""
        return self.word.lstrip("-").replace("-", "_")


def read_flags(nodes: Sequence[tuple[str, ast.AST]]) -> tuple[Flag, ...]:
    """Every flag that the code adds to a parser, the script's own first; of nodes with their
    files' paths.
    """
    found: dict[str, Flag] = {}
    calls = [(path, node) for path, node in nodes if isinstance(node, ast.Call)]
    own = [flag for path, call in calls if (flag := _added(call, path))]
    if parsers := [call for _, call in calls if dotted(call.func).startswith(_DATACLASS_PARSERS)]:
        named = {last(n) for call in parsers for n in ast.walk(call) if isinstance(n, ast.expr)}
        classes = [(path, node) for path, node in nodes if isinstance(node, ast.ClassDef)]
        few = [each for each in classes if each[1].name in named]
        own += [flag for path, node in few or classes for flag in _fields(node, path)]
    for flag in own:
        found.setdefault(flag.key, flag)
    return tuple(found.values())


def settings(tree: ast.Module, path: str) -> tuple[Flag, ...]:
    """The plain globals that `exec(open("configurator.py").read())` lets `--name=value` replace."""
    replaced_at = next((n.lineno for n in ast.walk(tree) if _is_exec_of_a_file(n)), 0)
    return tuple(
        Flag((f"--{node.targets[0].id}",), node.lineno, value, is_setting=True, path=path)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.lineno < replaced_at
        and (value := literal(node.value)) is not UNKNOWN
    )


def _added(call: ast.Call, path: str) -> Flag | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _ADDS:
        return None
    names = tuple(str(arg.value) for arg in call.args if is_text(arg))
    if not names:
        return None
    keys = {item.arg: item.value for item in call.keywords if item.arg}
    # click lists the variable's name beside the flags.
    names = tuple(name for name in names if name.startswith("-")) or names[:1]
    is_optional = literal(keys.get("nargs")) in ("?", "*")
    default = literal(keys.get("default"))
    is_off = literal(keys.get("action")) == "store_false"
    is_needed = not names[0].startswith("-") and not is_optional and default is None
    is_needed |= literal(keys.get("required")) is True
    return Flag(
        names, call.lineno, default, _is_switch(keys), is_off, is_required=is_needed, path=path
    )


def _is_switch(keys: dict[str, ast.expr]) -> bool:
    """`nargs='?'` with a `const` may be typed without a value too."""
    action = ast.unparse(keys["action"]).strip("'\"") if "action" in keys else ""
    is_bare = action.startswith("store_") or action == "count"
    is_bare |= action.endswith("BooleanOptionalAction")
    is_maybe = literal(keys.get("nargs")) == "?" and "const" in keys
    return is_bare or is_maybe or literal(keys.get("is_flag")) is True


def _fields(node: ast.ClassDef, path: str) -> Iterator[Flag]:
    """Those of a dataclass, which such parsers turn into flags."""
    bare = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    if all(last(each) != "dataclass" for each in bare):
        return
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            name, is_needed = (f"--{field.target.id}",), field.value is None
            default, is_switch = (
                _field_default(field.value),
                ast.unparse(field.annotation) == "bool",
            )
            yield Flag(name, field.lineno, default, is_switch, is_required=is_needed, path=path)


def _field_default(value: ast.expr | None) -> Any:
    """The literal, also of `field(default=5)`."""
    if isinstance(value, ast.Call) and dotted(value.func).endswith("field"):
        keys = {item.arg: item.value for item in value.keywords}
        return literal(keys.get("default")) if "default" in keys else UNKNOWN
    return literal(value)


def _is_exec_of_a_file(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or dotted(node.func) != "exec":
        return False
    return any(
        isinstance(inner, ast.Call) and dotted(inner.func) == "open" for inner in ast.walk(node)
    )


# The flags that a script's own `--help` names: argparse, click, typer, fire, absl and their kin.
#
# Pure. A text that is no such list has no flags; what was printed around it does not matter.


_BOX = re.compile(r"[\u2500-\u257f]")  # rich draws them around
_ENTRY = re.compile(r"\s{0,10}(?:\*\s+)?(-{1,2}[A-Za-z\[].*)")
_WORDS = re.compile(r"\s*(?:positional )?arguments\b.*", re.I)
_WORD = re.compile(r"\s{1,8}(?:\*\s+)?([A-Za-z]\w*)(?:\s+(.*))?")
_NAME = re.compile(r"-{1,2}(?:\[no\])?[A-Za-z][\w.-]*")
_OF_ABSL = re.compile(r"--(\[no\])?[\w.]+: ")
_DEFAULT = re.compile(r"[\[(][^\[(]*default[:=]?\s+([^\])]+)|^\s*Default: (.+)$", re.I | re.M)
_REQUIRED = re.compile(r"[\[(]required\b", re.I)
_ENDS_AT = re.compile(r"[,;]\s+(?:type|required|env)\b.*", re.S)
_KIND = re.compile(r"\s*(?:TEXT|INTEGER|FLOAT|PATH|FILE|DIRECTORY|<(?!bool)\w+>)(?:\s|$)")
_IGNORED = ("-h", "--help", "--version", "--helpfull", "--install-completion", "--show-completion")


def flags_of_help(text: str) -> tuple[Flag, ...]:
    """In their order, each once; `line` is 0, because no source was read for them."""
    text = _BOX.sub(" ", text)
    demanded = frozenset(_demanded(text))
    found: dict[str, Flag] = {}
    for typed, said in _entries(text):
        flag = _flag(typed, said, demanded) if typed[0] == "-" else _positional(typed, said)
        if flag and flag.word not in _IGNORED:
            found.setdefault(flag.key, flag)
    return tuple(found.values())


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """What is typed, and what is said of it, also on the lines below."""
    typed, said, is_of_words = "", "", False
    for line in [*text.splitlines(), ""]:
        entry = _ENTRY.fullmatch(line)
        word = _WORD.fullmatch(line) if is_of_words else None
        if not (entry or word) and line.strip() and not _WORDS.fullmatch(line):
            said += f"\n{line}"
            continue
        if typed:
            yield typed, said
        typed, said = "", ""
        is_of_words = (is_of_words and bool(word)) or bool(_WORDS.fullmatch(line))
        if entry:
            cut = re.search(r"\s{2,}|\t", entry[1])
            typed, said = (
                (entry[1][: cut.start()], entry[1][cut.end() :]) if cut else (entry[1], "")
            )
        elif word:
            typed, said = word[1], word[2] or ""


def _positional(typed: str, said: str) -> Flag:
    return Flag((typed,), 0, _default(said), is_required=_default(said) is UNKNOWN)


def _flag(typed: str, said: str, demanded: Collection[str]) -> Flag | None:
    of_absl = _OF_ABSL.match(typed)
    names = _NAME.findall(of_absl[0] if of_absl else re.sub(r"\{[^}]*\}|<[^>]*>", "X", typed))
    names = [name.replace("[no]", "") for name in names]
    positive = tuple(name for name in names if not _negates(name, names))
    if not positive:
        return None
    is_valued = not of_absl[1] if of_absl else bool(_NAME.sub("", typed).strip(" ,/|"))
    return Flag(
        positive,
        0,
        _default(said),
        is_switch=not (is_valued or _KIND.match(said)),
        is_required=bool(_REQUIRED.search(said)) or any(name in demanded for name in names),
    )


def _negates(name: str, names: Collection[str]) -> bool:
    return name.startswith("--no") and f"--{name[4:].lstrip('-')}" in names


def _default(said: str) -> Any:
    found = _DEFAULT.search(said)
    if found is None:
        return UNKNOWN
    text = _ENDS_AT.sub("", found[1] or found[2]).strip(" '\"")
    try:
        return None if text == "null" else ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _demanded(text: str) -> Iterator[str]:
    """The options that argparse's usage does not put into brackets."""
    usage = re.search(r"^usage:\s*(.*?)(?:\n\s*\n|\Z)", text, re.S | re.M)
    left, before = usage[1] if usage else "", ""
    while left != before:
        left, before = re.sub(r"[\[(][^\[\]()]*[\])]", " ", left), left
    yield from (name for name in _NAME.findall(left) if f" {name} " in f"{left} ")
