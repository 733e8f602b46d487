"""Pages in a real browser, without a screen: one Chromium for all pages of a test.

Each page stands in frames of several widths on one origin, where a script of ours can measure it.
What a page asks for is seen by the server, and what the console says by Chromium's own log.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTHS = (390, 1400)
_DRIVER = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body><script>
const frames = FRAMES, seen = [];
let left = frames.length;
for (const [name, width] of frames) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 900px; border: 0`;
  frame.onload = () => {
    const page = frame.contentDocument;
    page.querySelectorAll("details").forEach((one) => { one.open = true; });
    const root = page.documentElement, tables = [...page.querySelectorAll(".wide")];
    seen.push({
      name, width, needs: root.scrollWidth, has: root.clientWidth,
      images: page.images.length, scripts: page.scripts.length,
      tables: tables.map((one) => getComputedStyle(one).overflowX),
    });
    if (--left) return;
    document.body.innerHTML = "<pre id=seen></pre>";
    document.getElementById("seen").textContent = JSON.stringify(seen);
  };
  frame.src = "/" + name;
  document.body.append(frame);
}
</script>"""

_USE = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body><script>
const frame = document.createElement("iframe");
frame.style = "width: WIDTHpx; height: 900px; border: 0";
frame.onload = async () => {
  const doc = frame.contentDocument, one = (what) => doc.querySelector(what);
  const texts = (what) => [...doc.querySelectorAll(what)].map((found) => found.textContent);
  const key = (key) => doc.activeElement.dispatchEvent(
    new frame.contentWindow.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const until = async (isSo) => { while (!isSo()) await new Promise((go) => setTimeout(go, 50)); };
  const seen = await (async () => { SCRIPT })();
  document.body.innerHTML = "<pre id=seen></pre>";
  document.getElementById("seen").textContent = JSON.stringify(seen);
};
frame.src = "/page";
document.body.append(frame);
</script>"""


@dataclass(frozen=True)
class Seen:
    """`frames`: what was measured; `asked`: each path that was asked for; `console`: its lines."""

    frames: list[dict[str, Any]]
    asked: list[str]
    console: list[str]


def look(pages: Mapping[str, str], profile: Path) -> Seen:
    """Skips where there is no Chromium."""
    frames = [(name, width) for name in pages for width in WIDTHS]
    served = dict(pages) | {"": _DRIVER.replace("FRAMES", json.dumps(frames))}
    asked: list[str] = []

    def answer(name: str) -> str | None:
        asked.append(name)
        return served.get(name)

    dom, console = _shown(answer, profile, for_ms=4000)
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[-500:]
    return Seen(json.loads(html.unescape(found.group(1))), asked, console)


def use(answer: Callable[[str], str | None], script: str, profile: Path, width: int = 1000) -> Any:
    """What a script returns that uses a page as a person does: `doc` is its document, `key`
    presses a key where the focus is, `until` waits for a condition. The page is asked for as
    "page", with whatever its own script puts behind it.
    """
    driver = _USE.replace("WIDTH", str(width)).replace("SCRIPT", script)

    def answered(name: str) -> str | None:
        return answer(name) if name.startswith("page") else driver if not name else None

    dom, console = _shown(answered, profile, for_ms=20_000)
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL)
    assert found and not console, (dom[-500:], console)
    return json.loads(html.unescape(found.group(1)))


def after(answers: Iterator[str | None], profile: Path, *, for_ms: int) -> str:
    """The document of a page that was open for so long by the browser's own clock. Each request
    for it gets the next answer, None the word that there is none.
    """
    return _shown(lambda name: next(answers, None), profile, for_ms=for_ms)[0]


def _shown(
    answer: Callable[[str], str | None], profile: Path, *, for_ms: int
) -> tuple[str, list[str]]:
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium on this machine")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = answer(self.path.lstrip("/"))
            self.send_response(404 if text is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        words = [program, "--headless", "--disable-gpu", *sandbox, f"--user-data-dir={profile}"]
        words += ["--enable-logging=stderr", f"--virtual-time-budget={for_ms}", "--dump-dom"]
        words.append(f"http://127.0.0.1:{server.server_address[1]}/")
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=LIMIT_S)
        server.shutdown()
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
