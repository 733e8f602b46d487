#!/usr/bin/env bash
# Runs one attempt at one cell; the agent calls it. `onbox attempt` holds the cell's lock, starts the
# launcher and records how it ended.
# Rendered for one run, never edited: a running shell reads its script by offset, so that an edit
# makes it run something else. Every value stands in single quotes and is never expanded:
# shellcheck disable=SC1003,SC1112,SC2016,SC2088
set -euo pipefail

run='tiny'
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
    data_dir='/srv/tiny/project/.boxcar/local/boxes/box-a'
    credentials='/srv/tiny/project/.boxcar/local/boxes/box-a/system/credentials-tiny.json'
    ;;
  'box-b')
    data_dir='/srv/tiny/project/.boxcar/local/boxes/box-b'
    credentials='/srv/tiny/project/.boxcar/local/boxes/box-b/system/credentials-tiny.json'
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
resume="$out"/'latest.json'

agent_python='/srv/boxcar/.venv/bin/python'
training_python='/srv/boxcar/.venv/bin/python'
launcher=("$training_python" -u)
words=('train.py' '--config' "$cfg" '--task' "$task" '--epochs' "$epochs" '--out' "$out")

cd -- "$code"
export BOXCAR_CREDENTIALS="$credentials"
export BOXCAR_RUN="$run"
export BOXCAR_CELL="$cell"
export BOXCAR_OUT="$out"
export BOXCAR_RESUME="$resume"
export BOXCAR_DATA_DIR="$data_dir"
python_path="${PYTHONPATH:-}"
export PYTHONPATH="$release"/'training-76999e6ab1e4.zip'"${python_path:+:$python_path}"
set -- "$agent_python" -I -S "$release"/'onbox-191e4518794f.pyz' attempt \
  --release "$release" --box "$box" --cell "$cell" --attempt "$attempt" \
  -- "${launcher[@]}" "${words[@]}"
# The job's environment comes last, and only "$@" is used after it: it may set any other name, also
# one of ours. Arrays go first, as bash exports none.
unset -v arguments gpus launcher words
export PYTHONUNBUFFERED=1
exec "$@"
