"""What the boxes of hosts.py are made of: commands, addresses, shell scripts and configs."""

from __future__ import annotations

from pathlib import Path

UNSHARE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
KEYGEN = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f"]
WORLD = """
set -e
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none "$1"
echo ready
exec cat
"""
# The last mount hides the folder that the others come from. The loop reaps what is orphaned.
BOOT = """
set -e
hostname "$1"
mount --bind "$2/passwd" /etc/passwd
mount --bind "$2/shadow" /etc/shadow
mount --bind "$2/boot_id" /proc/sys/kernel/random/boot_id
mount -t tmpfs -o size=256m,mode=1777 none /dev/shm
mount -t tmpfs -o mode=755 none /run
mkdir /run/sshd
case "$3" in
    /tmp/*) mkdir -p "$2$3"; mount --bind "$3" "$2$3" ;;
esac
mount --rbind "$2/tmp" /tmp
echo ready
while :; do sleep 3600 & wait $!; done
"""
DISKS = """
set -e
cd "$1"
shift
mkdir shared
mount -t tmpfs -o size=1g,mode=755 none shared
for name; do
    mkdir -p "$name"/tmp/box/etc "$name"/tmp/box/data "$name"/tmp/box/shared
    chmod 1777 "$name"/tmp
    mount -t tmpfs -o size=1g,mode=755 none "$name"/tmp/box/data
    mount --bind shared "$name"/tmp/box/shared
done
"""
STOP_SSHD = """
pid=$(cat /run/sshd.pid 2>/dev/null) || exit 0
kill "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
rm -f /run/sshd.pid
"""
# Of the rules at the laptop only those about this address ($2) go.
HEAL = """
tc qdisc del dev "v-$1" root 2>/dev/null
ip netns exec "$1" tc qdisc del dev eth0 root 2>/dev/null
ip netns exec "$1" iptables -F INPUT 2>/dev/null
rules=$(ip netns exec laptop iptables -S INPUT 2>/dev/null | grep -F " $2/32 ")
echo "$rules" | sed -n 's/^-A/iptables -D/p' | ip netns exec laptop sh
"""
# The first value of a key counts, so a test's own options stand before these.
SSHD = """\
Port 22
ListenAddress {address}
HostKey {etc}/host_key
AuthorizedKeysFile {etc}/authorized_keys
PidFile /run/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
# The default one takes 70 ms of both processors.
KexAlgorithms curve25519-sha256
"""
ALIAS = """\
Host {name}
  HostName {address}
  User root
  IdentityFile {key}
  IdentitiesOnly yes
"""
# The laptop's ssh. While there is a file `hurry`, a connection that has gone silent ends in
# seconds, and a box whose cable is pulled gets seconds to answer. The others get what Boxcar gives
# them: on a busy machine a box that is well may need it. Of two such options the first counts.
SHIM = """\
#!/bin/sh
if [ -e {folder}/hurry ]; then
    set -- -oServerAliveInterval=1 -oServerAliveCountMax=8 "$@"
    for word; do
        case "$word" in
            {names}) if [ -e {folder}/cut-"$word" ]; then set -- -oConnectTimeout=3 "$@"; fi ;;
        esac
    done
fi
exec {ssh} "$@"
"""
BANNER_SHELL = """\
#!/bin/sh
echo 'Welcome to Rented GPUs! {"answer": 42}'
echo 'BOXCAR is not what this line is about'
exec /bin/bash "$@"
"""


def address(number: int) -> str:
    return f"10.99.0.{number}"


def hardware_address(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


def neighbour(number: int) -> str:
    return f"neigh add {address(number)} lladdr {hardware_address(number)} dev eth0"


def passwd(home: Path, shell: str) -> str:
    """This machine's accounts, with another home and shell for root."""
    lines = Path("/etc/passwd").read_text().splitlines()
    root = f"root:x:0:0:root:{home}:{shell}"
    return "\n".join([root, *(line for line in lines if not line.startswith("root:"))]) + "\n"
