"""Lambda Cloud: machines that can only be terminated. No spot, no balance. Source: OpenAPI 1.10.

One request a second, one launch in twelve. Errors carry a `code`, which alone is relied on.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any, ClassVar

from boxcar.laptop.providers.calls import Answer, Calls
from boxcar.laptop.providers.provider import (
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
    text_of,
)
from boxcar.shared.errors import InputError, words_of
from boxcar.shared.record import replace
from boxcar.shared.sentence import _, mark

# `preempted` has no product; it is lost, and bills until the provider says otherwise.
_STATES: Mapping[str, State] = {
    "booting": "starting",
    "active": "running",
    "unhealthy": "failed",
    "terminating": "unknown",
    "terminated": "gone",
    "preempted": "unknown",
}
_TAG = "boxcar-rented"
_NONE_SUCH = "global/object-does-not-exist"
_NO_CAPACITY = "instance-operations/launch/insufficient-capacity"
_PACE_S = 1.0
_PORT = 22


class Lambda(Provider):
    name: ClassVar[str] = "lambda"
    title: ClassVar[str] = "Lambda Cloud"
    console: ClassVar[str] = "https://cloud.lambda.ai/instances"
    by_hand: ClassVar[str] = mark("Instances, tick the box, then Terminate")
    usual_base: ClassVar[str] = "https://cloud.lambda.ai"
    base_variable: ClassVar[str] = "LAMBDA_CLOUD_BASE_URL"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._calls = Calls(self.title, access, pace_s=_PACE_S)

    def offers(self, wish: Wish) -> list[Offer]:
        answer = self._calls.ask("GET", "/api/v1/instance-types")
        kinds = self._calls.expect(answer, "data", dict)
        offers = [offer for one in kinds.values() for offer in _offers(one, wish)]
        if wish.file_system and offers:
            offers = self._with_file_system(offers, wish.file_system)
        return sorted(offers, key=lambda one: one.rate)

    def _with_file_system(self, offers: list[Offer], name: str) -> list[Offer]:
        """A filesystem lies in one region, and is mounted nowhere else. Raises InputError for one
        that the account does not have.
        """
        answer = self._calls.ask("GET", "/api/v1/file-systems")
        found = objects_of(self._calls.expect(answer, "data", list))
        regions = {
            text_of(inner(one, "region", "name")) for one in found if one.get("name") == name
        }
        if not regions:
            raise InputError(
                _(
                    "{title}: the account has no filesystem {name}, which the profile names as "
                    "durable tier. Create it in the console, in the region of the boxes, or name "
                    "another path (/lambda/nfs/NAME)",
                    title=self.title,
                    name=name,
                )
            )
        why = _(
            "the filesystem {name} is in {regions}", name=name, regions=", ".join(sorted(regions))
        )
        return [one if one.region in regions else replace(one, against=why) for one in offers]

    def create(self, order: Order) -> str:
        kind, _at, region = order.offer.id.partition("@")
        body: dict[str, Any] = {
            "region_name": region,
            "instance_type_name": kind,
            "ssh_key_names": [self._key_name(order.public_key)],
            "name": order.label,
            "tags": [{"key": _TAG, "value": order.stamp[:128]}],
        }
        if order.file_system:
            body["file_system_names"] = [order.file_system]
        path = "/api/v1/instance-operations/launch"
        try:
            answer = self._calls.ask_once("POST", path, body=body)
        except Doubt as doubt:
            raise Unclear(words_of(doubt)) from None
        return self._created(answer)

    def _created(self, answer: Answer) -> str:
        ids = inner(answer.document, "data", "instance_ids")
        id = id_of(ids[0]) if isinstance(ids, list) and ids else ""
        if answer.is_good and id:
            return id
        said = self._calls.said(answer)
        what = _(
            "{title} answers {status}{said}", title=self.title, status=answer.status, said=said
        )
        # An error of a provider behind theirs is no clear no.
        is_upstream = _code(answer).startswith("provider/")
        if id or answer.is_good or answer.status >= 500 or answer.status == 408 or is_upstream:
            raise Unclear(what, id)
        self._calls.check_rights(answer)
        raise Refused(what, is_of_offer=_code(answer) == _NO_CAPACITY)

    def _key_name(self, public_key: str) -> str:
        """Of the account's keys the one that this is; else it is added under a name of ours."""
        answer = self._calls.ask("GET", "/api/v1/ssh-keys")
        words = public_key.split()[:2]
        for one in objects_of(self._calls.expect(answer, "data", list)):
            theirs = one.get("public_key")
            if isinstance(theirs, str) and theirs.split()[:2] == words and one.get("name"):
                return str(one["name"])
        name = f"boxcar-{zlib.crc32(words[-1].encode()):08x}"
        made = self._calls.ask(
            "POST", "/api/v1/ssh-keys", body={"name": name, "public_key": public_key}
        )
        return text_of(inner(self._calls.expect(made, "data", dict), "name")) or name

    def list_boxes(self) -> list[Listed]:
        answer = self._calls.ask("GET", "/api/v1/instances")
        found = objects_of(self._calls.expect(answer, "data", list))
        return [listed for one in found if (listed := _listed(one)) is not None]

    def read_box(self, id: str) -> Listed | None:
        answer = self._calls.ask("GET", f"/api/v1/instances/{id}")
        if answer.status == 404 and _code(answer) == _NONE_SUCH:
            return None
        data = answer.document.get("data")
        one = _listed(data) if answer.is_good and isinstance(data, Mapping) else None
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
        path = "/api/v1/instance-operations/terminate"
        answer = self._calls.ask("POST", path, body={"instance_ids": [id]})
        if not (answer.is_good or (answer.status == 404 and _code(answer) == _NONE_SUCH)):
            raise Doubt(
                _(
                    "{title} answers {status} of {id}{said}",
                    title=self.title,
                    status=answer.status,
                    id=id,
                    said=self._calls.said(answer),
                )
            )


def _code(answer: Answer) -> str:
    return text_of(inner(answer.document, "error", "code"))


def _offers(one: object, wish: Wish) -> list[Offer]:
    kind = inner(one, "instance_type")
    name, cents = text_of(inner(kind, "name")), number_of(inner(kind, "price_cents_per_hour"))
    gpus = count_of(inner(kind, "specs", "gpus"))
    if not name or cents is None or gpus < wish.gpus:
        return []
    return [
        Offer(
            Lambda.name,
            f"{name}@{region}",
            text_of(inner(kind, "gpu_description")),
            gpus,
            cents / 100,
            memory_gb=_memory_gb(text_of(inner(kind, "gpu_description"))),
            disk_gb=count_of(inner(kind, "specs", "storage_gib")),
            region=region,
            more=(_("filesystems, by GiB and month, until you delete them"),),
        )
        for each in objects_of(inner(one, "regions_with_capacity_available"))
        if (region := id_of(each.get("name")))
    ]


def _memory_gb(description: str) -> float | None:
    """`80` of `H100 (80 GB SXM5)`: nothing else says it."""
    found = re.search(r"\((\d+(?:\.\d+)?) GB\b", description)
    return float(found[1]) if found else None


def _listed(one: Mapping[str, Any]) -> Listed | None:
    if not (id := id_of(one.get("id"))):
        return None
    word = text_of(one.get("status"))
    host = host_of(one.get("ip"))
    cents = number_of(inner(one, "instance_type", "price_cents_per_hour"))
    tags = {text_of(tag.get("key")): tag.get("value") for tag in objects_of(one.get("tags"))}
    return Listed(
        Lambda.name,
        id,
        text_of(one.get("name")),
        _STATES.get(word, "unknown"),
        word or "null",
        nonce=nonce_in(one.get("name"), tags.get(_TAG)),
        host=host,
        port=_PORT if host else 0,
        gpu=text_of(inner(one, "instance_type", "gpu_description")),
        gpus=count_of(inner(one, "instance_type", "specs", "gpus")),
        rate=cents / 100 if cents is not None else None,
    )
