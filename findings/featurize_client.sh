#!/usr/bin/env bash
# The client that Featurize publishes on PyPI, without Boxcar, against a server of this script.
#
# Seen on 2026-11-29 with featurize 0.0.27 (March 2024) and pip 23.2.1. Ends with 1 if any of it is otherwise now.
#
# - `pip install featurize` ends with 1: it depends on a package that is on GitHub only, which pip refuses of a package
#   from an index. So a page that says "pip install featurize" is of no help on a box that lacks it.
# - `featurize instance release` takes no id. Without FEATURIZE_INSTANCE_ID it asks for the release of `None`, and does
#   not look whether it knows one, as its commands for ports do.
#
# Takes Python 3.10 or newer as PYTHON, and 40 MB in a temporary folder.
set -euo pipefail
python="${PYTHON:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

faults=0
expect() { # WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then
    printf 'as seen before: %s: %s\n' "$1" "$3"
  else
    printf 'OTHERWISE NOW: %s: %s, was %s\n' "$1" "$3" "$2"
    faults=1
  fi
}

"$python" -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip --disable-pip-version-check)
"${pip[@]}" install --quiet --no-cache-dir featurize==0.0.27 >"$folder/said" 2>&1 && rc=0 || rc=$?
refused="$(tr "\n" " " <"$folder/said" | grep -c "cannot depend on packages which are not also hosted" || true)"
expect 'pip install featurize: exit code, refused' '1, 1' "$rc, $refused"

"${pip[@]}" install --quiet --no-deps featurize==0.0.27
"${pip[@]}" install --quiet requests tqdm
cat >"$folder/release.py" <<'PYTHON'
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.command, self.path)
        data = b'{"status": 0, "message": "", "data": {}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
from featurize import create_client_from_env
from featurize.resource import Resource

Resource.base = f"http://127.0.0.1:{server.server_port}"
create_client_from_env().instance.release()
PYTHON
release() { env "$@" FEATURIZE_API_TOKEN=t "$folder/venv/bin/python" "$folder/release.py"; }
expect 'release with an id' 'POST /virtual_machine/f0a1/release' "$(release FEATURIZE_INSTANCE_ID=f0a1)"
expect 'release without an id' 'POST /virtual_machine/None/release' "$(release -u FEATURIZE_INSTANCE_ID)"
exit "$faults"
