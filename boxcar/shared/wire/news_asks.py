"""What is asked of a box about news: to deliver what is due, to post one message."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _
from boxcar.shared.wire.question import (
    SILENT,
    BoxPath,
    Count,
    Digest,
    Question,
    QueueName,
    Time,
    one_of,
)


@dataclass(frozen=True)
class Delivered:
    """How many events are still due."""

    left: Count


@dataclass(frozen=True)
class Deliver(Question[Delivered], name="deliver"):
    """`credentials` is the path of that file, here and below."""

    queue: QueueName
    digest: Digest
    credentials: BoxPath


# What is said of one message: the service has it, says no, or may take it another time.
TAKEN, REFUSED, LATER = "taken", "refused", "later"


@dataclass(frozen=True)
class Address:
    """An endpoint of news, of `channels` or a webhook: all of it is as secret as a password."""

    channel: str
    url: str = field(repr=False)
    secret: str = field(repr=False)
    to: str = field(repr=False)


@dataclass(frozen=True)
class Posted:
    """What came of one message. `said` is the service's own answer, or why there was none, cut and
    without a secret; `status` null where nothing answered. `ahead_s`: how far the clock of who
    posted is ahead of the service's, where its answer says the time.
    """

    verdict: Annotated[str, one_of(TAKEN, REFUSED, LATER)]
    said: str
    status: int | None = field(default=None, metadata=SILENT)
    ahead_s: int | None = field(default=None, metadata=SILENT)


@dataclass(frozen=True)
class OneEvent:
    """An event of a journal, as a webhook gets it."""

    id: str
    at: Time
    type: str
    data: dict[str, Any]


@dataclass(frozen=True)
class NewsPosted:
    """In the order of the endpoints."""

    posted: tuple[Posted, ...]


@dataclass(frozen=True)
class PostNews(Question[NewsPosted], name="post_news"):
    """Post `text` to each of these once, now, and keep nothing of it. An endpoint of the channel
    `webhook` gets `event`, or without one the text in an event of its own. `hook` is the profile's
    shell text, whose proxies are used; without one those of the process.
    """

    endpoints: tuple[Address, ...]
    text: str
    hook: str
    event: OneEvent | None = field(default=None, metadata=SILENT)

    def check(self, answer: NewsPosted) -> None:
        if len(answer.posted) != len(self.endpoints):
            raise ValueError(_("posted: expected {n} of them", n=len(self.endpoints)))
