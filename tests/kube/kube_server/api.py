"""HTTP: what kubectl asks, and the faults that a test asked for."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import yaml
from aiohttp import web

from . import admission, kinds, protobuf
from .account import Account
from .kinds import BY_PATH, Kind
from .patches import patched
from .store import ApiError, Object, Store, selects

Answer = web.StreamResponse
_PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?"
)
_INITIAL_END = {"k8s.io/initial-events-end": "true"}


@dataclass
class Fault:
    """What goes wrong with a request whose `METHOD /path?query` a pattern finds, so many times.

    Without `code` the connection is cut. With `after` the request took effect before.
    """

    match: str
    code: int = 0
    after: bool = False
    times: int = 1
    reason: str = "InternalError"
    message: str = "a fault that the test asked for"


@dataclass
class Asked:
    kind: Kind
    namespace: str
    name: str
    sub: str
    request: web.Request

    def query(self, name: str, default: str = "") -> str:
        return self.request.query.get(name, default)

    @property
    def verb(self) -> str:
        """As a Role has it. An exec is a create, whichever method brings it."""
        if self.sub == "exec":
            return "create"
        if self.request.method == "GET":
            return "get" if self.name else "list"
        ways = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        return ways.get(self.request.method, "")

    @property
    def dry(self) -> bool:
        return self.query("dryRun") == "All"


Subresource = Callable[[Asked], Awaitable[Answer]]


@dataclass
class Api:
    store: Store
    version: tuple[int, int]
    subresources: dict[tuple[str, str], Subresource]
    account: Account
    faults: list[Fault] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)  # `create pods/exec`: what nobody may
    watches_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> Answer:
        fault = self._fault(request)
        try:
            if fault is not None and not fault.after:
                raise _failed(fault, request)
            answer = await self._answer(request)
            if fault is not None:
                raise _failed(fault, request)
            return answer
        except ApiError as error:
            return web.json_response(error.status(), status=error.code)

    def _fault(self, request: web.Request) -> Fault | None:
        if request.headers.get("Impersonate-User") == "spared":
            return None
        line = f"{request.method} {request.path_qs}"
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.match, line):
                fault.times -= 1
                return fault
        return None

    async def _answer(self, request: web.Request) -> Answer:
        path = request.path.rstrip("/")
        if path == "/version":
            return web.json_response(_version(self.version))
        if path in ("/healthz", "/readyz", "/livez"):
            return web.Response(text="ok")
        if (document := kinds.discovery(path) or kinds.openapi(path)) is not None:
            return web.json_response(document)
        asked = _asked(request)
        self._refuse_denied(asked)
        if self.account.is_refused(request.headers.get("Authorization")):
            user = "system:serviceaccount:default:default"
            said = f'{asked.kind.qualified} is forbidden: User "{user}" cannot {asked.verb} it'
            raise ApiError(403, "Forbidden", said, {"kind": asked.kind.plural})
        if asked.sub:
            if (way := self.subresources.get((asked.kind.plural, asked.sub))) is not None:
                self.store.get(asked.kind.plural, asked.namespace, asked.name)
                return await way(asked)
            if asked.sub != "status":
                raise _no_such_path()
        if asked.kind.kind == "SelfSubjectAccessReview":
            return await self._can_i(asked)
        ways = {"GET": self._get, "POST": self._create, "PUT": self._put, "PATCH": self._patch}
        way = {**ways, "DELETE": self._delete}.get(request.method)
        if way is None:
            raise ApiError(405, "MethodNotAllowed", "the server does not allow this method")
        return await way(asked)

    def _refuse_denied(self, asked: Asked) -> None:
        sub = f"/{asked.sub}" if asked.sub else ""
        verb, resource = asked.verb, f"{asked.kind.plural}{sub}"
        if f"{verb} {resource}" not in self.denied:
            return
        where = f' in the namespace "{asked.namespace}"' if asked.kind.namespaced else ""
        which = f'{asked.kind.qualified} "{asked.name}"' if asked.name else asked.kind.qualified
        said = (
            f'{which} is forbidden: User "tests" cannot {verb} resource "{resource}" in API group '
            f'"{asked.kind.group}"{where}'
        )
        raise ApiError(403, "Forbidden", said, {"name": asked.name, "kind": asked.kind.plural})

    # -- reading

    async def _get(self, asked: Asked) -> Answer:
        if asked.query("watch") in ("true", "1"):
            return await self._watch(asked)
        if asked.name:
            return web.json_response(self.store.get(asked.kind.plural, asked.namespace, asked.name))
        meant = selects(asked.query("labelSelector"), asked.query("fieldSelector"))
        return web.json_response(
            {
                "kind": f"{asked.kind.kind}List",
                "apiVersion": asked.kind.api_version,
                "metadata": {"resourceVersion": str(self.store.version)},
                "items": [o for o in self._all(asked) if meant(o)],
            }
        )

    def _all(self, asked: Asked) -> list[Object]:
        return self.store.all(asked.kind.plural, asked.namespace or None)

    async def _watch(self, asked: Asked) -> Answer:
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(asked.request)

        async def send(what: str, one: Object) -> None:
            await stream.write(json.dumps({"type": what, "object": one}).encode() + b"\n")

        meant = selects(asked.query("labelSelector"), asked.query("fieldSelector"))
        since = asked.query("resourceVersion")
        initial = asked.query("sendInitialEvents") == "true"
        seen: set[str] = set()
        at = len(self.store.history)
        if initial or since in ("", "0"):
            for one in [o for o in self._all(asked) if meant(o)]:
                seen.add(one["metadata"]["uid"])
                await send("ADDED", one)
        else:
            at = sum(1 for change in self.store.history if change.version <= int(since))
            seen = {o["metadata"]["uid"] for o in self._at(asked, at) if meant(o)}
        if initial:
            mark = {"resourceVersion": str(self.store.version), "annotations": _INITIAL_END}
            kind = {"kind": asked.kind.kind, "apiVersion": asked.kind.api_version}
            await send("BOOKMARK", {**kind, "metadata": mark})
        seconds = float(asked.query("timeoutSeconds", "3600"))
        end = self.watches_end
        with contextlib.suppress(asyncio.TimeoutError, ConnectionResetError):
            follow = self._follow(asked, at, meant=meant, seen=seen, send=send, end=end)
            await asyncio.wait_for(follow, seconds)
        return stream

    def _at(self, asked: Asked, at: int) -> list[Object]:
        """What there was when so much had happened."""
        there: dict[str, Object] = {}
        for change in self.store.history[:at]:
            meta = change.object["metadata"]
            if change.plural == asked.kind.plural and self._here(asked, change.object):
                there[meta["uid"]] = change.object
                if change.what == "DELETED":
                    del there[meta["uid"]]
        return list(there.values())

    @staticmethod
    def _here(asked: Asked, one: Object) -> bool:
        return asked.namespace in ("", one["metadata"].get("namespace", ""))

    async def _follow(
        self,
        asked: Asked,
        at: int,
        *,
        meant: Callable[[Object], bool],
        seen: set[str],
        send: Callable[[str, Object], Awaitable[None]],
        end: asyncio.Event,
    ) -> None:
        """An object that comes to be meant is ADDED for the watcher, one that ceases DELETED."""
        while not end.is_set():
            for change in self.store.history[at:]:
                at += 1
                one = change.object
                if change.plural != asked.kind.plural or not self._here(asked, one):
                    continue
                uid = one["metadata"]["uid"]
                is_in = change.what != "DELETED" and meant(one)
                if is_in or uid in seen:
                    what = "DELETED" if not is_in else "MODIFIED" if uid in seen else "ADDED"
                    (seen.add if is_in else seen.discard)(uid)
                    await send(what, one)
            if at < len(self.store.history):
                continue  # something happened while this was sent
            waits = [asyncio.ensure_future(one) for one in (self.store.change(), end.wait())]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()

    # -- writing

    async def _body(self, asked: Asked) -> Any:
        data = await asked.request.read()
        if data.startswith(protobuf.MAGIC):
            return protobuf.decoded(data)
        return yaml.safe_load(data) if data else {}

    async def _create(self, asked: Asked) -> Answer:
        one = await self._body(asked)
        return self._created(asked, one)

    def _created(self, asked: Asked, one: Object) -> Answer:
        kind = asked.kind
        one.setdefault("kind", kind.kind)
        one.setdefault("apiVersion", kind.api_version)
        meta = one.setdefault("metadata", {})
        if kind.namespaced:
            meta["namespace"] = asked.namespace
            self._check_namespace(asked, meta.get("name", ""))
        warnings = self._known(asked, one)
        one = self.admit(kind, one)
        if asked.dry:
            if self.store.find(kind.plural, meta.get("namespace", ""), meta.get("name", "")):
                self.store.create(kind.plural, one)  # refuses
            meta.update(uid="dry-run", resourceVersion="")
        else:
            one = self.store.create(kind.plural, one)
        return _json(one, 201, warnings)

    def _check_namespace(self, asked: Asked, name: str) -> None:
        there = self.store.find("namespaces", "", asked.namespace)
        if there is None:
            details = {"name": asked.namespace, "kind": "namespaces"}
            raise ApiError(404, "NotFound", f'namespaces "{asked.namespace}" not found', details)
        if there["metadata"].get("deletionTimestamp"):
            said = (
                f'{asked.kind.qualified} "{name}" is forbidden: unable to create new content in '
                f"namespace {asked.namespace} because it is being terminated"
            )
            raise ApiError(403, "Forbidden", said, {"name": name, "kind": asked.kind.plural})

    def _known(self, asked: Asked, one: Object) -> list[str]:
        how = asked.query("fieldValidation", "Warn")
        warnings = admission.check_fields(one, self.version, how)
        admission.drop_unknown(one, self.version)
        return warnings

    def admit(self, kind: Kind, one: Object) -> Object:
        """What comes in, filled in; the Job controller's pods come this way, too."""
        admission.fill_in(one, kind)
        if one["metadata"].get("name") or not one["metadata"].get("generateName"):
            admission.check(one, kind, None)
        admission.check_quota(self.store, one, kind)
        return one

    async def _put(self, asked: Asked) -> Answer:
        old = self.store.get(asked.kind.plural, asked.namespace, asked.name)
        return self._replaced(asked, old, await self._body(asked))

    async def _patch(self, asked: Asked) -> Answer:
        kind, content = asked.kind, asked.request.content_type
        old = self.store.find(kind.plural, asked.namespace, asked.name)
        patch = await self._body(asked)
        if old is None and content.startswith("application/apply-patch"):
            return self._created(asked, patch)
        old = self.store.get(kind.plural, asked.namespace, asked.name)
        return self._replaced(asked, old, patched(old, patch, content))

    def _replaced(self, asked: Asked, old: Object, new: Object) -> Answer:
        kind = asked.kind
        version = new["metadata"].get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            said = (
                f'Operation cannot be fulfilled on {kind.qualified} "{asked.name}": the object '
                "has been modified; please apply your changes to the latest version and try again"
            )
            details = {"name": asked.name, "group": kind.group, "kind": kind.plural}
            raise ApiError(409, "Conflict", said, details)
        warnings = self._known(asked, new)
        if asked.sub == "status":
            new = {**copy.deepcopy(old), "status": new.get("status", {})}
        elif "status" in old:
            new["status"] = copy.deepcopy(old["status"])
        admission.check(new, kind, old)
        if asked.dry:
            return _json(new, 200, warnings)
        return _json(self.store.replace(kind.plural, old, new), 200, warnings)

    async def _delete(self, asked: Asked) -> Answer:
        options = await self._body(asked)
        plural = asked.kind.plural
        if not asked.name:
            meant = selects(asked.query("labelSelector"), asked.query("fieldSelector"))
            for one in [o for o in self._all(asked) if meant(o)]:
                self.store.delete(plural, one)
            return web.json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})
        one = self.store.get(plural, asked.namespace, asked.name)
        uid = (options.get("preconditions") or {}).get("uid")
        if uid and uid != one["metadata"]["uid"]:
            said = (
                f'Operation cannot be fulfilled on {asked.kind.qualified} "{asked.name}": '
                f"Precondition failed: UID in precondition: {uid}, "
                f"UID in object meta: {one['metadata']['uid']}"
            )
            raise ApiError(409, "Conflict", said, {"name": asked.name, "kind": plural})
        if asked.dry or options.get("dryRun"):
            return _json(one, 200, [])
        policy = options.get("propagationPolicy") or asked.query("propagationPolicy", "Background")
        grace = options.get("gracePeriodSeconds", asked.query("gracePeriodSeconds") or None)
        self.store.delete(plural, one, policy=policy, grace_s=None if grace is None else int(grace))
        if self.store.exists(one["metadata"]["uid"]):
            return _json(one, 200, [])
        details = {"name": asked.name, "kind": plural, "uid": one["metadata"]["uid"]}
        answer = {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details}
        return web.json_response(answer)

    async def _can_i(self, asked: Asked) -> Answer:
        one = await self._body(asked)
        what = one["spec"].get("resourceAttributes") or {}
        sub = f"/{what['subresource']}" if what.get("subresource") else ""
        words = f"{what.get('verb')} {what.get('resource')}{sub}"
        return _json({**one, "status": {"allowed": words not in self.denied}}, 201, [])


def _asked(request: web.Request) -> Asked:
    found = _PATH.fullmatch(request.path)
    if found is None:
        raise _no_such_path()
    kind = BY_PATH.get((found["group"] or "", found["core"] or found["version"], found["plural"]))
    if kind is None:
        raise _no_such_path()
    return Asked(kind, found["namespace"] or "", found["name"] or "", found["sub"] or "", request)


def _no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def _failed(fault: Fault, request: web.Request) -> ApiError:
    if not fault.code and request.transport is not None:
        request.transport.abort()
    return ApiError(fault.code or 500, fault.reason, fault.message)


def _json(one: Object, code: int, warnings: list[str]) -> web.Response:
    answer = web.json_response(one, status=code)
    for warning in warnings:
        escaped = warning.replace('"', '\\"')
        answer.headers.add("Warning", f'299 - "{escaped}"')
    return answer


def _version(version: tuple[int, int]) -> dict[str, str]:
    major, minor = version
    return {
        "major": str(major),
        "minor": str(minor),
        "gitVersion": f"v{major}.{minor}.0",
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.25",
        "compiler": "gc",
        "platform": "linux/amd64",
    }
