"""What a script saves, read from its source: the names of the files, as patterns."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from boxcar.laptop.habits.called import assigned, dotted, last
from boxcar.shared.record import dataclass

# A function that writes -> which of its arguments is the place: from the front, or by its name.
_SAVES = {
    "torch.save": (1, "f"),
    "save_file": (1, "filename"),
    "copyfile": (1, "dst"),
    "joblib.dump": (1, "filename"),
    "dump": (1, "file"),
    "np.save": (0, "file"),
    "np.savez": (0, "file"),
    "np.savez_compressed": (0, "file"),
    "numpy.save": (0, "file"),
    "numpy.savez": (0, "file"),
    "to_csv": (0, "path_or_buf"),
    "os.replace": (1, "dst"),
    "os.rename": (1, "dst"),
    "shutil.move": (1, "dst"),
    "save_pretrained": (0, "save_directory"),
    "save_checkpoint": (0, "filepath"),
    "save_state": (0, "output_dir"),
    "save_weights": (0, "filepath"),
    "write_text": (None, ""),
    "write_bytes": (None, ""),
}
_FOLDERS = ("save_pretrained", "save_state")
_CHECKPOINTS = (
    ".pt", ".pth", ".ckpt", ".tar", ".safetensors", ".pkl", ".pickle", ".joblib", ".bin", ".npz",
)  # fmt: skip
_RESULTS = (*_CHECKPOINTS, ".json", ".jsonl", ".csv", ".npy", ".onnx")
_MODES = re.compile(r"[wax]b?\+?t?")
# Calls that may leave a file, also of libraries that do it by themselves.
_WRITES = re.compile(
    r"(?i)save|dump|write|imsave|imwrite|export|copyfile|copytree|mkdir|makedirs|log_(artifact|model)"
    r"|to_(csv|json|parquet|pickle|feather|hdf|excel|disk|file)$"
    r"|.*(writer|checkpoint|logger|trainer|learner|callback|saver|handler|tracker)s?$"
)
# What is given another name once it is whole is no result.
_NAMED = re.compile(r"\.(?!tmp|temp|part|new|bak)\w+$")
ANY = "*"


@dataclass(frozen=True)
class Saved:
    """`name` is a path or a pattern below the place that the script writes to; that of folders
    ends with `/`.

    `is_in_cwd`: the script says the whole path, so it lies where the script was started.
    `is_torchs`: torch.save writes it, whatever it is called.
    """

    name: str
    line: int
    is_in_cwd: bool
    is_torchs: bool = False

    @property
    def is_checkpoint(self) -> bool:
        return self.is_torchs or self.name.lower().endswith((*_CHECKPOINTS, "/"))


def read(tree: ast.Module, settable: Collection[str] = ()) -> tuple[Saved, ...]:
    """Each file that the source writes and that a result may be made of, once, in its order.

    `settable` are names that the source gives a value and its caller another.
    """
    values = {name: value for name, value in _values(tree).items() if name not in settable}
    found: dict[str, Saved] = {}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if saved := _saved_by(call, values):
            found.setdefault(saved.name, saved)
    return tuple(sorted(found.values(), key=lambda saved: saved.line))


def event_folders(tree: ast.Module) -> list[str]:
    """Where TensorBoard's writers write, as patterns; without a word of their own below runs/."""
    values, found = _values(tree), []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if last(call.func) == "SummaryWriter":
            named = (item.value for item in call.keywords if item.arg in ("log_dir", "logdir"))
            place = next(iter((*call.args[:1], *named)), None)
            saved = _saved(place, values, is_folder=True) if place else None
            found += [saved.name] if saved else [] if place else ["runs/*/"]
    return found


def may_write(tree: ast.Module) -> bool:
    """Whether anything that the source calls may leave a file, of whatever kind."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(
        bool(_WRITES.match(last(call.func)))
        or (last(call.func) == "open" and _opens_to_write(call))
        for call in calls
    )


def _saved_by(call: ast.Call, values: dict[str, ast.expr]) -> Saved | None:
    """What a call writes; of a `save...` of the project's own, the checkpoint that it is given."""
    place, is_folder = _place(call), last(call.func) in _FOLDERS
    is_torchs = dotted(call.func) == "torch.save"
    saved = _saved(place, values, is_folder=is_folder, is_torchs=is_torchs) if place else None
    if saved or not last(call.func).startswith("save"):
        return saved
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    named = (_saved(each, values, is_folder=False) for each in given)
    return next((each for each in named if each and each.is_checkpoint), None)


def _place(call: ast.Call) -> ast.expr | None:
    """The argument that says where a call writes to; None for a call that writes nothing."""
    if last(call.func) == "open" and _opens_to_write(call):
        return call.args[0] if isinstance(call.func, ast.Name) else _receiver(call)
    names = (dotted(call.func), last(call.func))
    rule = next((_SAVES[name] for name in names if name in _SAVES), None)
    if rule is None:
        return None
    at, keyword = rule
    if at is None:
        return _receiver(call)
    named = next((item.value for item in call.keywords if item.arg == keyword), None)
    return named or (call.args[at] if len(call.args) > at else None)


def _receiver(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _opens_to_write(call: ast.Call) -> bool:
    at = 1 if isinstance(call.func, ast.Name) else 0
    modes = [*call.args[at : at + 1], *(k.value for k in call.keywords if k.arg == "mode")]
    return bool(call.args or at == 0) and any(
        isinstance(mode, ast.Constant) and _MODES.fullmatch(str(mode.value)) for mode in modes
    )


def _saved(
    place: ast.expr, values: dict[str, ast.expr], *, is_folder: bool, is_torchs: bool = False
) -> Saved | None:
    names = "/".join(_parts(place, values, depth=3)).split("/")
    # An unknown first part is where the script was told to write.
    is_in_cwd = names[0] != ANY
    known = names if is_in_cwd else names[1:]
    name = "/".join(re.sub(r"\*+", ANY, part) for part in known if part not in ("", "."))
    is_fit = bool(name) if is_folder else name.lower().endswith(_RESULTS)
    is_fit |= is_torchs and bool(_NAMED.search(name))
    if not is_fit or ".." in known or names[0] == "":
        return None
    return Saved(f"{name}/" if is_folder else name, place.lineno, is_in_cwd, is_torchs)


def _parts(node: ast.expr, values: dict[str, ast.expr], depth: int) -> Iterator[str]:
    """The parts of a path, each as text with * for what the source does not say."""
    if isinstance(node, ast.Call) and last(node.func) in ("join", "Path", "PurePath", "str"):
        for part in node.args:
            yield from _parts(part, values, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _parts(node.left, values, depth)
        yield from _parts(node.right, values, depth)
    elif isinstance(node, ast.Name) and node.id in values and depth:
        yield from _parts(values[node.id], values, depth - 1)
    elif isinstance(node, ast.Call) and last(node.func) == "open" and node.args:
        yield from _parts(node.args[0], values, depth)
    else:
        yield _text(node, values, depth)


def _text(node: ast.expr, values: dict[str, ast.expr], depth: int) -> str:
    """One part: constants as they are, everything else a *."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, values, depth) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, values, depth) + _text(node.right, values, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return re.sub(r"%[-0-9.]*[a-z]", ANY, _text(node.left, values, depth))
    if isinstance(node, ast.Call) and last(node.func) == "format":
        receiver = _receiver(node)
        text = _text(receiver, values, depth) if receiver else ANY
        return re.sub(r"\{[^}]*\}", ANY, text)
    if isinstance(node, ast.Name) and node.id in values and depth:
        return "/".join(_parts(values[node.id], values, depth - 1))
    return ANY


def _values(tree: ast.Module) -> dict[str, ast.expr]:
    """What each name is given, and the defaults of parameters; of several the last in the file."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            found |= {name.id: value for name, value in assigned(node)}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # Those with a default come last, whether they may be named or not.
            names = [*node.args.posonlyargs, *node.args.args][::-1]
            pairs = zip(names, node.args.defaults[::-1], strict=False)
            found |= {name.arg: value for name, value in pairs if name.arg not in found}
    return found
