from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared.wire import webhook_secret


@given(st.binary(min_size=1))
def test_a_secret_gives_its_key_with_or_without_padding(key: bytes) -> None:
    text = "whsec_" + base64.b64encode(key).decode()
    assert webhook_secret.key(text) == webhook_secret.key(text.rstrip("=")) == key
    assert webhook_secret.is_secret(text)


NONE = [
    "",
    "whsec_",
    "whsec_==",
    "MfKQ9r8GKYqr",
    "whsec_a",
    "whsec_MfKQ 9r8G",
    "whsec_größe",
    "WHSEC_MfKQ",
]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_secret_is_refused_without_repeating_it(text: str) -> None:
    assert not webhook_secret.is_secret(text)
    with pytest.raises(ValueError, match=r"^expected whsec_ and base64$") as raised:
        webhook_secret.key(text)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize("value", [None, 5, b"whsec_MfKQ", ["whsec_MfKQ"]])
def test_only_a_text_is_a_secret(value: object) -> None:
    assert not webhook_secret.is_secret(value)
