"""A box ends itself by the key that its provider put into it: the laptop's side of `end_itself`.

What the provider answers is believed by nobody: the box counts as off once it was heard to begin
the call and then fell silent (`ssh_site`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import host_keys
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.providers import known
from boxcar.laptop.teardown.gate import Steps
from boxcar.laptop.teardown.still_running import DRAIN_OR_STOP
from boxcar.shared.errors import BoxcarError, Message
from boxcar.shared.sentence import _
from boxcar.shared.wire import box_asks


def tell_box(
    site: Site, steps: Steps, box: str, untold: Callable[[str, Exception], Message]
) -> Message | None:
    """Once the box has begun to call its provider, that is written down, and not before. What
    it cannot do by itself is left to a person, and said.
    """
    if box in steps.now.told:
        return None
    question = own_end_question(site, steps, box)
    if question is None:
        return None
    try:
        reply = site.ask(box, question)
    except (BoxcarError, OSError) as error:
        return untold(box, error)
    if reply.alive:
        alive = ", ".join(map(named, reply.alive))
        what = _("{box}: {alive} is still running there", box=box, alive=alive)
        return Message(what, DRAIN_OR_STOP)
    if reply.problem or reply.begun_at is None:
        why = reply.problem or ""
        site.tell(_("{box} cannot end itself: {why}", box=box, why=why))
        return None
    steps.told(box)
    return None


def own_end_question(site: Site, steps: Steps, box: str) -> box_asks.EndItself | None:
    """None where its id is not known, or nobody typed it and the box would go for good."""
    verb = site.project.profile.meter_stop
    id_ = (
        host_keys.instance_id(Home(site.project.root), box)
        if verb.is_reversible
        else steps.now.to_destroy.get(box)
    )
    if not id_ or not verb.own_key:
        return None
    credentials = site.plan.box(box).credentials
    return box_asks.EndItself(
        site.queues_on(box),
        credentials,
        tuple(steps.now.beside),
        verb.own_key,
        verb.ending,
        id_,
    )


def said_by_provider(site: Site, steps: Steps, box: str) -> str:
    """What it answered to the box, where the box can still tell. Where it refused, the next
    `down` tells the box again.
    """
    question = own_end_question(site, steps, box)
    try:
        reply = site.ask(box, replace(question, is_look=True)) if question else None
    except (BoxcarError, OSError):
        return ""
    if reply is None or not reply.said:
        return ""
    if reply.begun_at is None:
        steps.untold(box)
    return _(" (the provider said: {said})", said=reply.said)


def is_provider_asked_next(project: Project) -> bool:
    """Whether this machine has a key by which `down` ends the box (`verbs/end_meters.py`)."""
    name = known.provider_of(project.profile, project.root)
    return name is not None and known.has_key(name)


def named(at_work: box_asks.AtWork) -> str:
    what = str(at_work.queue or at_work.cell)
    return _("{what} of run {run}", what=what, run=at_work.run) if at_work.run else what
