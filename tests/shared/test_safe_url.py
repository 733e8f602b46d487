"""No user, password or signature reaches a message; the same place keeps its identity."""

from __future__ import annotations

import pytest

from boxcar.shared.safe_url import identity_of_url, lets_in, shown

SIGNED = "https://me:pass@host/a/b.h5?X-Amz-Signature=sig&X-Amz-Expires=60&v=1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SIGNED, "https://host/a/b.h5?..."),
        ("ftp://u@host/x", "ftp://host/x"),
        ("s3://bucket/a@b/c.h5", "s3://bucket/a@b/c.h5"),
        (f"403, url={SIGNED!r} (x)", "403, url='https://host/a/b.h5?...' (x)"),
        ("zip://a.h5::https://u:p@h/z.zip?sig=1", "zip://a.h5::https://h/z.zip?..."),
        ("/mnt/data/x.h5", "/mnt/data/x.h5"),
        ("https://u:p@ss@host/x", "https://host/x"),
    ],
)
def test_what_lets_somebody_in_is_not_shown(text: str, said: str) -> None:
    assert shown(text) == said


def test_another_signature_or_user_is_the_same_place() -> None:
    again = "https://you:else@host/a/b.h5?v=1&X-Amz-Signature=other&X-Amz-Expires=99"
    assert identity_of_url(again) == identity_of_url(SIGNED)


@pytest.mark.parametrize(
    "other",
    [
        "https://host/a/b.h5?v=2",
        "https://host/a/c.h5?v=1",
        "http://host/a/b.h5?v=1",
        "https://h/a/b.h5?v=1",
    ],
)
def test_another_file_is_another_place(other: str) -> None:
    assert identity_of_url(other) != identity_of_url(SIGNED)


@pytest.mark.parametrize(
    ("url", "what"),
    [
        (SIGNED, "a user or password"),
        ("https://host/a?X-Amz-Signature=1", "X-Amz-Signature"),
        ("https://host/a?v=1&api_key=1", "api_key"),
        ("https://host/a?sig=", "sig"),
        ("https://me@host/a", "a user or password"),
    ],
)
def test_what_of_a_url_lets_somebody_in_is_named(url: str, what: str) -> None:
    assert what in str(lets_in(url))


@pytest.mark.parametrize("url", ["https://host/a@b?download=1&v=2", "hf://datasets/a/b@main/c"])
def test_another_url_lets_nobody_in(url: str) -> None:
    assert lets_in(url) is None
