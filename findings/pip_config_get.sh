#!/usr/bin/env bash
# pip's own answer to which index it uses, without Boxcar.
#
# Seen on 2026-11-29 with pip 26.0 and 23.2.1 (Python 3.11, Linux). Ends with 1 if any of it is otherwise now.
#
# - `pip config get global.index-url` does not find what stands in the file that PIP_CONFIG_FILE names: it says
#   "No such key" and ends with 1. `pip config list` names it.
#
# Takes Python 3.10 or newer as PYTHON, and 30 MB in a temporary folder.
set -euo pipefail
python="${PYTHON:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

faults=0
expect() { # WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then
    printf 'as seen before: %s: %s\n' "$1" "$3"
  else
    printf 'OTHERWISE NOW: %s: %s, was %s\n' "$1" "$3" "$2"
    faults=1
  fi
}

for version in 23.2.1 26.0; do
  "$python" -m venv "$folder/$version"
  pip=("$folder/$version/bin/python" -m pip)
  "${pip[@]}" install --quiet --disable-pip-version-check "pip==$version"
  printf '[global]\nindex-url = https://mirror.invalid/simple\n' >"$folder/pip.conf"
  export PIP_CONFIG_FILE="$folder/pip.conf"
  listed="$("${pip[@]}" config list | sed -n "s/^global.index-url=//p")"
  expect "pip $version config list" "'https://mirror.invalid/simple'" "$listed"
  got="$("${pip[@]}" config get global.index-url 2>&1)" && rc=0 || rc=$?
  expect "pip $version config get" 'ERROR: No such key - global.index-url, 1' "$got, $rc"
  unset PIP_CONFIG_FILE
done
exit "$faults"
