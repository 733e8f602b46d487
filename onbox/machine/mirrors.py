"""Whether the mirrors that a training would use answer with what is asked of them, from this box.

Each is asked by the training's own Python, after the profile's hook and with the job's environment,
so by the route that will be used: of pip's index one page and the head of one wheel, of Hugging
Face's endpoint one small file, of conda's alias the head of one list. A login page of a hotel, or a
mirror that moved, answers 200 with HTML: that is dead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxcar.shared.record import dataclass
from boxcar.shared.sentence import Sentence, mark
from onbox.machine import interpreter

PIP, HUB, CONDA = "PIP_INDEX_URL", "HF_ENDPOINT", "CONDA_CHANNEL_ALIAS"
# Where pip goes without one.
PIP_ITSELF = "https://pypi.org/simple"
TIMEOUT_S = 40.0

# For any Python 3: a training's interpreter may be older than ours.
_TRY = """\
import base64, json, os, re, subprocess, sys, threading
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import Request, urlopen

def get(url, most, begins_only=False):
    head = {"User-Agent": "pip/24.0", "Accept": "text/html, */*"}
    if begins_only:
        head["Range"] = "bytes=0-%d" % (most - 1)
    user = urlsplit(url).netloc.rpartition("@")[0]
    if user:
        head["Authorization"] = "Basic " + base64.b64encode(unquote(user).encode()).decode()
        url = url.replace(user + "@", "", 1)
    with urlopen(Request(url, headers=head), timeout=8) as answer:
        return answer.read(most)

def pip(url):
    page = get(url.rstrip("/") + "/pip/", 4 << 20).decode("utf-8", "replace")
    wheels = re.findall(r'href="([^"]+[.]whl[^"]*)"', page)
    if not wheels:
        return "no wheel"
    data = get(urljoin(url.rstrip("/") + "/pip/", wheels[-1].replace("&amp;", "&")), 4, True)
    return None if data[:2] == b"PK" else what(data)

def hub(url):
    data = get(url.rstrip("/") + "/openai-community/gpt2/resolve/main/config.json", 4096)
    return None if data.lstrip()[:1] == b"{" else what(data)

def conda(url):
    data = get(url.rstrip("/") + "/conda-forge/noarch/current_repodata.json", 64, True)
    return None if data.lstrip()[:1] == b"{" else what(data)

def what(data):
    return "html" if data.lstrip()[:1] == b"<" else "other"

def index():
    found = os.environ.get("PIP_INDEX_URL")
    if found or "PIP_INDEX_URL" not in sys.argv:
        return found
    words = [sys.executable, "-m", "pip", "config", "list"]
    try:
        said = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=15)
    except Exception:
        return None
    # Not `config get`, which does not find what PIP_CONFIG_FILE says.
    told = dict(re.findall(r"(?m)^(\\w+)[.]index-url='([^']+)'", said.stdout.decode()))
    return told.get("install") or told.get("global")

def shown(url):
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))

def look(name, url, ask):
    try:
        problem = ask(url)
    except Exception as error:
        why = error if hasattr(error, "code") else getattr(error, "reason", None) or error
        problem = "%s: %s" % (type(error).__name__, why)
    found.append({"name": name, "url": shown(url), "problem": problem and problem[:200]})

found = []
asked = [("PIP_INDEX_URL", index(), pip), ("HF_ENDPOINT", os.environ.get("HF_ENDPOINT"), hub),
         ("CONDA_CHANNEL_ALIAS", os.environ.get("CONDA_CHANNEL_ALIAS"), conda)]
threads = [threading.Thread(target=look, args=one, daemon=True) for one in asked if one[1]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(18)
for name, url, _ask in asked:
    if url and name not in [one["name"] for one in found]:
        found.append({"name": name, "url": shown(url), "problem": "silent"})
print(json.dumps({"mirrors": sorted(found, key=lambda one: one["name"])}))
"""

# By the words of the program above; what it says beside them are an error's own.
_PROBLEMS = {
    "no wheel": mark("its page of pip names no wheel"),
    "html": mark("it answers HTML where a file was asked"),
    "other": mark("it answers something else than the file that was asked"),
    "silent": mark("no answer in 18 s"),
}


@dataclass(frozen=True)
class Tried:
    """`problem` None: it answers. No password of the `url` is in it."""

    name: str
    url: str
    problem: str | None


def try_mirrors(
    python: str, hook: str, environ: Mapping[str, str], *, has_pip: bool
) -> tuple[Tried, ...]:
    """Those that this environment names, and pip's own where pip is used. Empty where the Python
    cannot be asked: nobody knows then.
    """
    words = (PIP,) if has_pip else ()
    found = interpreter.ask(python, hook, _TRY, TIMEOUT_S, words, environ=environ)
    rows: Any = found.get("mirrors", ())
    return tuple(Tried(row["name"], row["url"], _said(row["problem"])) for row in rows)


def _said(problem: str | None) -> str | None:
    return Sentence(_PROBLEMS[problem]) if problem in _PROBLEMS else problem


def without_dead(environ: Mapping[str, str], tried: tuple[Tried, ...]) -> dict[str, str]:
    """The same environment in which no dead mirror is used."""
    dead = {one.name for one in tried if one.problem}
    found = {name: value for name, value in environ.items() if name not in dead}
    return found | ({PIP: PIP_ITSELF} if PIP in dead else {})
