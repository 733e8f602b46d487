#!/usr/bin/env bash
# Runs one attempt at one cell, as the document SPEC says it: boxcar.attempt-spec/1. The agent has
# written it and calls this; `onbox attempt` holds the cell's lock, starts the launcher and records
# how it ended.
# Rendered for one run, never edited: a running shell reads its script by offset, so that an edit
# makes it run something else. Every value stands in single quotes and is never expanded:
# shellcheck disable=SC1003,SC1112,SC2016,SC2088
set -euo pipefail

if [ "$#" -ne 1 ]; then
  echo "run_one.sh: usage: run_one.sh SPEC. An agent of another Boxcar has called it with $# words, \
and nothing was run: launch again" >&2
  exit 2
fi
release="$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

agent_python="$BOXCAR_AGENT_PYTHON" # as run_queue.sh found it
exec "$agent_python" -I -S "$release"/program/onbox/begin.py attempt "$1"
