"""A rented box ends itself: by the key that its provider gave it, through the provider's API.

The key reaches this box and nothing else of the account, as far as the provider keeps its word. It
is read from the first process's environment (a login has it not), goes into the environment of one
child, and stands in no file, word or log. The call is made a moment after the answer, so that the
laptop has heard that it began before the box is gone. What the provider says is kept and believed
by nobody: the laptop looks for silence, or into the provider's list.

Whether a pod's key may call RunPod's v2 is not documented, and runpodctl speaks the older API: v2
is tried first, then runpodctl. Featurize publishes no API: what is called is what its own client
calls (`featurize instance release` of PyPI 0.0.27), which asks no matter whether it knows the id.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.files import codec
from boxcar.shared.files.own_end import OwnEnd, read_own_end
from boxcar.shared.process import exit_codes
from boxcar.shared.record import dataclass, replace
from boxcar.shared.wire.box_asks import DESTROY, FEATURIZE, RUNPOD, VAST

# Until then the answer has reached the laptop.
PAUSE_S = 2.0
TIMEOUT_S = 30.0
_MOST_SAID = 200
_AGENT = {"User-Agent": "boxcar", "Accept": "application/json"}


@dataclass(frozen=True)
class Own:
    """Where a provider puts a box's id and key, and where its API is unless `url` says otherwise
    (a variable as the provider's own client reads it). `key_file`: where the key lies on the box
    instead; there a login has the variables, too, and may not be root.
    """

    id: str
    key: str
    url: str
    base: str
    key_file: str = ""


OWN = {
    VAST: Own("CONTAINER_ID", "CONTAINER_API_KEY", "VAST_URL", "https://console.vast.ai"),
    RUNPOD: Own("RUNPOD_POD_ID", "RUNPOD_API_KEY", "RUNPOD_REST_URL", "https://api.runpod.io"),
    FEATURIZE: Own(
        *("FEATURIZE_INSTANCE_ID", "FEATURIZE_API_TOKEN", "", "https://featurize.cn/bus/api/v1"),
        key_file="/etc/featurize_token.txt",
    ),
}


def first_environment(path: Path = Path("/proc/1/environ")) -> dict[str, str]:
    """That of the box's first process, which has what the provider set; empty where it may not be
    read.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    pairs = [os.fsdecode(one).partition("=") for one in data.split(b"\0")]
    return {name: value for name, _equals, value in pairs if name}


def given_by(provider: str) -> dict[str, str]:
    """What `provider` gave this box, by the names in OWN: a key from a file under its variable."""
    names, found = OWN[provider], first_environment()
    if not names.key_file:
        return found
    here = {name: os.environ[name] for name in (names.id, names.key) if name in os.environ}
    with contextlib.suppress(OSError, UnicodeError):
        here.setdefault(names.key, Path(names.key_file).read_text("utf-8").strip())
    return here | found


def begin_own_end(path: Path, provider: str, verb: str, found: Mapping[str, str]) -> str:
    """Start the child that calls the provider, with what it needs of `found`; since when (UTC)."""
    begun_at = keep_begin(path, verb)
    start_child(["end-itself", str(path), provider, verb], of_provider(provider, found))
    return begun_at


def keep_begin(path: Path, verb: str) -> str:
    """Written before the call."""
    begun_at = timestamp.utc_now()
    atomic.make_folder(path.parent)
    keep_own_end(path, OwnEnd(verb, begun_at))
    return begun_at


def of_provider(provider: str, found: Mapping[str, str]) -> dict[str, str]:
    """What a call needs of the box's environment."""
    names = OWN[provider]
    wanted = (names.id, names.key, names.url, "PATH", "HOME")
    return {name: found[name] for name in wanted if name in found}


def start_child(words: list[str], environ: Mapping[str, str]) -> None:
    """`onbox VERB ...`, in a session of its own: it outlives this answer, and its connection."""
    nowhere = subprocess.DEVNULL
    subprocess.Popen(
        [sys.executable, "-I", "-S", sys.argv[0], *words],
        env=dict(environ),
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
    )


# --- the child


def call_provider(path: Path, provider: str, verb: str, environ: Mapping[str, str]) -> int:
    """Call it until one way is taken, and keep at `path` what was said."""
    time.sleep(PAUSE_S)
    names, told = OWN[provider], read_own_end(path) or OwnEnd(verb, timestamp.utc_now())
    id_, key = environ[names.id], environ[names.key]
    base = environ.get(names.url, names.base).rstrip("/")
    for by, way in _ways(provider, verb, base, id_, key).items():
        is_taken, said = way()
        # An answer may repeat what was sent.
        said = " ".join(said.replace(key, "…").split())[:_MOST_SAID]
        told = replace(told, said="; ".join(filter(None, (told.said, f"{by}: {said}"))))
        if is_taken:
            keep_own_end(path, replace(told, by=by, is_over=True))
            return exit_codes.DONE
    keep_own_end(path, replace(told, is_over=True))
    return exit_codes.FAILED


def keep_own_end(path: Path, record: OwnEnd) -> None:
    atomic.write_whole(path, codec.to_document(record))


Way = Callable[[], tuple[bool, str]]


def _ways(provider: str, verb: str, base: str, id_: str, key: str) -> dict[str, Way]:
    if provider == VAST:
        url, is_end = f"{base}/api/v0/instances/{id_}/", verb == DESTROY
        body = None if is_end else {"state": "stopped"}
        method, bearer = "DELETE" if is_end else "PUT", _bearer(key)
        return {"vast v0": lambda: _request(method, url, bearer, body)}
    if provider == FEATURIZE:
        if verb != DESTROY:
            return {"featurize": lambda: (False, "has no stop")}
        url = f"{base}/virtual_machine/{id_}/release"
        return {"featurize": lambda: _request("POST", url, {"Token": key}, None, _is_zero)}
    action = "terminate" if verb == DESTROY else "stop"
    url = f"{base}/v2/pods/{id_}/action"
    words = ["runpodctl", "pod", "delete" if verb == DESTROY else "stop", id_]
    return {
        "runpod v2": lambda: _request("POST", url, _bearer(key), {"action": action}),
        "runpodctl": lambda: _run(words),
    }


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _request(
    method: str,
    url: str,
    key: Mapping[str, str],
    body: Mapping[str, str] | None,
    is_yes: Callable[[str], bool] = lambda text: '"success":false' not in text.replace(" ", ""),
) -> tuple[bool, str]:
    """`is_yes`: of a 200. vast says `success: false` with it where it did nothing."""
    import requests

    if not url.startswith(("https://", "http://127.0.0.1:")):
        return False, "no https"
    try:
        with requests.request(
            method,
            url,
            json=body,
            headers={**_AGENT, **key},
            timeout=TIMEOUT_S,
            allow_redirects=False,
            stream=True,
        ) as response:
            text = response.raw.read(2000, decode_content=True).decode("utf-8", "replace")
            return response.ok and is_yes(text), f"{response.status_code} {text}"
    except Exception as error:
        # Whatever it is, its words may hold the URL: its type alone.
        return False, type(error).__name__


def _is_zero(text: str) -> bool:
    """Featurize answers 200 in any case; its `status` is 0 for a yes."""
    try:
        said = json.loads(text)
    except ValueError:
        return False
    return isinstance(said, dict) and said.get("status") == 0


def _run(words: list[str]) -> tuple[bool, str]:
    """The provider's own program, which has its key from the environment."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, type(error).__name__
    return done.returncode == 0, f"{done.returncode} {done.stdout[-500:]} {done.stderr[-500:]}"
