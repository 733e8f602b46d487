"""RunPod pods, by REST v2 alone. Source: its OpenAPI, September 2026. No spot, no balance there.

`PUT /account/ssh-keys` replaces all of an account's keys, so a key travels in PUBLIC_KEY.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from boxcar.laptop.providers.calls import LOG_LINES, Answer, Calls
from boxcar.laptop.providers.provider import (
    STAMP,
    Access,
    Doubt,
    Listed,
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
    inner,
    number_of,
    objects_of,
    port_of,
    text_of,
)
from boxcar.shared.errors import words_of
from boxcar.shared.sentence import _, mark

_STATES: Mapping[str, State] = {
    "PROVISIONING": "starting",
    "STARTING": "starting",
    "RUNNING": "running",
    "EXITED": "stopped",
    "ERROR": "failed",
    "TERMINATED": "gone",
}
_CLOUDS = (("secure", "SECURE"), ("community", "COMMUNITY"))
_IN_STOCK = ("LOW", "MEDIUM", "HIGH")
_CONTAINER_GB = 20


class RunPod(Provider):
    name: ClassVar[str] = "runpod"
    title: ClassVar[str] = "RunPod"
    console: ClassVar[str] = "https://console.runpod.io/pods"
    by_hand: ClassVar[str] = mark("Pods, then the pod's menu: Terminate")
    # A stock image of others has no sshd there.
    usual_image: ClassVar[str] = "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"
    has_stop: ClassVar[bool] = True
    usual_base: ClassVar[str] = "https://api.runpod.io"
    base_variable: ClassVar[str] = "RUNPOD_API_BASE_URL"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._calls = Calls(self.title, access)

    def offers(self, wish: Wish) -> list[Offer]:
        params = {"include": "AVAILABILITY", "product": "POD"}
        if wish.cuda:
            params["minCudaVersion"] = wish.cuda
        answer = self._calls.ask("GET", "/v2/catalog/gpus", params=params)
        kinds = objects_of(self._calls.expect(answer, "gpus", list))
        offers = [offer for one in kinds for offer in _offers(one, wish)]
        return sorted(offers, key=lambda one: one.rate)

    def create(self, order: Order) -> str:
        cloud, _at, gpu = order.offer.id.partition(":")
        body: dict[str, Any] = {
            "name": order.label,
            "image": order.image,
            "gpu": {"id": gpu, "count": order.offer.gpus},
            "cloud": cloud,
            "disk": _CONTAINER_GB,
            "ports": ["22/tcp"],
            "startSsh": True,
            "env": {STAMP: order.stamp, "PUBLIC_KEY": order.public_key},
            "mounts": {"persistent": {"size": max(10, order.disk_gb), "path": "/workspace"}},
        }
        if order.cuda:
            body["gpu"]["minCudaVersion"] = order.cuda
        try:
            answer = self._calls.ask_once("POST", "/v2/pods", body=body)
        except Doubt as doubt:
            raise Unclear(words_of(doubt)) from None
        return self._created(answer)

    def _created(self, answer: Answer) -> str:
        id = id_of(answer.document.get("id"))
        if answer.is_good and id:
            return id
        said = self._calls.said(answer)
        what = _(
            "{title} answers {status}{said}", title=self.title, status=answer.status, said=said
        )
        if id or answer.is_good or answer.status >= 500 or answer.status == 408:
            raise Unclear(what, id)
        if answer.status == 401:
            self._calls.check_rights(answer)
        # 400 is a broken rule or no capacity, which only its words tell apart; 403 a pool.
        raise Refused(what, is_of_offer=answer.status in (400, 403))

    def list_boxes(self) -> list[Listed]:
        answer = self._calls.ask("GET", "/v2/pods", params={"includeClusterPods": "true"})
        found = objects_of(self._calls.expect(answer, "pods", list))
        return [listed for one in found if (listed := _listed(one)) is not None]

    def read_box(self, id: str) -> Listed | None:
        answer = self._calls.ask("GET", f"/v2/pods/{id}")
        if answer.status == 404 and _is_problem(answer, 404):
            return None
        one = _listed(answer.document) if answer.is_good else None
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
        answer = self._calls.ask("DELETE", f"/v2/pods/{id}")
        self._check_done(answer, id)

    def stop_box(self, id: str) -> None:
        answer = self._calls.ask("POST", f"/v2/pods/{id}/action", body={"action": "stop"})
        self._check_done(answer, id)

    def read_log(self, id: str) -> str:
        said = self._calls.read_stream(f"/v2/pods/{id}/logs", {"tail": str(LOG_LINES)})
        return "\n".join(_lines(said.decode(errors="replace")))

    def _check_done(self, answer: Answer, id: str) -> None:
        if not (answer.is_good or (answer.status == 404 and _is_problem(answer, 404))):
            raise Doubt(
                _(
                    "{title} answers {status} of {id}{said}",
                    title=self.title,
                    status=answer.status,
                    id=id,
                    said=self._calls.said(answer),
                )
            )


def _lines(events: str) -> Iterator[str]:
    """Of Server-Sent Events, each with its time and who said it."""
    for event in events.splitlines():
        with contextlib.suppress(ValueError):
            if event.startswith("data:") and isinstance(found := json.loads(event[5:]), Mapping):
                words = (text_of(found.get(name)) for name in ("ts", "source", "line"))
                yield " ".join(filter(None, words))


def _is_problem(answer: Answer, status: int) -> bool:
    """Whether it is of RFC 9457, as the service's own are, and not a proxy's."""
    return answer.document.get("status") == status and "detail" in answer.document


def _offers(one: Mapping[str, Any], wish: Wish) -> list[Offer]:
    id, name = text_of(one.get("id")), text_of(one.get("name"))
    if not id or one.get("availability") not in _IN_STOCK:
        return []
    found = []
    for cloud, word in _CLOUDS:
        rate = number_of(inner(one, "price", cloud))
        most = count_of(inner(one, "maxCount", cloud))
        if one.get(cloud) is True and rate and most >= wish.gpus:
            found.append(
                Offer(
                    RunPod.name,
                    f"{word}:{id}",
                    name or id,
                    wish.gpus,
                    round(rate * wish.gpus, 6),
                    memory_gb=number_of(one.get("memory")),
                    region=word.lower(),
                    more=(_("the volume disk, by GB and month"),),
                )
            )
    return found


def _listed(one: Mapping[str, Any]) -> Listed | None:
    if not (id := id_of(one.get("id"))):
        return None
    word = text_of(one.get("status"))
    direct = inner(one, "ssh", "direct")
    return Listed(
        RunPod.name,
        id,
        text_of(one.get("name")),
        _STATES.get(word, "unknown"),
        word or "null",
        nonce=nonce_in(one.get("name"), inner(one, "env", STAMP)),
        host=host_of(inner(direct, "host")),
        port=port_of(inner(direct, "port")),
        gpu=text_of(inner(one, "gpu", "id")),
        gpus=count_of(inner(one, "gpu", "count")),
        # 0.0 of a pod that has exited is its GPU's, and its disk bills on.
        rate=number_of(one.get("cost")) or None,
    )
