"""What was typed behind `boxcar`, as verbs with their flags. Nothing is run here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from boxcar.door.verb_table import (
    EVERYDAY,
    FIRST,
    JOB,
    MANY,
    OPTIONAL,
    PROFILE,
    REST,
    VERBS,
    Flag,
    Verb,
)
from boxcar.laptop.common.near import did_you_mean
from boxcar.shared.errors import InputError
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _, mark

_ALL_BEHIND = "--"
# What verbs are called elsewhere. They are hints: who types `rm` shall not run `down`.
ELSEWHERE: Mapping[str, str] = {
    word: verb
    for verb, words in {
        "status": "ps squeue queue jobs show info state",
        "runs": "ls list history",
        "launch": "run train start submit sbatch srun exec apply resume restart retry continue",
        "stop": "cancel kill scancel abort",
        "drain": "pause suspend",
        "down": "rm remove delete destroy terminate",
        "watch": "top htop monitor wait follow",
        "logs": "tail cat output attach",
        "pull": "sync rsync download fetch get",
        "push": "upload put add enqueue",
        "plan": "check validate dry-run",
        "smoke": "test try",
        "up": "rent provision allocate",
        "offers": "market gpus prices",
        "grid": "sweep multirun",
        "audit": "doctor nodes sinfo",
        "explain": "why describe inspect",
        "board": "dashboard ui",
        "init": "new create setup",
        "report": "compare table plot",
    }.items()
    for word in words.split()
}
# Groups whose verbs start or end something on boxes: behind another verb one may be a word of it.
_ACTS = ("run", "end")
_SHELLS = ("ssh", "shell", "login")
# Flags of other tools for what a verb, or a key, says here.
_SAID_ELSEWHERE = {
    "--dry-run": mark("; to see what would run, type: boxcar plan"),
    "--gpus": mark("; GPUs stand in job.yaml (nproc_per_node:, gpus_per_cell:) or a line (nproc=)"),
}


class WrongCommand(InputError):
    """`verb` is the one that was typed, or ''."""

    def __init__(self, sentence: Sentence, verb: str = "") -> None:
        super().__init__(sentence)
        self.sentence, self.verb = sentence, verb


@dataclass(frozen=True)
class Typed:
    """A verb, and its flags by name: those that were typed, each with its text, texts, or True."""

    verb: Verb
    values: Mapping[str, Any]


def parse_command(words: Sequence[str]) -> list[Typed]:
    """Each verb of a line, the same one with the same flags only once. Raises WrongCommand, so that
    of a line with a mistake nothing is run, and where one behind another acts on the boxes. Flags
    before the first verb are all verbs'.
    """
    before, left = _before_the_verb(words)
    found: list[Typed] = []
    while left:
        name, *behind = left
        if name not in VERBS:
            raise WrongCommand(_no_verb(name))
        if found and VERBS[name].group in _ACTS:
            raise WrongCommand(_alone(found[-1].verb.name, name), name)
        typed, left = _parse_flags(VERBS[name], [*before, *behind])
        if typed not in found:
            found.append(typed)
    return found


def _before_the_verb(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """`-p autodl`, `--job PATH`, and the words behind them."""
    before: list[str] = []
    left = list(words)
    known = (*PROFILE.spellings, *JOB.spellings)
    while left and left[0].partition("=")[0] in known:
        many = 1 if "=" in left[0] else 2
        before, left = [*before, *left[:many]], left[many:]
    if left and not left[0].startswith("-"):
        return before, left
    flag = (left or before)[0].partition("=")[0]
    harmless_first = ("status", *EVERYDAY, *VERBS)
    owners = [name for name in harmless_first if flag in VERBS[name].spelled]
    if not owners:
        said = _("no verb has a flag {word!r}", word=flag)
        raise WrongCommand(_("{text}; for all verbs: boxcar --list", text=said))
    line = " ".join([owners[0], *words])
    raise WrongCommand(
        _(
            "{flag} needs a verb, such as: boxcar {line}",
            flag=flag,
            line=line,
        )
    )


def _parse_flags(verb: Verb, words: Sequence[str]) -> tuple[Typed, list[str]]:
    """The verb with its flags, and the words of the verbs behind it."""
    flags, values, left = verb.spelled, dict[str, Any](), list(words)
    while left:
        word = left.pop(0)
        name, is_assigned, value = _divided(word, flags)
        if flag := flags.get(name):
            if flag.takes_value and not is_assigned:
                if not left or left[0] in flags:
                    raise _wrong_flag(verb, _("--{flag} needs a value", flag=flag.name))
                value = left.pop(0)
            elif is_assigned and not flag.takes_value:
                raise _wrong_flag(verb, _("{flag} takes no value", flag=name))
            _keep(verb, values, flag, value)
        elif verb.placed(REST) and word == _ALL_BEHIND:
            for each in (word, *left):
                _keep(verb, values, verb.placed(REST)[0], each)
            left = []
        elif word.startswith("-") and word != "-":
            raise _wrong_flag(verb, _no_flag(verb, word))
        elif flag := _next_place(verb, values):
            _keep(verb, values, flag, word)
        elif word in VERBS:
            left = [word, *left]
            break
        else:
            raise _wrong_flag(verb, _no_flag(verb, word))
    if missing := [flag.name for flag in verb.placed(FIRST) if flag.name not in values]:
        raise _wrong_flag(verb, _("{verb} needs a {word}", verb=verb.name, word=missing[0]))
    return Typed(verb, values), left


def _divided(word: str, flags: Collection[str]) -> tuple[str, bool, str]:
    """`--job=x` and `-px` as flag and value."""
    if not word.startswith("--") and word[:2] in flags:
        return word[:2], len(word) > 2, word[2:].removeprefix("=")
    name, is_assigned, value = word.partition("=")
    return name, bool(is_assigned), value


def _keep(verb: Verb, values: dict[str, Any], flag: Flag, value: str) -> None:
    if flag.kind == MANY:
        values[flag.name] = (*values.get(flag.name, ()), value)
    elif flag.takes_value and flag.name in values:
        raise _wrong_flag(verb, _("--{flag} is given twice", flag=flag.name))
    else:
        values[flag.name] = value if flag.takes_value else True


def _next_place(verb: Verb, values: Mapping[str, Any]) -> Flag | None:
    """Whose value a word without a flag is."""
    free = [*verb.placed(FIRST), *verb.placed(OPTIONAL)]
    free = [flag for flag in free if flag.name not in values]
    return next(iter((*free, *verb.placed(REST))), None)


# --- what is said of a mistake


def _wrong_flag(verb: Verb, said: Sentence) -> WrongCommand:
    return WrongCommand(
        _("{text}; for its flags: boxcar --help {verb}", text=said, verb=verb.name), verb.name
    )


def _alone(before: str, name: str) -> Sentence:
    return _(
        "nothing was run: {name!r} acts on the boxes, so it begins a command of its own. Type: "
        "boxcar {before} && boxcar {name}",
        name=name,
        before=before,
    )


def _no_flag(verb: Verb, word: str) -> Sentence:
    bare = {name.lstrip("-"): name for name in verb.spelled if name.startswith("--")}
    near = did_you_mean(word.partition("=")[0].lstrip("-"), bare, bare)
    if not (near or word.startswith("-")) and "cell" in bare:
        near = _(" (did you mean {name!r}?)", name=f"--cell {word}")
    if hint := _SAID_ELSEWHERE.get(word.partition("=")[0]):
        near = Sentence(hint)
    if word.startswith("-"):
        return _("{verb} has no flag {word!r}{near}", verb=verb.name, word=word, near=near)
    return _("{verb} takes no word {word!r}{near}", verb=verb.name, word=word, near=near)


def _no_verb(word: str) -> Sentence:
    """With what was meant: a verb, or another tool's word for it."""
    if word.lower() in _SHELLS:
        return _(
            "there is no verb {word!r}. A box is a host of ~/.ssh/config; type: ssh HOST",
            word=word,
        )
    if word.lower() == "version":
        return _("there is no verb {word!r}. Type: boxcar --version", word=word)
    near = did_you_mean(word, (*VERBS, *ELSEWHERE), ELSEWHERE)
    said = _("there is no verb {word!r}{near}", word=word, near=near)
    return _("{text}; for all verbs: boxcar --list", text=said)
