#!/usr/bin/env bash
# Runs one attempt at one cell; the agent calls it. `onbox attempt` holds the cell's lock, starts the
# launcher and records how it ended.
# Rendered for one run, never edited: a running shell reads its script by offset, so that an edit
# makes it run something else. Every value stands in single quotes and is never expanded:
# shellcheck disable=SC1003,SC1112,SC2016,SC2088
# boxcar: may-wait. It may be started while the cell before runs, and then waits in its last line for
# its turn. Without these two lines it is not, for what of yours must not run before its cell.
set -euo pipefail

run='digits'
if [ "$#" -lt 9 ]; then
  echo "usage: run_one.sh BOX CELL ATTEMPT LAUNCHER RANKS TIME_S WORKDIR RESUME \
[NAME=VALUE ...] -- WORD ..." >&2
  exit 2
fi
# Without another program here and below: each that is started stands in the gap between two cells.
release="${BASH_SOURCE[0]%/*}"
case "$release" in
  /*) ;;
  "${BASH_SOURCE[0]}") release="$PWD" ;;
  *) release="$PWD/$release" ;;
esac

box="$1" cell="$2" attempt="$3" launched_by="$4" ranks="$5" time_s="$6" workdir="$7" resume="$8"
shift 8
options=(--launcher "$launched_by" --ranks "$ranks" --time "$time_s")
# The cell's own environment, up to the --. Its words are what is left in "$@".
visible="${CUDA_VISIBLE_DEVICES:-}"
nodes=1
while [ "$1" != -- ]; do
  options+=(--env "$1")
  case "$1" in CUDA_VISIBLE_DEVICES=*) visible="${1#*=}" ;; esac
  case "$1" in BOXCAR_NODES=*) nodes="${1#*=}" ;; esac
  shift
done
shift
case "$box" in
  'a')
    data_dir='/scratch/me'
    credentials="$HOME"/'.boxcar/credentials-digits.json'
    ;;
  *)
    printf 'run_one.sh: the run %s has no box %s\n' "$run" "$box" >&2
    exit 2
    ;;
esac
# As in boxcar/shared/paths.py, ScratchPaths.
scratch="$data_dir/boxcar/$run"
code="$scratch/code/${release##*/}"
out="$scratch/cells/$cell/out"

agent_python='/scratch/me/python'
training_python='/scratch/me/python'
case "$launched_by" in
  torchrun)
    if [ "$nodes" -gt 1 ]; then
      # srun starts a torchrun on each node, and these meet at this one. Its job's name, by array and
      # index: the job id alone of an array's last task means all of its tasks.
      task="${SLURM_ARRAY_JOB_ID:-${SLURM_JOB_ID:-}}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"
      if [ "$nodes" -gt "${SLURM_JOB_NUM_NODES:-1}" ]; then
        printf 'run_one.sh: %s takes %s nodes, and its job %s has %s: once that has ended, launch again\n' \
          "$cell" "$nodes" "$task" "${SLURM_JOB_NUM_NODES:-1}" >&2
        exit 2
      fi
      # What an srun that was killed has left on the other nodes would train beside this attempt.
      for step in $(squeue -h -s -j "$task" -o %i); do
        case "$step" in *.[0-9]*) scancel "$step" ;; esac
      done
      port="$("$training_python" -I -c \
        'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')"
      # Which node has the store is said, because a node may have other names than its host's.
      # shellcheck disable=SC2016
      start='export PET_RDZV_CONF=is_host=0
[ "$SLURMD_NODENAME" != "$0" ] || PET_RDZV_CONF=is_host=1
exec "$@"'
      # srun that is told to end kills the step; a signal to the step leaves it time to save.
      # shellcheck disable=SC2016
      around='trap "scancel --signal=TERM $0" TERM
"$@" &
while kill -0 "$!" 2>/dev/null; do wait "$!"; done
wait "$!"'
      launcher=(bash -c "$around" "$task" srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --kill-on-bad-exit=1
        --export=ALL --mpi=none --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}"
        bash -c "$start" "${SLURMD_NODENAME:-}" "$training_python" -m torch.distributed.run
        --nnodes "$nodes" --nproc-per-node "$ranks" --rdzv-backend c10d
        --rdzv-endpoint "$(uname -n):$port" --rdzv-id "$task.$cell.$attempt")
    else
    # Standalone: each job has its own rendezvous on a free port. A platform may preset PET_NNODES.
    # Else the ranks look for each other under the box's host name, which may lead nowhere.
    export PET_LOCAL_ADDR=127.0.0.1
    launcher=("$training_python" -m torch.distributed.run --standalone --nnodes 1
      --nproc-per-node "$ranks")
    fi
    ;;
  accelerate)
    # A config of its own: a default_config.yaml in the box's home would decide what is not said here.
    # Port 0: a free one.
    config="$scratch/cells/$cell/accelerate.yaml"
    # To start one process, it becomes that. Else the script would hear of no signal, and its exit
    # code would be lost.
    start='import os, sys
from accelerate.commands import launch
def become(args):
    asked = args.num_processes or 1
    if asked > 1:
        sys.exit(f"accelerate would start 1 process, {asked} were asked: distributed_type in {args.config_file}")
    command, env = launch.prepare_simple_launcher_cmd_env(args)
    os.execvpe(command[0], command, env)
if hasattr(launch, "prepare_simple_launcher_cmd_env"):
    launch.simple_launcher = become
'
    kind=NO
    if [ "$ranks" -gt 1 ]; then
      kind=MULTI_GPU
      # Without a GPU its ranks train each for itself, unless they are told that it is the CPU's turn.
      start+='import torch
if not getattr(torch, "accelerator", torch.cuda).is_available():
    os.environ.setdefault("ACCELERATE_USE_CPU", "true")
'
    fi
    [ -d "${config%/*}" ] || mkdir -p -- "${config%/*}" # the agent has made it
    printf 'compute_environment: LOCAL_MACHINE\ndistributed_type: "%s"\n' "$kind" >"$config"
    launcher=("$training_python" -c "${start}launch.main()" --config_file "$config" --num_machines 1
      --num_processes "$ranks" --main_process_port 0)
    ;;
  deepspeed)
    # Without its runner, which hands no signal on and leaves with 0 where its own child was killed.
    # A free port, and which GPUs: the first ones, or those that are visible, by whatever name.
    found="$("$training_python" -I -c 'import base64, json, socket, sys
free = socket.socket()
free.bind(("127.0.0.1", 0))
ranks, visible = int(sys.argv[1]), sys.argv[2]
gpus = visible.split(",")[:ranks] if visible else list(range(ranks))
world = json.dumps({"localhost": gpus}).encode()
print(free.getsockname()[1], base64.urlsafe_b64encode(world).decode())' "$ranks" "$visible")"
    launcher=("$training_python" -u -m deepspeed.launcher.launch --world_info "${found#* }"
      --master_addr 127.0.0.1 --master_port "${found% *}")
    if [ "${1:-}" = -m ]; then
      launcher+=(--module)
      shift
    fi
    ;;
  python)
    launcher=("$training_python" -u)
    ;;
  *)
    printf 'run_one.sh: there is no launcher %s\n' "$launched_by" >&2
    exit 2
    ;;
esac
# All ranks are on this box. Else gloo looks for its host name, which may lead nowhere, or asks a name
# server that does not answer.
if [ "$nodes" -eq 1 ] && [ -z "${GLOO_SOCKET_IFNAME:-}" ] && [ -e /sys/class/net/lo ]; then
  export GLOO_SOCKET_IFNAME=lo
fi
# A stop has one clock, and that is Boxcar's: torchrun would kill its ranks after 30 s.
export TORCH_ELASTIC_SHUTDOWN_TIMEOUT="${TORCH_ELASTIC_SHUTDOWN_TIMEOUT:-70}"
# A rank that aborts or crashes shows where it was; what a person has set for this counts.
export PYTHONFAULTHANDLER="${PYTHONFAULTHANDLER-1}"

options+=(--python-path "$release"/'training-1.zip')
if [ "$workdir" != "$code" ]; then
  options+=(--python-path "$code")
fi
cd -- "$workdir"
export BOXCAR_CREDENTIALS="$credentials"
export BOXCAR_RUN="$run"
export BOXCAR_CELL="$cell"
export BOXCAR_OUT="$out"
export BOXCAR_RESUME="$resume"
export BOXCAR_DATA_DIR="$data_dir"
# As the agent has staged it, unpacked; else out of the agent's file.
program="$release/program/begin.py"
[ -e "$program" ] || program="$release"/'onbox-1.pyz'
# The cell's own environment is set by it, for the launcher alone.
exec "$agent_python" -I -S "$program" attempt \
  --release "$release" --box "$box" --cell "$cell" --attempt "$attempt" \
  --run "$run" --data-dir "$data_dir" --durable '/durable' --grace '60.0' \
  "${options[@]}" -- "${launcher[@]}" "$@"
