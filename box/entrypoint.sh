#!/usr/bin/env bash
# The first process of the box's image (Dockerfile): keys, host keys, environment, sshd, the agents
# that a restart ended, then the given command, or nothing until the container is stopped.
# It may be run again in a running container, as vast.ai's onstart does: `boxcar-box true`.
# Without -e: a box that lacks something can be mended over ssh, one that is down cannot.
set -uo pipefail

readonly AGENT_PYTHON=/usr/bin/python3
# What ssh sessions get of the container's environment: what names the box and finds its driver and
# its programs. Never what may be a secret, even if it has one of these names.
readonly PASSED='PATH|LD_LIBRARY_PATH|LIBRARY_PATH|LANG|LC_ALL|TZ|BOXCAR_DATA_DIR|CONTAINER_ID'
readonly PASSED_PREFIXES='NVIDIA_|CUDA_|NCCL_|RUNPOD_|VAST_'
readonly SECRET='KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH'

say() {
  printf 'boxcar-box: %s\n' "$*" >&2
}

add_keys() {
  local home keys line
  # sshd looks into the account's home, whatever HOME says.
  home="$(getent passwd "$(id -u)" | cut -d: -f6)"
  keys="$home/.ssh/authorized_keys"
  mkdir -p "$home/.ssh"
  touch "$keys"
  chmod 700 "$home/.ssh"
  chmod 600 "$keys"
  # A last line without its end would swallow ours.
  [ -z "$(tail -c 1 "$keys")" ] || echo >>"$keys"
  while IFS= read -r line; do
    line="${line%$'\r'}"
    [ -n "$line" ] || continue
    # Also what keeps a private key that was pasted by mistake off the disk.
    if ! ssh-keygen -l -f /dev/stdin <<<"$line" >/dev/null 2>&1; then
      say 'a line of PUBLIC_KEY is no public key and was left out'
    elif ! grep -qxF -- "$line" "$keys"; then
      printf '%s\n' "$line" >>"$keys"
    fi
  done <<<"${SSH_PUBLIC_KEY:-${PUBLIC_KEY:-}}"
  [ -s "$keys" ] || say 'nobody can log in over ssh: set PUBLIC_KEY to your public key'
}

is_passed() {
  [[ $1 =~ ^($PASSED)$ || $1 =~ ^($PASSED_PREFIXES) ]] && [[ ! $1 =~ $SECRET ]]
}

write_environment() {
  local name value words=()
  for name in $(compgen -e); do
    is_passed "$name" || continue
    value="${!name-}"
    # sshd's config has no escape that each of its versions reads.
    if [[ $value == *[\"\\[:cntrl:]]* ]]; then
      say "$name has a quote, a backslash or a line end, and ssh sessions will not have it"
      continue
    fi
    words+=("\"$name=$value\"")
  done
  # One line: sshd takes the first SetEnv only. It reaches every session, whatever the shell is.
  printf 'SetEnv %s\n' "${words[*]}" >/etc/ssh/sshd_config.d/boxcar-environment.conf
  # A login shell's /etc/profile sets PATH anew.
  printf "PATH='%s'\nexport PATH\n" "${PATH//\'/\'\\\'\'}" >/etc/profile.d/boxcar.sh
}

start_sshd() {
  local pid
  if (exec 3<>/dev/tcp/127.0.0.1/22) 2>/dev/null; then
    say 'port 22 is served already; where that is an sshd, it reads its settings again'
    pid="$(cat /run/sshd.pid 2>/dev/null)"
    # A file that an earlier start left may name anybody.
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sshd ] && kill -HUP "$pid"
    return
  fi
  # Only those that are missing: a box keeps its identity over restarts.
  ssh-keygen -A >/dev/null
  mkdir -p /run/sshd
  /usr/sbin/sshd -D -e </dev/null &
}

resume_agents() {
  local data_dir="${BOXCAR_DATA_DIR:-}" file newest=''
  if [ -z "$data_dir" ]; then
    say 'BOXCAR_DATA_DIR is not set, so no agent is resumed'
    return
  fi
  for file in "$data_dir"/boxcar/onbox-*.pyz; do
    if [ -f "$file" ] && [[ -z $newest || $file -nt $newest ]]; then
      newest="$file"
    fi
  done
  [ -n "$newest" ] || return # a box to which nothing was launched yet
  "$AGENT_PYTHON" -I -S "$newest" resume --data-dir "$data_dir" </dev/null \
    || say "the agents were not resumed; type on your machine: boxcar launch"
}

# Processes of the agent's archive, or of what a run has unpacked of it, that run this verb.
running() {
  local verb="$1" file words
  for file in /proc/[0-9]*/cmdline; do
    { mapfile -d '' -t words <"$file"; } 2>/dev/null || continue
    case "${words[3]-}" in */onbox-*.pyz | */program/onbox/begin.py) ;; *) continue ;; esac
    if [ "${words[4]-}" = "$verb" ]; then
      printf '%s\n' "${file//[!0-9]/}"
    fi
  done
}

tell() {
  local pid
  for pid in $(running "$1"); do
    kill -TERM "$pid" 2>/dev/null
  done
}

# Until all have saved and left; how long they have is the platform's to say.
end_all() {
  tell "$1"
  while [ -n "$(running "$1")" ]; do
    sleep 0.1
  done
}

command=''
is_told=''
on_stop() {
  is_told=yes
  tell agent # first: a platform may leave us five seconds
  [ -z "$command" ] || kill -TERM "$command" 2>/dev/null
}

add_keys
(umask 022 && write_environment)
start_sshd
trap on_stop TERM INT
resume_agents
[ "$#" -gt 0 ] || set -- sleep infinity
# Not exec: a stranger as PID 1 would neither tell the agents to save nor reap what they leave.
# A command in the background has no stdin unless it is told so.
"$@" <&0 &
command="$!"
[ -z "$is_told" ] || on_stop
wait "$command"
code="$?"
# A trap interrupts `wait`, and the command may take its time.
while kill -0 "$command" 2>/dev/null; do
  wait "$command"
  code="$?"
done
# The end of PID 1 is the end of all. Anywhere else, the agents stay.
if [ -n "$is_told" ] || [ "$$" -eq 1 ]; then
  end_all agent
  end_all attempt # those whose agent was dead already; the others were told by theirs
fi
exit "$code"
