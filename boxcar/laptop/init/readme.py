"""The commands by which a project's own pages start a training: README, other pages, *.sh."""

from __future__ import annotations

import ast
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from boxcar.laptop.init import trainers
from boxcar.laptop.init.flags import Flag
from boxcar.laptop.init.source import UNKNOWN, data_of, dotted, last, lies, parsed
from boxcar.shared.record import dataclass

# Whether a source is a program, and how likely it trains; most of it from the bytes alone.


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


_MOST_PAGES = 40
_PROMPT = re.compile(r"[\s>|*-]*(?:\([\w.-]+\)\s*)?(?:\S*[$%]\s+|[!%]\s*)?")
_FENCED = re.compile(
    r"^(?:```|~~~)[^\n]*\n(.*?)^(?:```|~~~|\Z)|((?:^(?: {4}|\t)[^\n]*\n)+)", re.M | re.S
)
_INLINE = re.compile(r"`([^`\n]+ [^`\n]+)`")
# What each command has that is looked at; splitting every word of a page takes a second.
_LIKELY = re.compile(r"python|run|launch|train|speed|yolo|trl|sh\b|^cd |=")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
_SET = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(\S.*)?")
# What stands before a command, with how many words of its own.
_BEFORE = {
    "sudo": 0,
    "nohup": 0,
    "time": 0,
    "env": 0,
    "exec": 0,
    "srun": 0,
    "uv": 1,
    "poetry": 1,
    "pdm": 1,
    "pixi": 1,
    "mpiexec": 2,
    "mpirun": 2,
}
_LAUNCHERS = {"torchrun": "torchrun", "deepspeed": "deepspeed"}
_MODULES = {
    "torch.distributed.launch": "torchrun",
    "torch.distributed.run": "torchrun",
    "accelerate.commands.launch": "accelerate",
}
_TRAINS = re.compile(r"train|finetun|fine_tun|\bfit\b")
_NOT_TRAINING = re.compile(
    r"--?(?:eval|evaluate|eval[_-]only|test|test[_-]only|inference|demo|help|h|throughput)$"
)
_NO_TRAINING = re.compile(r"--is_train\w*[= ](?:0|False)\b|--(?:mode|phase)[= ](?:test|eval)")
# What stands for something of the reader's own.
_BLANK = re.compile(
    r"\$|<.*>|^\[.*\]$|(?i:path[/_]to|your[_-]|\.\.\.|x{3,})|^(?:N|K|NUM_GPUS)$"
    r"|^(?:algo|model|dataset|data|env|task|config)_(?:name|id|file|path|dir)$"
)
# What may be left out, in the notation of a usage.
_MAY = re.compile(r"\[\s*--[^\]]*\]")
_COMMENTED = re.compile(r"\\\s+#.*$")


@dataclass(frozen=True)
class Typed:
    """`launcher` starts the script at `path`, relative to the project, or the module of that file;
    for none `path` is "" and `words` are all. `where` is the page and its line.
    """

    launcher: str
    path: str
    module: str
    words: tuple[str, ...]
    where: str
    line: str

    @property
    def is_training(self) -> bool:
        words = [word.lower() for word in self.words if not word.startswith("-")]
        said = f"{self.module or self.path}".lower()
        return (
            not self.path or bool(_TRAINS.search(said)) or any(w in ("train", "fit") for w in words)
        )


def is_blank(word: str) -> bool:
    """Whether a word only stands for something that a reader puts there."""
    value = word.partition("=")[2] or word
    return bool(_BLANK.search(value)) and not value.startswith("--")


def commands(root: Path) -> list[Typed]:
    """Those that train, the likeliest first: by the page, and `train` in their words."""
    pages = list(_pages(root))[:_MOST_PAGES]
    found = [(number, each) for number, page in enumerate(pages) for each in _of_page(root, page)]
    is_main = {
        number for number, page in enumerate(pages) if page.name.lower().startswith("readme")
    }
    first = [each for at, each in found if each.is_training and at in is_main]
    then = [each for at, each in found if each.is_training and at not in is_main]
    return [*first, *then, *(each for _, each in found if not each.is_training)]


def _pages(root: Path) -> Iterator[Path]:
    names = sorted(path for path in root.iterdir() if path.is_file())
    pages = [path for path in names if path.suffix.lower() in (".md", ".rst", ".txt")]
    yield from sorted(
        (p for p in pages if p.stem.lower().startswith("readme")),
        key=lambda p: (p.stem.lower() != "readme", p.name),
    )
    yield from (p for p in pages if re.search(r"(?i)start|train|tune|usage|guide", p.stem))
    docs = [p for p in (root / "docs").glob("*.md") if re.search(r"train|start|tune", p.stem)]
    yield from sorted(docs, key=lambda p: (len(p.name), p.name))
    shell = [
        *names,
        *sorted((root / "scripts").glob("*.sh")),
        *sorted((root / "scripts").glob("*/*.sh")),
    ]
    yield from (p for p in shell if p.suffix == ".sh" and _TRAINS.search(p.stem.lower()))


def _of_page(root: Path, page: Path) -> Iterator[Typed]:
    text = data_of(page).decode("utf-8", "replace")
    if page.suffix == ".sh":
        yield from _of_text(root, page, text, 1)
        return
    inside = [
        (m[1] or m[2] or "", text.count("\n", 0, m.start()) + 1) for m in _FENCED.finditer(text)
    ]
    for block, line in inside:
        yield from _of_text(root, page, block, line + 1)
    for match in _INLINE.finditer(_FENCED.sub("", text)):
        yield from _of_text(root, page, match[1], 0)


def _of_text(root: Path, page: Path, text: str, first: int, depth: int = 1) -> Iterator[Typed]:
    known: dict[str, str] = {}
    folder = ""
    for line, said in _lines(text, first):
        for part in re.split(r"\s*(?:&&|;|\|\|?)\s*", _PROMPT.sub("", said, count=1)):
            if not _LIKELY.search(part):
                continue
            words = _words(part, known)
            if words[:1] == ["cd"] and len(words) > 1 and lies(root / folder, words[1]):
                folder = (PurePosixPath(folder) / words[1]).as_posix()
            if match := _SET.fullmatch(part.strip()):
                known[match[1]] = " ".join(_words(match[2] or "", known))
            yield from _typed(root, page, folder, words, said=(line, part), depth=depth)


def _lines(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Each with those that a backslash joins to it."""
    so_far, begun = "", first
    for number, said in enumerate(text.splitlines(), start=first):
        begun = begun if so_far else number
        line = _COMMENTED.sub(r"\\", said)
        so_far += line.rstrip().removesuffix("\\") + " "
        if not line.rstrip().endswith("\\"):
            yield begun, so_far.strip()
            so_far = ""
    if so_far:
        yield begun, so_far.strip()


def _words(part: str, known: dict[str, str]) -> list[str]:
    filled = re.sub(r"\$\{?(\w+)\}?", lambda m: known.get(m[1], m[0]), _MAY.sub("", part))
    try:
        found = shlex.split(filled, comments=True)
    except ValueError:
        found = filled.split()
    end = next((at for at, word in enumerate(found) if re.match(r"[12]?>|<$|&$", word)), None)
    found = found[:end]
    while found and (_SET.fullmatch(found[0]) or found[0] in _BEFORE or found[0].startswith("@")):
        is_own = found[0] in _BEFORE
        found = found[1 + _BEFORE[found[0]] :] if is_own else found[1:]
        while is_own and found and found[0].startswith("-"):
            found = found[1:]
    return found


def _typed(
    root: Path, page: Path, folder: str, words: list[str], *, said: tuple[int, str], depth: int
) -> Iterator[Typed]:
    at = page.relative_to(root).as_posix()
    where, line = f"{at}, line {said[0]}" if said[0] else at, " ".join(said[1].split())
    if words and re.search(r"\.sh$", words[0]) and words[0] not in ("bash", "sh"):
        words = ["bash", *words]
    if depth and len(words) > 1 and words[0] in ("bash", "sh", "source"):
        inner = _file(root, folder, page, words[1])
        if inner and inner.suffix == ".sh":
            text = data_of(inner).decode("utf-8", "replace")
            yield from _of_text(root, inner, text, 1, depth - 1)
    elif trainers.of_words(words):
        yield Typed("none", "", "", tuple(words), where, line)
    elif (found := _started(words)) and not _evaluates(found[2]):
        launcher, target, more, is_module = found
        file = _module(root, folder, target) if is_module else _file(root, folder, page, target)
        path = file.relative_to(root).as_posix() if file else ""
        if file and _may_train(file, path):
            yield Typed(launcher, path, target if is_module else "", tuple(more), where, line)


def _evaluates(words: Sequence[str]) -> bool:
    is_said = any(map(_NOT_TRAINING.match, words))
    return is_said or bool(_NO_TRAINING.search(" ".join(words)))


def _may_train(file: Path, path: str) -> bool:
    is_named = bool(_TRAINS.search(path.lower()))
    is_likely = is_named or bool(score(path, data_of(file)))
    return is_likely and not is_other(path) and is_program_at(file)


def _started(words: Sequence[str]) -> tuple[str, str, Sequence[str], bool] | None:
    """The launcher, what it starts, with which words, and whether that is a module."""
    launcher, left = "", list(words)
    if left and _PYTHON.fullmatch(left[0]):
        launcher, left = "python", left[1:]
        while left and re.fullmatch(r"-[uOBsE]+", left[0]):
            left = left[1:]
        if left[:1] == ["-m"] and left[1:2] and left[1] in _MODULES:
            launcher, left = _MODULES[left[1]], left[2:]
    elif left and left[0] in _LAUNCHERS:
        launcher, left = _LAUNCHERS[left[0]], left[1:]
    elif left[:2] == ["accelerate", "launch"]:
        launcher, left = "accelerate", left[2:]
    for at, word in enumerate(left if launcher else ()):
        if word in ("-m", "--module") and left[at + 1 :]:
            more = left[at + 2 :]
            return launcher, left[at + 1], more[more[:1] == ["--"] :], True
        if word.endswith(".py"):
            return launcher, word, left[at + 1 :], False
        if launcher == "python" and not word.startswith("-"):
            break
    return None


def _file(root: Path, folder: str, page: Path, name: str) -> Path | None:
    if is_blank(name) or not any(lies(place, name) for place in (root / folder, root, page.parent)):
        return None
    for place in (root / folder, root, page.parent):
        path = (place / name).resolve()
        if path.is_relative_to(root) and path.is_file():
            return path
    return None


def _module(root: Path, folder: str, name: str) -> Path | None:
    for path in (place.joinpath(*name.split(".")) for place in (root / folder, root, root / "src")):
        for file in (path.with_name(f"{path.name}.py"), path / "__main__.py"):
            if file.is_file():
                return file
    return None


def first_of(found: Iterable[Typed], path: str) -> Typed | None:
    """How the pages start this script; by a launcher of ranks, where one does."""
    own = [each for each in found if each.path == path]
    return next((each for each in own if each.launcher != "python"), next(iter(own), None))


def flags_of(typed: Typed) -> Iterator[Flag]:
    """Those that stand in a page's command, whatever the source says."""
    page, _, line = typed.where.partition(", line ")
    for word, following in itertools.zip_longest(typed.words, typed.words[1:], fillvalue="-"):
        name, is_set, _ = word.partition("=")
        if name.startswith("--"):
            is_bare = (not is_set and following.startswith("--")) or following == "-"
            yield Flag((name,), int(line or 1), UNKNOWN, is_switch=is_bare, path=page)
