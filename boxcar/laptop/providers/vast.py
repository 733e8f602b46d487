"""vast.ai: other people's hosts, by bid or on demand. Source: OpenAPI 3.1 and PyPI `vastai` 1.9.

Beside the contract: paths end with a slash as the service's own client sends them, since redirects
are not followed; `env` is an object as that client sends it, where the contract says text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from boxcar.laptop.providers.calls import LOG_LINES, Answer, Calls
from boxcar.laptop.providers.provider import (
    STAMP,
    Access,
    Balance,
    Doubt,
    Listed,
    NoRights,
    Offer,
    Order,
    Provider,
    Refused,
    State,
    Unclear,
    Wish,
    nonce_in,
)
from boxcar.laptop.providers.values import (
    count_of,
    host_of,
    id_of,
    number_of,
    objects_of,
    port_of,
    text_of,
)
from boxcar.shared.errors import words_of
from boxcar.shared.sentence import _, mark

_PAGE, _MOST_PAGES = 25, 400
_OFFERS = 200
_RELIABLE = 0.98
# Of `actual_status`; `frozen` bills its GPU.
_STATES: Mapping[str, State] = {
    "": "starting",
    "created": "starting",
    "loading": "starting",
    "scheduling": "starting",
    "rebooting": "starting",
    "running": "running",
    "frozen": "running",
    "stopped": "stopped",
    "exited": "stopped",
    "error": "failed",
    "failed": "failed",
    "offline": "unknown",
    "unknown": "unknown",
}
_NONE_SUCH = ("no_such_instance", "not_found")
_NO_OFFER = (404, 410)


class Vast(Provider):
    name: ClassVar[str] = "vastai"
    title: ClassVar[str] = "vast.ai"
    console: ClassVar[str] = "https://cloud.vast.ai/instances/"
    by_hand: ClassVar[str] = mark("Instances, then the bin: Destroy")
    has_spot: ClassVar[bool] = True
    has_stop: ClassVar[bool] = True
    is_offer_one_machine: ClassVar[bool] = True
    usual_base: ClassVar[str] = "https://console.vast.ai"
    base_variable: ClassVar[str] = "VAST_URL"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._calls = Calls(self.title, access)

    def offers(self, wish: Wish) -> list[Offer]:
        body: dict[str, Any] = {
            "type": "bid" if wish.is_spot else "ondemand",
            "limit": _OFFERS,
            "order": [["dph_total", "asc"]],
            "verified": {"eq": True},
            "rentable": {"eq": True},
            "rented": {"eq": False},
            "external": {"eq": False},
            "num_gpus": {"gte": wish.gpus},
            "direct_port_count": {"gte": 1},
            "reliability": {"gte": _RELIABLE},
            "disk_space": {"gte": wish.disk_gb},
            # Without it the price is that of 8 GB.
            "allocated_storage": wish.disk_gb,
        }
        if wish.cuda:
            body["cuda_max_good"] = {"gte": float(wish.cuda)}
        answer = self._calls.ask("POST", "/api/v0/bundles/", body=body)
        if answer.status == 404:  # what the search says of a key that it does not know
            raise NoRights(
                _(
                    "{title} does not take this key{said}",
                    title=self.title,
                    said=self._calls.said(answer),
                )
            )
        found = objects_of(self._calls.expect(answer, "offers", list))
        offers = [_offer(one, wish) for one in found]
        return sorted((one for one in offers if one), key=lambda one: one.rate)

    def create(self, order: Order) -> str:
        body: dict[str, Any] = {
            "client_id": "me",
            "image": order.image,
            "disk": order.disk_gb,
            "label": order.label,
            "runtype": "ssh_direct",
            "target_state": "running",
            # An error, and no stopped box whose disk bills.
            "cancel_unavail": True,
            "env": {STAMP: order.stamp},
        }
        if order.bid is not None:
            body["price"] = order.bid
        try:
            answer = self._calls.ask_once("PUT", f"/api/v0/asks/{order.offer.id}/", body=body)
        except Doubt as doubt:
            raise Unclear(words_of(doubt)) from None
        return self._created(answer)

    def _created(self, answer: Answer) -> str:
        """The new box's id. An error that names one may have rented it all the same."""
        id = id_of(answer.document.get("new_contract"))
        said = self._calls.said(answer)
        if answer.is_good and id and answer.document.get("success") is not False:
            return id
        what = _(
            "{title} answers {status}{said}", title=self.title, status=answer.status, said=said
        )
        if id or answer.is_good or answer.status >= 500 or answer.status == 408:
            raise Unclear(what, id)
        self._calls.check_rights(answer)
        raise Refused(what, is_of_offer=answer.status in _NO_OFFER)

    def list_boxes(self) -> list[Listed]:
        found: dict[str, Listed] = {}
        params = {"limit": str(_PAGE)}
        for _page in range(_MOST_PAGES):
            answer = self._calls.ask("GET", "/api/v1/instances/", params=params)
            for one in objects_of(self._calls.expect(answer, "instances", list)):
                if (listed := _listed(one)) is not None:
                    found[listed.id] = listed
            token = answer.document.get("next_token")
            if not token:
                self._check_whole(answer, len(found))
                return list(found.values())
            params = {"limit": str(_PAGE), "after_token": str(token)}
        raise Doubt(_("{title}: the list of boxes has no end", title=self.title))

    def _check_whole(self, answer: Answer, count: int) -> None:
        total = answer.document.get("total_instances")
        if isinstance(total, int) and total > count:
            raise Doubt(
                _(
                    "{title} lists {count} boxes and says that there are {total}",
                    title=self.title,
                    count=count,
                    total=total,
                )
            )

    def read_box(self, id: str) -> Listed | None:
        answer = self._calls.ask("GET", f"/api/v0/instances/{id}/", params={"owner": "me"})
        if answer.status == 404 and _says_none(answer):
            return None
        if answer.is_good and "instances" in answer.document:
            found = answer.document["instances"]
            if found is None:
                return None
            one = _listed(found) if isinstance(found, Mapping) else None
            if one is not None and one.id == id:
                return one
        raise Doubt(
            _(
                "{title} does not say whether {id} is there: {status}{said}",
                title=self.title,
                id=id,
                status=answer.status,
                said=self._calls.said(answer),
            )
        )

    def end_box(self, id: str) -> None:
        self._do("DELETE", id, {})

    def stop_box(self, id: str) -> None:
        self._do("PUT", id, {"state": "stopped"})

    def admit_key(self, id: str, public_key: str) -> bool:
        body = {"ssh_key": public_key}
        answer = self._calls.ask("POST", f"/api/v0/instances/{id}/ssh/", body=body)
        if not answer.is_good:
            raise Doubt(
                _(
                    "{title} does not let the key into {id}: {status}{said}",
                    title=self.title,
                    id=id,
                    status=answer.status,
                    said=self._calls.said(answer),
                )
            )
        return True

    def balance(self) -> Balance | None:
        answer = self._calls.ask("GET", "/api/v0/users/current/", params={"owner": "me"})
        # `credit` is what the console shows as such; the contract has `balance` alone.
        amount = number_of(answer.document.get("credit"))
        if amount is None:
            amount = number_of(answer.document.get("balance"))
        if not answer.is_good or amount is None:
            return None
        return Balance(amount, "USD", id_of(answer.document.get("id")))

    def read_log(self, id: str) -> str:
        # Of the service's own client: it asks for the log, which some seconds later lies elsewhere.
        answer = self._calls.ask_once(
            "PUT", f"/api/v0/instances/request_logs/{id}/", body={"tail": str(LOG_LINES)}
        )
        url = text_of(answer.document.get("result_url"))
        return self._calls.read_elsewhere(url).decode(errors="replace")

    def _do(self, method: str, id: str, body: Mapping[str, Any]) -> None:
        answer = self._calls.ask(method, f"/api/v0/instances/{id}/", body=body)
        if answer.is_good or (answer.status == 404 and _says_none(answer)):
            return
        raise Doubt(
            _(
                "{title} answers {status} of {id}{said}",
                title=self.title,
                status=answer.status,
                id=id,
                said=self._calls.said(answer),
            )
        )


def _says_none(answer: Answer) -> bool:
    """A 404 of the service itself, and not of a proxy before it."""
    said = f"{answer.document.get('error')} {answer.document.get('msg')}".lower()
    return any(word in said for word in _NONE_SUCH)


def _offer(one: Mapping[str, Any], wish: Wish) -> Offer | None:
    id, rate = id_of(one.get("id") or one.get("ask_contract_id")), number_of(one.get("dph_total"))
    if wish.is_spot and (bid := number_of(one.get("min_bid"))) is not None:
        rate = bid
    gpu = text_of(one.get("gpu_name"))
    if not id or rate is None or not gpu:
        return None
    memory = number_of(one.get("gpu_ram"))
    cuda = number_of(one.get("cuda_max_good"))
    return Offer(
        Vast.name,
        id,
        gpu,
        count_of(one.get("num_gpus")),
        rate,
        # MB; a number below 1000 would be GB, and is not believed.
        memory_gb=round(memory / 1024, 1) if memory and memory >= 1000 else None,
        disk_gb=count_of(one.get("disk_space")),
        region=text_of(one.get("geolocation")),
        reliability=number_of(one.get("reliability2")) or number_of(one.get("reliability")),
        is_spot=wish.is_spot,
        machine=id_of(one.get("machine_id")),
        cuda=f"{cuda:g}" if cuda else "",
        down_mbit_s=number_of(one.get("inet_down")),
        more=tuple(_traffic(one)),
    )


def _traffic(one: Mapping[str, Any]) -> Iterator[str]:
    for name, way in (("inet_down_cost", mark("in")), ("inet_up_cost", mark("out"))):
        if cost := number_of(one.get(name)):
            yield _("traffic {way}: {cost:.3f} USD a GB", way=_(way), cost=cost)


def _listed(one: Mapping[str, Any]) -> Listed | None:
    if not (id := id_of(one.get("id"))):
        return None
    word = text_of(one.get("actual_status"))
    state = _STATES.get(word, "unknown")
    host, port = _address(one)
    is_wanted = one.get("intended_status") == "running"
    return Listed(
        Vast.name,
        id,
        text_of(one.get("label")),
        state,
        word or "null",
        nonce=nonce_in(one.get("label"), _stamp(one.get("extra_env"))),
        host=host,
        port=port,
        gpu=text_of(one.get("gpu_name")),
        gpus=count_of(one.get("num_gpus")),
        rate=number_of(one.get("dph_total")),
        machine=id_of(one.get("machine_id")),
        said=text_of(one.get("status_msg")),
        # Stopped by the market and not by a person: it starts again by itself.
        is_outbid=state == "stopped" and bool(one.get("is_bid")) and is_wanted,
    )


def _stamp(env: object) -> str:
    """Of pairs; everything else there may be a secret."""
    for pair in env if isinstance(env, list) else ():
        if isinstance(pair, list) and len(pair) == 2 and pair[0] == STAMP:
            return str(pair[1])
    found = env.get(STAMP) if isinstance(env, Mapping) else ""
    return found if isinstance(found, str) else ""


def _address(one: Mapping[str, Any]) -> tuple[str, int]:
    """The direct one, which is there once the container runs; else the proxy's."""
    ports = one.get("ports")
    mapped = objects_of(ports.get("22/tcp")) if isinstance(ports, Mapping) else []
    host = host_of((text_of(one.get("public_ipaddr"))).strip())
    if mapped and host and (port := port_of(mapped[0].get("HostPort"))):
        return host, port
    return host_of(one.get("ssh_host")), port_of(one.get("ssh_port"))
