"""The first round trip to a box: who it is, and what it has. It writes nothing there.

Plain sh, so that it works on the barest image. Only the marked lines of the answer are read: a
login shell may print a banner before them. Who the box is gets checked before anybody writes to it:
against the profile, against what it said before, and against the marker that the first use left.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from fnmatch import fnmatchcase

from boxcar.laptop.hosts import host_keys
from boxcar.laptop.hosts.connection import Ssh
from boxcar.laptop.project.profiles.profile import INTERPRETERS
from boxcar.laptop.project.profiles.schema import Identity
from boxcar.shared.errors import DamagedError, InputError, TemporaryError
from boxcar.shared.files import codec
from boxcar.shared.files.plan import AUTO
from boxcar.shared.record import dataclass
from boxcar.shared.sentence import _

MARK = b"BOXCAR-HELLO "
MARKER = "boxcar/box.json"  # below the data disk
TOOLS = ("rsync", "tmux", "setsid", "tar", "nvidia-smi")
# $1 data folder, $2 name of a variable or "", $3 tools, then interpreters. What a container's first
# process was given (an instance's id) is not in the environment of a login over ssh.
_SCRIPT = r"""
at_home() { case $1 in "~"|"~/"*) printf %s "$HOME${1#"~"}" ;; *) printf %s "$1" ;; esac; }
say() { printf 'BOXCAR-HELLO %s %s\n' "$1" "$2"; }
data=$(at_home "$1") name=$2 tools=$3
shift 3
echo
say hostname "$(uname -n)"
say home "$HOME"
say data_dir "$data"
if [ -n "$name" ]; then
  id=$(printenv "$name") ||
    id=$(tr '\0' '\n' 2>/dev/null </proc/1/environ | sed -n "s/^$name=//p")
  say instance_id "$id"
fi
[ -e "$data/boxcar/box.json" ] && say marker "$(tr -d '\n' <"$data/boxcar/box.json")"
for tool in $tools; do
  command -v "$tool" >/dev/null && say tool "$tool"
done
for python; do
  found=$(command -v "$(at_home "$python")") || continue
  said=$("$found" -I -S -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) ||
    continue
  say interpreter "$said $found"
  "$found" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 10))' && break
done
say end .
"""


@dataclass(frozen=True)
class Hello:
    """What a box said of itself. `data_dir` is where its data folder really lies.

    `is_quiet`: the login shell prints nothing of its own, which rsync and sftp need.
    """

    hostname: str
    home: str
    data_dir: str
    agent_python: str  # as the profile has it
    python: str  # what that is on the box
    tools: tuple[str, ...]
    is_quiet: bool
    instance_id: str | None = None

    @property
    def has_rsync(self) -> bool:
        """Whether rsync can be spoken to over ssh."""
        return self.is_quiet and "rsync" in self.tools

    def expand(self, path: str) -> str:
        """A path of the plan as it is on this box."""
        return self.home + path[1:] if path == "~" or path.startswith("~/") else path


class NoPython(InputError):
    """Nothing there can run the agent."""


@dataclass(frozen=True)
class Marker:
    """`<data_dir>/boxcar/box.json`: under which alias this disk is used."""

    FORMAT = "box"
    VERSION = 1

    box: str


def greet(
    ssh: Ssh,
    identity: Identity,
    data_dir: str,
    agent_python: str,
    *,
    timeout_s: float = 30.0,
    is_one_machine: bool = True,
) -> Hello:
    """Ask the box who it is, check it, and keep the answer beside its key.

    Without `is_one_machine` it may be another one than before, with the same marker.

    Raises InputError where it is another box than expected, NoPython where it has none for the
    agent.
    """
    wanted = INTERPRETERS if agent_python == AUTO else (agent_python,)
    words = [data_dir, identity.env or "", " ".join(TOOLS), *wanted]
    ran = ssh.run(["sh", "-c", _SCRIPT, "sh", *words], timeout_s=timeout_s)
    said = parse(ran.out)
    if said.get("end") != ["."]:
        told = ran.err.strip()[-500:] or _("no output")
        raise TemporaryError(
            _(
                "{alias}: the box did not identify itself (exit code {code}): {told}",
                alias=ssh.alias,
                code=ran.code,
                told=told,
            )
        )
    if any(len(said.get(key, [])) != 1 for key in ("hostname", "home", "data_dir")):
        raise DamagedError(
            _(
                "{alias}: the box did not identify itself clearly: {said}",
                alias=ssh.alias,
                said=_shown(said),
            )
        )
    check_identity(ssh.alias, identity, said)
    check_marker(ssh.alias, said, ssh.disk_name)
    hello = _hello(ssh.alias, said, agent_python)
    if is_one_machine:
        check_unchanged(ssh, hello)
    host_keys.note_box(ssh.home, ssh.alias, codec.encode(hello))
    return hello


def kept_hello(ssh: Ssh) -> Hello | None:
    """What the box said at an earlier contact. Raises DamagedError."""
    record = host_keys.read_host_keys(ssh.home, ssh.alias)
    if record is None or record.box is None:
        return None
    return codec.decode(Hello, record.box, str(ssh.home.host(ssh.alias)))


def fits_plan(kept: Hello, identity: Identity, data_dir: str, agent_python: str) -> bool:
    """Whether an earlier answer is one to what the profile and the plan say now."""
    is_known_by_name = not identity.hostname or fnmatchcase(kept.hostname, identity.hostname)
    is_known_by_id = not identity.env or kept.instance_id is not None
    asked = (kept.expand(data_dir), agent_python)
    return is_known_by_name and is_known_by_id and asked == (kept.data_dir, kept.agent_python)


def parse(out: bytes) -> dict[str, list[str]]:
    """The marked lines by their key, and under "noise" whatever else was printed."""
    said: dict[str, list[str]] = {}
    for line in out.split(b"\n"):
        is_marked = line.startswith(MARK)
        text = line.removeprefix(MARK).decode(errors="surrogateescape")
        key, _, value = text.partition(" ") if is_marked else ("noise", "", text)
        if is_marked or text.strip():
            said.setdefault(key, []).append(value)
    return said


def check_identity(alias: str, identity: Identity, said: Mapping[str, list[str]]) -> None:
    """Raise InputError where the profile knows its boxes by something that this one lacks."""
    [hostname] = said["hostname"]
    where = _(
        "Nothing was written to it. Check `Host {alias}` in ~/.ssh/config, or --profile",
        alias=alias,
    )
    if identity.hostname and not fnmatchcase(hostname, identity.hostname):
        raise InputError(
            _(
                "{alias} is not a box of this profile: expected a host name like {expected!r}, "
                "found {found!r}. {where}",
                alias=alias,
                expected=identity.hostname,
                found=hostname,
                where=where,
            )
        )
    if identity.env and not _first(said, "instance_id"):
        raise InputError(
            _(
                "{alias} is not a box of this profile: expected an instance id in the variable "
                "{env}, found none (host name {hostname!r}). {where}",
                alias=alias,
                env=identity.env,
                hostname=hostname,
                where=where,
            )
        )


def check_marker(alias: str, said: Mapping[str, list[str]], disk_name: str) -> None:
    """Raise InputError where the box's disk is in use under another name."""
    if "marker" not in said:
        return
    file = f"{said['data_dir'][0]}/{MARKER}"
    accept = shlex.join(["ssh", alias, f"rm {shlex.quote(file)}"])
    try:
        marker = codec.from_document(Marker, said["marker"][0].encode(), f"{alias}: {file}")
    except DamagedError as error:
        raise DamagedError(
            _(
                "{error}. To use the box as {alias}, type: {accept}",
                error=error,
                alias=alias,
                accept=accept,
            )
        ) from error
    if marker.box != disk_name:
        raise InputError(
            _(
                "{alias} is a box that is already in use as {box} (see {file} there). Nothing was "
                "written to it. Use one name per box; if nothing runs there as {box} any more, "
                "type: {accept}",
                alias=alias,
                box=marker.box,
                file=file,
                accept=accept,
            )
        )


def check_unchanged(ssh: Ssh, hello: Hello) -> None:
    """Raise InputError where the box calls itself otherwise than at an earlier contact."""
    before = kept_hello(ssh)
    if before is None:
        return
    receipt = ssh.home.host(ssh.alias)
    for what, old, new in (
        (_("host name"), before.hostname, hello.hostname),
        (_("instance"), before.instance_id, hello.instance_id),
    ):
        if old and new and old != new:
            raise InputError(
                _(
                    "{alias} is a different box than before: expected {what} {old}, found {new}. "
                    "Nothing was written to it. If you rented a new box under this alias, type: "
                    "rm {command}",
                    alias=ssh.alias,
                    what=what,
                    old=old,
                    new=new,
                    command=shlex.quote(str(receipt)),
                )
            )


def _hello(alias: str, said: Mapping[str, list[str]], agent_python: str) -> Hello:
    return Hello(
        hostname=said["hostname"][0],
        home=said["home"][0],
        data_dir=said["data_dir"][0],
        agent_python=agent_python,
        python=_interpreter(alias, said.get("interpreter", []), agent_python),
        tools=tuple(said.get("tool", [])),
        is_quiet="noise" not in said,
        instance_id=_first(said, "instance_id"),
    )


def _interpreter(alias: str, found: list[str], agent_python: str) -> str:
    """The last one that the box tried, where it is new enough."""
    version, _space, path = found[-1].partition(" ") if found else ("0.0", "", "")
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})", version, re.ASCII)
    if numbers and (int(numbers[1]), int(numbers[2])) >= (3, 10):
        return path
    there = ", ".join(found) or _("none at all")
    looked = _("in the usual places")
    if agent_python != AUTO:
        looked = _("as {path}", path=agent_python)
    raise NoPython(
        _(
            "{alias} has no Python for the agent: expected 3.10 or newer {looked}, found {there}. "
            "Install one anywhere there (conda, uv, or the system's), and set its path as "
            "env.agent_python in a profile of your own",
            alias=alias,
            looked=looked,
            there=there,
        )
    )


def _shown(said: Mapping[str, list[str]]) -> str:
    return ", ".join(f"{key} {values[:3]}" for key, values in said.items())[:500]


def _first(said: Mapping[str, list[str]], key: str) -> str | None:
    return (said.get(key) or [""])[0] or None
