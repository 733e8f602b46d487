"""What ssh said, as an error that says what is the matter and what to type next. Pure.

ssh speaks English whatever the locale, and its own failures have the exit code 255. A command on
the box may end with 255 as well: then nothing here fits, and it is told as a link that was cut,
because nobody can say how far the command came.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from boxcar.shared.errors import BoxcarError, InputError, TemporaryError
from boxcar.shared.sentence import Sentence, _, chained, mark

SSH_FAILED = 255
MAY_BE_DONE = _("The box may have done part of it or all of it; run the same command again")
_OFFERED = re.compile(r"key sent by the remote host is\s+(SHA256:[A-Za-z0-9+/=]+)")
_OTHER_TYPE = re.compile(r"No (\S+) host key is known for|(no matching host key type found)")
_CHANGED = ("REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed", "host key is")
_REFUSED = re.compile(
    r"Permission denied \(|Too many authentication failures|Permission denied, pl"
)
# sshd drops connections at random beyond MaxStartups, and new ones sort out who comes too often.
_CROWDED = re.compile(
    r"(?:kex|ssh)_exchange_identification|Exceeded MaxStartups|Not allowed at this time"
    r"|Connection (?:closed|reset) by \S+ port \d+|banner exchange: .*: Broken pipe"
)
# What ssh itself says of a connection through ProxyJump or ProxyCommand: it knows no address.
_PROXIED = re.compile(r"Connection (?:closed|reset) by UNKNOWN port|UNKNOWN port \d+: ")
_OWN_WORDS = re.compile(rf"(?:kex|ssh)_exchange_identification|{_PROXIED.pattern}")
# Beside what matters: warnings, such as those of OpenSSH 10.1 and newer about key exchange (`@`
# frames that of another host key), and what is said of the end by who is at the other end.
_NOISE = re.compile(r"[*@]{2}|[Ww]arning:|rsync\b|client_loop:|$")
# The jump host's word about the box.
_OF_THE_BOX = re.compile(
    r"channel \d+: open failed: connect failed: "
    r"(?:Connection (?:refused|timed out)|No route to host|Network is unreachable)"
)
_UNKNOWN_NAME = re.compile(r"Could not resolve hostname (\S+?):? ")
_BEFORE = (
    (
        "Connection refused",
        mark("connection refused: no sshd listens at that address and port"),
    ),
    ("No route to host", mark("there is no route to it")),
    ("Network is unreachable", mark("this machine's network cannot reach it")),
    (
        "Connection to UNKNOWN port 65535 timed out",
        mark("no answer through its ProxyJump or ProxyCommand"),
    ),
    (
        "Connection timed out during banner exchange",
        mark("it accepted the connection but sent nothing"),
    ),
    (
        "connect to host",
        mark("connection timed out: the box is off, or a firewall drops the packets"),
    ),
    (
        "connect failed: Connection timed out",
        mark("connection timed out: the box is off, or a firewall drops the packets"),
    ),
)


class Unreachable(TemporaryError):
    """The box did not answer. That says nothing about whether it, or what it runs, is alive.

    `why` is the reason in a few words; `is_brief` that it was turned away by whoever answers at the
    address, so the network leads there, and the same call may well succeed in a moment.
    """

    def __init__(self, alias: str, why: str, to_do: str = "", *, is_brief: bool = False) -> None:
        self.alias, self.why, self.is_brief = alias, why, is_brief
        told = _("{alias} cannot be reached: {why}", alias=alias, why=why)
        if to_do:
            told = _("{alias} cannot be reached: {why}. {to_do}", alias=alias, why=why, to_do=to_do)
        super().__init__(told)


class TooManyConnections(Unreachable):
    """sshd closed the connection before it said who it is."""


class ProxyFailed(Unreachable):
    """What leads to the box failed, a jump host or a ProxyCommand: of the box nothing is known."""


class LinkCut(Unreachable):
    """The connection broke off while something was asked. It may have been done, or half of it."""


class KeyRefused(InputError):
    """The box wants another key than those that ssh offered."""

    def __init__(self, alias: str, why: str) -> None:
        self.alias, self.why = alias, why
        super().__init__(
            _(
                "{alias} rejected your key ({why}). `ssh {alias} true` must work without a "
                "prompt. Check User and IdentityFile of {alias} in ~/.ssh/config, unlock the key "
                "(ssh-add), and add the public key in the platform's console",
                alias=alias,
                why=why,
            )
        )


class HostKeyChanged(InputError):
    """Another key than the recorded one: another machine answers under this alias."""

    def __init__(self, alias: str, recorded: Sequence[str], offered: str, forget: str) -> None:
        self.alias, self.recorded, self.offered = alias, tuple(recorded), offered
        self.why = _(
            "the host key changed: recorded {recorded}, offered {offered}",
            recorded=chained(mark("{first}, {second}"), recorded),
            offered=offered,
        )
        super().__init__(
            _(
                "{alias}: {why}. Nothing was sent. If you have rented or reset this box since, "
                "compare the offered fingerprint with the platform's console and type: "
                "{forget}\nIf not, another machine answers as {alias}: check ~/.ssh/config first",
                alias=alias,
                why=self.why,
                forget=forget,
            )
        )


def read_ssh_error(
    alias: str,
    said: str,
    *,
    recorded: Sequence[str] = (),
    forget: str = "",
    jumps: Sequence[str] = (),
    instance: str | None = None,
) -> BoxcarError:
    """The error behind the stderr of an ssh that ended by itself, with SSH_FAILED.

    `recorded` are the fingerprints known for the alias, `forget` the command that drops them;
    `jumps` its ProxyJump, `instance` the platform's id of it.
    """
    if line := _proxy_line(said):
        of_the_box = _OF_THE_BOX.search(line)
        return (
            _unreachable(alias, line, instance) if of_the_box else _proxy_failed(alias, line, jumps)
        )
    if any(sign in said for sign in _CHANGED) or "no matching host key type" in said:
        return HostKeyChanged(alias, recorded or [_("none")], _offered(said), forget)
    if refused := _REFUSED.search(said):
        return KeyRefused(alias, _line_of(said, refused).rstrip("."))
    return _unreachable(alias, said, instance)


def is_proxied(said: str) -> bool:
    """Whether it failed through a proxy, whose own words ssh drops under ControlPersist."""
    return _PROXIED.search(said) is not None


def _proxy_line(said: str) -> str:
    """The line of a proxy that says why: one that is known, else its first; '' for none."""
    if not is_proxied(said):
        return ""
    lines = [line.strip() for line in said.splitlines() if not _OWN_WORDS.search(line)]
    lines = [line for line in lines if not _NOISE.match(line)]
    return next((line for line in lines if _is_known(line)), lines[0] if lines else "")


def _is_known(line: str) -> bool:
    signs = (*_CHANGED, *(sign for sign, _ in _BEFORE))
    known = (_REFUSED, _UNKNOWN_NAME, _CROWDED, _OF_THE_BOX)
    return any(sign in line for sign in signs) or any(one.search(line) for one in known)


def _proxy_failed(alias: str, line: str, jumps: Sequence[str]) -> ProxyFailed:
    if jumps:
        why = _("its jump host {jump} failed ({line})", jump=", ".join(jumps), line=line)
    else:
        why = _("its ProxyJump or ProxyCommand failed ({line})", line=line)
    to_do = _("To see why, try: {command}", command=shlex.join([*_to_the_last(jumps or [alias])]))
    is_brief = "Connection refused" in line or _CROWDED.search(line) is not None
    return ProxyFailed(alias, why, to_do, is_brief=is_brief)


def _to_the_last(hosts: Sequence[str]) -> list[str]:
    """The command that tries the way to the last of them, through the others."""
    *through, last = hosts
    jump = ["-J", ",".join(through)] if through else []
    return ["ssh", *jump, f"ssh://{last}" if ":" in last else last, "true"]


def _unreachable(alias: str, said: str, instance: str | None) -> Unreachable:
    if unknown := _UNKNOWN_NAME.search(said):
        why = _("no address found for {name}", name=unknown[1])
        return Unreachable(
            alias,
            why,
            _("Is there a `Host {alias}` in ~/.ssh/config? Are you online?", alias=alias),
        )
    if crowded := _CROWDED.search(said):
        why = _("sshd closed the connection at once ({line})", line=_line_of(said, crowded))
        to_do = _(
            "It allows only a few connections at a time (MaxStartups), or blocks this address "
            "after failed logins (OpenSSH 9.8 and newer): wait a minute, then run the same "
            "command again"
        )
        return TooManyConnections(alias, why, to_do, is_brief=True)
    for sign, name in _BEFORE:
        if sign in said:
            is_brief = sign == "Connection refused"
            to_do = _(
                "Check in the platform's console that it is running; then try: ssh {alias} true",
                alias=alias,
            )
            if instance:
                to_do = _(
                    "Check in the platform's console that it is running (id {id}); then try: ssh "
                    "{alias} true",
                    alias=alias,
                    id=instance,
                )
            return Unreachable(alias, Sentence(name), to_do, is_brief=is_brief)
    return LinkCut(alias, *cut(said))


def cut(said: str) -> tuple[str, str]:
    """Why and what to do, of a connection that broke off after the command was sent."""
    return _("the connection was lost ({said})", said=_tail(said)), MAY_BE_DONE


def _offered(said: str) -> str:
    if found := _OFFERED.search(said):
        return found[1]
    other = _OTHER_TYPE.search(said)
    if other is None:
        return _("an unknown key")
    return _("a key of another type ({type})", type=other[1] or _("unknown"))


def _line_of(said: str, found: re.Match[str]) -> str:
    start = said.rfind("\n", 0, found.start()) + 1
    return said[start:].split("\n", 1)[0].strip()


def _tail(said: str) -> str:
    return said.strip().rpartition("\n")[2][-300:] or _("no output")
