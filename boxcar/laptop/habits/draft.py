"""The job that a script makes: what each key would say, and why. Nothing is certain, all is said.

A framework says what it knows (frameworks.py); the rest is taken from the script's own flags and
from the names of the files that it saves.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from boxcar.laptop.habits import (
    command,
    endless,
    frameworks,
    imported,
    kept,
    known_flags,
    queue_lines,
    worth,
)
from boxcar.laptop.habits.endless import Endless
from boxcar.laptop.habits.flags import Flag
from boxcar.laptop.habits.folder import Folder
from boxcar.laptop.habits.frameworks import Framework, Kept
from boxcar.laptop.habits.saves import ANY, Saved
from boxcar.laptop.habits.script import Script
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.record import dataclass

_MARKS = ("last", "latest", "checkpoint", "ckpt", "step", "epoch", "iter")
_DEFAULT_EPOCHS = 10
_STEPS = "10000"  # where only a person knows how many


@dataclass(frozen=True)
class Draft:
    """Of job.yaml and the first queue. `why` says of a key where its value comes from; of what is
    `unknown` only a person can say the value. `no_end`: the loop that would train for ever; a flag
    that ends it stands in `words`. `reads`: paths of the project that stand in the script. `unfit`:
    configs whose names no queue line can hold.
    """

    name: str
    script: Script
    words: tuple[str, ...]
    launcher: str
    workdir: str
    artifacts: tuple[Kept, ...]
    epochs: int | None
    resume: str | None
    resume_args: str
    smoke: str
    env: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]
    why: dict[str, str]
    unknown: tuple[Flag, ...]
    no_end: Endless | None
    reads: tuple[str, ...]
    unfit: tuple[str, ...] = ()

    @property
    def todo(self) -> Iterator[str]:
        """Sentences: what is left for a person to say."""
        script = self.script
        if script.reads_words and not (script.flags or script.settings):
            yield Sentence("init.by_position", script=script.path)
        if (loop := self.no_end) and not loop.flag:
            how = "open" if loop.key else "no"
            yield Sentence(f"init.{how}_end", at=loop.where, key=loop.key, value=loop.value)
        for path in self.reads if self.workdir == "out" else ():
            yield Sentence("init.reads_here", script=script.path, path=path)
        for flag in self.unknown:
            at = f"{script.path}, {flag.where}"
            yield Sentence("init.add_flag", flag=flag.word, at=at)


def with_value(draft: Draft, flag: Flag, value: str) -> Draft:
    """The same, with what a person said of an unknown flag."""
    # The command is split as a shell does, and filled.
    words = command.filled(flag, shlex.quote(value.replace("{", "{{").replace("}", "}}")))
    left = tuple(each for each in draft.unknown if each != flag)
    return replace(draft, words=(*draft.words, *words), unknown=left)


def of(folder: Folder, script: Script, name: str) -> Draft:
    """The draft of a job that runs this script."""
    known = frameworks.of(script)
    all_configs = folder.all_configs
    configs = [name for name in all_configs if queue_lines.fits(name)]
    config = command.config_of(script) if configs else None
    place, epochs = command.place_of(script), script.flag(*known_flags.EPOCHS)
    given = {flag: "{cfg}" for flag in (config,) if flag}
    given |= {flag: command.place_value(flag) for flag in (place,) if flag}
    given |= {flag: "{epochs}" for flag in (epochs,) if flag}
    needed, unknown = command.needed(folder, script, given)
    default = _default_epochs(epochs) if epochs else None
    found = kept.of(folder.root, script, known, place)
    resume, resume_args = _resume(script, found.saved, known)
    launcher = known.launcher or command.launcher(script)
    workdir = "code" if known.is_told_where or place else "out"
    if place and known.is_told_where:
        del given[place]
    path = command.typed(script.path.replace("{", "{{").replace("}", "}}"))
    words = [path, *known.words, *command.words_of(script, given | needed)]
    no_end = endless.of(folder.root, script, worth.given_by(script, words, _text(folder, configs)))
    if no_end and no_end.flag:
        words += command.filled(no_end.flag, _STEPS)
    return Draft(
        name=name,
        script=script,
        words=(*words, *command.save_words(script)),
        launcher=launcher,
        workdir=workdir,
        artifacts=found.artifacts,
        epochs=default,
        resume=resume,
        resume_args=resume_args,
        smoke=" ".join(known.smoke or command.short_words(script, epochs)),
        env=_env(folder, script, known, workdir),
        lines=queue_lines.of(script, default, configs if config else []),
        why=dict(_why(script, known, place, launcher))
        | {"artifacts": found.why}
        | _why_end(script, known, no_end),
        unknown=unknown,
        no_end=no_end,
        reads=_reads(folder, script),
        unfit=tuple(name for name in all_configs if name not in configs),
    )


def _reads(folder: Folder, script: Script) -> tuple[str, ...]:
    """Not what an earlier run of it left here."""
    own = [f"{saved.name}/" for saved in script.saves]
    found = folder.paths_in(script.texts)
    return tuple(p for p in found if not any(s.startswith(f"{PurePath(p)}/") for s in own))


def _env(
    folder: Folder, script: Script, known: Framework, workdir: str
) -> tuple[tuple[str, str], ...]:
    path = folder.root / script.path
    # Under `workdir: out` the code is on the path anyway.
    needs = workdir == "code" and imported.is_from_root(folder.root, path, script.imports)
    return (*known.env, *[("PYTHONPATH", ".")] * needs)


def _text(folder: Folder, configs: Sequence[str]) -> str:
    """Of the first config, which may say all that a flag says."""
    try:
        return (folder.root / configs[0]).read_text(encoding="utf-8") if configs else ""
    except (OSError, ValueError):
        return ""


def _default_epochs(flag: Flag) -> int:
    number = flag.default
    return int(number) if type(number) in (int, float) and number >= 1 else _DEFAULT_EPOCHS


def _resume(script: Script, saved: Sequence[Saved], known: Framework) -> tuple[str | None, str]:
    """What a start would look for, and the words that tell it to."""
    if known.resume:
        return known.resume, known.resume_args
    flag, path = script.flag(*known_flags.RESUME), _newest(saved)
    if path is None:
        return None, ""
    # A configurator's own `resume` is something else, such as a switch.
    if flag and (not flag.is_setting or flag.default in (None, "")):
        return path, command.resume_words(flag)
    init = script.flag("init_from")
    if init and init.is_setting and "resume" in script.texts:
        return path, f"{init.word}=resume"
    return None, ""


def _newest(saved: Sequence[Saved]) -> str | None:
    marked = [each.name for mark in _MARKS for each in saved if mark in each.name.lower()]
    names = [each.name for each in saved if each.is_checkpoint]
    return next((name for name in (*marked, *names) if name != ANY), None)


def _why(
    script: Script, known: Framework, place: Flag | None, launcher: str
) -> Iterator[tuple[str, str]]:
    yield "command", Sentence("init.command", script=script.path, why=known.why)
    if known.is_told_where:
        yield "workdir", Sentence("init.says_where", word=known.words[-1])
    elif place:
        at = {"script": script.path, "at": place.where}
        yield "workdir", Sentence("init.says_where_at", word=place.word, **at)
    else:
        yield "workdir", Sentence("init.takes_no_folder")
    yield "launcher", _why_launcher(launcher, known)
    yield "epochs", Sentence("init.default_epochs")
    yield "resume", Sentence("init.newest")
    yield "resume_args", Sentence("init.only_with_checkpoint")
    yield "smoke", Sentence("init.short")
    yield "env", Sentence(f"init.{'env' if known.env else 'imports_root'}", framework=known.name)


def _why_end(script: Script, known: Framework, loop: Endless | None) -> dict[str, str]:
    if not loop or not loop.flag:
        return {}
    at = {"flag": loop.flag.word, "at": loop.where}
    return {"command": Sentence("init.guessed_end", script=script.path, why=known.why, **at)}


def _why_launcher(launcher: str, known: Framework) -> str:
    if known.launcher:
        return Sentence("init.own_ranks", framework=known.name)
    if launcher == "torchrun":
        return Sentence("init.forms_ranks")
    return Sentence("init.one_process")
