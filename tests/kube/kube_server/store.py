"""The objects, their versions, and everything that ever happened to them."""

from __future__ import annotations

import asyncio
import copy
import datetime
import re
import secrets
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from .kinds import BY_PLURAL, Kind

Object = dict[str, Any]


class ApiError(Exception):
    """What the server answers instead; `causes` are a field and what is wrong with it."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details or {}

    def status(self) -> Object:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


@dataclass(frozen=True)
class Change:
    version: int
    what: str  # ADDED, MODIFIED, DELETED
    plural: str
    object: Object


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def not_found(kind: Kind, name: str) -> ApiError:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return ApiError(404, "NotFound", f'{kind.qualified} "{name}" not found', details)


class Store:
    """Everything in memory: a cluster of a test lives as long as its test."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.history: list[Change] = []
        self.version = 0
        self._changed = asyncio.Event()

    # -- reading

    def find(self, plural: str, namespace: str, name: str) -> Object | None:
        """The object itself; who changes it calls `touch`."""
        return self.objects.get((plural, namespace, name))

    def get(self, plural: str, namespace: str, name: str) -> Object:
        found = self.find(plural, namespace, name)
        if found is None:
            raise not_found(BY_PLURAL[plural], name)
        return found

    def all(self, plural: str, namespace: str | None = None) -> list[Object]:
        return [
            one
            for (of, where, _), one in self.objects.items()
            if of == plural and namespace in (None, "", where)
        ]

    def owned(self, uid: str) -> Iterator[tuple[str, Object]]:
        for (plural, _, _), one in list(self.objects.items()):
            if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences", [])):
                yield plural, one

    def exists(self, uid: str) -> bool:
        return any(one["metadata"]["uid"] == uid for one in self.objects.values())

    def change(self) -> Coroutine[Any, Any, bool]:
        """To be awaited: the first change after this call."""
        return self._changed.wait()

    # -- writing

    def create(self, plural: str, one: Object) -> Object:
        meta = one["metadata"]
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + secrets.token_hex(3)[:5]
        key = (plural, meta.get("namespace", ""), meta["name"])
        if key in self.objects:
            kind = BY_PLURAL[plural]
            details = {"name": meta["name"], "group": kind.group, "kind": kind.plural}
            said = f'{kind.qualified} "{meta["name"]}" already exists'
            raise ApiError(409, "AlreadyExists", said, details)
        meta.update(uid=str(uuid.uuid4()), creationTimestamp=now(), generation=1)
        self.objects[key] = one
        self._record("ADDED", plural, one)
        return one

    def touch(self, plural: str, one: Object) -> None:
        """It was changed in place. One that waited for its last finalizer goes."""
        key = _key(plural, one)
        if self.objects.get(key) is not one:
            return
        meta = one["metadata"]
        self._record("MODIFIED", plural, one)
        if meta.get("deletionTimestamp") and self._may_go(plural, one):
            self.remove(plural, one)

    def replace(self, plural: str, old: Object, new: Object) -> Object:
        """`new` in the place of `old`, whose identity it keeps."""
        kept = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
        for name in kept:
            new["metadata"].pop(name, None)
            if name in old["metadata"]:
                new["metadata"][name] = old["metadata"][name]
        if _without_version(new) == _without_version(old):
            return old
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        old.clear()
        old.update(new)
        self.touch(plural, old)
        return old

    def delete(
        self, plural: str, one: Object, *, policy: str = "Background", grace_s: int | None = None
    ) -> None:
        """Begin to delete it: a pod is ended first, foreground waits for what the object owns."""
        meta = one["metadata"]
        if policy == "Foreground" and "foregroundDeletion" not in meta.get("finalizers", []):
            meta.setdefault("finalizers", []).append("foregroundDeletion")
        if policy == "Orphan":
            for of, child in self.owned(meta["uid"]):
                owners = child["metadata"]["ownerReferences"]
                child["metadata"]["ownerReferences"] = [
                    owner for owner in owners if owner["uid"] != meta["uid"]
                ]
                self.touch(of, child)
        if plural == "pods":
            spec_s = one["spec"].get("terminationGracePeriodSeconds", 30)
            grace_s = spec_s if grace_s is None else grace_s
            was_s = meta.get("deletionGracePeriodSeconds")
            meta["deletionGracePeriodSeconds"] = grace_s if was_s is None else min(was_s, grace_s)
        meta.setdefault("deletionTimestamp", now())
        self.touch(plural, one)

    def remove(self, plural: str, one: Object) -> None:
        if self.objects.pop(_key(plural, one), None) is not None:
            self._record("DELETED", plural, one)

    def _may_go(self, plural: str, one: Object) -> bool:
        if one["metadata"].get("finalizers"):
            return False
        if plural != "pods":
            return True
        ended = one.get("status", {}).get("phase") in ("Succeeded", "Failed")
        forced = one["metadata"].get("deletionGracePeriodSeconds") == 0
        return ended or forced or not one["spec"].get("nodeName")

    def _record(self, what: str, plural: str, one: Object) -> None:
        self.version += 1
        one["metadata"]["resourceVersion"] = str(self.version)
        self.history.append(Change(self.version, what, plural, copy.deepcopy(one)))
        self._changed.set()
        self._changed = asyncio.Event()


def _key(plural: str, one: Object) -> tuple[str, str, str]:
    return plural, one["metadata"].get("namespace", ""), one["metadata"]["name"]


def _without_version(one: Object) -> Object:
    meta = {k: v for k, v in one["metadata"].items() if k not in ("resourceVersion", "generation")}
    return {**one, "metadata": meta}


def selects(query: str, fields: str) -> Callable[[Object], bool]:
    """Whether an object is meant by a labelSelector and a fieldSelector."""
    labels = [word for word in re.split(r",(?![^(]*\))", query) if word]
    paths = [word for word in fields.split(",") if word]

    def meant(one: Object) -> bool:
        have = one["metadata"].get("labels") or {}
        return all(_label(word.strip(), have) for word in labels) and all(
            _field(word, one) for word in paths
        )

    return meant


def _label(word: str, have: dict[str, str]) -> bool:
    if found := re.fullmatch(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)", word):
        values = {value.strip() for value in found[3].split(",")}
        return (have.get(found[1]) in values) == (found[2] == "in")
    if "!=" in word:
        name, value = word.split("!=", 1)
        return have.get(name) != value
    if "=" in word:
        name, value = re.split("==?", word, maxsplit=1)
        return have.get(name) == value
    return word[1:] not in have if word.startswith("!") else word in have


def _field(word: str, one: Object) -> bool:
    path, value = re.split("!=|==?", word, maxsplit=1)
    at: Any = one
    for part in path.split("."):
        at = at.get(part, "") if isinstance(at, dict) else ""
    return (str(at) == value) != ("!=" in word)
