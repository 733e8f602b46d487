"""`boxcar init`: a job.yaml, a first queue and a .boxcarignore for a folder of training code.

The code is read and never run. Nothing that is there is overwritten; job.yaml comes last, after
`plan` has looked at it under another name.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.hosts import ssh_aliases
from boxcar.laptop.init import draft, folder, frameworks, job_text, readme, script, trainers
from boxcar.laptop.init.draft import Draft
from boxcar.laptop.init.flags import flags_of_help
from boxcar.laptop.init.folder import Folder
from boxcar.laptop.init.script import Script
from boxcar.laptop.project import job_schema
from boxcar.laptop.project.profiles import training_here
from boxcar.laptop.project.project import open_project
from boxcar.laptop.release import code_files
from boxcar.laptop.release.code_files import BOXCARIGNORE
from boxcar.laptop.release.left_out_files import not_shipped
from boxcar.laptop.tryout import run_help
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.sentence import _, mark

JOB = "job.yaml"
_TRIED = ".job-being-made.yaml"
_MOST_NAMED = 12
_LAUNCHERS = ("python", "torchrun", "accelerate", "deepspeed", "none")
_LONGEST_NAME = 63


def init(root: Path, *, named: str = "", yes: bool = False, with_help: bool = False) -> int:
    """Draft the files, show why, ask, and write them; 1 where `plan` refuses a part of them.

    `named` is the script, where a person names it. `yes` takes all guesses; where nobody can be
    asked, nothing is written without it. The script's `--help` is run `with_help` alone, or
    after a yes to that very question. Raises InputError where there is a job.yaml, or nothing
    that looks like a train script.
    """
    if (root / JOB).exists():
        raise InputError(
            _("{path}: already exists and was left as it is. To see what it says", path=root / JOB),
            Command("plan"),
        )
    can_ask = sys.stdin.isatty() and not yes
    found = folder.read_folder(root)
    made = drafted(found, named, can_ask=can_ask, with_help=with_help)
    if can_ask:
        made = _with_launcher(made)
    text = job_text.job(
        made, ssh_aliases.read_aliases(Path.home() / ".ssh" / "config"), show.language()
    )
    if not can_ask and not yes:
        show.verbatim(text.rstrip())
        show.say(Message(_("Nothing was written. To write it"), Command("init", ("--yes",))))
        return 0
    _tell(made)
    files = ", ".join((JOB, job_text.QUEUE, BOXCARIGNORE))
    if can_ask and show.ask(_("Write {files}? [Y/n] ", files=files)).lower() not in (
        "",
        "y",
        "yes",
    ):
        show.say(_("nothing was written"))
        return 1
    return _write(root, made, text)


def drafted(found: Folder, named: str, *, can_ask: bool, with_help: bool) -> Draft:
    """Of a script, else of a program that trains by a config alone."""
    name = _name(found.root)
    typed = next(iter(found.typed), None)
    if not named and typed and (trainer := trainers.of_words(typed.words)):
        return draft.of_trainer(found, trainer, name, typed)
    configs = found.trainer_configs if not (named or found.scripts) else []
    if configs and (trainer := trainers.of_config(found.root / configs[0])):
        return draft.of_trainer(found, trainer, name)
    chosen = _chosen(found, named)
    if with_help or (can_ask and chosen.hides_flags and _wants_help(chosen)):
        chosen = _with_help(found.root, chosen)
    return draft.draft_job(found, chosen, name, readme.first_of(found.typed, chosen.path))


def _with_launcher(made: Draft) -> Draft:
    """Nobody but a person knows whether it forms ranks."""
    if "launcher" not in made.open:
        return made
    typed = show.ask(
        _(
            "How is {script} launched? Its source does not say. [python, torchrun, accelerate, "
            "deepspeed; Enter to decide later] ",
            script=made.script.path,
        )
    )
    if typed and typed not in _LAUNCHERS:
        raise InputError(
            _(
                "expected one of {launchers}, found {typed!r}",
                launchers=", ".join(_LAUNCHERS),
                typed=typed,
            )
        )
    return draft.with_launcher(made, typed) if typed else made


def _wants_help(chosen: Script) -> bool:
    show.say(_("{script} gets flags from elsewhere (not found in its source)", script=chosen.path))
    question = _(
        "Run {script} --help to see them? That executes its imports. [y/N] ",
        script=chosen.path,
    )
    return show.ask(question).lower() in ("y", "yes")


def _with_help(root: Path, chosen: Script) -> Script:
    """The script with the flags that its own `--help` names; why not, where that fails."""
    words = [
        chosen.path,
        *frameworks.framework_of_script(chosen).words[:1] * ("LightningCLI" in chosen.calls),
    ]
    typed = " ".join([*words, "--help"])
    limit = f"{run_help.TIMEOUT_S:g}"
    with show.waiting(_("running {command} (up to {seconds} s)", command=typed, seconds=limit)):
        said = run_help.run(root, training_here.for_training(), [*words, "--help"])
    found = flags_of_help(said.text)
    about = {"command": typed, "n": len(found)}
    if said.problem:
        show.say(
            _(
                "{command} {problem}; {n} {n:flag|flags} found",
                **about,
                problem=said.problem,
            )
        )
    else:
        show.say(
            _(
                mark("{command} lists {n} {n:flag|flags}")
                if found
                else mark("{command} lists no flags; only those in the source are used"),
                **about,
            )
        )
    return chosen.with_flags(found)


def _chosen(found: Folder, named: str) -> Script:
    if named:
        return _named(found.root, named)
    for at, path in enumerate(found.scripts):
        try:
            chosen = _named(found.root, path)
        except InputError as error:  # an odd one ends nothing
            for message in error.messages:
                show.say(message)
            continue
        if others := found.scripts[at + 1 :]:
            shown = ", ".join(others[:_MOST_NAMED])
            sentence = _(
                "using {first}; {n} {n:other script looks|other scripts look} like training, too "
                "({others}). To choose another",
                n=len(others),
                first=path,
                others=shown,
            )
            show.say(Message(sentence, Command("init", ("--script", "PATH"))))
        return chosen
    raise InputError(
        _("{root}: no training script found; name it", root=found.root),
        Command("init", ("--script", _only_script(found.root) or "PATH")),
    )


def _only_script(root: Path) -> str:
    names = [path.name for path in root.glob("*.py")]
    return names[0] if len(names) == 1 else ""


def _named(root: Path, named: str) -> Script:
    path = (root / named).resolve()
    if not path.is_relative_to(root):
        raise InputError(
            _("{named}: not inside {root}, where job.yaml goes", named=named, root=root)
        )
    if (found := script.read_script(root, path)) is None:
        raise InputError(_("{path}: not a readable Python script", path=path))
    return found


def _name(root: Path) -> str:
    """The run's name: the folder's, in the letters that a run may have.

    Without any, as of a Chinese name, a digest: two projects on one tier must not share a name.
    """
    plain = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")
    digest = hashlib.sha256(root.name.encode("utf-8", "surrogateescape")).hexdigest()
    return plain[:_LONGEST_NAME].strip("-") or f"run-{digest[:6]}"


def _tell(made: Draft) -> None:
    rows = [(key, value, made.why.get(key, "")) for key, value in job_text.values(made)]
    show.table("job.yaml", ("key", "value", "why"), rows)
    for line in (f"{job_text.QUEUE}:", *made.lines, ""):
        show.verbatim(line)
    for sentence in made.todo:
        show.say(_("to do: {what}", what=sentence))


def _write(root: Path, made: Draft, text: str) -> int:
    _create(root / BOXCARIGNORE, _ignore_text(root))
    _create(root / job_text.QUEUE, job_text.queue(made, show.language()))
    problems = _refused(root, text)
    _create(root / JOB, text)
    job_schema.write_job_schema(root, show.language())
    for problem in problems:
        said = show.typed(problem).replace(str(root / _TRIED), JOB)
        show.say(_("plan refuses: {what}", what=said))
    todo = [*made.todo, *problems]
    if todo:
        show.say(
            Message(_("{n} {n:thing|things} to fix first, then", n=len(todo)), Command("plan"))
        )
        return 1
    show.say(Message(_("To review it"), Command("plan")))
    show.say(Message(_("Then smoke-test the cells on this machine"), Command("smoke")))
    return 0


def _create(path: Path, text: str) -> None:
    """One that is there stays as it is."""
    atomic.make_folder(path.parent)
    is_new = atomic.create_once(path, text.encode())
    show.say(_(mark("wrote {file}") if is_new else mark("left unchanged: {file}"), file=path))


def _refused(root: Path, text: str) -> list[Message]:
    """What `plan` says of such a job.yaml, which is not there yet."""
    tried = root / _TRIED
    atomic.write_whole(tried, text.encode())
    try:
        project = open_project(tried)
        shipped = code_files.snapshot_of(project)
        return [Message(text) for text in not_shipped(project.plan, shipped)]
    except InputError as error:
        return list(error.messages)
    finally:
        tried.unlink(missing_ok=True)


def _ignore_text(root: Path) -> str:
    try:
        lines = code_files.text_of(root / ".gitignore").splitlines()
    except InputError:
        lines = []  # as `plan` will say
    return job_text.text(root, lines, show.language())
