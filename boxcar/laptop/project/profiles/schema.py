"""What a profile says: one pydantic model for each group of facts about a platform.

A group of facts carries the month in which it was last checked and how far it is to be believed.
Sentences are for people, in English and Chinese. Not covered: what holds between two groups, such
as a tier that is named and not there; `rules.py` looks at that.
"""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from boxcar.laptop.common.provider_keys import refuse_key
from boxcar.laptop.common.units import Price
from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.laptop.project.profiles.slurm_options import Cluster
from boxcar.shared import names
from boxcar.shared.files.plan import AUTO, FULL_DISK_S
from boxcar.shared.sentence import _

GROUPS = (
    *("connection", "env", "storage", "network", "spot", "detach", "meter", "clocks"),
    "limits",
)
OWN_SCOPES = ("box", "machine")  # what no other box sees
# Below the data tier, where no tier is the durable one. `boxcar/` beside it is the scratch.
OWN_DURABLE = "durable"
_NOTHING = ("null", "~")
NO_SOURCE = "none"
_PROGRAM = re.compile(r"[A-Za-z0-9._+-]+")
_IMAGE = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
# YAML joins lines by a space, which Chinese does not set after its own marks.
_FOLDED = re.compile(r"(?<=[，。；：、（）]) ")

Kind = Literal["local", "ssh", "slurm", "kubernetes", "notebook"]
Confidence = Literal["documented", "corroborated", "reported", "contested", "assumed"]
Fate = Literal["keep", "keep-billed", "lose", "lose-later"]
Scope = Literal[
    "box", "machine", "laptop", "network", "zone", "region", "datacenter", "cluster", "account"
]
Access = Literal["read-write", "read-only", "by-copy"]
Primitive = Literal["tmux", "setsid", "sbatch", "job", "process"]
Ending = Literal["stop", "destroy"]
Provider = Literal["vast", "runpod", "featurize"]


def _env_name(text: str) -> str:
    if not names.VARIABLE.fullmatch(text) or text.startswith("BOXCAR_"):
        raise ValueError(
            _(
                "expected the name of an environment variable that Boxcar does not set, found "
                "{text!r}",
                text=text,
            )
        )
    refuse_key(text)
    return text


def _interpreter(text: str) -> str:
    if not text or (not _PROGRAM.fullmatch(text) and not text.startswith(("/", "~/"))):
        raise ValueError(
            _(
                "expected {auto}, a program's name such as python3, or a path that begins with / "
                "or ~/; found {text!r}",
                auto=AUTO,
                text=text,
            )
        )
    return text


def _image(text: str) -> str:
    if not _IMAGE.fullmatch(text):
        raise ValueError(
            _(
                "expected an image with its digest, NAME@sha256:<64 hex digits>, found {text!r}",
                text=text,
            )
        )
    return text


def _command(text: str) -> str:
    if not shlex.split(text):
        raise ValueError(_("expected a program and its arguments, found nothing"))
    return text


def _second_home(text: str) -> str:
    """Without the slash at its end. The text itself is not repeated: it may hold a password."""
    try:
        parts = urlsplit(text)
        has_place = bool(parts.netloc) or parts.scheme == "file"
    except ValueError:
        parts, has_place = urlsplit(""), False
    if not has_place or "::" in text or " " in text or not text.isprintable():
        raise ValueError(_("expected an fsspec URL such as s3://bucket/prefix or file:///folder"))
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(
            _(
                "expected a URL without user, password, ? and #. Credentials belong under secrets "
                "in the job"
            )
        )
    if parts.scheme == "file" and not text.startswith("file:///"):
        raise ValueError(_("expected file:/// and the absolute path of a folder"))
    if parts.scheme == "memory" or ".." in parts.path.split("/"):
        raise ValueError(_("expected a path that survives reboots, without '..'"))
    return text.rstrip("/")


EnvName = Annotated[str, AfterValidator(_env_name)]
Interpreter = Annotated[str, AfterValidator(_interpreter)]


class Group(Model):
    """Where a value may be missing, `null` and `~` say so, as elsewhere in YAML."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_nothing(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        is_null = {key: isinstance(item, str) and item in _NOTHING for key, item in value.items()}
        return {key: None if is_null[key] else item for key, item in value.items()}


class Sentence(Model):
    """A sentence for people. A plain text is English only."""

    en: str
    zh: Annotated[str, AfterValidator(lambda text: _FOLDED.sub("", text))] = ""

    @model_validator(mode="before")
    @classmethod
    def _plain_is_english(cls, value: Any) -> Any:
        return {"en": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(core)]}

    def replaced(self, old: str, new: str) -> Sentence:
        return Sentence(en=self.en.replace(old, new), zh=self.zh.replace(old, new))

    def said(self, language: str) -> str:
        """In that language (`en` or `zh`), as far as it is there; English otherwise."""
        return self.zh if language == "zh" and self.zh else self.en

    def __str__(self) -> str:
        return self.en


class Facts(Group):
    """A group of facts: the month when they were last checked, and how far to believe them.

    documented: the platform's own pages or source say so. corroborated: others saw the same.
    reported: one source says so. contested: sources disagree. assumed: nobody looked.
    """

    verified: Annotated[str, Field(pattern=r"^20\d\d-(0[1-9]|1[0-2])$")]
    confidence: Confidence
    note: Sentence | None = None


class Identity(Group):
    """How a box is known before anything is written to it; both may be unknown."""

    hostname: str | None = None  # a pattern with * and ?
    env: EnvName | None = None  # holds the instance's id on the box


class Connection(Facts):
    """How the box is reached. Host, port, user and key stand in your own ~/.ssh/config."""

    kind: Kind
    user: str | None = None  # whom the platform's images expect; ~/.ssh/config decides
    identity: Identity = Identity()


class Env(Facts):
    """The interpreters on the box. The agent's needs Python 3.10 or newer and nothing installed."""

    agent_python: Interpreter = AUTO
    training_python: Interpreter
    # Where the image is the environment: what the Dockerfile begins with.
    image: Annotated[str, AfterValidator(_image)] | None = None


class Tier(Group):
    """One place where files lie, and what becomes of them. None: it is not known, or not fixed."""

    path: str | None = None
    scope: Scope = "box"  # who sees the same files
    access: Access = "read-write"  # by-copy: no folder of the box, such as an object store
    stop: Fate | None = None
    destroy: Fate | None = None
    size_gb: Annotated[int, Field(ge=1)] | None = None
    expandable: bool = False  # more than size_gb can be had
    inode_cap: Annotated[int, Field(ge=1)] | None = None
    speed: str | None = None
    note: Sentence | None = None


class MirrorLimits(Group):
    """What the mirror of live checkpoints may take beside a training."""

    bandwidth_mb_s: Annotated[float, Field(gt=0)] | None = None  # 10^6 bytes; None: all it can get


class Storage(Facts):
    """The tiers, and what Boxcar uses them for. `durable: null`: results go to the laptop."""

    data: str
    durable: str | None
    credentials: str  # a file on the box's own system disk
    # An fsspec URL: published cells and live checkpoints are copied there as well.
    second: Annotated[str, AfterValidator(_second_home)] | None = None
    full_disk_s: Annotated[float, Field(ge=0)] = FULL_DISK_S  # how long a queue waits for room
    mirror: MirrorLimits = MirrorLimits()
    tiers: dict[str, Tier]


class Network(Facts):
    """What a box needs to reach the world."""

    hook: str = ""  # an operator's own shell text; both wrappers run it first
    env: dict[EnvName, str] = Field(default_factory=dict)  # job.yaml's env comes over it
    mirrors: tuple[Sentence, ...] = ()


class Spot(Facts):
    """Boxes that the platform may take back."""

    is_available: bool
    grace_s: Annotated[float, Field(ge=0)] | None = None
    interrupted_every_s: Annotated[float, Field(gt=0)] | None = None  # on average


class Detach(Facts):
    """What keeps the agent alive when the link is gone, and what is taken where that is missing."""

    primary: Primitive
    fallback: Primitive | None = None


class MeterVerb(Group):
    """One thing that can be done to the meter, under the platform's own name for it."""

    verb: str
    does: Sentence  # goes on after "will"
    is_reversible: bool
    still_bills: tuple[Sentence, ...] = ()
    where: Sentence  # what a person clicks or types
    # A program that the box can run itself to the same end: words, no shell.
    from_box: Annotated[str, AfterValidator(_command)] | None = None
    # Whose API a box can call to the same end, by the key that the provider put into it.
    own_key: Provider | None = None


class Meter(Facts):
    """What ends the costs. `down` names the verb that ends a run."""

    is_billed: bool
    price: Price | None = None  # of an hour of a box, as a person typed it
    off_price: Price | None = None  # the same of its disks, while it is stopped
    down: Ending
    stop: MeterVerb | None = None
    destroy: MeterVerb | None = None
    park: MeterVerb | None = None  # cheaper, but no end


class Counted(Group):
    """One clock that can be counted: so long `after` a box was stopped, or `down` came to its end,
    the platform does it. `path`: what is wiped, where that is not all disks. `source`: where it is
    said, or `none`.
    """

    after: Annotated[str, Field(pattern=r"^[1-9]\d{0,3}[hd]$")]
    since: Literal["stopped", "down"]
    does: Literal["wipe", "release", "delete"]
    path: str | None = None
    source: Annotated[str, Field(min_length=1)]

    @property
    def after_s(self) -> float:
        return float(self.after[:-1]) * {"h": 3600.0, "d": 86400.0}[self.after[-1]]


class Clocks(Facts):
    """What happens by itself, unless somebody does something in time."""

    dangers: tuple[Sentence, ...]
    counted: tuple[Counted, ...] = ()


class Limits(Facts):
    """What a box has less of than it seems."""

    notes: tuple[Sentence, ...] = ()


class ProfileModel(Group):
    """A whole profile: eight groups of facts, the limits, and sentences for people."""

    name: str
    extends: str | None = None
    title: Sentence | None = None
    connection: Connection
    env: Env
    storage: Storage
    network: Network
    spot: Spot
    detach: Detach
    meter: Meter
    clocks: Clocks
    limits: Limits
    slurm: Cluster = Cluster()  # of a cluster only
    kubernetes: KubeOptions = KubeOptions()  # likewise
    conveniences: tuple[Sentence, ...] = ()
    gotchas: tuple[Sentence, ...] = ()
