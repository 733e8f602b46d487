"""The lines of `metrics:` that a script's own prints and loggers suggest. Pure.

A number is proposed where the text before it has the name of a known measure, and where no other
text of the script would be taken for it. What is rarely right is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from boxcar.laptop.habits import printed
from boxcar.laptop.habits.printed import Part, Text, Value
from boxcar.laptop.habits.source import last
from boxcar.shared.record import dataclass

MOST = 3
_LESS = (
    *("loss", "losses", "nll", "bpb", "ppl", "perplexity", "mse", "mae", "rmse", "wer", "cer"),
    *("fid", "eer", "lpips", "rmsle", "mape"),
)
_MORE = (
    *("acc", "accuracy", "top1", "top5", "auc", "auroc", "f1", "dice", "iou", "miou", "psnr"),
    *("ssim", "bleu", "ap", "recall", "reward", "kappa", "mcc", "ndcg", "mrr", "r2"),
)
_TESTS = ("val", "valid", "validation", "test", "eval", "dev")
_TRAINS = ("train", "training", "batch", "running")
_LABEL = re.compile(
    r"(?:^|[,;|\[\](){}\n\t*#>-]|:\s|\s{2})\s*([A-Za-z][\w@/. -]{0,40}?)(\s*[:=]?\s*[\[(]?)$"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*")
_NAME = re.compile(r"[^A-Za-z0-9_]+")
_BREAKS = re.compile(r"[\r\n]")


@dataclass(frozen=True)
class Proposal:
    """One line of `metrics:`, and the line of the script that suggests it."""

    name: str
    source: str  # log, csv or json, with what it is of
    best: str
    line: int

    @property
    def yaml(self) -> str:
        return f"{self.name}: {{{self.source}, best: {self.best}}}"


@dataclass(frozen=True)
class _Found:
    label: str
    pattern: str
    best: str
    rank: int
    line: int


def proposed(source: str) -> tuple[Proposal, ...]:
    """At most MOST, those of a validation before those of the training; none of what is no Python.

    Each `yaml` is a line below `metrics:`; `line` is where the script suggests it.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found = _unlike([one for text in printed.read(tree) for one in _of_text(text)])
    logs = [
        Proposal(_name(one.label), f"log: {_quoted(one.pattern)}", one.best, one.line)
        for one in sorted(found, key=lambda one: (one.rank, one.line))
    ]
    by_name: dict[str, Proposal] = {}
    for one in (*_of_libraries(tree), *logs):
        by_name.setdefault(one.name, one)
    return tuple(by_name.values())[:MOST]


def _of_text(text: Text) -> Iterator[_Found]:
    for at, part in enumerate(text.parts):
        before = text.parts[at - 1] if at else ""
        if not isinstance(part, Value) or not isinstance(before, str):
            continue
        match = _LABEL.search(_BREAKS.split(before)[-1])
        after = text.parts[at + 1] if at + 1 < len(text.parts) else ""
        is_count = isinstance(after, str) and after.startswith("/")  # 9912/10000
        if match and not is_count and (best := _best(match[1])):
            pattern = _pattern(match[1], match[2], part, after)
            yield _Found(match[1], pattern, best, _rank(match[1], _before(text, at)), text.line)


def _best(label: str) -> str:
    """By its last word, or the last part of it; '' where it names no measure."""
    last_words = {found[-1].lower() for found in (_WORDS.findall(label), label.split()) if found}
    if last_words & {*_LESS}:
        return "min"
    return "max" if last_words & {*_MORE} else ""


def _before(text: Text, at: int) -> str:
    return _BREAKS.split("".join(part for part in text.parts[:at] if isinstance(part, str)))[-1]


def _rank(*texts: str) -> int:
    """Of a validation first, of the training last; by the label, else by what stands before it."""
    for text in texts:
        words = {word.lower() for word in _WORDS.findall(text)}
        if words & {*_TESTS, *_TRAINS}:
            return 0 if words & {*_TESTS} else 2
    return 1


def _pattern(label: str, between: str, value: Value, after: Part) -> str:
    # Of `loss` in `val_loss` a part of a word is no name.
    head = rf"\b{_literal(label)}" if re.fullmatch(r"\w+", label) else _literal(label)
    gap = _literal(between) + (" *" if value.is_padded else "")
    stop = after[:1] if isinstance(after, str) else ""
    if not value.is_number:
        more = re.escape(stop.strip(" ,)"))
        return rf"{head}{gap}(?:tensor\()?([^\s,){more}]+)"
    if not stop or stop.isspace() or (stop in ",;" and after[1:2].isspace()):  # type: ignore[index]
        return rf"{head}{gap}(\S+)"
    return rf"{head}{gap}([^\s{re.escape(stop)}]+)"


def _literal(text: str) -> str:
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def _unlike(found: Sequence[_Found]) -> list[_Found]:
    """Without those that the text of another one fits too: `loss` where `val loss` is printed."""
    first: dict[str, _Found] = {}
    for one in found:
        first.setdefault(one.label, one)
    ends = {label: re.compile(rf".+\b{re.escape(label)}") for label in first}
    return [one for label, one in first.items() if not any(map(ends[label].fullmatch, first))]


def _of_libraries(tree: ast.Module) -> Iterator[Proposal]:
    """transformers' Trainer prints a dict; Keras' CSVLogger names its file."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {last(call.func) for call in calls}
    words = {keyword.arg for call in calls for keyword in call.keywords}
    if any(re.fullmatch(r"(Seq2Seq|SFT|DPO)?Trainer", name) for name in names) and _imports(
        tree, ("transformers", "trl")
    ):
        is_evaluated = bool({"eval_strategy", "evaluation_strategy"} & words) or "evaluate" in names
        key = "eval_loss" if is_evaluated else "loss"
        line = next(call.lineno for call in calls if last(call.func).endswith("Trainer"))
        yield Proposal(key, f"""log: "'{key}': '?([^',}}]+)\"""", "min", line)
    for call in calls:
        if last(call.func) == "CSVLogger" and _imports(tree, ("keras", "tensorflow")):
            path = call.args[0] if call.args else None
            if isinstance(path, ast.Constant) and not str(path.value).startswith(("/", ".")):
                key = "val_loss" if {"validation_data", "validation_split"} & words else "loss"
                yield Proposal(
                    key, f"csv: {_quoted(str(path.value))}, column: {key}", "min", call.lineno
                )


def _imports(tree: ast.Module, packages: Iterable[str]) -> bool:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return not found.isdisjoint(packages)


def _name(label: str) -> str:
    return _NAME.sub("_", label.strip()).strip("_").lower()


def _quoted(pattern: str) -> str:
    return "'" + pattern.replace("'", "''") + "'"
