"""What a provider of boxes can do, and what it says of them: one protocol for all.

A provider's answers hold secrets (tokens, other people's variables). So what is kept of them is
what stands in these records, field by field, and never an answer as a whole.
"""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from dataclasses import field
from typing import ClassVar, Literal

from boxcar.shared.errors import BoxcarError, InputError, TemporaryError
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, mark

# Run and nonce in the box's own environment, which nobody can edit in a console.
STAMP = "BOXCAR_RENTED"
LABEL_CHARS = 64
_LABEL = re.compile(r"boxcar-([0-9a-f]{12})-[a-z0-9-]*")

State = Literal["starting", "running", "stopped", "failed", "gone", "unknown"]
STATES = (
    mark("starting"),
    mark("running"),
    mark("stopped"),
    mark("failed"),
    mark("gone"),
    mark("unknown"),
)


@dataclass(frozen=True)
class Wish:
    """What is looked for. `gpus` and `disk_gb` are what one box has at least; `cuda` is the oldest
    that the image runs on. `disk_because`: where the disk's size is from, in words. `file_system`:
    the account's own that is to be mounted, where the provider has such.
    """

    disk_gb: int
    gpus: int = 1
    cuda: str = ""
    is_spot: bool = False
    disk_because: str = ""
    file_system: str = ""


@dataclass(frozen=True)
class Offer:
    """What can be rented now. `rate`: an hour of the whole box; `memory_gb`: of one card, in GB as
    the provider counts them. `more`: what is billed beside it, in words. `against`: what the
    provider has said that keeps it from being of use, in words.
    """

    provider: str
    id: str
    gpu: str
    gpus: int
    rate: float
    currency: str = "USD"
    memory_gb: float | None = None
    disk_gb: int | None = None
    region: str = ""
    reliability: float | None = None
    is_spot: bool = False
    machine: str = ""
    cuda: str = ""
    down_mbit_s: float | None = None
    more: tuple[str, ...] = ()
    against: str = ""


@dataclass(frozen=True)
class Order:
    """One box to rent. `bid` is an hour's price where it is a bid; `public_key` is one line."""

    offer: Offer
    label: str
    nonce: str
    run: str
    image: str
    disk_gb: int
    public_key: str
    bid: float | None = None
    cuda: str = ""
    file_system: str = ""

    @property
    def stamp(self) -> str:
        return f"{self.nonce}:{self.run}"


@dataclass(frozen=True)
class Listed:
    """One box as the provider has it. `rate`: an hour, None where it does not say. `said`: its own
    words on its state. `nonce`: of our stamp, or of our label; '' for a stranger's.
    """

    provider: str
    id: str
    label: str
    state: State
    word: str
    nonce: str = ""
    host: str = ""
    port: int = 0
    gpu: str = ""
    gpus: int = 0
    rate: float | None = None
    currency: str = "USD"
    machine: str = ""
    said: str = ""
    is_outbid: bool = False

    @property
    def is_ours(self) -> bool:
        return bool(self.nonce)

    @property
    def has_address(self) -> bool:
        return bool(self.host and self.port)


@dataclass(frozen=True)
class Balance:
    amount: float
    currency: str
    user: str = ""


@dataclass(frozen=True)
class Access:
    """How an account is reached. `key` never leaves this process but as a header."""

    base: str
    key: str = field(repr=False)
    fingerprint: str = ""


class Doubt(TemporaryError):
    """Nobody knows: no answer, half of one, or one that is none. Counts as billing."""


class NoRights(InputError):
    """The provider does not know the key, or does not let it do this."""


class Refused(BoxcarError):
    """A clear no to a create: nothing was rented. `is_of_offer`: another offer may be given."""

    exit_code = exit_codes.FAILED

    def __init__(self, text: str, *, is_of_offer: bool) -> None:
        super().__init__(text)
        self.is_of_offer = is_of_offer


class Unclear(TemporaryError):
    """A create may have taken effect. `id`: of a box that the answer names, else ''."""

    def __init__(self, text: str, id: str = "") -> None:
        super().__init__(text)
        self.id = id


class Provider(ABC):
    """One account at one provider. Each call is one question, asked again where that changes
    nothing. All of them raise NoRights and Doubt.
    """

    name: ClassVar[str]  # of its profile
    title: ClassVar[str]
    console: ClassVar[str]  # where a person sees and ends boxes
    by_hand: ClassVar[str]  # what to click there
    usual_base: ClassVar[str]  # of its API, unless the variable `base_variable` says otherwise
    base_variable: ClassVar[str]
    usual_image: ClassVar[str] = ""  # with an sshd; '' where a profile's image will do
    has_spot: ClassVar[bool] = False
    has_stop: ClassVar[bool] = False
    is_offer_one_machine: ClassVar[bool] = False  # else a kind, of which several may be had

    def __init__(self, access: Access) -> None:
        self.access = access

    @abstractmethod
    def offers(self, wish: Wish) -> list[Offer]:
        """Cheapest first. Spends nothing."""

    @abstractmethod
    def create(self, order: Order) -> str:
        """Rent it: one call, never repeated. Returns its id, never ''. Raises Refused, Unclear."""

    @abstractmethod
    def list_boxes(self) -> list[Listed]:
        """All boxes of the account, to the last page."""

    @abstractmethod
    def read_box(self, id: str) -> Listed | None:
        """One box by its id; None where the provider says that there is none."""

    @abstractmethod
    def end_box(self, id: str) -> None:
        """Ask once for its end, with all on it. That it has ended is seen by reading only."""

    def stop_box(self, id: str) -> None:
        """Ask once for its stop; its disk stays, and bills."""
        raise InputError(_("{title} has no stop", title=self.title))

    def admit_key(self, id: str, public_key: str) -> bool:
        """Let a key in that did not come with the create; False where it did."""
        return False

    def balance(self) -> Balance | None:
        """None where the provider tells none."""
        return None

    def read_log(self, id: str) -> str:
        """The box's own log of its start; '' where there is none to be had."""
        return ""


def new_nonce() -> str:
    return secrets.token_hex(6)


def label_of(nonce: str, run: str) -> str:
    """`boxcar-<nonce>-<run>`: at most 64 of a-z, 0-9 and -, which each provider takes."""
    plain = re.sub(r"[^a-z0-9]+", "-", run.lower()).strip("-")[:40].strip("-")
    return f"boxcar-{nonce}-{plain}"[:LABEL_CHARS].strip("-")


def nonce_in(label: object, stamp: object = "") -> str:
    """Of the stamp, else of the label; '' for a stranger's box."""
    if isinstance(stamp, str) and re.fullmatch(r"[0-9a-f]{12}(:.*)?", stamp):
        return stamp[:12]
    found = _LABEL.fullmatch(label) if isinstance(label, str) else None
    return found[1] if found else ""
