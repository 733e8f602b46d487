"""A word in a queue's journal from somebody who is no agent: as its writer, for that moment."""

from __future__ import annotations

from typing import Any

from boxcar.shared.files.journal import Journal
from boxcar.shared.sentence import Sentence
from onbox.agent.held import held
from onbox.machine.credentials import Credentials
from onbox.machine.place import Place
from onbox.queue.reporter import Reporter
from onbox.webhooks import deliver
from onbox.webhooks.deliver import Deliverer

FLUSH_S = 10.0


def deliverer_of(place: Place, known: Credentials) -> Deliverer | None:
    log, cursor = place.durable.journal(place.queue), place.durable.delivered(place.queue)
    return deliver.of(log, cursor, known, len(place.plan.queues))


def say_between_agents(
    place: Place, known: Credentials, what: str, text: Sentence, **about: Any
) -> None:
    """A warning of the box, sent to the chats for FLUSH_S at most. Raises TemporaryError where an
    agent has the queue.
    """
    common = {"run": place.plan.run, "queue": place.queue, "box": place.box}
    with held(place.durable, place.queue) as ours:
        writer = Journal(place.durable.journal(place.queue), common, ours.is_ours)
        reporter = Reporter(writer, deliverer_of(place, known))
        reporter.say("box.warning", what=what, text=text, **{"is_over": False} | about)
        reporter.close(FLUSH_S)
