"""A program that says and serves what TensorBoard does, where no TensorBoard is installed."""

from __future__ import annotations

from pathlib import Path

_MAIN = """
import http.server, os, sys
folder = sys.argv[sys.argv.index("--logdir") + 1]
names = sorted(os.path.relpath(here, folder)
               for here, _, files in os.walk(folder, followlinks=True) if files)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(" ".join(names).encode())
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print("a warning of some library")
print("TensorBoard 2.21.0 at http://127.0.0.1:%d/ (Press CTRL+C to quit)" % server.server_port)
sys.stdout.flush()
server.serve_forever()
"""


def install(site: Path) -> Path:
    """Below `site`, which belongs into PYTHONPATH."""
    package = site / "tensorboard"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "main.py").write_text(_MAIN)
    return site


def write_event(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.out.tfevents.1.host").write_bytes(b"\0")
