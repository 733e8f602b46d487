"""Each text was printed by a real ssh."""

from __future__ import annotations

import pytest

from boxcar.laptop.hosts import ssh_errors
from boxcar.laptop.hosts.ssh_errors import (
    HostKeyChanged,
    KeyRefused,
    LinkCut,
    ProxyFailed,
    TooManyConnections,
    Unreachable,
)
from boxcar.shared.errors import InputError, TemporaryError

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
The fingerprint for the ED25519 key sent by the remote host is
SHA256:nDJJ5rF7AkZvVC+6Pf0hjLiRm1cJfSDI+wr0qVl6otU.
Please contact your system administrator.
Host key for box-a has changed and you have requested strict checking.
Host key verification failed.
"""
BEHIND = """\
kex_exchange_identification: Connection closed by remote host
Connection closed by UNKNOWN port 65535
"""
POST_QUANTUM = """\
** WARNING: connection is not using a post-quantum key exchange algorithm.
** This session may be vulnerable to "store now, decrypt later" attacks.
** The server may need to be upgraded. See https://openssh.com/pq.html
"""
OTHER_TYPE = """\
No RSA host key is known for box-a and you have requested strict checking.
Host key verification failed.
"""
TEXTS = [
    ("ssh: connect to host 10.0.0.2 port 22: Connection timed out", Unreachable, "timed out"),
    ("ssh: connect to host 10.0.0.2 port 22: Operation timed out", Unreachable, "timed out"),
    ("Connection timed out during banner exchange", Unreachable, "but sent nothing"),
    ("ssh: connect to host 10.0.0.2 port 22: Connection refused", Unreachable, "refused"),
    ("ssh: connect to host 10.0.0.2 port 22: No route to host", Unreachable, "no route"),
    ("ssh: connect to host 10.0.0.2 port 22: Network is unreachable", Unreachable, "network"),
    ("ssh: Could not resolve hostname box-a: Name or service not known", Unreachable, "Host box-a"),
    ("ssh: Could not resolve hostname gw.eu: nodename nor servname", Unreachable, "for gw.eu"),
    ("root@10.0.0.2: Permission denied (publickey).", KeyRefused, "(publickey)"),
    ("Received disconnect from 1.2.3.4: 2: Too many authentication failures", KeyRefused, "Too m"),
    (CHANGED, HostKeyChanged, "SHA256:nDJJ5rF7AkZvVC+6Pf0hjLiRm1cJfSDI+wr0qVl6otU"),
    (OTHER_TYPE, HostKeyChanged, "a key of another type (RSA)"),
    (
        "Unable to negotiate with 10.0.0.2 port 22: no matching host key type found. Their offer: "
        "ssh-ed25519",
        HostKeyChanged,
        "a key of another type",
    ),
    (
        "kex_exchange_identification: read: Connection reset by peer\n"
        "Connection reset by 10.0.0.2 port 22",
        TooManyConnections,
        "MaxStartups",
    ),
    (
        "kex_exchange_identification: Connection closed by remote host\n"
        "Connection closed by 10.0.0.2 port 22",
        TooManyConnections,
        "MaxStartups",
    ),
    # Of a jump host or ProxyCommand, asked without ControlPersist.
    (f"Host key verification failed.\n{BEHIND}", ProxyFailed, "Host key verification failed"),
    (f"root@j: Permission denied (publickey).\n{BEHIND}", ProxyFailed, "(publickey)"),
    (f"sh: 1: exec: cloudflared: not found\n{BEHIND}", ProxyFailed, "cloudflared: not found"),
    (f"{CHANGED}{BEHIND}", ProxyFailed, "HOST IDENTIFICATION HAS CHANGED"),
    (f"{POST_QUANTUM}{BEHIND}", TooManyConnections, "MaxStartups"),
    (
        f"{POST_QUANTUM}channel 0: open failed: connect failed: Connection timed out\n"
        f"stdio forwarding failed\n{BEHIND}",
        Unreachable,
        "timed out",
    ),
    (
        f"channel 0: open failed: administratively prohibited: open failed\n{BEHIND}",
        ProxyFailed,
        "administratively prohibited",
    ),
    (
        "ssh: connect to host j port 2222: Connection refused\n"
        "banner exchange: Connection to UNKNOWN port 65535: Broken pipe",
        ProxyFailed,
        "Connection refused",
    ),
    ("banner exchange: Connection to UNKNOWN port 65535: Broken pipe", TooManyConnections, "few"),
    (
        "Connection timed out during banner exchange\nConnection to UNKNOWN port 65535 timed out",
        Unreachable,
        "no answer through",
    ),
    (
        f"{BEHIND}rsync: connection unexpectedly closed (0 bytes received so far) [sender]\n"
        "rsync error: unexplained error (code 255) at io.c(232) [sender=3.5.0]",
        TooManyConnections,
        "few",
    ),
    # OpenSSH 10.6 says no more than this under ControlPersist.
    ("Connection closed by UNKNOWN port 65535", TooManyConnections, "MaxStartups"),
    ("Timeout, server 10.0.0.2 not responding.", LinkCut, "not responding"),
    ("client_loop: send disconnect: Broken pipe", LinkCut, "Broken pipe"),
    ("Connection to 10.0.0.2 closed by remote host.", LinkCut, "closed by remote host"),
    ("", LinkCut, "no output"),
]


@pytest.mark.parametrize(("said", "kind", "told"), TEXTS)
def test_what_ssh_says_becomes_an_error_with_the_reason(said: str, kind: type, told: str) -> None:
    error = ssh_errors.read_ssh_error("box-a", f"{said}\n")
    assert type(error) is kind and told in str(error) and "box-a" in str(error)
    assert isinstance(error, InputError if kind in (KeyRefused, HostKeyChanged) else TemporaryError)


def test_a_changed_key_shows_both_fingerprints_and_the_command_that_accepts_it() -> None:
    error = ssh_errors.read_ssh_error(
        "box-a", CHANGED, recorded=["SHA256:old"], forget="ssh-keygen -R x"
    )
    assert isinstance(error, HostKeyChanged) and error.exit_code == 2
    for told in ("recorded SHA256:old", "offered SHA256:nDJJ5", "type: ssh-keygen -R x"):
        assert told in str(error)


def test_a_jump_hosts_key_is_not_forgotten_for_the_boxs_and_the_way_to_it_is_named() -> None:
    said = f"{CHANGED}{BEHIND}"
    for jumps, to_type in (
        ([], "ssh box-a true"),
        (["j"], "ssh j true"),
        (["me@j:2222"], "ssh ssh://me@j:2222 true"),
        (["a", "b"], "ssh -J a b true"),
    ):
        forget = "ssh-keygen -R box-a"
        error = ssh_errors.read_ssh_error("box-a", said, forget=forget, jumps=jumps)
        assert str(error).endswith(f"try: {to_type}") and "ssh-keygen" not in str(error)


def test_only_what_may_pass_in_a_moment_is_tried_again() -> None:
    tried = {said for said, _, _ in TEXTS if getattr(_read(said), "is_brief", False)}
    refused = {said for said, _, _ in TEXTS if "Connection refused" in said}
    assert tried == {said for said, kind, _ in TEXTS if kind is TooManyConnections} | refused


def _read(said: str) -> object:
    return ssh_errors.read_ssh_error("box-a", said)
