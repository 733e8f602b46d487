"""Does each box reach the hosts that it sends news to? Tried by a connection, with no message.

News never keeps a run from its start, so what is out of reach is a warning. Of an address only its
host is told: the rest is secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from boxcar.laptop.common import side_by_side
from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.fitness.tier_check import Ask
from boxcar.laptop.project.notify.endpoints import BOX
from boxcar.laptop.project.notify.targets import Target
from boxcar.shared.catalogue.sentence import Sentence
from boxcar.shared.channels.answer import WEBHOOK
from boxcar.shared.errors import BoxcarError
from boxcar.shared.wire import news_asks

WHAT = "news"
# The box itself ends the tries after 12, and a hook may take some.
TRY_TIMEOUT_S = 60.0
_PORTS = {"https": 443, "http": 80}


def check(ask: Ask, targets: Sequence[Target], boxes: Sequence[str], hook: str) -> list[Row]:
    """Rows of each box; none where boxes send no news. `ask` is as `Boxes.ask`."""
    sent = [one for one in targets if one.endpoint and one.place == BOX]
    if not sent:
        return []
    question = news_asks.TryHosts(tuple(host_of(one) for one in sent), hook)
    told = side_by_side.each(boxes, lambda box: _try(ask, box, question))
    pairs = zip(boxes, told, strict=True)
    return [row for box, found in pairs for row in judge(box, sent, found)]


def host_of(target: Target) -> news_asks.Host:
    assert target.endpoint
    parts = urlsplit(target.endpoint.url)
    return news_asks.Host(
        parts.hostname or "", parts.port or _PORTS[parts.scheme], is_tls=parts.scheme == "https"
    )


def judge(box: str, targets: Sequence[Target], told: news_asks.HostsTried | str) -> Iterator[Row]:
    """`told` is a sentence where the box did not say."""
    if isinstance(told, str):
        yield Row(box, WHAT, "warn", Sentence("audit.not_tried"), told)
        return
    reached = []
    for target, tried in zip(targets, told.tried, strict=True):
        if tried.problem is None:
            reached.append(f"{target.label} ({_spelled(target)})")
        else:
            yield _away(box, target, tried.problem)
    if reached:
        yield Row(box, WHAT, "ok", ", ".join(reached))


def _away(box: str, target: Target, problem: str) -> Row:
    fields = {"endpoint": target.label, "host": _spelled(target)}
    found = Sentence("audit.host_away", **fields, why=Sentence(f"audit.away_{problem}"))
    if target.channel == WEBHOOK:
        return Row(box, WHAT, "warn", found, Sentence("audit.news_receiver", box=box))
    return Row(box, WHAT, "warn", found, Sentence("audit.news_from_here"))


def _spelled(target: Target) -> str:
    """With its port where it is not the usual one."""
    host = host_of(target)
    name = f"[{host.name}]" if ":" in host.name else host.name
    is_usual = host.port == (443 if host.is_tls else 80)
    return name if is_usual else f"{name}:{host.port}"


def _try(ask: Ask, box: str, question: news_asks.TryHosts) -> news_asks.HostsTried | str:
    try:
        return ask(box, question, timeout_s=TRY_TIMEOUT_S)
    except (BoxcarError, OSError) as error:
        return str(error)
