"""What a script saves, read from its source: the names of the files, as patterns."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from boxcar.laptop.init.paths import Names, Scope
from boxcar.laptop.init.source import dotted, last
from boxcar.shared.record import dataclass

# A function that writes -> which of its arguments is the place: from the front, or by its name.
_SAVES: dict[str, tuple[int | None, str]] = {
    "torch.save": (1, "f"),
    "save_file": (1, "filename"),
    "joblib.dump": (1, "filename"),
    "dump": (1, "file"),
    "copyfile": (1, "dst"),
    "os.replace": (1, "dst"),
    "os.rename": (1, "dst"),
    "shutil.move": (1, "dst"),
    "np.save": (0, "file"),
    "np.savez": (0, "file"),
    "np.savez_compressed": (0, "file"),
    "numpy.save": (0, "file"),
    "numpy.savez": (0, "file"),
    "to_csv": (0, "path_or_buf"),
    "save_pretrained": (0, "save_directory"),
    "save_checkpoint": (0, "filepath"),
    "save_state": (0, "output_dir"),
    "save_weights": (0, "filepath"),
    "write_text": (None, ""),
    "write_bytes": (None, ""),
}
_MODELS = ("torch.save", "save_file")
_FOLDERS = ("save_pretrained", "save_state")
_CHECKPOINTS = (
    ".pt",
    ".pth",
    ".ckpt",
    ".tar",
    ".safetensors",
    ".pkl",
    ".pickle",
    ".joblib",
    ".bin",
    ".npz",
)
_RESULTS = (*_CHECKPOINTS, ".json", ".jsonl", ".csv", ".npy", ".onnx")
_TEXT = ".txt"  # a log as often as a result, so it counts where a script writes nothing else
_MODES = re.compile(r"[wax]b?\+?t?")
# What is given another name once it is whole is no result.
_NAMED = re.compile(r"\.(?!tmp|temp|part|new|bak)\w+$")


@dataclass(frozen=True)
class Saved:
    """`name` is a path or a pattern below `root` (see paths.Place); that of folders ends with `/`.

    `is_torchs`: torch.save writes it, whatever it is called.
    """

    name: str
    line: int
    root: str
    is_torchs: bool = False
    file: str = ""

    @property
    def is_in_cwd(self) -> bool:
        """The script says the whole path, so it lies where the script was started."""
        return not self.root

    @property
    def is_checkpoint(self) -> bool:
        return self.is_torchs or self.name.lower().endswith((*_CHECKPOINTS, "/"))


def read_saves(names: Names) -> tuple[tuple[Saved, ...], tuple[str, ...]]:
    """Each file that the code writes and that a result may be made of, once, in its order; and
    where it saves a model under a name that was not seen.
    """
    found: dict[str, Saved] = {}
    unnamed: list[str] = []
    for file, call, scope in names.calls:
        if saved := _saved_by(call, scope, names, file):
            found.setdefault(saved.name, saved)
        elif dotted(call.func) in _MODELS:
            unnamed.append(f"{file}, line {call.lineno}")
    texts = [saved for saved in found.values() if saved.name.lower().endswith(_TEXT)]
    others = [saved for saved in found.values() if saved not in texts]
    return tuple(others or ([] if unnamed else texts)), tuple(unnamed)


def _saved_by(call: ast.Call, scope: Scope, names: Names, file: str) -> Saved | None:
    """What a call writes; of a `save...` of the project's own, the checkpoint that it is given."""
    place, is_folder = _place(call), last(call.func) in _FOLDERS
    is_torchs = dotted(call.func) == "torch.save"
    where = (scope, names, file)
    saved = _saved(place, *where, is_folder=is_folder, is_torchs=is_torchs) if place else None
    if saved or not last(call.func).startswith("save"):
        return saved
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    named = (_saved(each, *where, is_folder=False) for each in given)
    found = next((each for each in named if each and each.is_checkpoint), None)
    return replace(found, is_torchs=True) if found else None


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
    place: ast.expr,
    scope: Scope,
    names: Names,
    file: str,
    *,
    is_folder: bool,
    is_torchs: bool = False,
) -> Saved | None:
    found = names.place(place, scope)
    name = found.path
    is_fit = bool(name) if is_folder else name.lower().endswith((*_RESULTS, _TEXT))
    end = name.rpartition("/")[2]
    is_fit |= is_torchs and bool(_NAMED.search(end) or re.fullmatch(r"[^.]*[A-Za-z_]{3}[^.]*", end))
    if not is_fit or ".." in name.split("/") or found.root == "/":
        return None
    if end.startswith(("tmp", "temp")):
        return None
    return Saved(f"{name}/" if is_folder else name, place.lineno, found.root, is_torchs, file)
