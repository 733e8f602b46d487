"""Which offers a job could run on, and of the others why not. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath

from boxcar.laptop.project import resources
from boxcar.laptop.project.job import Job
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.laptop.project.resources import Card
from boxcar.laptop.providers.provider import Offer, Provider, Wish
from boxcar.laptop.providers.rented_record import RentedBox
from boxcar.shared import timestamp
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Where the job says nothing of its disk: its code, its environment, and some checkpoints.
USUAL_DISK_GB = 50
# Of what was measured: a retry, a longer log, an environment.
ROOM = 1.5
_GB = 10**9
_CUDA = re.compile(r"cuda(\d+\.\d+)")
_CU = re.compile(r"-cu(\d\d)(\d)\d?(?!\d)")
BLOCKED = timedelta(hours=24)
NEAREST = 3


@dataclass(frozen=True)
class Judged:
    """`why_not` is empty where the job could run there."""

    offer: Offer
    why_not: tuple[str, ...] = ()


def wish_of(
    job: Job,
    image: str,
    *,
    is_spot: bool,
    room_bytes: int | None = None,
    file_system: str = "",
) -> Wish:
    """What the job asks of one box, and the oldest CUDA that the image runs on. `room_bytes`: what
    the cells of a box will need, where that was measured.
    """
    gpu = job.resources.gpu
    gpus = gpu.count.least if gpu and gpu.count else 1
    disk_gb, because = _disk(job, room_bytes)
    return Wish(
        disk_gb,
        max(1, gpus),
        cuda_of(image),
        is_spot=is_spot,
        disk_because=because,
        file_system=file_system,
    )


def file_system_of(durable_dir: str) -> str:
    """`thesis` of `/lambda/nfs/thesis`, where Lambda Cloud mounts it; else ''."""
    path = PurePosixPath(durable_dir)
    return path.name if path.parent == PurePosixPath("/lambda/nfs") else ""


def _disk(job: Job, room_bytes: int | None) -> tuple[int, str]:
    """In GB, and why. A disk may never grow, so what was measured gets half as much again."""
    if disk := job.resources.disk:
        return -(-disk.least // _GB), _("resources: disk")
    if room_bytes is None:
        return USUAL_DISK_GB, _("the usual; `boxcar smoke` measures what the cells need")
    disk_gb = math.ceil(ROOM * room_bytes / _GB)
    if disk_gb <= USUAL_DISK_GB:
        return USUAL_DISK_GB, _("the usual; the measured cells need less")
    return disk_gb, _("1.5 times what the cells of a box need, as smoke measured them")


def image_of(profile: Profile, provider: Provider, root: Path) -> str:
    """The profile's, unless it is only what shipped and the provider needs another one."""
    own = profile.env.image or ""
    shipped = load_profile(provider.name, root).env.image
    return provider.usual_image if provider.usual_image and own == shipped else own


def cuda_of(image: str) -> str:
    """`12.4` of `...-cuda12.4-...`, `12.8` of `...-cu1281-...`; '' where it does not say."""
    if found := _CUDA.search(image):
        return found[1]
    found = _CU.search(image)
    return f"{found[1]}.{found[2]}" if found else ""


def judge_offers(
    offers: Sequence[Offer],
    job: Job,
    *,
    most_rate: float | None = None,
    blocked: Collection[str] = (),
) -> list[Judged]:
    """In their order. Each answer is checked again: a filter that a service ignores tells nobody.

    `blocked` are machines that did not come up of late.
    """
    return [Judged(one, tuple(_why_not(one, job, most_rate, blocked))) for one in offers]


def _why_not(
    offer: Offer, job: Job, most_rate: float | None, blocked: Collection[str]
) -> list[str]:
    memory = None if offer.memory_gb is None else int(offer.memory_gb * 2**30)
    found = resources.refusals(
        job.resources,
        resources.Offer(
            cards=(Card(offer.gpu, memory),),
            most_gpus=offer.gpus,
            disk_bytes=None if offer.disk_gb is None else offer.disk_gb * _GB,
        ),
    )
    gpu = job.resources.gpu
    if gpu and gpu.count and not gpu.count.holds(offer.gpus) and offer.gpus >= gpu.count.least:
        found.append(
            _("the job needs {count} GPUs, this box has {n}", count=gpu.count.text, n=offer.gpus)
        )
    if most_rate is not None and offer.rate > most_rate:
        found.append(
            _(
                "{rate:g} {currency} an hour is more than --max-price {most:g}",
                rate=offer.rate,
                currency=offer.currency,
                most=most_rate,
            )
        )
    if offer.machine and offer.machine in blocked:
        found.append(_("this machine did not come up in the last 24 hours"))
    if offer.against:
        found.append(offer.against)
    return found


def fitting(judged: Sequence[Judged]) -> list[Offer]:
    return [one.offer for one in judged if not one.why_not]


def nearest(judged: Sequence[Judged]) -> list[Judged]:
    """Those with the fewest reasons, the cheapest first, one of each kind: what a person may give
    way to.
    """
    kinds: dict[tuple[str, int, float | None], Judged] = {}
    for one in sorted(judged, key=lambda one: (len(one.why_not), one.offer.rate)):
        kinds.setdefault((one.offer.gpu, one.offer.gpus, one.offer.memory_gb), one)
    return [*kinds.values()][:NEAREST]


def blocked_machines(records: Sequence[RentedBox], provider: str, now: datetime) -> set[str]:
    """Machines on which a box of ours was ended before it ever came up, for a day."""
    return {
        one.machine
        for one in records
        if one.provider == provider
        and one.machine
        and one.end_asked_at
        and one.up_at is None
        and now - timestamp.parse_utc(one.end_asked_at) < BLOCKED
    }
