"""What a person asks of Slurm: in a profile for a cluster, in job.yaml for a run or for one queue.

Each value becomes an option of sbatch in the head of a batch script, so none may hold a space, a
quote or a line's end. Pure. Not checked here: whether the cluster has such a partition, see audit.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from boxcar.laptop.common.yaml_models import Model
from boxcar.shared.sentence import Sentence, _, mark

_TIME = re.compile(
    r"(?:(?P<days>\d{1,4})-(?P<dh>\d{1,2})(?::(?P<dm>\d{1,2})(?::(?P<ds>\d{1,2}))?)?"
    r"|(?P<h>\d{1,4}):(?P<hm>\d{1,2}):(?P<hs>\d{1,2})"
    r"|(?P<m>\d{1,6})(?::(?P<ms>\d{1,2}))?)",
    re.ASCII,
)
_OPTION = re.compile(r"--([a-z][a-z0-9-]*)(?:=([^\s\"'\\#$`!;<>]+))?", re.ASCII)
# What the batch script, the launch or a key of `slurm:` says. sbatch takes any beginning of a name.
_KEYS = ("partition", "account", "qos", "time", "gres", "nodes", "cpus-per-task", "mem")
_OURS = (
    *("array", "chdir", "comment", "dependency", "error", "export", "export-file", "input"),
    *("job-name", "no-requeue", "ntasks", "open-mode", "output", "parsable", "quiet", "requeue"),
    *("signal", "test-only", "uid", "gid", "wait", "wrap", "clusters", "cluster", "help"),
    *("usage", "version", "hold", "ntasks-per-node", "kill-on-invalid-dep", "get-user-env"),
)


def plain_text(what: str, pattern: str) -> Callable[[str], str]:
    rule = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if not rule.fullmatch(text):
            raise ValueError(_("expected {what}, found {text!r}", what=Sentence(what), text=text))
        return text

    return check


def seconds_of(text: str) -> int:
    """A time limit as Slurm reads it: `90` and `90:00` are minutes, `1:30:00` hours, `2-12` days.

    Raises ValueError.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(
            _(
                "expected a time in Slurm's format: 90 (minutes), 1:30:00 or 2-12:00:00 (two and "
                "a half days); found {text!r}",
                text=text,
            )
        )
    part = {name: int(value) for name, value in found.groupdict("0").items()}
    hours = part["days"] * 24 + part["dh"] + part["h"]
    minutes = part["dm"] + part["hm"] + part["m"]
    seconds = hours * 3600 + minutes * 60 + part["ds"] + part["hs"] + part["ms"]
    if seconds < 60:
        raise ValueError(_("expected a time of at least a minute, found {text!r}", text=text))
    return seconds


def _time(text: str) -> str:
    seconds_of(text)
    return text


def option_name(option: str) -> str:
    """`exclusive` of --exclusive=user."""
    return option.removeprefix("--").partition("=")[0]


def _extra(option: str) -> str:
    found = _OPTION.fullmatch(option)
    if found is None:
        raise ValueError(
            _(
                "expected an sbatch option in its long form, --name or --name=value, without "
                "spaces or quotes; found {option!r}",
                option=option,
            )
        )
    # In this order: an abbreviation of both is a key.
    if near := _meant(found[1], (*_KEYS, "constraint")):
        raise ValueError(
            _(
                "{option!r}: --{name} has its own key. Write {key}: …",
                option=option,
                name=near,
                key=_key(near),
            )
        )
    if near := _meant(found[1], _OURS):
        raise ValueError(
            _(
                "{option!r}: Boxcar sets --{near} itself, so remove it here",
                option=option,
                near=near,
            )
        )
    return option


def _meant(name: str, known: tuple[str, ...]) -> str | None:
    return next((one for one in known if one.startswith(name)), None)


def _key(option: str) -> str:
    return option.replace("-", "_")


def _words(value: object) -> object:
    return tuple(shlex.split(value)) if isinstance(value, str) else value


def _container(words: tuple[str, ...]) -> tuple[str, ...]:
    if any("\0" in word or "\n" in word for word in words):
        raise ValueError(_("expected words on one line"))
    return words


_WORD = r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,99}"
Word = Annotated[str, AfterValidator(plain_text(mark("letters, digits and _.@+-"), _WORD))]
# Slurm tries several partitions that are named at once.
Words = Annotated[
    str,
    AfterValidator(plain_text(mark("names, with a comma between two"), rf"{_WORD}(?:,{_WORD})*")),
]
Time = Annotated[str, AfterValidator(_time)]
Gres = Annotated[
    str,
    AfterValidator(
        plain_text(
            mark("a resource such as gpu:2 or gpu:a100:1"), r"[A-Za-z][A-Za-z0-9_.:,/=-]{0,199}"
        )
    ),
]
Memory = Annotated[
    str,
    AfterValidator(plain_text(mark("a size such as 64G or 800M"), r"\d{1,9}(?:\.\d{1,3})?[KMGT]?")),
]
Constraint = Annotated[
    str,
    AfterValidator(
        plain_text(
            mark("features of a node such as a100 or 'a100|h100'"),
            r"[A-Za-z0-9\[(][A-Za-z0-9_.:@+*&|,()\[\]-]{0,199}",
        )
    ),
]
Extra = Annotated[str, AfterValidator(_extra)]
Nodes = Annotated[int, Field(ge=1, le=10_000)]
Cpus = Annotated[int, Field(ge=1, le=10_000)]
Login = Annotated[
    str,
    AfterValidator(
        plain_text(
            mark("the alias of a login node in ~/.ssh/config"),
            r"[A-Za-z0-9_][A-Za-z0-9._@:+-]{0,99}",
        )
    ),
]
Container = Annotated[tuple[str, ...], BeforeValidator(_words), AfterValidator(_container)]


class SlurmOptions(Model):
    """Options of one submit. What is None is left to the cluster."""

    partition: Words | None = None
    account: Word | None = None
    qos: Word | None = None
    time: Time | None = None
    gres: Gres | None = None
    nodes: Nodes | None = None
    cpus_per_task: Cpus | None = None
    mem: Memory | None = None
    constraint: Constraint | None = None
    # What one task of an array runs: a queue to its end, or its next cell.
    per: Literal["queue", "cell"] | None = None
    extra: tuple[Extra, ...] = ()

    @property
    def is_per_cell(self) -> bool:
        return self.per == "cell"

    @property
    def time_s(self) -> int | None:
        return seconds_of(self.time) if self.time else None

    def lines(self) -> Iterator[str]:
        """As options of sbatch."""
        for key in ("partition", "account", "qos", "time", "gres", "cpus_per_task", "mem"):
            if (value := getattr(self, key)) is not None:
                yield f"--{key.replace('_', '-')}={value}"
        if self.constraint is not None:
            yield f"--constraint={self.constraint}"
        yield from self.extra
        if self.nodes is not None and self.nodes > 1:
            yield from (f"--nodes={self.nodes}", f"--ntasks={self.nodes}", "--ntasks-per-node=1")


class Cluster(SlurmOptions):
    """What a profile says of a cluster. Without `login` this machine is its login node.

    `container`: words before the agent's, such as `apptainer exec --nv image.sif`.
    """

    login: Login | None = None
    container: Container = ()


class SlurmOfJob(SlurmOptions):
    """What job.yaml says over it; `queues` by the file of a queue, over that."""

    login: Login | None = None
    queues: dict[str, SlurmOptions] = Field(default_factory=dict)


def laid_over(*options: SlurmOptions) -> SlurmOptions:
    """The last word of each key; of `extra`, of each option."""
    keys = [key for key in SlurmOptions.model_fields if key != "extra"]
    said = {
        key: value for one in options for key in keys if (value := getattr(one, key)) is not None
    }
    extra = {option_name(option): option for one in options for option in one.extra}
    return SlurmOptions(**said, extra=tuple(extra.values()))
