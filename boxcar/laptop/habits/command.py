"""The words that start a script: where its config, place and epochs go, and what starts it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from boxcar.laptop.habits import known_flags, queue_lines, readme
from boxcar.laptop.habits.flags import Flag
from boxcar.laptop.habits.folder import Folder
from boxcar.laptop.habits.readme import Typed
from boxcar.laptop.habits.script import Script
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.record import dataclass

_CHECKPOINT = re.compile(r"\.(pt|pth|ckpt|pth\.tar|safetensors|pkl|bin)$")


def quoted(word: str) -> str:
    """Any text as one word of a command, in which no brace is a placeholder."""
    return queue_lines.typed(word.replace("{", "{{").replace("}", "}}"))


def config_of(script: Script) -> Flag | None:
    """The flag that takes a config file; of bare settings the word that is one."""
    # A configurator takes a file as a bare word; OmegaConf and CfgNode do not.
    is_bare = bool(script.settings) and "exec" in script.calls
    return script.flag(*known_flags.CONFIG) or (Flag(("config",), 1) if is_bare else None)


def place_of(script: Script) -> Flag | None:
    """The flag that says where to write: a folder, else a file."""
    named = script.flag(*known_flags.SAVE_AS)
    if found := script.flag(*known_flags.OUT) or (named if named and file_of(named) else None):
        return found
    # Whatever it is called: the flag below which a checkpoint is saved.
    roots = (each.root for each in script.saves if each.is_checkpoint and each.root)
    flags = (flag for root in roots if (flag := script.flag(root)))
    return next((flag for flag in flags if flag.key not in known_flags.NO_PLACE), None)


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


def begun(
    root: Path,
    script: Script,
    said: Typed | None,
    given: Mapping[Flag, str],
    *,
    needed: Mapping[Flag, str],
    workdir: str,
    told: Collection[str],
) -> Begun:
    """The command, in the words of the project's pages where they have some, but for those that a
    framework is `told`.
    """
    if said is None:
        return Begun((quoted(script.path),), tuple(words_of(script, {**given, **needed})))
    flags = {name: flag for flag in (*script.flags, *script.settings) for name in flag.names}
    known = {flag.key: value for flag, value in given.items()}
    words: list[str] = []
    keys, configs, open_ = set[str](), list[str](), list[str]()
    left = list(said.words)
    while left:
        word = left.pop(0)
        name, is_set, value = word.partition("=")
        flag = flags.get(name)
        if not flag and not (name.startswith("-") or is_set):
            is_config = known.get("config") == "{cfg}" and _is_config(root, word) and not configs
            configs += [word] * is_config
            keys |= {"config"} if is_config else set()
            words.append("{cfg}" if is_config else _word(root, word, workdir, open_))
            continue
        is_apart = not is_set and bool(left) and not left[0].startswith("--")
        is_apart = is_apart and (not flag.is_switch if flag else name in told)
        value = left.pop(0) if is_apart else value
        # A framework's own word stands already; and it would begin with that file each time.
        if name in told or (flag and flag.key in known_flags.RESUME):
            continue
        if flag and flag.key in known:
            configs += [value] * (known[flag.key] == "{cfg}" and _is_config(root, value))
            value = known[flag.key]
        elif is_set or is_apart:
            value = _word(root, value, workdir, open_)
        keys |= {flag.key} if flag else set()
        words += [f"{name}={value}"] if is_set else [name, value] if is_apart else [name]
    more = [w for f, v in {**given, **needed}.items() if f.key not in keys and not f.is_positional
            for w in filled(f, v)]  # fmt: skip
    first = ("-m", said.module) if said.module else (quoted(script.path),)
    by_place = [f for f in script.flags if f.is_positional][: len(words)]
    # Words that stand by position give the flags of that place.
    keys |= {f.key for f in by_place}
    return Begun(first, (*words, *more), frozenset(keys), tuple(configs), tuple(open_))


def _is_config(root: Path, word: str) -> bool:
    return queue_lines.fits(word) and (root / word).is_file()


def _word(root: Path, word: str, workdir: str, todo: list[str]) -> str:
    """One of the pages' words; a path of the code is found from everywhere."""
    if readme.is_blank(word):
        todo.append(Sentence("init.word_is_yours", word=word))
    elif "/" in word and "://" not in word:
        is_here = (root / word).exists()
        if not is_here and word.startswith(("/", "~", ".", "data")):
            todo.append(Sentence("init.path_is_yours", path=word))
        elif is_here and workdir == "out" and not word.startswith("/"):
            return f"{{code}}/{quoted(word.removeprefix('./'))}"
    return quoted(word)


def words_of(script: Script, given: Mapping[Flag, str]) -> list[str]:
    """All that have a value; those by position first, in the script's order."""
    by_place = [flag for flag in script.flags if flag.is_positional]
    last = max((at for at, flag in enumerate(by_place, 1) if flag in given), default=0)
    words = []
    for flag in by_place[:last]:
        value = given.get(flag)
        if value is None and flag.is_required:
            break  # a person has to say it, and all behind it
        words.append(shlex.quote(str(flag.default)) if value is None else value)
    options = [flag for flag in given if flag not in by_place]
    return [*words, *(word for flag in options for word in filled(flag, given[flag]))]


def save_words(script: Script) -> list[str]:
    """Switches without which the script saves nothing."""
    flag = script.flag(*known_flags.SAVE_AT_ALL)
    return [flag.word] if flag and flag.is_switch else []


def resume_words(flag: Flag) -> str:
    return flag.word if flag.is_switch else " ".join(filled(flag, "{resume}"))


def short_words(script: Script, epochs: Flag | None) -> Iterator[str]:
    """What makes a run short enough to try it on the CPU."""
    if dry := script.flag(*known_flags.DRY):
        yield from [dry.word] if dry.is_switch else filled(dry, "true")
    if epochs and not epochs.is_positional:
        yield from filled(epochs, "1")
    for key in known_flags.BACKEND:
        flag = script.flag(key)
        if flag and flag.default == "nccl":  # which needs a GPU
            yield from filled(flag, "gloo")
    on_cpu, on_gpu = script.flag(*known_flags.ON_CPU), script.flag(*known_flags.ON_GPU)
    yield from [on_cpu.word] if on_cpu and on_cpu.is_switch else []
    yield from [on_gpu.word] if on_gpu and on_gpu.is_off else []
    for key, value in known_flags.SHORT.items():
        flag = script.flag(key)
        if flag and not flag.is_switch and not flag.is_positional:
            yield from filled(flag, value)


def needed(
    folder: Folder, script: Script, given: Mapping[Flag, str]
) -> tuple[dict[Flag, str], tuple[Flag, ...]]:
    """What the script demands besides, and the flags of which only a person knows the value."""
    more: dict[Flag, str] = {}
    unknown: list[Flag] = []
    for flag in script.flags:
        # A launcher says it in the environment.
        if not flag.is_required or flag in given or flag.key == "local_rank":
            continue
        if flag.key.lower() in known_flags.DATA and (folder.root / "data").is_dir():
            more[flag] = "{code}/data"
        else:
            unknown.append(flag)
    return more, tuple(unknown)
