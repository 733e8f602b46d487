"""Whether boxes can reach where webhooks are sent to."""

from __future__ import annotations

import pytest

from boxcar.laptop.webhooks import webhook_reach
from boxcar.laptop.webhooks.kept_address import Address

BOXES = ["box-a", "box-b"]


def said(url: str, port: int = 0, through: tuple[str, ...] = ()) -> list[str]:
    endpoints = [{"url": url, "secret": "whsec_x"}]
    return [str(one) for one in webhook_reach.warnings(endpoints, BOXES, Address(port, through))]


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost", "[::1]:8765", "0.0.0.0:1"])
def test_an_address_of_this_machine_is_named_with_the_way_out(host: str) -> None:
    [warning] = said(f"http://user:pw@{host}/token")
    assert "is each box itself, not this machine" in warning
    assert warning.endswith("invoke listen --through box-a --through box-b")
    assert "token" not in warning and "pw" not in warning


@pytest.mark.parametrize("host", ["192.168.1.5:8765", "10.0.0.1", "laptop", "laptop.local"])
def test_an_address_of_a_private_network_is_named(host: str) -> None:
    [warning] = said(f"http://{host}/")
    assert "is one of a private network" in warning


@pytest.mark.parametrize("url", ["https://ntfy.example.org/x", "http://203.0.113.9.nip.io:8765/"])
def test_others_are_not(url: str) -> None:
    assert said(url) == []


def test_a_port_that_leads_here_is_right_for_the_boxes_it_leads_from() -> None:
    assert said("http://127.0.0.1:41234/", 41234, ("box-a", "box-b")) == []
    [warning] = said("http://127.0.0.1:41234/", 41234, ("box-a",))
    assert "box-b would reach nobody" in warning
    [warning] = said("http://127.0.0.1:8765/", 41234, ("box-a", "box-b"))
    assert "box-a, box-b would reach nobody" in warning
