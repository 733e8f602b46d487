"""The words that start a script: where its config, place and epochs go, and what starts it."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from boxcar.laptop.init import flags, readme
from boxcar.laptop.init.flags import (
    BACKEND,
    CONFIG,
    DRY,
    NO_PLACE,
    ON_CPU,
    ON_GPU,
    OUT,
    RESUME,
    SAVE_AS,
    SAVE_AT_ALL,
    SHORT,
    Flag,
)
from boxcar.laptop.init.readme import Typed
from boxcar.laptop.init.script import Script
from boxcar.laptop.init.source import lies
from boxcar.shared.cell import cell_name
from boxcar.shared.files import queue_line
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# The first queue of a project: a few lines that run, and others to uncomment.


_ACTIVE = 2
_MOST_SHOWN = 20


def typed(path: str) -> str:
    """A path as one word of a command or a queue line; one that reads as itself stays as it is."""
    try:
        is_one_word = shlex.split(path, comments=True) == [path]
    except ValueError:
        is_one_word = False
    return path if is_one_word else shlex.quote(path)


def fits(config: str) -> bool:
    """Whether a queue line can name it: one with a line feed in its name would be two lines."""
    try:
        found = queue_line.parse_queue(f"{_of_config(config, 'train', '')}\n".encode())
    except UnicodeEncodeError:
        return False
    return [line.cfg for line in found.cells] == [config]


def task_of(script: Script) -> Flag | None:
    """The flag that takes the task of a queue line, where its default can be one."""
    flag = script.flag(flags.TASK)
    if flag is None or flag.is_positional or not isinstance(flag.default, str):
        return None
    return flag if cell_name.CELL_NAME.fullmatch(flag.default) else None


def queue_lines_of(script: Script, epochs: int | None, configs: Sequence[str]) -> tuple[str, ...]:
    """Queue lines; those behind a `#` are configs that were found too. `configs` are none where
    the command takes no config, and fit.
    """
    last = f" {epochs}" if epochs else ""
    task = flag.default if (flag := task_of(script)) else "train"
    if configs:
        names = sorted(configs, key=_order)[:_MOST_SHOWN]
        lines = [_of_config(name, task, last) for name in names]
        return (*lines[:_ACTIVE], *(f"# {line}" for line in lines[_ACTIVE:]))
    seed = script.flag(*flags.SEED)
    if script.is_hydra:
        return (f"- {task}{last}", f"# - {task}{last} seed=1")
    if seed is None or seed.is_positional:
        return (f"- {task}{last}",)
    join = "=" if seed.is_setting else " "
    return tuple(f"- {task}{last} {seed.word}{join}{number}" for number in (1, 2))


def _of_config(config: str, task: str, last: str) -> str:
    return f"{typed(config)} {task}{last}{_named(config)}"


def _order(name: str) -> tuple[bool, str]:
    return "train" not in PurePosixPath(name).name, name


def _named(config: str) -> str:
    """A name for the cell where the config's own cannot be one, such as one with a blank."""
    stem = PurePosixPath(config).stem
    if cell_name.CELL_NAME.fullmatch(stem):
        return ""
    fit = re.sub(r"[^\w.+=@,-]+", "-", stem).lstrip("_.+=@,-")
    return f" name={fit[:80].rstrip('.')}" if fit.rstrip(".") else ""


_CHECKPOINT = re.compile(r"\.(pt|pth|ckpt|pth\.tar|safetensors|pkl|bin)$")


def quoted(word: str) -> str:
    """Any text as one word of a command, in which no brace is a placeholder."""
    return typed(word.replace("{", "{{").replace("}", "}}"))


def config_of(script: Script) -> Flag | None:
    """The flag that takes a config file; of bare settings the word that is one."""
    # A configurator takes a file as a bare word; OmegaConf and CfgNode do not.
    is_bare = bool(script.settings) and "exec" in script.calls
    return script.flag(*CONFIG) or (Flag(("config",), 1) if is_bare else None)


def place_of(script: Script) -> Flag | None:
    """The flag that says where to write: a folder, else a file."""
    # Whatever it is called: the flag below which a checkpoint is seen to be saved.
    roots = (each.root for each in script.saves if each.is_checkpoint and each.root)
    flags = (flag for root in roots if (flag := script.flag(root.lower())))
    if seen := next((flag for flag in flags if flag.key not in NO_PLACE), None):
        return seen
    named = script.flag(*SAVE_AS)
    return script.flag(*OUT) or (named if named and file_of(named) else None)


def file_of(flag: Flag) -> str:
    """The name of the file that a flag is for; '' where it is for a folder."""
    default = flag.default if isinstance(flag.default, str) else ""
    return default.rpartition("/")[2] if _CHECKPOINT.search(default) else ""


def filled(flag: Flag, value: str) -> list[str]:
    """How it is typed: a positional one by its value alone."""
    if flag.is_positional:
        return [value]
    # Bare settings are replaced by one word each; and some parsers take nothing else.
    return [f"{flag.word}={value}"] if flag.is_setting else [flag.word, value]


def place_value(flag: Flag) -> str:
    name = file_of(flag)
    return f"{{out}}/{name}" if name else "{out}"


@dataclass(frozen=True)
class Begun:
    """`first` is what is started, `more` its words, `keys` the flags that they give. `configs` is
    the config that the pages type, `open` what is left to say.
    """

    first: tuple[str, ...]
    more: tuple[str, ...]
    keys: frozenset[str] = frozenset()
    configs: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


def of_source(script: Script, given: Mapping[Flag, str]) -> Begun:
    """The command, as the source alone says it."""
    return Begun((quoted(script.path),), tuple(words_of(script, given)))


def of_page(
    root: Path,
    script: Script,
    typed: Typed,
    given: Mapping[Flag, str],
    told: Collection[str],
    *,
    is_in_out: bool,
) -> Begun:
    """The command in the page's words, with what they leave out behind them. `told` are flags that
    a framework has already.
    """
    flags = {name: flag for flag in (*script.flags, *script.settings) for name in flag.names}
    known = {flag.key: value for flag, value in given.items()}
    by_place = (flag for flag in script.flags if flag.is_positional)
    words: list[str] = []
    keys, configs, todo = set[str](), list[str](), list[str]()
    for name, join, value in _pairs(typed.words, flags, told):
        flag = flags.get(name) if name else next(by_place, None)
        key = flag.key if flag else "config" if not name else ""
        is_cfg = known.get(key) == "{cfg}" and not configs and is_config(root, value)
        # A framework's own word stands already; and it would begin with that file each time.
        if name in told or key in RESUME:
            continue
        configs += [value] * is_cfg
        keys |= {key} if flag or is_cfg else set()
        if flag and key in known:
            said = known[key]
        else:
            is_valued = bool(join) or not name
            word = _word(root, value, todo, is_in_out=is_in_out) if is_valued and not is_cfg else ""
            said = "{cfg}" if is_cfg else word
        words += [name, said] if join == " " else [f"{name}{join}{said}"]
    if any("=" in word and not word.startswith("-") for word in typed.words):
        keys |= {flag.key for flag in by_place}  # key=value, which a parser takes as the rest
    left = [flag for flag in given if flag.key not in keys and not flag.is_positional]
    more = [word for flag in left for word in filled(flag, given[flag])]
    first = ("-m", typed.module) if typed.module else (quoted(script.path),)
    return Begun(first, (*words, *more), frozenset(keys), tuple(configs), tuple(todo))


def _pairs(
    words: Sequence[str], flags: Mapping[str, Flag], told: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """A flag, what joins it to its value, and that: ("--lr", " ", "0.1"), ("", "", "a.yaml")."""
    left = list(words)
    while left:
        name, is_set, value = (word := left.pop(0)).partition("=")
        flag = flags.get(name)
        if not flag and not is_set and not word.startswith("-"):
            yield "", "", word
        elif is_set:
            yield name, "=", value
        elif left and not left[0].startswith("--") and not (flag and flag.is_switch):
            is_valued = bool(flag) or name in told
            yield (name, " ", left.pop(0)) if is_valued else (name, "", "")
        else:
            yield name, "", ""


def is_config(root: Path, word: str) -> bool:
    return lies(root, word) and (root / word).is_file() and fits(word)


def _word(root: Path, word: str, todo: list[str], *, is_in_out: bool) -> str:
    """One of the pages' words; a path of the code is found from everywhere."""
    if readme.is_blank(word):
        todo.append(_("{word} is a placeholder: put your own value there", word=word))
    elif "/" in word and "://" not in word:
        is_here = lies(root, word)
        if not is_here and word.startswith(("/", "~", ".", "data")):
            todo.append(
                _(
                    "{path} does not exist here: write where it is on the box, such as below "
                    "$BOXCAR_DATA_DIR",
                    path=word,
                )
            )
        elif is_here and is_in_out and not word.startswith("/"):
            return f"{{code}}/{quoted(word.removeprefix('./'))}"
    return quoted(word)


def words_of(script: Script, given: Mapping[Flag, str]) -> list[str]:
    """All that have a value; those by position first, up to one that a person has to say."""
    by_place = [flag for flag in script.flags if flag.is_positional]
    words = [given[flag] for flag in itertools.takewhile(given.__contains__, by_place)]
    options = [flag for flag in given if flag not in by_place]
    return [*words, *(word for flag in options for word in filled(flag, given[flag]))]


def save_words(script: Script) -> list[str]:
    """Switches without which the script saves nothing."""
    flag = script.flag(*SAVE_AT_ALL)
    return [flag.word] if flag and flag.is_switch else []


def resume_words(flag: Flag) -> str:
    return flag.word if flag.is_switch else " ".join(filled(flag, "{resume}"))


def short_words(script: Script, epochs: Flag | None) -> Iterator[str]:
    """What makes a run short enough to try it on the CPU."""
    if dry := script.flag(*DRY):
        yield from [dry.word] if dry.is_switch else filled(dry, "true")
    if epochs and not epochs.is_positional:
        yield from filled(epochs, "1")
    for key in BACKEND:
        flag = script.flag(key)
        if flag and flag.default == "nccl":  # which needs a GPU
            yield from filled(flag, "gloo")
    on_cpu, on_gpu = script.flag(*ON_CPU), script.flag(*ON_GPU)
    yield from [on_cpu.word] if on_cpu and on_cpu.is_switch else []
    yield from [on_gpu.word] if on_gpu and on_gpu.is_off else []
    for key, value in SHORT.items():
        flag = script.flag(key)
        if flag and not flag.is_switch and not flag.is_positional:
            yield from filled(flag, value)


def needed(script: Script, given: Mapping[Flag, str]) -> list[Flag]:
    """What the script demands besides, of which only a person knows the value."""
    # A launcher says the local rank in the environment.
    return [f for f in script.flags if f.is_required and f not in given and f.key != "local_rank"]
