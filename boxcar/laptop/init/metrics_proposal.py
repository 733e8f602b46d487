"""The lines of `metrics:` that a script's own prints and loggers suggest. Pure.

A number is proposed where the text before it has the name of a known measure, and where no other
text of the script would be taken for it. Known are print and its like with f-strings, `%`,
`.format` and several words, loggers, and tqdm's postfix. What is rarely right is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from boxcar.laptop.init.source import PERCENT, dotted, is_text, last, text_of
from boxcar.shared.metrics.seen_in_log import LESS, MORE
from boxcar.shared.record import dataclass

MOST = 3
_TESTS = {"val", "valid", "validation", "test", "eval", "dev"}
_TRAINS = {"train", "training", "batch", "running"}
_LABEL = re.compile(
    r"(?:^|[,;|\[\](){}\n\t*#>-]|:\s|\s{2})\s*([A-Za-z][\w@/. -]{0,40}?)(\s*[:=]?\s*[\[(]?)$"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*")
_BREAKS = re.compile(r"[\r\n]")
_PRINTS = re.compile(
    r"(?i)(.*\.)?((\w*_)?print(_?\w*)?|(rank_zero_|log_)?info|warning|set_description(_str)?|echo)"
    r"|tqdm\.write|log|(.*\.)?set_postfix_str"
)
_AS_NUMBER = re.compile(r"[^a-zA-Z]*([eEfFgG%d]|\.\d+$)")
_MAKE_NUMBERS = ("item", "float", "round", "int", "len")
# A value within a text: n is printed as a number for sure, and no tensor; p may have blanks before.
_HOLE = re.compile(r"\0([n?])(p?)\0")


@dataclass(frozen=True)
class Proposal:
    """One line of `metrics:`, and the line of the script that suggests it. `rank` 0 is of a
    validation, 2 of the training.
    """

    label: str
    pattern: str
    best: str
    line: int
    rank: int = 1

    @property
    def name(self) -> str:
        return re.sub(r"[^A-Za-z0-9_]+", "_", self.label.strip()).strip("_").lower()

    @property
    def yaml(self) -> str:
        quoted = self.pattern.replace("'", "''")
        return f"{self.name}: {{log: '{quoted}', best: {self.best}}}"


def proposed(source: str) -> tuple[Proposal, ...]:
    """At most MOST, those of a validation before those of the training; none of what is no Python.

    Each `yaml` is a line below `metrics:`; `line` is where the script suggests it.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found = _unlike([one for line, text in _texts(tree) for one in _of_text(line, text)])
    by_name: dict[str, Proposal] = {}
    for one in (*_of_trainer(tree), *sorted(found, key=lambda one: (one.rank, one.line))):
        by_name.setdefault(one.name, one)
    return tuple(by_name.values())[:MOST]


def _of_text(line: int, text: str) -> Iterator[Proposal]:
    parts = _HOLE.split(text)
    for at in range(1, len(parts), 3):
        before, kind, padded, after = parts[at - 1 : at + 3]
        label = _LABEL.search(_BREAKS.split(before)[-1])
        if label and not after.startswith("/") and (best := _best(label[1])):  # 9912/10000
            said = _BREAKS.split("".join(parts[:at:3]))[-1]
            pattern = _pattern(label[1], label[2], kind, padded, after)
            yield Proposal(label[1], pattern, best, line, _rank(label[1], said))


def _best(label: str) -> str:
    """By its last word, or the last part of it; '' where it names no measure."""
    last_words = {found[-1].lower() for found in (_WORDS.findall(label), label.split()) if found}
    return "min" if last_words & LESS else "max" if last_words & MORE else ""


def _rank(*texts: str) -> int:
    """By the label, else by what stands before it."""
    for text in texts:
        words = {word.lower() for word in _WORDS.findall(text)}
        if words & (_TESTS | _TRAINS):
            return 0 if words & _TESTS else 2
    return 1


def _pattern(label: str, between: str, kind: str, padded: str, after: str) -> str:
    # Of `loss` in `val_loss` a part of a word is no name.
    head = rf"\b{_literal(label)}" if re.fullmatch(r"\w+", label) else _literal(label)
    gap, stop = _literal(between) + " *" * bool(padded), after[:1]
    if kind == "?":
        more = re.escape(stop.strip(" ,)"))
        return rf"{head}{gap}(?:tensor\()?([^\s,){more}]+)"
    if not stop or stop.isspace() or (stop in ",;" and after[1:2].isspace()):
        return rf"{head}{gap}(\S+)"
    return rf"{head}{gap}([^\s{re.escape(stop)}]+)"


def _literal(text: str) -> str:
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def _unlike(found: Sequence[Proposal]) -> list[Proposal]:
    """Without those that the text of another one fits too: `loss` where `val loss` is printed."""
    first: dict[str, Proposal] = {}
    for one in found:
        first.setdefault(one.label, one)
    ends = {label: re.compile(rf".+\b{re.escape(label)}") for label in first}
    return [one for label, one in first.items() if not any(map(ends[label].fullmatch, first))]


def _of_trainer(tree: ast.Module) -> Iterator[Proposal]:
    """transformers' Trainer prints a dict."""
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    made = (n for n in calls if re.fullmatch(r"(Seq2Seq|SFT|DPO)?Trainer", last(n.func)))
    modules = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    modules |= {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    if (call := next(made, None)) and {"transformers", "trl"} & {m.split(".")[0] for m in modules}:
        words = {keyword.arg for each in calls for keyword in each.keywords}
        words |= {last(each.func) for each in calls}
        is_evaluated = {"eval_strategy", "evaluation_strategy", "evaluate"} & words
        key = "eval_loss" if is_evaluated else "loss"
        yield Proposal(key, f"'{key}': '?([^',}}]+)", "min", call.lineno)


# --- what is printed


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    given = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    is_made = (ast.JoinedStr, ast.BinOp, ast.Call)
    named = {
        name.id: node.value
        for node in given
        for name in node.targets
        if isinstance(name, ast.Name) and isinstance(node.value, is_made)
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if last(call.func) == "set_postfix":
            keys = [keyword.arg for keyword in call.keywords]
            dicts = (arg for arg in call.args[:1] if isinstance(arg, ast.Dict))
            keys += [k.value for each in dicts for k in each.keys if isinstance(k, ast.Constant)]  # type: ignore[misc]
            yield from ((call.lineno, f"{key}=\0n\0]") for key in keys if key)
        elif _PRINTS.fullmatch(dotted(call.func)):
            yield call.lineno, _of_call(call, named)


def _of_call(call: ast.Call, named: Mapping[str, ast.expr]) -> str:
    """A logger fills its first word with the others; print sets a blank between."""
    args = [
        named.get(each.id, each) if isinstance(each, ast.Name) else each
        for each in call.args
        if not isinstance(each, ast.Starred)
    ]
    if any(keyword.arg == "sep" for keyword in call.keywords):
        return ""
    if args[1:] and is_text(args[0]) and PERCENT.search(str(args[0].value)):
        args = [ast.BinOp(args[0], ast.Mod(), ast.Tuple(args[1:], ast.Load()))]
    return " ".join(text_of(each, _hole) for each in args)


def _hole(node: ast.expr, spec: str) -> str:
    if isinstance(node, ast.Call) and last(node.func) == "str" and node.args:
        node = node.args[0]
    is_made = isinstance(node, ast.Call) and last(node.func) in _MAKE_NUMBERS
    kind = "n" if is_made or _AS_NUMBER.match(spec) else "?"
    padded = "p" if re.match(r"[^.a-zA-Z]*[1-9]", spec) else ""
    return f"\0{kind}{padded}\0" + "%" * spec.endswith("%")
