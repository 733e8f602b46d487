"""What ssh said, as an error that says what is the matter and what to type next. Pure.

ssh speaks English whatever the locale, and its own failures have the exit code 255. A command on
the box may end with 255 as well: then nothing here fits, and it is told as a link that was cut,
because nobody can say how far the command came.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from boxcar.shared.errors import BoxcarError, InputError, TemporaryError

SSH_FAILED = 255
MAY_BE_DONE = "What was asked may have been done in part or in full; run the same command again"
_OFFERED = re.compile(r"key sent by the remote host is\s+(SHA256:[A-Za-z0-9+/=]+)")
_OTHER_TYPE = re.compile(r"No (\S+) host key is known for|(no matching host key type found)")
_CHANGED = ("REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed", "host key is")
_REFUSED = re.compile(
    r"Permission denied \(|Too many authentication failures|Permission denied, pl"
)
# sshd drops connections at random beyond MaxStartups, and new ones sort out who comes too often.
_CROWDED = re.compile(
    r"(?:kex|ssh)_exchange_identification|Exceeded MaxStartups|Not allowed at this time"
    r"|Connection (?:closed|reset) by \S+ port \d+"
)
_UNKNOWN_NAME = re.compile(r"Could not resolve hostname (\S+?):? ")
_BEFORE = (
    ("Connection refused", "it refused the connection: no sshd listens at that address and port"),
    ("No route to host", "there is no route to it"),
    ("Network is unreachable", "this machine's network does not lead there"),
    (
        "Connection timed out during banner exchange",
        "it accepted the connection and then said nothing",
    ),
    ("connect to host", "the connection timed out: the box is off, or something swallows packets"),
)


class Unreachable(TemporaryError):
    """The box did not answer. That says nothing about whether it, or what it runs, is alive.

    `why` is the reason in a few words; `is_brief` that it was turned away by whoever answers at the
    address, so the network leads there, and the same call may well succeed in a moment.
    """

    def __init__(self, alias: str, why: str, to_do: str = "", *, is_brief: bool = False) -> None:
        self.alias, self.why, self.is_brief = alias, why, is_brief
        super().__init__(f"{alias} cannot be reached: {why}{'. ' if to_do else ''}{to_do}")


class TooManyConnections(Unreachable):
    """sshd closed the connection before it said who it is."""


class LinkCut(Unreachable):
    """The connection broke off while something was asked. It may have been done, or half of it."""


class KeyRefused(InputError):
    """The box wants another key than those that ssh offered."""

    def __init__(self, alias: str, why: str) -> None:
        self.alias, self.why = alias, why
        super().__init__(
            f"{alias} refuses your key ({why}). Expected: that `ssh {alias} true` works without a "
            f"question. Check User and IdentityFile of {alias} in ~/.ssh/config, unlock the key "
            "(ssh-add), and put its public half into the platform's console"
        )


class HostKeyChanged(InputError):
    """Another key than the recorded one: another machine answers under this alias."""

    def __init__(self, alias: str, recorded: Sequence[str], offered: str, forget: str) -> None:
        self.alias, self.recorded, self.offered = alias, tuple(recorded), offered
        self.why = f"the host key changed: recorded {', '.join(recorded)}, offered {offered}"
        super().__init__(
            f"{alias}: {self.why}. Nothing was sent. If you rented or reset this box since, "
            f"compare the offered fingerprint with the platform's console and type: {forget}\n"
            f"If you did not, another machine answers as {alias}: check ~/.ssh/config first"
        )


def read(
    alias: str, code: int, said: str, *, recorded: Sequence[str] = (), forget: str = ""
) -> BoxcarError | None:
    """The error behind an exit code and stderr of ssh; None where the code is not ssh's own.

    `recorded` are the fingerprints known for the alias, `forget` the command that drops them.
    """
    if code != SSH_FAILED:
        return None
    if any(sign in said for sign in _CHANGED) or "no matching host key type" in said:
        return HostKeyChanged(alias, recorded or ["none"], _offered(said), forget)
    if refused := _REFUSED.search(said):
        return KeyRefused(alias, _line_of(said, refused))
    return _unreachable(alias, said)


def _unreachable(alias: str, said: str) -> Unreachable:
    if unknown := _UNKNOWN_NAME.search(said):
        why = f"there is no address for {unknown[1]}"
        return Unreachable(
            alias, why, f"Is there a `Host {alias}` in ~/.ssh/config? Are you online?"
        )
    if crowded := _CROWDED.search(said):
        why = f"sshd closed the connection at once ({_line_of(said, crowded)})"
        to_do = "It accepts only a few at a time (MaxStartups); try the same command again later"
        return TooManyConnections(alias, why, to_do, is_brief=True)
    for sign, why in _BEFORE:
        if sign in said:
            is_brief = sign == "Connection refused"
            to_do = f"See in the platform's console whether it runs; then try: ssh {alias} true"
            return Unreachable(alias, why, to_do, is_brief=is_brief)
    return LinkCut(alias, *cut(said))


def cut(said: str) -> tuple[str, str]:
    """Why and what to do, of a connection that broke off after the command was sent."""
    return f"the link was cut ({_tail(said)})", MAY_BE_DONE


def _offered(said: str) -> str:
    if found := _OFFERED.search(said):
        return found[1]
    other = _OTHER_TYPE.search(said)
    return f"another type of key ({other[1] or 'unknown'})" if other else "a key that is not known"


def _line_of(said: str, found: re.Match[str]) -> str:
    start = said.rfind("\n", 0, found.start()) + 1
    return said[start:].split("\n", 1)[0].strip()


def _tail(said: str) -> str:
    return said.strip().rpartition("\n")[2][-300:] or "no output"
