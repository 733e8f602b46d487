#!/usr/bin/env bash
# Kaggle's client, freshly installed by itself, without Boxcar.
#
# Seen on 2026-11-29 with kaggle 2.2.5 (Python 3.11, Linux). Ends with 1 if any of it is otherwise now.
#
# - Nothing that it depends on brings the package six, which it imports. So after `pip install kaggle` alone
#   every command ends with ModuleNotFoundError. `pip install kaggle six` helps.
# - With six there, a title whose slug is not the id of its kernel is a warning on stdout, and no error: the
#   push goes on under that id.
#
# Takes Python 3.10 or newer as PYTHON, and 100 MB in a temporary folder. No account is used, nothing is sent.
set -euo pipefail
python="${PYTHON:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/env"
pip=("$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" kaggle==2.2.5
export PATH="$folder/env/bin:$PATH" HOME="$folder" KAGGLE_USERNAME=somebody KAGGLE_KEY=none
cd "$folder"

faults=0
expect() { # WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then
    printf 'as seen before: %s: %s\n' "$1" "$3"
  else
    printf 'OTHERWISE NOW: %s: %s, was %s\n' "$1" "$3" "$2"
    faults=1
  fi
}

last="$(python -c 'import kaggle' 2>&1 | tail -n 1 || true)"
expect 'import kaggle, installed alone' "ModuleNotFoundError: No module named 'six'" "$last"

"${pip[@]}" six
mkdir kernel
printf 'print(1)\n' >kernel/run.py
cat >kernel/kernel-metadata.json <<'JSON'
{"id": "somebody/one-name", "title": "Another name", "code_file": "run.py", "language": "python",
 "kernel_type": "script", "dataset_sources": [], "kernel_sources": []}
JSON
cat >push.py <<'PY'
from kaggle.api.kaggle_api_extended import KaggleApi


class Service:
    """Takes what the client would send, and says what it was."""

    def __getattr__(self, name):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def save_kernel(self, request):
        print("sent", request.slug)
        return request


api = KaggleApi()
api.config_values = {"username": "somebody"}
api.build_kaggle_client = Service
api.kernels_push("kernel")
PY
said="$(python push.py 2>/dev/null)"
expect 'a title that is not the id' 'warned, sent somebody/one-name' \
  "$(grep -q 'does not resolve' <<<"$said" && printf 'warned, ')$(tail -n 1 <<<"$said")"
exit "$faults"
