"""Where webhooks arrive, kept for the next time."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.webhooks import kept_address
from boxcar.laptop.webhooks.kept_address import Address


def test_an_address_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / ".boxcar" / "listen.json"
    assert kept_address.read(path) == Address()
    kept_address.write(path, Address(41234, ("box-a", "box-b")))
    assert kept_address.read(path) == Address(41234, ("box-a", "box-b"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"port": "x"}', '{"through": []}'])
def test_one_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "listen.json"
    path.write_text(text)
    assert kept_address.read(path) == Address()


def test_the_secret_is_made_once_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / ".boxcar" / "listen.secret"
    made = kept_address.secret(path)
    assert made.startswith("whsec_") and kept_address.secret(path) == made
    assert path.stat().st_mode & 0o777 == 0o600
