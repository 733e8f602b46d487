"""The boxes of a deal, asked for and brought up. Whatever `up` was killed at, the records say."""

from __future__ import annotations

from boxcar.laptop.common import show
from boxcar.laptop.common.home import Home
from boxcar.laptop.hosts import host_keys
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.hosts.ssh_errors import KeyRefused
from boxcar.laptop.project.project import Project
from boxcar.laptop.providers.provider import (
    STAMP,
    NoRights,
    Offer,
    Order,
    Provider,
    Refused,
    label_of,
    new_nonce,
    nonce_in,
)
from boxcar.laptop.providers.rent import (
    NoAnswer,
    NotUp,
    ask_for_box,
    boot_limit_s,
    end_unused,
    wait_until_up,
)
from boxcar.laptop.providers.rented_record import (
    RentedBox,
    live_records,
    read_records,
    write_log,
    write_record,
)
from boxcar.laptop.providers.ssh_config import write_ssh_config
from boxcar.laptop.providers.ssh_key import find_key
from boxcar.laptop.verbs import box_deadline
from boxcar.laptop.verbs.deal import Asked, Deal, gets_ssh_out, sentence_of_no_way_out
from boxcar.shared import timestamp
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    InputError,
    MayStillBillError,
    TemporaryError,
    message_of,
    words_of,
)
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

# Offers that may be tried for one box, where one is gone or its host is bad.
_TRIES = 3
_SSH_TIMEOUT_S = 30.0
# What the container was started with; a login has none of it. Empty where it cannot be read.
_READ_STAMP = f"tr '\\0' '\\n' </proc/1/environ 2>/dev/null | sed -n 's/^{STAMP}=//p'; true"


@dataclass(frozen=True)
class Renting:
    """What each step of it needs."""

    provider: Provider
    project: Project
    deal: Deal
    asked: Asked


def rent_all(renting: Renting) -> None:
    """All are asked for, then all are waited for: they start side by side. What goes wrong with one
    holds up no other, since each that was rented bills; but then no further one is asked for.
    Raises NotUp, Refused, MayStillBillError.
    """
    left, errors = list(renting.deal.offers), list[BoxcarError]()
    ordered: list[tuple[RentedBox, Offer]] = []
    for box in renting.deal.boxes:
        try:
            ordered.append(_order_box(renting, box, left))
        except BoxcarError as error:
            errors.append(error)
            break
    for record, offer in ordered:
        try:
            _bring_up_or_other(renting, record, offer, [] if errors else left)
        except BoxcarError as error:
            errors.append(error)
    raise_gravest(errors)


def raise_gravest(errors: list[BoxcarError]) -> None:
    """What may bill first; the others are said."""
    errors = sorted(errors, key=lambda one: not isinstance(one, MayStillBillError))
    for error in errors[1:]:
        show.alarm(message_of(error))
    if errors:
        raise errors[0]


def _bring_up_or_other(
    renting: Renting, record: RentedBox, offer: Offer, left: list[Offer]
) -> None:
    """Raises as `rent_all`, and TemporaryError where it is this network that lets no ssh out."""
    try:
        bring_up(renting.provider, renting.project, record, _limit_s(renting, offer))
    except NotUp as error:
        if not left:
            raise
        show.say(message_of(error))
        _try_others(renting, record.box, left)


def _try_others(renting: Renting, box: str, left: list[Offer]) -> None:
    """Another host, once the first is proven gone. Raises NotUp where none comes up."""
    for _n in range(_TRIES - 1):
        record, offer = _order_box(renting, box, left)
        try:
            bring_up(
                renting.provider,
                renting.project,
                record,
                _limit_s(renting, offer),
            )
            return
        except NotUp as error:
            show.say(message_of(error))
    raise NotUp(
        _("{box}: {n} hosts did not come up. Look again later", box=box, n=_TRIES),
        Command("up"),
    )


def _order_box(renting: Renting, box: str, left: list[Offer]) -> tuple[RentedBox, Offer]:
    """By the first offer that is still to be had. Raises Refused, NotUp, MayStillBillError."""
    provider = renting.provider
    for tries_left in reversed(range(_TRIES)):
        if not left:
            break
        offer = left[0]
        if provider.is_offer_one_machine:
            left.pop(0)
        order, record = _write_intent(renting, box, offer)
        show.say(_("{box}: asking {title}", box=box, title=provider.title))
        try:
            record = ask_for_box(provider, order, record, show.say)
        except NoRights as error:
            raise NoRights(_not_rented(box, error)) from error
        except Refused as refused:
            if not refused.is_of_offer or not tries_left:
                raise Refused(
                    _not_rented(box, refused), is_of_offer=refused.is_of_offer
                ) from refused
            show.say(message_of(refused))
            if left and left[0] is offer:
                left.pop(0)
            continue
        show.say(_("{box}: {title} {id}", box=box, title=provider.title, id=record.id))
        return record, offer
    raise NotUp(_("{box}: no offer is left that fits. Nothing was rented for it", box=box))


def _not_rented(box: str, error: BoxcarError) -> str:
    return _("{box}: {why}. Nothing was rented for it", box=box, why=words_of(error))


def _limit_s(renting: Renting, offer: Offer) -> float:
    return boot_limit_s(offer, renting.deal.image_gb)


def _write_intent(renting: Renting, box: str, offer: Offer) -> tuple[Order, RentedBox]:
    provider, project = renting.provider, renting.project
    deal, asked = renting.deal, renting.asked
    nonce, run = new_nonce(), project.plan.run
    order = Order(
        *(offer, label_of(nonce, run), nonce, run, deal.image, deal.wish.disk_gb, deal.key.text),
        bid=asked.most_rate if asked.is_spot else None,
        cuda=deal.wish.cuda,
        file_system=deal.wish.file_system,
    )
    host_keys.forget_host(Home(project.root), box)
    quiet_s, most_s = box_deadline.agreed_to(project.profile, asked.hours)
    record = RentedBox(
        *(nonce, provider.name, run, box, str(project.job_path), order.label),
        key=provider.access.fingerprint,
        asked_at=timestamp.utc_now(),
        gpu=offer.gpu,
        gpus=offer.gpus,
        offered=offer.rate,
        most_rate=deal.most_rate,
        currency=offer.currency,
        hours=asked.hours,
        is_spot=asked.is_spot,
        machine=offer.machine,
        disk_gb=deal.wish.disk_gb,
        user=project.profile.connection.user or "",
        quiet_s=quiet_s,
        most_s=most_s,
    )
    return order, write_record(record)


def bring_up(provider: Provider, project: Project, record: RentedBox, limit_s: float) -> None:
    """Raises NotUp once a box that did not come up is proven gone, and MayStillBillError."""
    attached: list[bool] = []
    said: list[str] = []  # the last word of ssh

    def answers(record: RentedBox) -> bool:
        if not attached:
            attached.append(_admit(provider, record))
        return _answers(project, record, said)

    try:
        with show.waiting(_("waiting for {box} ({id})", box=record.box, id=record.id)):
            found = wait_until_up(provider, record, limit_s, answers, show.say)
    except NotUp as error:
        if said:
            show.say(_("{box}: ssh said last: {why}", box=record.box, why=said[-1]))
        _end_again(provider, record, words_of(error))
        if isinstance(error, NoAnswer):
            _refuse_own_network(record)
        raise
    show.say(_("{box} is up: {host} port {port}", box=found.box, host=found.host, port=found.port))
    write_ssh_config(project.root)


def _admit(provider: Provider, record: RentedBox) -> bool:
    try:
        return provider.admit_key(record.id, find_key().text)
    except BoxcarError as error:
        show.say(message_of(error))
        return False


def _refuse_own_network(record: RentedBox) -> None:
    """Raises TemporaryError where ssh gets out of here to nobody: the host may be sound, and
    another one would cost as much.
    """
    if not gets_ssh_out():
        raise TemporaryError(
            _(
                "{box}: {network}. So the host may be sound, and no other is tried. Mend the "
                "network, then type this again",
                box=record.box,
                network=sentence_of_no_way_out(),
            )
        )


def _answers(project: Project, record: RentedBox, said: list[str]) -> bool:
    """Whether the box of this order lets us in; else `said` has why. Raises NotUp for another
    machine there.
    """
    ssh = Ssh(record.box, Home(project.root), show.say)
    try:
        ran = ssh.run(["sh", "-c", _READ_STAMP], timeout_s=_SSH_TIMEOUT_S, tries=1)
    except (TemporaryError, KeyRefused, InputError) as error:
        said[:] = [words_of(error)]
        return False
    finally:
        ssh.close()
    stamp = ran.out.decode(errors="replace").strip()
    if stamp and nonce_in("", stamp) != record.nonce:
        raise NotUp(
            _(
                "another machine answers at {host} port {port}: its stamp is not this order's",
                host=record.host,
                port=record.port,
            )
        )
    return ran.code == 0


def _end_again(provider: Provider, record: RentedBox, because: str) -> None:
    """Only the id that this order got, before anything of ours ran there."""
    now = next((one for one in read_records()[0] if one.nonce == record.nonce), record)
    others = [one.id for one in live_records(read_records()[0]) if one.id and one.id != now.id]
    show.say(_("{box}: {because}. It is ended again", box=now.box, because=because))
    _keep_log(provider, now)
    with show.waiting(_("ending {id}, and looking until it is gone", id=now.id)):
        end_unused(provider, now, because, others, show.say)
    show.say(_("{box}: {id} is gone, seen twice", box=now.box, id=now.id))


def _keep_log(provider: Provider, record: RentedBox) -> None:
    """What the host said while the box started: it goes with the box. Nothing waits for it long."""
    try:
        with show.waiting(_("fetching the log of its start")):
            text = provider.read_log(record.id)
        if text:
            show.say(_("the log of its start: {file}", file=write_log(record, text)))
    except (BoxcarError, OSError) as error:
        show.say(_("the log of its start cannot be had: {why}", why=words_of(error)))
