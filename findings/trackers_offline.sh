#!/usr/bin/env bash
# Where mlflow 3 keeps its numbers, and what comet_ml does without a key, without Boxcar.
#
# Seen on 2026-11-28 with mlflow 3.17.2 and comet_ml 3.58.8 (Python 3.11, Linux). Ends with 1 if any of it
# is otherwise now. What Boxcar makes of it: docs/job.md, "A tracker's offline logs".
#
# - mlflow without a URI: numbers are in ./mlflow.db. ./mlruns, where releases before 3 kept all, has
#   artifacts alone; and so it is, in the folder where it was started, with sqlite:///FILE.
# - mlflow refuses a folder as its URI (file:./mlruns, ./mlruns).
# - comet_ml.start() goes offline with COMET_START_ONLINE=0. comet_ml.Experiment() does not heed it, and
#   ends with an error that asks for a key.
#
# Takes Python 3.10 or newer as PYTHON, and 1 GB in a temporary folder.
set -euo pipefail
python="${PYTHON:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check mlflow==3.17.2 comet_ml==3.58.8
export HOME="$folder"
unset COMET_API_KEY COMET_START_ONLINE MLFLOW_TRACKING_URI
cd "$folder"

cat >with_mlflow.py <<'PY'
import mlflow
with mlflow.start_run():
    mlflow.log_metric("a_loss", 0.5, step=1)
    mlflow.log_text("text", "note.txt")
PY
cat >with_comet.py <<'PY'
import sys, comet_ml
experiment = getattr(comet_ml, sys.argv[1])()
experiment.log_metric("a_loss", 0.5, step=1)
experiment.end()
PY

faults=0
expect() { # WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then
    printf 'as seen before: %s: %s\n' "$1" "$3"
  else
    printf 'OTHERWISE NOW: %s: %s, was %s\n' "$1" "$3" "$2"
    faults=1
  fi
}
in_a_new_folder() { # WORDS; its code is in rc
  rm -rf "$folder/here"
  mkdir "$folder/here"
  cd "$folder/here"
  env "$@" </dev/null >"$folder/log" 2>&1 && rc=0 || rc=$?
}
holding() { grep -rl "$1" . | sort | tr '\n' ' '; }
said() { if grep -q "$1" "$folder/log"; then echo said; else echo 'not said'; fi; }
py="$folder/env/bin/python"

in_a_new_folder "$py" ../with_mlflow.py
expect 'mlflow without a URI: its exit code' 0 "$rc"
expect 'files with the number' './mlflow.db ' "$(holding a_loss)"
expect 'files below mlruns' note.txt "$(find mlruns -type f -printf '%f\n')"
for uri in file:./mlruns ./mlruns; do
  in_a_new_folder MLFLOW_TRACKING_URI="$uri" "$py" ../with_mlflow.py
  expect "mlflow with $uri: its exit code" 1 "$rc"
  expect 'that a folder is in maintenance mode' said "$(said 'maintenance mode')"
done
in_a_new_folder MLFLOW_TRACKING_URI="sqlite:///$folder/else.db" "$py" ../with_mlflow.py
expect 'mlflow with sqlite: its exit code' 0 "$rc"
expect 'artifacts lie where it was started' note.txt "$(find mlruns -type f -printf '%f\n')"

in_a_new_folder COMET_START_ONLINE=0 "$py" ../with_comet.py start
expect 'comet_ml.start with COMET_START_ONLINE=0' 0 "$rc"
expect 'archives in .cometml-runs' 1 "$(find .cometml-runs -name '*.zip' | wc -l)"
in_a_new_folder COMET_START_ONLINE=0 "$py" ../with_comet.py Experiment
expect 'comet_ml.Experiment with it' 1 "$rc"
expect 'that it wants a key' said "$(said 'requires an API key')"
exit "$faults"
