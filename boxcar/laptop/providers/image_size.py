"""How much a host has to pull before a box of this image can start, as its registry says.

Source: the OCI distribution specification 1.1, and Docker's page on tokens of a registry. Nobody is
logged in: an image that is not public has no size here. No answer is an error.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

import requests

_TIMEOUT_S = 10.0
_MOST_BYTES = 4 * 1024 * 1024
_DOCKER = "registry-1.docker.io"
_KINDS = ", ".join(
    f"application/vnd.{name}+json"
    for name in (
        "oci.image.index.v1",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.list.v2",
        "docker.distribution.manifest.v2",
    )
)
# Of an answer that is none.
_NONSENSE = (ValueError, LookupError, TypeError, StopIteration)
_CHALLENGE = re.compile(r'(realm|service|scope)="([^"]*)"')


def image_bytes(image: str) -> int | None:
    """All layers as they travel, for linux on amd64. None where nobody says.

    Example: image_bytes("pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime") is some 3.5e9.
    """
    base, reference = _address(image)
    session = requests.Session()
    session.headers["Accept"] = _KINDS
    session.auth = lambda request: request  # and not a login of ~/.netrc
    with contextlib.suppress(requests.RequestException, *_NONSENSE):
        found = _manifest(session, base, reference)
        if "manifests" in found:
            found = _manifest(session, base, _of_linux(found))
        return sum(int(layer["size"]) for layer in found["layers"]) or None
    return None


def _address(image: str) -> tuple[str, str]:
    """The repository's address at its registry, and the digest or tag."""
    name, _at, digest = image.partition("@")
    head, slash, rest = name.partition("/")
    is_host = bool(slash) and ("." in head or ":" in head or head == "localhost")
    host, name = (head, rest) if is_host else (_DOCKER, name)
    name, _colon, tag = name.partition(":")
    if host == _DOCKER and "/" not in name:
        name = f"library/{name}"
    scheme = "http" if host.startswith("127.0.0.1:") else "https"
    return f"{scheme}://{host}/v2/{name}", digest or tag or "latest"


def _manifest(session: requests.Session, base: str, reference: str) -> Mapping[str, Any]:
    url = f"{base}/manifests/{reference}"
    with session.get(url, timeout=_TIMEOUT_S, stream=True) as response:
        challenge = response.headers.get("WWW-Authenticate", "")
        if response.status_code == 401 and challenge.startswith("Bearer "):
            _log_in(session, dict(_CHALLENGE.findall(challenge)))
        else:
            return _document(response)
    with session.get(url, timeout=_TIMEOUT_S, stream=True) as response:
        return _document(response)


def _log_in(session: requests.Session, asked: dict[str, str]) -> None:
    """As nobody: public images want a token all the same."""
    realm = asked.pop("realm")
    if not realm.startswith(("https://", "http://127.0.0.1:")):
        raise ValueError(realm)
    with session.get(realm, params=asked, timeout=_TIMEOUT_S, stream=True) as response:
        said = _document(response)
    session.headers["Authorization"] = f"Bearer {said.get('token') or said['access_token']}"


def _document(response: requests.Response) -> Mapping[str, Any]:
    response.raise_for_status()
    text = response.raw.read(_MOST_BYTES, decode_content=True)
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(response.url)
    return found


def _of_linux(index: Mapping[str, Any]) -> str:
    wanted = {"os": "linux", "architecture": "amd64"}
    return next(
        str(one["digest"])
        for one in index["manifests"]
        if wanted.items() <= one.get("platform", {}).items()
    )
