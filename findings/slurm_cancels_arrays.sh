#!/usr/bin/env bash
# What scancel does to one task of a job array that has not started, without Boxcar.
#
# Seen on 2026-11-29 with Debian's Slurm 22.05.8-4+deb12u3 and munge 0.5.15-2+deb12u1, amd64. Ends with 1
# if any of it is otherwise now.
#
# - `scancel --state=PENDING 1_1` cancels all tasks of an array of which none has started, and not that one.
#   `scancel 1_1` cancels that one. After any change of the task (scontrol release 1_1), both do.
# - A task that was cancelled so is gone from `squeue -t all` at once, and scontrol says "not found": that a
#   job was there, and how it ended, is seen only with accounting.
#
# Takes Debian 12 (its packages are downloaded, unpacked in a temporary folder and not installed; what they
# need of other libraries has to be there), a free port as PORT, and 20 MB. No job ever starts: no node is up.
set -euo pipefail
port="${PORT:-22990}"
folder="$(mktemp -d)"
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

slurm=22.05.8-4+deb12u3 munge=0.5.15-2+deb12u1
apt-get download --quiet=2 "slurmctld=$slurm" "slurm-client=$slurm" "slurm-wlm-basic-plugins=$slurm" \
  "munge=$munge" "libmunge2=$munge" 2>apt.log || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
lib="$folder/root/usr/lib/x86_64-linux-gnu"
export PATH="$folder/root/usr/bin:$folder/root/usr/sbin:$PATH"
export LD_LIBRARY_PATH="$lib:$lib/slurm-wlm" SLURM_CONF="$folder/slurm.conf"

mkdir -m 711 munge
mkdir state spool
head -c 1024 /dev/urandom >munge/key
chmod 400 munge/key
munged --force --foreground --socket="$folder/munge/sock" --key-file="$folder/munge/key" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" >munge.out 2>&1 &
pids+=($!)
cat >slurm.conf <<CONF
ClusterName=finding
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$(id -un)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$folder/munge/sock
CryptoType=crypto/munge
PluginDir=$lib/slurm-wlm
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/ctld.pid
SlurmctldLogFile=$folder/ctld.log
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2
PartitionName=main Nodes=n1 Default=YES State=UP
CONF
slurmctld -D -c -f slurm.conf >ctld.out 2>&1 &
pids+=($!)
for _ in $(seq 100); do
  scontrol ping 2>/dev/null | grep -q UP && break
  sleep 0.2
done

faults=0
expect() { # WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then
    printf 'as seen before: %s: %s\n' "$1" "$3"
  else
    printf 'OTHERWISE NOW: %s: %s, was %s\n' "$1" "$3" "$2"
    faults=1
  fi
}
printf '#!/bin/sh\ntrue\n' >job.sh
submit() { sbatch --parsable --array=0-2 --begin=now+1hour --output=/dev/null job.sh; }
waiting() { # JOB: which of its tasks wait
  squeue -h -r -t PENDING -j "$1" -o %K | sort | tr '\n' ' '
}

job="$(submit)"
expect 'of an array of three' '0 1 2 ' "$(waiting "$job")"
scancel --state=PENDING "${job}_1"
expect 'wait after scancel --state=PENDING of task 1' '' "$(waiting "$job")"

job="$(submit)"
scancel "${job}_1"
expect 'wait after scancel of task 1' '0 2 ' "$(waiting "$job")"
expect 'squeue -t all has of it' '0 2 ' "$(squeue -h -r -t all -j "$job" -o %K | sort | tr '\n' ' ')"
expect 'scontrol says' "Job ${job}_1 not found" "$(scontrol show job "${job}_1" 2>&1)"

job="$(submit)"
scontrol release "${job}_1"
scancel --state=PENDING "${job}_1"
expect 'wait after it was changed, and scancel --state=PENDING' '0 2 ' "$(waiting "$job")"

slurmctld -V
exit "$faults"
