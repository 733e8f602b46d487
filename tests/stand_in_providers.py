"""Stand-ins for providers of boxes: real HTTP servers on 127.0.0.1, true to our short contract.

A paid API cannot be had in a test. `tests/data/providers/contract.yaml` says what is used of it,
and every request is held against that: a path, a field or a type that is not there is kept in
`wrong`. Lags count requests and not seconds, so that no test depends on a machine's speed.

A fault is said by the call, such as `server.fault("create", "after 502")`; each is used once:

    before STATUS   that status, nothing done          after STATUS   the same, but it took effect
    429 N           too many requests, Retry-After N   nothing        a good answer that did nothing
    html            a page instead of JSON             cut            the line is cut, nothing done
    cut after       the line is cut, it took effect    id STATUS      an error with the new id
    redirect        302 to elsewhere                   back           a delete that comes back once
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

CONTRACTS: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "data" / "providers" / "contract.yaml").read_text()
)
KEY = "key-of-the-stand-in-8f1c"
# Of one that can only look.
LOOKS_ONLY = "key-that-only-looks-77aa"
# Of an account that has never had a box here.
OTHERS = "key-of-another-account-31bd"
SECRET = "a-secret-of-somebody-else"
LOG_LINE = "docker: manifest for the image not found"
_TYPES: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict,
    "array": list, "any": object,
}  # fmt: skip


@dataclass
class Box:
    """One that is rented here. `hidden`: so many lists lack it still. `boots`: so many reads until
    it runs, -1 for never."""

    id: str
    label: str
    stamp: str
    gpu: str
    gpus: int
    rate: float
    state: str
    body: Mapping[str, Any] = field(default_factory=dict)
    hidden: int = 0
    boots: int = 0
    is_bid: bool = False
    machine: int = 700
    host: str = "127.0.0.1"
    port: int = 22
    comes_back: int = 0
    said: str = ""
    owner: str = KEY


@dataclass(frozen=True)
class Asked:
    call: str
    ids: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    kind: str
    key: str


class StandIn:
    """One provider. `boxes` are all that exist; `ever` all that ever did, by id."""

    name = ""
    first_id = 1000

    def __init__(self) -> None:
        self.boxes: dict[str, Box] = {}
        self.ever: dict[str, Box] = {}
        self.asked: list[tuple[str, str]] = []  # call and key
        self.wrong: list[str] = []
        self.lag = 0
        self.boots = 1
        self.rate = 0.4
        self.real_rate: float | None = None
        self.credit = 25.0
        self.address = ("127.0.0.1", 22)
        self.bad_words = ""
        self.log_looks = 0
        # Told of each box that is rented, such as to start a real one behind it.
        self.on_create: Callable[[Box], None] = lambda box: None
        self._faults: dict[str, list[str]] = defaultdict(list)
        self._count = self.first_id
        self.lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fault(self, call: str, *kinds: str) -> None:
        self._faults[call] += kinds

    def calls(self, name: str) -> int:
        return sum(call == name for call, _key in self.asked)

    def stranger(self, label: str = "my training", **more: Any) -> Box:
        return self.add(Box(self.new_id(), label, "", "RTX 4090", 1, 0.5, self.running, **more))

    # What each provider spells in its own way.

    running = ""
    starting = ""

    def new_id(self) -> str:
        self._count += 1
        return str(self._count)

    def is_stopped(self, id: str) -> bool:
        return self.boxes[id].state.casefold() == "exited"

    def add(self, box: Box) -> Box:
        self.boxes[box.id] = self.ever[box.id] = box
        return box

    def rented(self, label: str, stamp: str, body: Mapping[str, Any], **more: Any) -> Box:
        rate = self.rate if self.real_rate is None else self.real_rate
        host, port = self.address
        box = Box(self.new_id(), label, stamp, rate=rate, state=self.starting, body=body,
                  hidden=self.lag, boots=self.boots, host=host, port=port, **more)  # fmt: skip
        box.said = self.bad_words
        self.on_create(box)
        return self.add(box)

    def seen(self, owner: str) -> list[Box]:
        """As the list has them now; a new one is in it only later."""
        found = []
        for box in list(self.boxes.values()):
            if box.hidden > 0:
                box.hidden -= 1
            elif box.owner == owner:
                found.append(box)
        return found

    def look(self, id: str, owner: str) -> Box | None:
        box = self.boxes.get(id)
        if box is None:
            gone = self.ever.get(id)
            if gone is not None and gone.comes_back > 0 and gone.owner == owner:
                gone.comes_back -= 1
                if gone.comes_back == 0:
                    self.boxes[id] = gone
            return None
        if box.owner != owner:
            return None
        if box.state == self.starting and box.boots >= 0:
            if box.boots == 0:
                box.state = self.running
            box.boots -= 1 if box.boots else 0
        return box

    def end(self, id: str, kind: str) -> bool:
        box = self.boxes.get(id)
        if box is None:
            return False
        if kind == "back":
            box.comes_back = 1
        if kind != "nothing":
            del self.boxes[id]
        return True

    def outbid(self, id: str) -> None:
        raise NotImplementedError

    def answer(self, asked: Asked) -> tuple[int, Any]:
        raise NotImplementedError

    def error(self, status: int, words: str) -> Any:
        raise NotImplementedError

    def with_id(self, document: Any) -> Any:
        """An error that carries the id of what was rented all the same."""
        raise NotImplementedError

    # The door.

    def serve(
        self, method: str, target: str, headers: Mapping[str, str], data: bytes
    ) -> tuple[int, dict[str, str], bytes] | None:
        """Status, headers, body; None cuts the line."""
        with self.lock:
            parts = urlsplit(target)
            if parts.path.startswith("/log/"):  # of a store beside it, which knows no keys
                return self._log(headers)
            query = dict(parse_qsl(parts.query))
            body = json.loads(data) if data else None
            call, ids = self._match(method, parts.path, body)
            if not call:
                self.wrong.append(f"{method} {parts.path}")
                return _json(404, self.error(404, "no such path"))
            key = self._key(headers)
            self.asked.append((call, key))
            self._hold(call, query, body)
            kind = self._faults[call].pop(0) if self._faults[call] else ""
            return self._with_fault(kind, call, (ids, query, body), key)

    def _log(self, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        """There at the second look only."""
        self.wrong += ["the key was sent to the store"] * ("Authorization" in headers)
        self.log_looks += 1
        if self.log_looks < 2:
            return 404, {}, b""
        return 200, {"Content-Type": "text/plain"}, f"{LOG_LINE}\n".encode()

    def _with_fault(
        self, kind: str, call: str, given: tuple[Any, Any, Any], key: str
    ) -> tuple[int, dict[str, str], bytes] | None:
        if kind == "html":
            return 200, {"Content-Type": "text/html"}, b"<html>Please log in</html>"
        if kind == "redirect":
            return 302, {"Location": "http://127.0.0.1:9/"}, b""
        if kind == "cut":
            return None
        if kind.startswith("429"):
            wait = kind.partition(" ")[2]
            return _json(429, self.error(429, "too often"), {"Retry-After": wait} if wait else {})
        if kind.startswith("before "):
            status = int(kind.split()[1])
            return _json(status, self.error(status, "out of order"))
        changes = call not in ("search", "list", "read", "user", "keys", "file_systems")
        if key not in (KEY, OTHERS, LOOKS_ONLY) or (key == LOOKS_ONLY and changes):
            status = 403 if key == LOOKS_ONLY else 401
            return _json(status, self.error(status, f"invalid key {key}"))
        status, document = self.answer(Asked(call, *given, kind, key))
        if kind == "cut after":
            return None
        if kind.startswith("after "):
            return _json(int(kind.split()[1]), self.error(int(kind.split()[1]), "out of order"))
        if kind.startswith("id "):
            return _json(int(kind.split()[1]), self.with_id(document))
        return _json(status, document)

    def _key(self, headers: Mapping[str, str]) -> str:
        return headers.get("Authorization", "").removeprefix("Bearer ")

    def _match(self, method: str, path: str, body: Any) -> tuple[str, dict[str, str]]:
        for name, call in CONTRACTS[self.name]["calls"].items():
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", call["path"]) + "/?"
            found = re.fullmatch(pattern, path)
            if found and call["method"] == method:
                return name, {key: unquote(value) for key, value in found.groupdict().items()}
        return "", {}

    def _hold(self, call: str, query: Mapping[str, str], body: Any) -> None:
        contract = CONTRACTS[self.name]["calls"][call]
        known = {*contract.get("asks", ()), *contract.get("beside_asks", ())}
        self.wrong += [f"{call}: ?{name}" for name in query if name not in known]
        fields = contract.get("sends", {}) | contract.get("beside", {})
        for name, value in (body or {}).items():
            kind = _TYPES.get(fields.get(name, ""))
            if kind is None or not isinstance(value, kind):
                self.wrong.append(f"{call}: {name}={value!r}")


class VastStandIn(StandIn):
    name = "vastai"
    running, starting = "running", "loading"

    def __init__(self) -> None:
        super().__init__()
        self.offers = [
            _vast_offer(501, "RTX 4090", 1, 24564, 0.4, machine=71),
            _vast_offer(502, "RTX 4090", 2, 24564, 0.9, machine=72),
            _vast_offer(505, "RTX 4090", 1, 24564, 0.405, machine=75),
            _vast_offer(506, "RTX 4090", 1, 24564, 0.41, machine=76),
            _vast_offer(507, "RTX 4090", 1, 24564, 0.415, machine=77),
            _vast_offer(503, "A100 SXM4", 1, 40960, 1.1, machine=73),
            _vast_offer(504, "A100 SXM4", 1, 81920, 1.6, machine=74),
        ]
        self.keys: dict[str, str] = {}

    def answer(self, asked: Asked) -> tuple[int, Any]:
        call, ids, body, kind, key = asked.call, asked.ids, asked.body, asked.kind, asked.key
        if call == "search":
            # Their own client sends numbers as text.
            least = float(body.get("num_gpus", {}).get("gte", 0))
            return 200, {"offers": [one for one in self.offers if one["num_gpus"] >= least]}
        if call == "create":
            return self._create(ids["id"], body, kind)
        if call == "list":
            return 200, self._list(asked.query, key)
        if call == "read":
            box = self.look(ids["id"], key)
            return 200, {"instances": self._spelled(box) if box else None}
        if call == "log":
            return 200, {"success": True, "result_url": f"{self.base}/log/{ids['id']}"}
        if call in ("end", "stop", "key"):
            return self._change(call, ids["id"], body, kind)
        return 200, {"id": 9, "balance": self.credit, "credit": self.credit, "api_key": SECRET}

    def _create(self, ask: str, body: Any, kind: str) -> tuple[int, Any]:
        offer = next((one for one in self.offers if str(one["id"]) == ask), None)
        if offer is None:
            return 404, self.error(404, f"no_such_ask {ask} is not available")
        if self.credit <= 0:
            return 400, {"success": False, "error": "insufficient_credit", "msg": "no credit"}
        if "price" in body and body["price"] < offer["min_bid"]:
            return 400, {"success": False, "error": "invalid_price", "msg": "bid too low"}
        if kind == "nothing":
            return 200, {"success": True}
        self.rate = body.get("price", offer["dph_total"])
        box = self.rented(body["label"], body["env"].get("BOXCAR_RENTED", ""), body,
                          gpu=offer["gpu_name"], gpus=offer["num_gpus"], is_bid="price" in body,
                          machine=offer["machine_id"])  # fmt: skip
        return 200, {"success": True, "new_contract": int(box.id), "instance_api_key": SECRET}

    def _change(self, call: str, id: str, body: Any, kind: str) -> tuple[int, Any]:
        if id not in self.boxes:
            return 404, {"success": False, "error": "no_such_instance", "msg": "not found"}
        if call == "end":
            self.end(id, kind)
        elif call == "stop" and kind != "nothing":
            self.boxes[id].state = "exited"
            self.boxes[id].is_bid = False
        elif call == "key":
            self.keys[id] = body["ssh_key"]
        return 200, {"success": True}

    def _list(self, query: Mapping[str, str], key: str) -> Any:
        start = int(query.get("after_token", "0"))
        seen = self.seen(key) if start == 0 else [b for b in self.boxes.values() if b.owner == key]
        page = seen[start : start + min(25, int(query.get("limit", "25")))]
        more = start + len(page) < len(seen)
        return {
            "success": True,
            "instances_found": len(page),
            "total_instances": len(seen),
            "next_token": str(start + len(page)) if more else None,
            "instances": [self._spelled(box) for box in page],
        }

    def _spelled(self, box: Box) -> Any:
        is_running = box.state == "running"
        return {
            "id": int(box.id), "label": box.label or None, "actual_status": box.state or None,
            "cur_state": box.state, "next_state": box.state,
            "intended_status": "stopped" if box.state == "exited" and not box.is_bid else "running",
            "extra_env": [["BOXCAR_RENTED", box.stamp], ["TOKEN", SECRET]],
            "jupyter_token": SECRET, "instance_api_key": SECRET,
            "public_ipaddr": f"{box.host}\n",
            "ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(box.port)}]}
            if is_running else None,
            "ssh_host": "ssh5.vast.ai" if box.host != "127.0.0.1" else box.host,
            "ssh_port": box.port, "gpu_name": box.gpu, "num_gpus": box.gpus, "dph_total": box.rate,
            "machine_id": box.machine, "status_msg": box.said or None, "is_bid": box.is_bid,
            "start_date": 1.0,
        }  # fmt: skip

    def outbid(self, id: str) -> None:
        self.boxes[id].state = "exited"

    def error(self, status: int, words: str) -> Any:
        if status == 429:
            return {"detail": "API requests too frequent endpoint threshold=1.0"}
        return {
            "success": False,
            "error": "invalid_args" if status < 500 else "error",
            "msg": words,
        }

    def with_id(self, document: Any) -> Any:
        return {"success": False, "error": "error", "msg": "start failed"} | {
            "new_contract": document.get("new_contract")
        }


def _vast_offer(
    id: int, gpu: str, count: int, ram: int, rate: float, *, machine: int, **more: Any
) -> dict[str, Any]:
    return {
        "id": id, "ask_contract_id": id, "gpu_name": gpu, "num_gpus": count, "gpu_ram": ram,
        "dph_total": rate, "min_bid": round(rate / 2, 3), "disk_space": 500.5,
        "machine_id": machine, "geolocation": "Sweden, SE", "reliability2": 0.995,
        "cuda_max_good": 12.8,
        "inet_down": 800.0, "inet_down_cost": 0.002, "inet_up_cost": 0.003, "hostname": None,
    } | more  # fmt: skip


class RunPodStandIn(StandIn):
    name = "runpod"
    running, starting = "RUNNING", "PROVISIONING"

    def __init__(self) -> None:
        super().__init__()
        self.rate = 0.44

    def new_id(self) -> str:
        return f"pod{super().new_id()}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        call, ids, body, kind, key = asked.call, asked.ids, asked.body, asked.kind, asked.key
        if call == "search":
            return 200, {"gpus": [_pod_kind("NVIDIA GeForce RTX 4090", "RTX 4090", 24, self.rate),
                                  _pod_kind("NVIDIA A100 80GB PCIe", "A100 PCIe", 80, 1.2),
                                  _pod_kind("NVIDIA L4", "L4", 24, 0.3, stock="NONE")]}  # fmt: skip
        if call == "create":
            return self._create(body, kind)
        if call == "list":
            return 200, {"pods": [self._spelled(box) for box in self.seen(key)]}
        box = self.look(ids["id"], key)
        if box is None:
            return 404, self.error(404, "pod not found")
        if call == "end":
            self.end(box.id, kind)
            return 204, None
        if call == "stop" and kind != "nothing":
            box.state = "EXITED"
        if call == "log":
            event = {"ts": "2026-11-01T12:02:03Z", "source": "system", "line": LOG_LINE}
            return 200, f"id: 1\ndata: {json.dumps(event)}\n\n"
        return 200, self._spelled(box)

    def _create(self, body: Any, kind: str) -> tuple[int, Any]:
        if self.credit <= 0:
            return 402, self.error(402, "insufficient balance")
        if not {"name", "image", "gpu"} <= body.keys():
            return 422, self.error(422, "name, image and gpu are required")
        if kind == "nothing":
            return 200, {}
        box = self.rented(body["name"], body["env"].get("BOXCAR_RENTED", ""), body,
                          gpu=body["gpu"]["id"], gpus=body["gpu"]["count"])  # fmt: skip
        return 201, self._spelled(box)

    def _spelled(self, box: Box) -> Any:
        is_running = box.state == "RUNNING"
        direct = {"host": box.host, "port": box.port, "username": "root"} if is_running else None
        env = {"BOXCAR_RENTED": box.stamp} if box.stamp else {}
        return {
            "id": box.id, "name": box.label, "status": box.state, "actions": ["terminate"],
            "env": env | {"TOKEN": SECRET, "JUPYTER_PASSWORD": SECRET},
            "gpu": {"id": box.gpu, "count": box.gpus}, "cost": box.rate if is_running else 0.0,
            "ssh": {"proxy": {"host": "ssh.runpod.io", "port": 22}, "direct": direct},
            "image": "x", "cloud": "SECURE", "locked": False,
        }  # fmt: skip

    def outbid(self, id: str) -> None:
        self.boxes[id].state = "EXITED"

    def error(self, status: int, words: str) -> Any:
        return {"title": "Error", "status": status, "detail": words}

    def with_id(self, document: Any) -> Any:
        return self.error(500, "start failed") | {"id": document.get("id")}


def _pod_kind(id: str, name: str, memory: int, rate: float, stock: str = "HIGH") -> Any:
    return {
        "id": id, "name": name, "pool": None, "manufacturer": "NVIDIA", "memory": memory,
        "secure": True, "community": False, "price": {"secure": rate, "community": None},
        "maxCount": {"secure": 8, "community": 0}, "availability": stock,
    }  # fmt: skip


class LambdaStandIn(StandIn):
    name = "lambda"
    running, starting = "active", "booting"

    def __init__(self) -> None:
        super().__init__()
        self.rate = 1.29
        self.keys: dict[str, str] = {"laptop": "ssh-ed25519 AAAAsomebody else"}
        self.file_systems = {"boxcar": "us-west-1"}  # by name, its region

    def new_id(self) -> str:
        return f"{int(super().new_id()):032x}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        call, ids, body, kind, key = asked.call, asked.ids, asked.body, asked.kind, asked.key
        if call == "search":
            return 200, {"data": {
                "gpu_1x_a100": _lambda_kind("gpu_1x_a100", "A100 (40 GB PCIe)", 1, self.rate),
                "gpu_8x_h100": _lambda_kind("gpu_8x_h100", "H100 (80 GB SXM5)", 8, 23.9),
            }}  # fmt: skip
        if call == "create":
            return self._create(body, kind)
        if call == "list":
            return 200, {"data": [self._spelled(box) for box in self.seen(key)]}
        if call == "file_systems":
            return 200, {"data": [{"id": name, "name": name, "region": {"name": region}}
                                  for name, region in self.file_systems.items()]}  # fmt: skip
        if call == "keys":
            return 200, {"data": [{"id": name, "name": name, "public_key": text}
                                  for name, text in self.keys.items()]}  # fmt: skip
        if call == "key":
            self.keys[body["name"]] = body["public_key"]
            return 200, {"data": {"id": "x", **body}}
        if call == "end":
            found = [id for id in body["instance_ids"] if self.end(id, kind)]
            if not found:
                return 404, self.error(404, "none such", code="global/object-does-not-exist")
            return 200, {"data": {"terminated_instances": []}}
        box = self.look(ids["id"], key)
        if box is None:
            return 404, self.error(404, "none such", code="global/object-does-not-exist")
        return 200, {"data": self._spelled(box)}

    def _create(self, body: Any, kind: str) -> tuple[int, Any]:
        if body["ssh_key_names"][0] not in self.keys:
            return 404, self.error(404, "no such key", code="global/object-does-not-exist")
        if kind == "nothing":
            return 200, {"data": {"instance_ids": []}}
        tags = {tag["key"]: tag["value"] for tag in body.get("tags", ())}
        box = self.rented(body["name"], tags.get("boxcar-rented", ""), body,
                          gpu="A100 (40 GB PCIe)", gpus=1)  # fmt: skip
        return 200, {"data": {"instance_ids": [box.id]}}

    def _spelled(self, box: Box) -> Any:
        kind = _lambda_kind("gpu_1x_a100", box.gpu, box.gpus, box.rate)["instance_type"]
        shown = {"ip": box.host} if box.state == "active" else {}
        tags = [{"key": "boxcar-rented", "value": box.stamp}] if box.stamp else []
        return {
            "id": box.id, "name": box.label, "status": box.state, "ssh_key_names": ["laptop"],
            "file_system_names": [], "region": {"name": "us-west-1", "description": "California"},
            "instance_type": kind, "jupyter_token": SECRET, "tags": tags,
            "actions": {
                name: {"available": True}
                for name in ("migrate", "rebuild", "restart", "cold_reboot", "terminate")
            },
        } | shown  # fmt: skip

    def error(self, status: int, words: str, code: str = "") -> Any:
        code = code or ("global/invalid-api-key" if status in (401, 403) else "global/unknown")
        return {"error": {"code": code, "message": words, "suggestion": "none"}}

    def with_id(self, document: Any) -> Any:
        return self.error(500, "start failed") | {"data": document.get("data")}


def _lambda_kind(name: str, gpu: str, gpus: int, rate: float) -> Any:
    return {
        "instance_type": {
            "name": name, "description": f"{gpus}x {gpu}", "gpu_description": gpu,
            "price_cents_per_hour": round(rate * 100),
            "specs": {"vcpus": 30, "memory_gib": 200, "storage_gib": 512, "gpus": gpus},
        },
        "regions_with_capacity_available": [{"name": "us-west-1", "description": "California"}],
    }  # fmt: skip


KINDS = {kind.name: kind for kind in (VastStandIn, RunPodStandIn, LambdaStandIn)}
BASES = {
    "vastai": "VAST_URL", "runpod": "RUNPOD_API_BASE_URL", "lambda": "LAMBDA_CLOUD_BASE_URL",
}  # fmt: skip
KEYS = {"vastai": "VAST_API_KEY", "runpod": "RUNPOD_API_KEY", "lambda": "LAMBDA_API_KEY"}


@contextmanager
def stand_in(name: str) -> Iterator[Any]:
    server = KINDS[name]()
    try:
        yield server
    finally:
        server.close()


def environment(server: StandIn, key: str = KEY) -> dict[str, str]:
    return {BASES[server.name]: server.base, KEYS[server.name]: key}


def _json(
    status: int, document: Any, headers: Mapping[str, str] = {}
) -> tuple[int, dict[str, str], bytes]:
    if isinstance(document, str):
        return status, {"Content-Type": "text/event-stream", **headers}, document.encode()
    data = b"" if document is None else json.dumps(document).encode()
    return status, {"Content-Type": "application/json", **headers}, data


def _handler(server: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def _serve(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = server.serve(self.command, self.path, self.headers, data)
            if found is None:
                self.close_connection = True
                return
            status, headers, body = found
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve

        def log_message(self, *words: Any) -> None:
            pass

    return Handler
