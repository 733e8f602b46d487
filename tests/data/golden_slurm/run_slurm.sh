#!/usr/bin/env bash
# One task of this job array is one queue: its agent works in the allocation until the queue ends, and
# asks Slurm for another one when the time limit comes. Boxcar submits it:
#   sbatch --array=INDEX,… --comment=… --output=… run_slurm.sh RELEASE [QUEUE START_INDEX START_CELL]…
# Rendered for one run, never edited. Every value stands in single quotes and is never expanded; those
# of the head are plain words.
#SBATCH --job-name=boxcar-digits
#SBATCH --partition=gpu
#SBATCH --account=lab
#SBATCH --time=1-00:00:00
#SBATCH --gres=gpu:a100:1
#SBATCH --cpus-per-task=8
#SBATCH --mem=64G
#SBATCH --constraint=a100|h100
#SBATCH --mail-type=END,FAIL
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@90
set -uo pipefail

run='digits'
if [ "$#" -lt 1 ]; then
  echo "usage: run_slurm.sh RELEASE [QUEUE START_INDEX START_CELL]..." >&2
  exit 2
fi
# Not from BASH_SOURCE: Slurm runs a copy of this script.
release="$1"
words=("$@")
shift
case "${SLURM_ARRAY_TASK_ID:-}" in
  '0') queue='queue_1' ;;
  '1') queue='queue_2' ;;
  *)
    printf 'run_slurm.sh: the run %s has no queue of the index %s\n' "$run" \
      "${SLURM_ARRAY_TASK_ID:-}" >&2
    exit 2
    ;;
esac
start_index=0
start_cell=
while [ "$#" -ge 3 ]; do
  if [ "$1" = "$queue" ]; then
    start_index="$2"
    start_cell="$3"
  fi
  shift 3
done
tier="$(dirname -- "$(dirname -- "$release")")"
mkdir -p -- "$tier/slurm"
exec >>"$tier/slurm/$queue.log" 2>&1
task="${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
say() { printf 'boxcar: %s, task %s: %s\n' "$queue" "$task" "$1"; }
say "start ${SLURM_RESTART_COUNT:-0} on $(uname -n), release $(basename -- "$release")"

# By it the agent takes the queue for this job, and not by a lock alone.
export BOXCAR_SLURM=1

is_time_up=
agent=
# USR1 comes before the time limit, TERM when Slurm takes the node away or somebody cancels. Neither
# reaches the agent by itself: only this script gets them.
leave() {
  if [ -n "$agent" ]; then
    kill -TERM "$agent" 2>/dev/null
  fi
}
trap 'is_time_up=yes; leave' USR1
trap leave TERM
bash "$release/run_queue.sh" \
  "$queue" "$start_index" ${start_cell:+"$start_cell"} &
agent=$!
if [ -n "$is_time_up" ]; then
  leave
fi
code=0
while :; do
  wait "$agent"
  code=$?
  # A trap ends a wait; the agent itself takes its time.
  kill -0 "$agent" 2>/dev/null || break
done
say "its agent ended with $code"
# Slurm ends what a killed agent has left only where the site tracks processes by cgroup.
if [ "$code" -gt 128 ] && [ -n "${SLURM_JOB_ID:-}" ]; then
  for one in /proc/[0-9]*; do
    if [ "$one" != "/proc/$$" ] && tr '\0' '\n' 2>/dev/null <"$one/environ" |
      grep -qx "SLURM_JOB_ID=$SLURM_JOB_ID"; then
      kill -KILL "${one#/proc/}" 2>/dev/null
    fi
  done 2>/dev/null
fi
if [ -z "$is_time_up" ]; then
  # Also after TERM: what was preempted Slurm starts again, and what was cancelled nobody does.
  exit "$code"
fi
case "$code" in
  85 | 143) ;; # preempted, or ended before it could say so
  *) exit "$code" ;;
esac
# A requeue sends TERM at once to the script that asks for it. By array and index: the job id alone
# of an array's last task means all of its tasks.
trap '' TERM
if scontrol requeue "$task"; then
  say 'queued again, because its time limit came'
  sleep 600
fi
# The site forbids it: a new job of the same submit takes its place, once this one has ended. Asked
# once: whether an sbatch that gave no answer was heard shows the next launch.
submit_again() {
  # Nothing of this job reaches the next one.
  for name in "${!SLURM_@}"; do
    case "$name" in SLURM_CONF | SLURM_CLUSTERS) ;; *) unset "$name" ;; esac
  done
  BOXCAR_RESUBMITS=$((${BOXCAR_RESUBMITS:-0} + 1)) sbatch --parsable --array="$index" \
    --dependency=afterany:"$task" --comment="$comment" --export=ALL \
    --output="${tier//%/%%}/slurm/%A_%a.out" --chdir="$tier" "$release"/'run_slurm.sh' "${words[@]}"
}
index="$SLURM_ARRAY_TASK_ID"
comment="$(squeue -h -j "$task" -o %k)"
if [ -n "$comment" ] && again="$(submit_again)"; then
  say "submitted again as ${again}_$index, because the site does not queue it again"
else
  say 'was not queued again by Slurm (it says why above); launch again to continue'
fi
exit "$code"
