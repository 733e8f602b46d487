"""`invoke offers`: what this job could run on now, by the providers' own lists. Spends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from boxcar.laptop.common import show
from boxcar.laptop.fitness import space
from boxcar.laptop.places.open_site import SITES
from boxcar.laptop.project import profile_choice
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.laptop.project.project import Project
from boxcar.laptop.providers import known
from boxcar.laptop.providers.fit import (
    Judged,
    blocked_machines,
    file_system_of,
    fitting,
    image_of,
    judge_offers,
    nearest,
    wish_of,
)
from boxcar.laptop.providers.provider import Offer, Provider, Wish
from boxcar.laptop.providers.rented_record import read_records
from boxcar.laptop.run import run_price
from boxcar.laptop.run.run_cost import FEWEST_SAMPLES, Range
from boxcar.laptop.tryout import passes
from boxcar.shared import timestamp
from boxcar.shared.errors import (
    SEMICOLON,
    BoxcarError,
    Command,
    InputError,
    Message,
    message_of,
)
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _, chained

COLUMNS = (
    *(_("platform"), "GPU", "GPUs", "GPU memory", _("disk"), _("region"), _("reliability")),
    *(_("per hour"), _("kind"), _("beside it")),
)
_SHOWN = 20


@dataclass(frozen=True)
class Market:
    """What one provider has. `problem`: why nothing is known of it. `run_prices`: of the whole run,
    by the offer's id, where its cells were timed on the same GPUs.
    """

    provider: str
    offers: tuple[Offer, ...] = ()
    nearest: tuple[Judged, ...] = field(default=())
    problem: str | None = None
    run_prices: dict[str, Range] = field(default_factory=dict)


def offers(
    project: Project,
    *,
    is_spot: bool = False,
    most_rate: float | None = None,
    as_json: bool = False,
) -> int:
    """Returns 1 where nothing fits, 75 where a provider could not be asked."""
    _say_balance(project)
    found = [_market(project, one, is_spot, most_rate) for one in _profiles(project)]
    if as_json:
        show.json_document("offers", {"markets": found})
    else:
        _show(found)
    if any(one.problem for one in found):
        return exit_codes.TEMPORARY
    return 0 if any(one.offers for one in found) else 1


def _say_balance(project: Project) -> None:
    """Of the run's own platform, where its API tells one: AutoDL's too, which rents by hand."""
    try:
        balance = known.balance_of(project.profile, project.root)
    except BoxcarError as error:
        show.say(message_of(error))
        return
    if balance is not None:
        show.say(
            _(
                "balance: {amount:.2f} {currency}",
                amount=balance.amount,
                currency=balance.currency,
            )
        )


def market_of(
    project: Project, profile: Profile, provider: Provider, *, is_spot: bool, most: float | None
) -> tuple[Wish, list[Judged]]:
    """All that the provider offers, judged by what the job needs."""
    seen = passes.measured(project)
    room_bytes = space.room_of_box(project.plan, seen) if seen else None
    image = image_of(profile, provider, project.root)
    wish = wish_of(
        project.job,
        image,
        is_spot=is_spot,
        room_bytes=room_bytes,
        file_system=file_system_of(profile.durable_dir(project.root)),
    )
    with show.waiting(_("asking {title}", title=provider.title)):
        listed = provider.offers(wish)
    now = timestamp.parse_utc(timestamp.utc_now())
    blocked = blocked_machines(read_records()[0], provider.name, now)
    return wish, judge_offers(listed, project.job, most_rate=most, blocked=blocked)


def rentable(profile: Profile, root: Path) -> str:
    """The provider of this profile. Raises InputError where Boxcar cannot rent there."""
    if (name := known.provider_of(profile, root)) is not None:
        return name
    raise InputError(
        _(
            "{title}: Boxcar cannot rent there ({known} can be). Rent in its console, then give "
            "the box a Host entry in ~/.ssh/config",
            title=profile.title,
            known=", ".join(known.PROVIDERS),
        ),
        Command("explain", (profile.name,)),
    )


def _profiles(project: Project) -> list[Profile]:
    """Of each candidate, else the run's own. Raises InputError where none can be rented."""
    named = profile_choice.resolve_candidates(project.job, project.root, SITES)
    candidates = [load_profile(one.profile, project.root) for one in named]
    chosen = [one for one in candidates if known.provider_of(one, project.root)]
    if not chosen:
        rentable(project.profile, project.root)
        chosen = [project.profile]
    return chosen


def _market(project: Project, profile: Profile, is_spot: bool, most: float | None) -> Market:
    name = rentable(profile, project.root)
    provider = known.open_provider(name)
    if is_spot and not provider.has_spot:
        return Market(name, problem=_("{title} has no spot", title=provider.title))
    try:
        _wish, judged = market_of(project, profile, provider, is_spot=is_spot, most=most)
    except BoxcarError as error:
        return Market(name, problem=message_of(error).text)
    fit = tuple(fitting(judged))
    timed = run_price.timed_cells(project.root, show.say)
    priced = {one.id: run_price.price_on(one, project.plan, timed) for one in fit}
    return Market(
        *(name, fit, tuple(nearest(judged))),
        run_prices={id_: price for id_, price in priced.items() if price},
    )


def _show(found: Sequence[Market]) -> None:
    rows = [
        (*offer_row(offer), _whole_run(offer, market.run_prices.get(offer.id)))
        for market in found
        for offer in market.offers[:_SHOWN]
    ]
    columns = (*COLUMNS, _("whole run"))
    show.table(_("offers"), columns, rows, names=("GPU",), first_to_go=(_("beside it"),))
    for market in found:
        title = known.PROVIDERS[market.provider].title
        n = len(market.offers)
        if market.problem:
            show.alarm(market.problem)  # which names it
        elif n:
            show.say(
                _("{title}: {n} {n:offer fits|offers fit}, the cheapest first", title=title, n=n)
            )
        else:
            say_nearest(title, market.nearest)
    if rows:
        show.say(Message(_("To rent"), Command("up")))


def _whole_run(offer: Offer, price: Range | None) -> str:
    if price is None:
        return _("not known")
    low, high = f"{price.low:.2f}", f"{price.high:.2f}"
    amount = low if low == high else f"{low}-{high}"
    if price.samples < FEWEST_SAMPLES:
        return _("{amount} {currency}, a guess", amount=amount, currency=offer.currency)
    return f"{amount} {offer.currency}"


def say_nearest(title: str, judged: Sequence[Judged]) -> None:
    """That nothing fits, and of the nearest three why not."""
    if not judged:
        show.say(_("{title}: nothing is offered now", title=title))
        return
    show.say(_("{title}: no offer fits. The nearest:", title=title))
    for one in judged:
        offer = one.offer
        show.say(
            _(
                "  {n} x {gpu}, {rate:g} {currency} an hour: {why}",
                n=offer.gpus,
                gpu=offer.gpu,
                rate=offer.rate,
                currency=offer.currency,
                why=chained(SEMICOLON, one.why_not),
            )
        )


def offer_row(offer: Offer) -> Sequence[object]:
    return (
        offer.provider,
        offer.gpu,
        offer.gpus,
        f"{offer.memory_gb:g} GB" if offer.memory_gb else "?",
        f"{offer.disk_gb} GB" if offer.disk_gb else "?",
        offer.region or "?",
        f"{offer.reliability:.1%}" if offer.reliability else "?",
        f"{offer.rate:g} {offer.currency}",
        _("spot") if offer.is_spot else _("on demand"),
        chained(SEMICOLON, offer.more) or "-",
    )
