#!/usr/bin/env bash
# Runs one attempt at one cell; the agent calls it. `onbox attempt` holds the cell's lock, starts the
# launcher and records how it ended.
# Rendered for one run, never edited: a running shell reads its script by offset, so that an edit
# makes it run something else. Every value stands in single quotes and is never expanded:
# shellcheck disable=SC1003,SC1112,SC2016,SC2088
set -euo pipefail

run='digits'
if [ "$#" -ne 7 ]; then
  echo "usage: run_one.sh BOX CELL CFG TASK EPOCHS NPROC ATTEMPT" >&2
  exit 2
fi
release="$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

box="$1"
cell="$2"
attempt="$7"
# shellcheck disable=SC2034 # a command need not use them all
cfg="$3" task="$4" epochs="$5" nproc="$6"
case "$box" in
  'box-a')
    data_dir='/home/paperspace'
    credentials='/home/paperspace/.boxcar/credentials-digits.json'
    ;;
  'box-b')
    data_dir='/home/paperspace'
    credentials='/home/paperspace/.boxcar/credentials-digits.json'
    ;;
  *)
    printf 'run_one.sh: the run %s has no box %s\n' "$run" "$box" >&2
    exit 2
    ;;
esac
# As in boxcar/shared/paths.py, ScratchPaths.
scratch="$data_dir/boxcar/$run"
code="$scratch/code/$(basename -- "$release")"
out="$scratch/cells/$cell/out"
resume="$out"/'latest.pth'

agent_python="$BOXCAR_AGENT_PYTHON" # as run_queue.sh found it
training_python='python3'
# Standalone: each job has its own rendezvous on a free port. A platform may preset PET_NNODES.
# Else the ranks look for each other under the box's host name, which may lead nowhere.
export PET_LOCAL_ADDR=127.0.0.1
launcher=("$training_python" -m torch.distributed.run --standalone --nnodes 1
  --nproc-per-node "$nproc")
words=('train.py' '--config' "$cfg" '--epochs' "$epochs" '--out' "$out")
# All ranks are on this box. Else gloo looks for its host name, which may lead nowhere, or asks a name
# server that does not answer.
if [ -z "${GLOO_SOCKET_IFNAME:-}" ] && [ -e /sys/class/net/lo ]; then
  export GLOO_SOCKET_IFNAME=lo
fi

cd -- "$code"
export BOXCAR_CREDENTIALS="$credentials"
export BOXCAR_RUN="$run"
export BOXCAR_CELL="$cell"
export BOXCAR_OUT="$out"
export BOXCAR_RESUME="$resume"
export BOXCAR_DATA_DIR="$data_dir"
python_path="${PYTHONPATH:-}"
export PYTHONPATH="$release"/'training-1.zip'"${python_path:+:$python_path}"
set -- "$agent_python" -I -S "$release"/'onbox-1.pyz' attempt \
  --release "$release" --box "$box" --cell "$cell" --attempt "$attempt" \
  --ranks "$nproc" \
  -- "${launcher[@]}" "${words[@]}"
# The job's environment comes last, and only "$@" is used after it: it may set any other name, also
# one of ours. Arrays go first, as bash exports none.
unset -v arguments gpus launcher start words
export WANDB_MODE='offline'
export PYTHONUNBUFFERED=1
exec "$@"
