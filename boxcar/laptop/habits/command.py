"""The words that start a script: where its config, place and epochs go, and what starts it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from boxcar.laptop.habits import known_flags
from boxcar.laptop.habits.flags import Flag
from boxcar.laptop.habits.folder import Folder
from boxcar.laptop.habits.script import Script

_CHECKPOINT = re.compile(r"\.(pt|pth|ckpt|pth\.tar|safetensors|pkl|bin)$")


def typed(path: str) -> str:
    """A path as one word of a command or a queue line; one that reads as itself stays as it is."""
    try:
        is_one_word = shlex.split(path, comments=True) == [path]
    except ValueError:
        is_one_word = False
    return path if is_one_word else shlex.quote(path)


def config_of(script: Script) -> Flag | None:
    """The flag that takes a config file; of bare settings the word that is one."""
    # A configurator takes a file as a bare word; OmegaConf and CfgNode do not.
    is_bare = bool(script.settings) and "exec" in script.calls
    return script.flag(*known_flags.CONFIG) or (Flag(("config",), 1) if is_bare else None)


def place_of(script: Script) -> Flag | None:
    """The flag that says where to write: a folder, else a file."""
    named = script.flag(*known_flags.SAVE_AS)
    return script.flag(*known_flags.OUT) or (named if named and file_of(named) else None)


def file_of(flag: Flag) -> str:
    """The name of the file that a flag is for; '' where it is for a folder."""
    default = flag.default if isinstance(flag.default, str) else ""
    return default.rpartition("/")[2] if _CHECKPOINT.search(default) else ""


def filled(flag: Flag, value: str) -> list[str]:
    """How it is typed: a positional one by its value alone."""
    if flag.is_positional:
        return [value]
    # Bare settings are replaced by one word each; and some parsers take nothing else.
    if flag.is_literal and "{" in value:
        value = f"\"'{value}'\""  # to the shell a word with single quotes, to Python a text
    return [f"{flag.word}={value}"] if flag.is_setting else [flag.word, value]


def place_value(flag: Flag) -> str:
    name = file_of(flag)
    return f"{{out}}/{name}" if name else "{out}"


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
        if not flag.is_required or flag in given:
            continue
        if flag.key.lower() in known_flags.DATA and (folder.root / "data").is_dir():
            more[flag] = "{code}/data"
        else:
            unknown.append(flag)
    return more, tuple(unknown)


def launcher(script: Script) -> str:
    """A script that forms no group would run once for each GPU, all writing to one place."""
    is_in_group = any(name.startswith("torch.distributed") for name in script.imports)
    is_in_group |= bool({"init_process_group", "DistributedDataParallel"} & script.calls)
    return "torchrun" if is_in_group and "spawn" not in script.calls else "python"
