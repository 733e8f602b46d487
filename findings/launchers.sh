#!/usr/bin/env bash
# What accelerate and deepspeed do with a signal and with an exit code, without Boxcar.
#
# Seen on 2026-11-28 with accelerate 1.15.0 and deepspeed 0.19.8 (torch 2.13.0, no GPU, Python 3.11,
# Linux). Ends with 1 if any of it is otherwise now. What Boxcar makes of it: docs/launchers.md.
#
# - accelerate launch with one process: SIGTERM ends it at once, and the script hears of nothing.
#   A script's exit code (42) arrives as 1.
# - deepspeed (its runner): SIGTERM ends it at once, and nobody else. Where its own child, launch.py,
#   is killed, it ends with 0 while the ranks train on.
# - deepspeed's launch.py: a rank that SIGKILL ended arrives as 247.
#
# Takes Python 3.10 or newer as PYTHON, and 1 GB in a temporary folder; more than that where TORCH_INDEX does
# not name an index of torch's builds for the CPU (https://download.pytorch.org/whl/cpu).
set -euo pipefail
python="${PYTHON:-python3}"
folder="$(mktemp -d)"
started=()
end() {
  for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  for file in "$folder"/pid*; do
    [ ! -s "$file" ] || kill -KILL "$(cat "$file")" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap end EXIT

"$python" -m venv "$folder/env"
pip=("$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" torch==2.13.0 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
"${pip[@]}" accelerate==1.15.0 setuptools wheel numpy
# Its sdist looks for torch while it is built.
DS_BUILD_OPS=0 "${pip[@]}" --no-build-isolation deepspeed==0.19.8
export PATH="$folder/env/bin:$PATH" HOME="$folder"
cd "$folder"

cat >train.py <<'PY'
import os, signal, sys, time
rank = os.environ.get("RANK", "0")
if sys.argv[-1] != "wait":
    sys.exit(int(sys.argv[-1]))
signal.signal(signal.SIGTERM, lambda *_: open(f"told{rank}", "w").close())
with open(f"new{rank}", "w") as file:
    file.write(str(os.getpid()))
os.rename(f"new{rank}", f"pid{rank}")
time.sleep(600)
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
lives() { if kill -0 "$(cat "$1")" 2>/dev/null; then echo lives; else echo ended; fi; }
told() { if [ -e "$1" ]; then echo told; else echo 'not told'; fi; }
code_of() { local rc=0; wait "$1" || rc=$?; echo "$rc" >rc; }
# Its script trains; without a job of this shell's that is waited for.
begin() {
  rm -f pid? told?
  "$@" >>log 2>&1 &
  pid=$!
  started+=("$pid")
  for _ in $(seq 3000); do
    [ ! -s pid0 ] || break
    kill -0 "$pid" || { cat log; exit 1; }
    sleep 0.1
  done
}
forget() { for file in pid?; do kill -KILL "$(cat "$file")" 2>/dev/null || true; done; }

one=(accelerate launch --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no)
"${one[@]}" train.py 42 >>log 2>&1 && rc=0 || rc=$?
expect 'accelerate, 1 process, the script ends with 42' 1 "$rc"
begin "${one[@]}" train.py wait
kill -TERM "$pid"
code_of "$pid"
expect 'accelerate, 1 process, SIGTERM: its exit code' 143 "$(cat rc)"
expect 'accelerate, 1 process, SIGTERM: the script' 'lives, not told' "$(lives pid0), $(told told0)"
forget

runner=(deepspeed --num_gpus 2 train.py wait)
begin "${runner[@]}"
kill -TERM "$pid"
code_of "$pid"
expect 'deepspeed, SIGTERM to the runner: its exit code' 143 "$(cat rc)"
expect 'deepspeed, SIGTERM to the runner: rank 0' 'lives, not told' "$(lives pid0), $(told told0)"
launch="$(ps -o ppid= -p "$(cat pid0)" | tr -d ' ')"
kill -KILL "$launch"
forget

begin "${runner[@]}"
launch="$(ps -o ppid= -p "$(cat pid0)" | tr -d ' ')"
kill -KILL "$launch"
code_of "$pid"
expect 'deepspeed, launch.py is killed: the exit code of its runner' 0 "$(cat rc)"
expect 'deepspeed, launch.py is killed: rank 0' lives "$(lives pid0)"
forget

begin "${runner[@]}"
kill -KILL "$(cat pid0)"
code_of "$pid"
expect 'deepspeed, SIGKILL of a rank: the exit code' 247 "$(cat rc)"
forget
exit "$faults"
