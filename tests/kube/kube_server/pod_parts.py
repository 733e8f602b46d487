"""What a pod's container is made of: its variables, its command, its mounts."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from .admission import quantity
from .container import Mount
from .store import Object, Store


class NotReadyYet(Exception):
    """What the container waits for: a reason and a message, as its state has them."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


def environment(store: Store, pod: Object, container: Object) -> dict[str, str]:
    env: dict[str, str] = {}
    for one in container.get("envFrom", []):
        for source in ("secretRef", "configMapRef"):
            if source in one:
                values = _values(store, pod, source, one[source]["name"], one[source])
                env.update({one.get("prefix", "") + k: v for k, v in values.items()})
    for one in container.get("env", []):
        if (source := one.get("valueFrom")) is None:
            env[one["name"]] = expanded(one.get("value") or "", env)
        elif (value := _value_from(store, pod, container, source)) is not None:
            env[one["name"]] = value
    return env


def expanded(text: str, env: dict[str, str]) -> str:
    """`$(NAME)`, where NAME is known."""
    return re.sub(r"\$\(([A-Za-z_][\w.-]*)\)", lambda m: env.get(m[1], m[0]), text)


def command(container: Object, env: dict[str, str]) -> list[str]:
    words = [*container.get("command", []), *container.get("args", [])]
    return [expanded(word, env) for word in words] or ["/bin/sh", "-c", "exit 0"]


def _values(store: Store, pod: Object, kind: str, name: str, ref: Object) -> dict[str, str]:
    plural = "secrets" if kind.startswith("secret") else "configmaps"
    found = store.find(plural, pod["metadata"]["namespace"], name)
    if found is None:
        if ref.get("optional"):
            return {}
        said = f'{plural.removesuffix("s")} "{name}" not found'
        raise NotReadyYet("CreateContainerConfigError", said)
    data = found.get("data") or {}
    if plural == "configmaps":
        return dict(data)
    return {k: base64.b64decode(v).decode() for k, v in data.items()}


def _value_from(store: Store, pod: Object, container: Object, source: Object) -> str | None:
    for kind in ("secretKeyRef", "configMapKeyRef"):
        if (ref := source.get(kind)) is not None:
            value = _values(store, pod, kind, ref["name"], ref).get(ref["key"])
            if value is None and not ref.get("optional"):
                said = f"couldn't find key {ref['key']} in {ref['name']}"
                raise NotReadyYet("CreateContainerConfigError", said)
            return value
    if "fieldRef" in source:
        return field_of(pod, source["fieldRef"]["fieldPath"])
    which, name = source["resourceFieldRef"]["resource"].split(".", 1)
    return str(int(quantity(container.get("resources", {}).get(which, {}).get(name, 0))))


def field_of(pod: Object, path: str) -> str:
    if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        return str(pod["metadata"].get(found[1], {}).get(found[2], ""))
    at: Any = pod
    for part in path.split("."):
        at = at.get(part, "") if isinstance(at, dict) else ""
    return str(at)


def mounts(store: Store, pod: Object, container: Object, folders: Folders) -> list[Mount]:
    volumes = {one["name"]: one for one in pod["spec"].get("volumes", [])}
    made = []
    for one in container.get("volumeMounts", []):
        volume = volumes[one["name"]]
        source, size = _source(store, pod, volume, folders)
        if source is not None and one.get("subPath"):
            source = source / one["subPath"]
            if not source.exists():
                source.mkdir(parents=True)
        made.append(Mount(source, one["mountPath"], bool(one.get("readOnly")), size))
    return made


class Folders:
    """Where volumes lie: `claims/NAMESPACE/NAME`, and `pods/UID/volumes/NAME`."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def claim(self, namespace: str, name: str) -> Path:
        return self.top / "claims" / namespace / name

    def pod(self, uid: str) -> Path:
        return self.top / "pods" / uid

    def hosts(self, uid: str) -> Path:
        return self.pod(uid) / "hosts"


def _source(store: Store, pod: Object, volume: Object, folders: Folders) -> tuple[Path | None, str]:
    meta = pod["metadata"]
    if (claim := volume.get("persistentVolumeClaim")) is not None:
        return folders.claim(meta["namespace"], claim["claimName"]), ""
    if (empty := volume.get("emptyDir")) is not None and empty.get("medium") == "Memory":
        return None, str(int(quantity(empty["sizeLimit"]))) if empty.get("sizeLimit") else ""
    own = folders.pod(meta["uid"]) / "volumes" / volume["name"]
    own.mkdir(parents=True, exist_ok=True)
    for kind, name in (("secret", "secretName"), ("configMap", "name")):
        if (ref := volume.get(kind)) is not None:
            values = _values(store, pod, kind, ref[name], ref)
            paths = {item["key"]: item["path"] for item in ref.get("items", [])}
            for key, value in values.items():
                if not paths or key in paths:
                    target = own / paths.get(key, key)
                    target.write_text(value)
                    target.chmod(ref.get("defaultMode", 0o644))
    for item in volume.get("downwardAPI", {}).get("items", []):
        (own / item["path"]).write_text(field_of(pod, item["fieldRef"]["fieldPath"]))
    return own, ""
