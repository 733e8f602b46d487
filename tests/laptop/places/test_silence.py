from __future__ import annotations

from collections.abc import Callable

import pytest

from boxcar.laptop.hosts.ssh_errors import (
    HostKeyChanged,
    KeyRefused,
    LinkCut,
    TooManyConnections,
    Unreachable,
)
from boxcar.laptop.places import ssh_site
from boxcar.laptop.places.ssh_site import LOOKS, Sign, look_for_signs, wait_until_silent
from boxcar.shared.errors import InputError, TemporaryError

REFUSED = Unreachable("box-a", "connection refused", is_brief=True)
SHUT_OUT = TooManyConnections("box-a", "sshd closed the connection at once", is_brief=True)
TIMED_OUT = Unreachable("box-a", "the connection timed out")
CUT = LinkCut("box-a", "the connection was lost")
STRANGER = HostKeyChanged("box-a", ["SHA256:old"], "SHA256:new", "forget")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_site, "PAUSE_S", dict.fromkeys(Sign, 0.0))
    monkeypatch.setattr(ssh_site, "WITHIN_S", 0.0)


def knocking(*looks: Exception | None, other: Exception | None = None) -> Callable[[str], None]:
    """What each look at box-a meets in turn, the last one for ever; and each at box-b."""
    left = list(looks)

    def knock(box: str) -> None:
        met = other if box == "box-b" else left.pop(0) if len(left) > 1 else left[0]
        if met is not None:
            raise met

    return knock


@pytest.mark.parametrize(
    ("met", "other", "sign"),
    [
        (None, None, Sign.ANSWERS),
        (KeyRefused("box-a", "publickey"), None, Sign.ANSWERS),
        (TemporaryError("the box did not identify itself"), None, Sign.ANSWERS),
        (STRANGER, None, Sign.STRANGER),
        (InputError("a different box answers under this name"), None, Sign.STRANGER),
        (REFUSED, TIMED_OUT, Sign.TURNED_AWAY),
        (SHUT_OUT, TIMED_OUT, Sign.SHUT_OUT),
        (TIMED_OUT, None, Sign.NOTHING),
        (TIMED_OUT, SHUT_OUT, Sign.NOTHING),
        (CUT, REFUSED, Sign.NOTHING),
        (TIMED_OUT, TIMED_OUT, Sign.LOST),
        (CUT, CUT, Sign.LOST),
    ],
)
def test_a_look_tells_a_silent_box_from_a_silent_network(
    met: Exception | None, other: Exception | None, sign: Sign
) -> None:
    assert look_for_signs(knocking(met, other=other), "box-a", ["box-b"]) is sign


def test_where_no_other_box_can_be_asked_nothing_is_known() -> None:
    assert look_for_signs(knocking(TIMED_OUT), "box-a", []) is Sign.LOST


def test_a_box_is_silent_after_looks_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [REFUSED] * (LOOKS - 1) + [None] + [REFUSED] * LOOKS
    assert wait_until_silent(knocking(None, *looks), "box-a", []) is Sign.ANSWERS
    assert wait_until_silent(knocking(*[TIMED_OUT] * LOOKS, None), "box-a", ["box-b"]) is None
    assert wait_until_silent(knocking(REFUSED), "box-a", []) is None
    looks = [SHUT_OUT] * LOOKS + [REFUSED] * LOOKS
    monkeypatch.setattr(ssh_site, "WITHIN_S", 3600.0)
    assert wait_until_silent(knocking(*looks, None), "box-a", []) is None


@pytest.mark.parametrize(
    ("met", "sign"),
    [
        (STRANGER, Sign.STRANGER),
        (TIMED_OUT, Sign.LOST),
        # sshd 9.8 and newer does so to an address for minutes, MaxStartups in every version.
        (SHUT_OUT, Sign.SHUT_OUT),
    ],
)
def test_what_nobody_can_tell_is_no_silence(met: Exception, sign: Sign) -> None:
    assert wait_until_silent(knocking(met), "box-a", []) is sign
