#!/usr/bin/env bash
# Starts the agent of one queue on its box.
# Rendered for one run, never edited: a running shell reads its script by offset, so that an edit
# makes it run something else. Every value stands in single quotes and is never expanded:
# shellcheck disable=SC1003,SC1112,SC2016,SC2088
set -euo pipefail

run='digits'
if [ "$#" -lt 1 ] || [ "$#" -gt 3 ]; then
  echo "usage: run_queue.sh QUEUE [START_INDEX [START_CELL]]" >&2
  exit 2
fi
release="$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

queue="$1"
start_index="${2:-0}"
start_cell="${3:-}"
case "$queue" in
  'queue_1') credentials='/root/.boxcar/credentials-digits.json' ;;
  'queue_2') credentials='/root/.boxcar/credentials-digits.json' ;;
  *)
    printf 'run_queue.sh: the run %s has no queue %s\n' "$run" "$queue" >&2
    exit 2
    ;;
esac
export BOXCAR_CREDENTIALS="$credentials"
export PYTHONUNBUFFERED=1

profile='kubernetes'
is_new_enough='import sys; sys.exit(sys.version_info < (3, 10))'
# The first one that is new enough. The training's own may be older.
agent_python=python3
for candidate in 'python3.13' 'python3.12' 'python3.11' 'python3.10' 'python3' 'python' '/root/miniconda3/bin/python' '/opt/conda/bin/python' "$HOME"/'miniconda3/bin/python'; do
  if "$candidate" -I -S -c "$is_new_enough" 2>/dev/null; then
    agent_python="$candidate"
    break
  fi
done
export BOXCAR_AGENT_PYTHON="$agent_python"
if ! command -v -- "$agent_python" >/dev/null; then
  printf 'run_queue.sh: there is no program %s on this box; ' "$agent_python" >&2
  printf 'name a Python >= 3.10 for the agent in the profile %s\n' "$profile" >&2
  exit 127
fi
if ! "$agent_python" -I -S -c "$is_new_enough" 2>/dev/null; then
  printf 'run_queue.sh: %s is %s; ' "$agent_python" "$("$agent_python" --version 2>&1)" >&2
  printf 'name a Python >= 3.10 for the agent in the profile %s\n' "$profile" >&2
  exit 127
fi
if [ -n "${BOXCAR_FOLLOWS:-}" ]; then
  # Another pod of the queue, for cells that take several.
  exec "$agent_python" -I -S "$release"/'onbox-1.pyz' follow --release "$release" --queue "$queue"
fi
exec "$agent_python" -I -S "$release"/'onbox-1.pyz' agent \
  --release "$release" --queue "$queue" --start-index "$start_index" \
  ${start_cell:+--start-cell "$start_cell"}
