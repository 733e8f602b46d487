"""The job that a script makes: what each key would say, and why. Nothing is certain, all is said.

The project's own pages say how it is started, a framework what it knows (frameworks.py); the rest
is taken from the script's flags and from the names of the files that it saves. What none of them
says is a TODO of its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import PurePosixPath

from boxcar.laptop.init import (
    command,
    flags,
    frameworks,
    kept,
    metrics_proposal,
    reached,
    readme,
    source,
    trackers,
    trainers,
)
from boxcar.laptop.init.flags import Flag
from boxcar.laptop.init.folder import Folder
from boxcar.laptop.init.frameworks import Framework, Kept
from boxcar.laptop.init.metrics_proposal import Proposal
from boxcar.laptop.init.paths import ANY
from boxcar.laptop.init.readme import Typed
from boxcar.laptop.init.saves import Saved
from boxcar.laptop.init.script import GROUPS, Script
from boxcar.laptop.init.trainers import Trainer
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark

_MARKS = ("last", "latest", "checkpoint", "ckpt", "step", "epoch", "iter")
_DEFAULT_EPOCHS = 10
# Why a key stands there at all.
_WHY = {
    "links": mark("folders of the code that the script reads relative to its working directory"),
    "epochs": mark("for queue lines without a number of epochs"),
    "collect": mark("the tracker's files, copied along with the result"),
    "resume": mark("its newest checkpoint"),
    "resume_args": mark("added only if there is a checkpoint"),
    "smoke": mark("makes a run short enough to try each cell on a CPU"),
    "env": mark("the tracker offline, or the path of modules"),
}


@dataclass(frozen=True)
class Draft:
    """Of job.yaml and the first queue. `why` says of a key where its value comes from, `open` what
    is left for a person to say of it.
    """

    name: str
    script: Script
    words: tuple[str, ...]
    launcher: str
    artifacts: tuple[Kept, ...]
    lines: tuple[str, ...]
    workdir: str = "code"
    links: tuple[str, ...] = ()
    epochs: int | None = None
    collect: tuple[str, ...] = ()
    metrics: tuple[Proposal, ...] = ()
    resume: str | None = None
    resume_args: str = ""
    smoke: str = ""
    env: tuple[tuple[str, str], ...] = ()
    why: dict[str, str] = field(default_factory=dict)
    open: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def todo(self) -> list[str]:
        """Sentences: what is left for a person to say."""
        return [sentence for said in self.open.values() for sentence in said]


def with_launcher(draft: Draft, launcher: str) -> Draft:
    """The same, with what a person said of its ranks."""
    left = {key: said for key, said in draft.open.items() if key != "launcher"}
    return replace(draft, launcher=launcher, open=left)


def draft_job(folder: Folder, script: Script, name: str, typed: Typed | None = None) -> Draft:
    """The draft of a job that runs this script, as the project's own pages start it."""
    is_hidden = script.hides_flags
    script = script.with_flags(readme.flags_of(typed)) if typed else script
    known = frameworks.framework_of_script(script)
    place, epochs = command.place_of(script), script.flag(*flags.EPOCHS)
    found = kept.kept_files(script, known, place)
    workdir = _workdir(known, found, place)
    words, configs = _words(folder, script, typed, known, workdir)
    resume, resume_args, open_resume = _resume(script, found.saved, known)
    launcher, why_ranks, open_ranks = _launcher(script, known, typed)
    links, open_links = _links(folder, script, workdir)
    beside = list(trackers.trackers_of_script(script.reaches_imports))
    default = _default_epochs(epochs) if epochs else None
    text = source.data_of(folder.root / script.path).decode(errors="replace")
    metrics = metrics_proposal.proposed(text)
    why = dict(_why(script, known, place, typed))
    why["metrics"] = _(
        "numbers that the script prints or writes (line {lines}); remove those that are not "
        "results",
        lines=", ".join(str(one.line) for one in metrics),
    )
    open_: dict[str, tuple[str, ...]] = {
        "command": (*words.open, *_unseen(script, typed, is_hidden=is_hidden)),
        "links": open_links,
        "launcher": open_ranks,
        "artifacts": found.open,
        "resume": open_resume,
        # Many import a tracker that they use only where it is there.
        "secrets": tuple(
            _(
                "{name} is imported: if you use it, write secrets: [{secret}]",
                name=row.name,
                secret=row.secret,
            )
            for row in beside
            if row.secret and not row.env
        ),
    }
    return Draft(
        name=name,
        script=script,
        launcher=launcher,
        workdir=workdir,
        links=links,
        epochs=default,
        words=(*words.first, *known.words, *words.more, *command.save_words(script)),
        artifacts=found.artifacts,
        resume=resume,
        resume_args=resume_args,
        collect=tuple(each for row in beside for each in row.collect),
        metrics=metrics,
        smoke=" ".join(known.smoke or command.short_words(script, epochs)),
        env=_env(folder, script, known, typed, workdir),
        lines=command.queue_lines_of(script, default, configs),
        why={**why, "artifacts": found.why, "launcher": why_ranks},
        open={key: said for key, said in open_.items() if said},
    )


def _workdir(known: Framework, found: kept.Found, place: Flag | None) -> str:
    """Where a checkpoint lies beside the script whatever it is told, it has to start in {out}."""
    here = [each for each in found.saved if each.is_in_cwd and each.is_checkpoint]
    is_told = place is not None and (bool(known.artifacts) or not here)
    return "code" if known.is_told_where or is_told else "out"


def _words(
    folder: Folder, script: Script, typed: Typed | None, known: Framework, workdir: str
) -> tuple[command.Begun, Sequence[str]]:
    """The command, and the configs of the queue."""
    fit = [config for config in folder.all_configs if command.fits(config)]
    config = command.config_of(script) if fit else None
    place, epochs = command.place_of(script), script.flag(*flags.EPOCHS)
    given = {config: "{cfg}"} if config else {}
    if place and not known.is_told_where:
        given |= {place: command.place_value(place)}
    given |= {epochs: "{epochs}"} if epochs else {}
    if typed is None:
        data = (flag for flag in command.needed(script, given) if flag.key in flags.DATA)
        given |= dict.fromkeys(data, "{code}/data") if (folder.root / "data").is_dir() else {}
        given |= {task: "{task}"} if (task := command.task_of(script)) else {}
        words = command.of_source(script, given)
    else:
        # What a framework is told once for all is not said again in a page's words.
        told = {word.partition("=")[0] for word in known.words}
        told |= {"--name"} if "--project" in told else set()
        is_in_out = workdir == "out"
        words = command.of_page(folder.root, script, typed, given, told, is_in_out=is_in_out)
    left = (flag for flag in command.needed(script, given) if flag.key not in words.keys)
    said = [
        _("{flag} is required ({at}): add it to command", flag=flag.word, at=flag.where)
        for flag in left
    ]
    return replace(words, open=(*words.open, *said)), words.configs or (fit if config else [])


def of_trainer(folder: Folder, trainer: Trainer, name: str, typed: Typed | None = None) -> Draft:
    """The draft of a job that starts a program by a config, as the project's pages type it."""
    said = _without_place(typed.words, trainer) if typed else []
    configs = [word for word in said if command.is_config(folder.root, word)]
    words = [*trainer.begins, *trainer.config]
    if typed:
        words = ["{cfg}" if word in configs[:1] else command.quoted(word) for word in said]
    same = [each for each in folder.trainer_configs if _same(folder, each, trainer)]
    has_cfg = any("{cfg}" in word for word in words)
    lines = command.queue_lines_of(Script(words[0]), None, (configs[:1] or same) if has_cfg else [])
    open_ = [word for word in trainer.open if word in words and not typed]
    todo = tuple(
        _("{word} is a placeholder: put your own value there", word=word) for word in open_
    )
    return Draft(
        name=name,
        script=Script(" ".join(words[:2]) if typed else same[0]),
        words=(*words, *trainer.place),
        launcher="none",
        lines=lines,
        smoke=trainer.smoke,
        artifacts=trainer.artifacts,
        resume=trainer.resume or None,
        resume_args=trainer.resume_args,
        why={
            "command": _("command and keys follow {name}", name=trainer.name),
            "launcher": _("{framework} starts its own ranks", framework=trainer.name),
            "artifacts": f"what {trainer.name} writes by itself",
        },
        open={"command": todo} if todo else {},
    )


def _without_place(words: Sequence[str], trainer: Trainer) -> list[str]:
    own = trainer.place[0].partition("=")[0]
    at = [n for n, word in enumerate(words) if word.partition("=")[0] == own]
    gone = {n + more for n in at for more in range(1 if "=" in words[n] else 2)}
    return [word for n, word in enumerate(words) if n not in gone]


def _same(folder: Folder, config: str, trainer: Trainer) -> bool:
    found = trainers.of_config(folder.root / config)
    return found is not None and found.begins == trainer.begins and command.fits(config)


def _unseen(script: Script, typed: Typed | None, *, is_hidden: bool) -> Iterator[str]:
    if script.reads_words and not (script.flags or script.settings or typed):
        yield _("{script} reads positional arguments: add them to command", script=script.path)
    if is_hidden and not frameworks.framework_of_script(script).words:
        yield _(
            "{script} gets flags from elsewhere (not found in its source). To see them: boxcar "
            "init --run-help",
            script=script.path,
        )


def _links(folder: Folder, script: Script, workdir: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Folders of the code that a script reads from where it starts, and what cannot be linked: a
    folder that it writes to as well, a file. Not what an earlier run of it left here.
    """
    if workdir != "out":
        return (), ()
    written = {each.name.partition("/")[0] for each in script.saves if each.is_in_cwd}
    found = list(folder.paths_in(script.reads))
    tops = {path: PurePosixPath(path).parts[0] for path in found if ".." not in path}
    is_link = {p: (folder.root / top).is_dir() and top not in written for p, top in tops.items()}
    links = tuple(dict.fromkeys(top for path, top in tops.items() if is_link[path]))
    own = [f"{saved.name}/" for saved in script.saves]
    left = [path for path in tops if not is_link[path]]
    left = [p for p in left if not any(s.startswith(f"{PurePosixPath(p)}/") for s in own)]
    return links, tuple(
        _(
            "{script} reads {path} relative to the working directory, but each cell runs in its "
            "own empty folder. If it only reads there, add that folder to links:, else use an "
            "absolute path",
            script=script.path,
            path=path,
        )
        for path in left
    )


def _env(
    folder: Folder, script: Script, known: Framework, typed: Typed | None, workdir: str
) -> tuple[tuple[str, str], ...]:
    """Trackers without their server, and where modules lie."""
    env, is_module = dict(known.env), typed is not None and bool(typed.module)
    is_apart = reached.is_from_root(folder.root, folder.root / script.path, script.imports)
    if is_module and script.path.startswith("src/"):
        env["PYTHONPATH"] = "src"
    # Under `workdir: out` the code is on the path anyway.
    elif workdir == "code" and is_apart and not is_module:
        env["PYTHONPATH"] = "."
    env |= dict(
        pair for row in trackers.trackers_of_script(script.reaches_imports) for pair in row.env
    )
    return tuple(env.items())


def _default_epochs(flag: Flag) -> int:
    number = flag.default
    return int(number) if type(number) in (int, float) and number >= 1 else _DEFAULT_EPOCHS


def _resume(
    script: Script, saved: Sequence[Saved], known: Framework
) -> tuple[str | None, str, tuple[str, ...]]:
    """What a start would look for, the words that tell it to, and what is left to say."""
    if known.resume:
        return known.resume, known.resume_args, ()
    # accelerate goes on from the folder of its state, and from no model.
    states = [each for each in saved if known.name == "accelerate" and each.name.endswith("/")]
    flag, path = script.flag(*flags.RESUME), _newest(states or saved)
    if path is None:
        return None, "", ()
    # A configurator's own `resume` is something else, such as a switch.
    if flag and (not flag.is_setting or flag.default in (None, "")):
        about = {"flag": flag.word, "at": flag.where}
        if script.goes_on or known.name == "accelerate":
            return path, command.resume_words(flag), ()
        if "resume" in flag.key.lower():
            return (
                path,
                command.resume_words(flag),
                (
                    _(
                        "does {flag} continue at the saved epoch ({at})? The script seems to load "
                        "only weights. If it starts over, remove resume",
                        **about,
                    ),
                ),
            )
        return (
            None,
            "",
            (
                _(
                    "does {flag} continue at the saved epoch ({at})? The script seems to load "
                    "only weights, so resume is left out: a killed cell starts over",
                    **about,
                ),
            ),
        )
    init = script.flag("init_from")
    if init and init.is_setting and "resume" in script.words:
        return path, f"{init.word}=resume", ()
    return None, "", ()


def _newest(saved: Sequence[Saved]) -> str | None:
    marked = [each.name for mark in _MARKS for each in saved if mark in each.name.lower()]
    names = [each.name for each in saved if each.is_checkpoint]
    return next((name for name in (*marked, *names) if name != ANY), None)


def _launcher(
    script: Script, known: Framework, typed: Typed | None
) -> tuple[str, str, tuple[str, ...]]:
    """What starts it, why, and whether nobody can tell."""
    if typed and typed.launcher != "python" and known.launcher != "python":
        return typed.launcher, _("as in {where}", where=typed.where), ()
    if known.launcher:
        return (
            known.launcher,
            _("{framework} starts its own ranks", framework=known.name),
            (),
        )
    if "spawn" in script.reaches:
        return "python", _("it starts its ranks itself"), ()
    # Under torchrun each rank of MPI's would be the first.
    is_hidden = script.is_cut or "mpi4py" in script.reaches_imports
    if script.forms_group and not is_hidden:
        return "torchrun", _("the script sets up a process group"), ()
    is_hidden |= bool(GROUPS & script.maybe)
    is_unread = not (script.trains or known.name or script.saves)
    if is_hidden or is_unread:
        return (
            "python",
            "",
            (
                _(
                    "does {script} set up a process group? None was found in it. If it does, "
                    "write torchrun",
                    script=script.path,
                ),
            ),
        )
    return "python", _("the script sets up no process group, so one process"), ()


def _why(
    script: Script, known: Framework, place: Flag | None, typed: Typed | None
) -> Iterator[tuple[str, str]]:
    yield from ((key, Sentence(name)) for key, name in _WHY.items())
    yield (
        "command",
        _("{script} is the most likely training script{why}", script=script.path, why=known.why),
    )
    if typed:
        yield "command", _("{where} has: {line}", where=typed.where, line=typed.line)
    if known.is_told_where:
        yield "workdir", _("{word} sets the output folder", word=known.words[-1])
    elif place:
        yield "workdir", _("{word} sets the output folder ({at})", word=place.word, at=place.where)
    else:
        yield (
            "workdir",
            _("the script has no flag for its output folder, so it runs in the cell's own folder"),
        )
    if known.env:
        yield (
            "env",
            _(
                "without it {framework} cannot load its own checkpoints (torch 2.6 and newer)",
                framework=known.name,
            ),
        )
