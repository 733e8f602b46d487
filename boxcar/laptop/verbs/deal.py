"""What `up` asks a person before it rents: all that stands in the way, then offers and the sum."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from boxcar.laptop.common import show, units
from boxcar.laptop.hosts import own_network
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.project.project import Project
from boxcar.laptop.providers.fit import fitting, image_of, nearest
from boxcar.laptop.providers.image_size import image_bytes
from boxcar.laptop.providers.provider import Offer, Provider, Wish, label_of, nonce_in
from boxcar.laptop.providers.rent import IMAGE_GB, MARGIN, boot_limit_s
from boxcar.laptop.providers.rented_record import live_records, read_records
from boxcar.laptop.providers.ssh_key import PublicKey, find_key
from boxcar.laptop.verbs import box_deadline
from boxcar.laptop.verbs.offers import COLUMNS, market_of, offer_row, say_nearest
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, _

USUAL_HOURS = 12.0


@dataclass(frozen=True)
class Asked:
    """What the person typed."""

    boxes: int | None = None
    most_rate: float | None = None
    hours: float | None = None
    is_spot: bool = False
    approve: str | None = None

    @property
    def hours_shown(self) -> float:
        return self.hours or USUAL_HOURS


@dataclass(frozen=True)
class Deal:
    """What the person is asked: these boxes, each by one of these offers, at most at this rate."""

    boxes: tuple[str, ...]
    offers: tuple[Offer, ...]
    wish: Wish
    image: str
    key: PublicKey
    most_rate: float
    image_gb: float

    def digest(self, asked: Asked) -> str:
        """Of what is spent at most, not of offers, which change from minute to minute."""
        offer = self.offers[0]
        parts = (offer.provider, *self.boxes, f"{self.most_rate:.4f}", offer.currency, offer.gpu)
        said = "|".join((*parts, f"{asked.hours_shown:g}", str(asked.is_spot)))
        return hashlib.sha256(said.encode()).hexdigest()[:12]


def make_deal(
    provider: Provider, project: Project, wanted: Sequence[str], asked: Asked
) -> Deal | None:
    """None where no offer fits, which is said. Raises InputError with all that is in the way."""
    blockers: list[Message] = []
    notes: list[str] = []
    if asked.is_spot and not provider.has_spot:
        blockers.append(Message(_("{title} has no spot: leave out --spot", title=provider.title)))
    elif asked.is_spot and asked.most_rate is None:
        blockers.append(Message(_("--spot needs --max-price, which is the bid for an hour")))
    key = _key_or(blockers)
    _check_others(provider, project, blockers)
    if blockers and asked.is_spot and not provider.has_spot:
        raise InputError(blockers)
    wish, judged = market_of(
        project, project.profile, provider, is_spot=asked.is_spot, most=asked.most_rate
    )
    offers = _one_for_each_machine(fitting(judged))
    if not offers:
        if blockers:
            raise InputError(blockers)
        say_nearest(provider.title, nearest(judged))
        return None
    if len(offers) < len(wanted) and provider.is_offer_one_machine:
        blockers.append(
            Message(
                _("{n} boxes were asked, and only {m} offers fit", n=len(wanted), m=len(offers))
            )
        )
    most = _most_rate(offers[: len(wanted)], asked)
    worst = most * len(wanted) * asked.hours_shown
    _check_balance(provider, worst, blockers, notes)
    _check_budget(project, worst, offers[0].currency, blockers)
    _check_rate(project, most * len(wanted), offers[0].currency, blockers)
    if blockers:
        raise InputError(blockers)
    for each in notes:
        show.say(each)
    if not gets_ssh_out():
        show.alarm(
            _(
                "{network}. A box would come up, nobody would see it from here, and it would be "
                "ended again once its time is over, which is paid",
                network=sentence_of_no_way_out(),
            )
        )
    assert key is not None
    image = image_of(project.profile, provider, project.root)
    alike = _alike(offers, len(wanted), most)
    image_gb = _image_gb(image) if any(one.down_mbit_s for one in alike) else IMAGE_GB
    return Deal(tuple(wanted), tuple(alike), wish, image, key, most, image_gb)


def _image_gb(image: str) -> float:
    with show.waiting(_("asking how large the image is")):
        size_bytes = image_bytes(image)
    return size_bytes / 1e9 if size_bytes else IMAGE_GB


def gets_ssh_out() -> bool:
    """Whether any known sshd outside can be heard from here: not that a box's own port can be."""
    with show.waiting(_("looking whether ssh gets out of this network")):
        return own_network.is_up()


def sentence_of_no_way_out() -> Sentence:
    hosts = ", ".join(dict.fromkeys(f"{host} {port}" for host, port in own_network.DOORS))
    return _("ssh does not get out of this network: no answer from {hosts}", hosts=hosts)


def _key_or(blockers: list[Message]) -> PublicKey | None:
    try:
        return find_key()
    except InputError as error:
        blockers.extend(error.messages)
        return None


def _one_for_each_machine(offers: Sequence[Offer]) -> list[Offer]:
    """An offer on vast is one machine: a second box needs another one."""
    return list({one.id: one for one in offers}.values())


def _alike(offers: Sequence[Offer], n: int, most: float) -> list[Offer]:
    """Those that are shown, then what may take their place: the same cards, no dearer."""
    shown = offers[:n]
    kinds = {(one.gpu, one.gpus) for one in shown}
    others = [one for one in offers[n:] if (one.gpu, one.gpus) in kinds and one.rate <= most]
    return [*shown, *others]


def _most_rate(offers: Sequence[Offer], asked: Asked) -> float:
    """The ceiling of one box: as typed, else the dearest that is shown and what is rounded."""
    if asked.most_rate is not None:
        return asked.most_rate
    return round(max(one.rate for one in offers) * MARGIN, 4)


def _check_others(provider: Provider, project: Project, blockers: list[Message]) -> None:
    """Whether somebody else's `up` for this run has a box there: two laptops at once."""
    with show.waiting(_("asking {title}", title=provider.title)):
        listed = provider.list_boxes()
    ours = {one.nonce for one in read_records()[0]}
    tail = label_of("0" * 12, project.plan.run).partition("-" + "0" * 12)[2]
    for box in listed:
        nonce = nonce_in(box.label) or box.nonce
        if box.state != "gone" and nonce and nonce not in ours and box.label.endswith(tail):
            blockers.append(
                Message(
                    _(
                        "{title} {id} ({label}) was rented for a run of this name from another "
                        "machine. Is it yours? End it there, or give this run another name",
                        title=provider.title,
                        id=box.id,
                        label=box.label,
                    )
                )
            )


def _check_budget(project: Project, worst: float, currency: str, blockers: list[Message]) -> None:
    """Half a run for a whole budget helps nobody; and no currency is made of another one."""
    budget = project.job.budget
    if not budget:
        return
    amount = budget.get(currency)
    if amount is None:
        blockers.append(
            Message(
                _(
                    "{job} names no {currency}, which this would be billed in. Add an amount in "
                    "{currency}",
                    job=project.job.at("budget"),
                    currency=currency,
                )
            )
        )
    elif worst > amount:
        blockers.append(
            Message(
                _(
                    "{job} is {amount:g} {currency}, and this is {worst:.2f} at most. Ask for "
                    "fewer --hours or --boxes, or raise it",
                    job=project.job.at("budget"),
                    amount=amount,
                    currency=currency,
                    worst=worst,
                )
            )
        )


def _check_rate(project: Project, more: float, currency: str, blockers: list[Message]) -> None:
    """Over all live boxes of this person, of any run: nobody adds up what ten projects bill."""
    if project.job.max_rate is None:
        return
    most, named = units.price_of_text(project.job.max_rate)
    live = [one for one in live_records(read_records()[0]) if one.currency == currency]
    rate = sum(one.rate or one.most_rate for one in live)
    at = project.job.at("max_rate")
    if named != currency:
        text = _(
            "{job} is in {named}, and this would be billed in {currency}. Write it in {currency}",
            job=at,
            named=named,
            currency=currency,
        )
        blockers.append(Message(text))
    elif rate + more > most:
        blockers.append(
            Message(
                _(
                    "{job} is {most:g} {currency} an hour: {n} live {n:box|boxes} of yours may "
                    "bill {rate:.2f} already, and this is {more:.2f} more. End some, or raise it",
                    job=at,
                    most=most,
                    currency=currency,
                    n=len(live),
                    rate=rate,
                    more=more,
                )
            )
        )


def _check_balance(
    provider: Provider, worst: float, blockers: list[Message], notes: list[str]
) -> None:
    balance = provider.balance()
    if balance is None:
        notes.append(
            _(
                "not looked at: the balance, which {title}'s API does not tell",
                title=provider.title,
            )
        )
    elif balance.amount < worst:
        blockers.append(
            Message(
                _(
                    "the balance is {amount:.2f} {currency}, and this is {worst:.2f} at most. At "
                    "zero boxes are stopped while disks bill. Ask for fewer --hours, or add credit",
                    amount=balance.amount,
                    currency=balance.currency,
                    worst=worst,
                )
            )
        )


# --- the question


def is_agreed(deal: Deal, asked: Asked, provider: Provider, profile: Profile) -> bool:
    """Show what will be spent, and ask once. Raises InputError for an approval of another sum."""
    chosen = deal.offers[: len(deal.boxes)]
    show.table(_("offers"), COLUMNS, [offer_row(one) for one in chosen], names=("GPU",))
    n, offer = len(deal.boxes), deal.offers[0]
    live = [one for one in live_records(read_records()[0]) if one.currency == offer.currency]
    for sentence in (
        _(
            "{n} {n:box|boxes} ({names}), each at most {most:g} {currency} an hour: {sum:.2f} "
            "{currency} in {hours:g} hours. Nothing ends {n:it|them} then; `down` does",
            n=n,
            names=", ".join(deal.boxes),
            most=deal.most_rate,
            currency=offer.currency,
            sum=deal.most_rate * n * asked.hours_shown,
            hours=asked.hours_shown,
        ),
        _(
            "image {image}; CUDA {cuda} or newer; disk {disk} GB, which may never grow ({why})",
            image=deal.image.partition("@")[0] or _("the provider's own"),
            disk=deal.wish.disk_gb,
            why=deal.wish.disk_because,
            cuda=deal.wish.cuda or "?",
        ),
        _(
            "a box that is not ready in {m} minutes, or is dearer, is ended again, with all on it",
            m=round(max(boot_limit_s(one, deal.image_gb) for one in chosen) / 60),
        ),
        box_deadline.sentence_of_deadline(profile, asked.hours),
        _(
            "already live of yours: {n} {n:box|boxes}, {sum:.2f} {currency} an hour",
            n=len(live),
            sum=sum(one.rate or one.most_rate for one in live),
            currency=offer.currency,
        ),
    ):
        show.say(sentence)
    digest = deal.digest(asked)
    if asked.approve is not None:
        if asked.approve == digest:
            return True
        raise InputError(
            _(
                "--approve {given} is of another sum; this one is {digest}. Nothing was rented",
                given=asked.approve,
                digest=digest,
            )
        )
    if show.ask(_("Rent on {title}? [y/N] ", title=provider.title)).lower() in ("y", "yes"):
        return True
    show.say(
        Message(_("nothing was rented. To rent without a question"), _approving(asked, digest))
    )
    return False


def _approving(asked: Asked, digest: str) -> Command:
    words: list[str] = []
    if asked.boxes is not None:
        words += ["--boxes", str(asked.boxes)]
    if asked.most_rate is not None:
        words += ["--max-price", f"{asked.most_rate:g}"]
    if asked.hours is not None:
        words += ["--hours", f"{asked.hours:g}"]
    words += ["--spot"] if asked.is_spot else []
    return Command("up", (*words, "--approve", digest))
