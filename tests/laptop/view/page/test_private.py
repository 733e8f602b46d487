"""Nothing that could lead somebody to a box, or let them in, stands on a page."""

from __future__ import annotations

import pytest

from boxcar.laptop.view.page.live_page import Private
from boxcar.shared.known_secrets import LEFT_OUT, KnownSecrets


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("401 for https://me:tok@hf.co/a?token=b, after 3 tries", "401 for […] after 3 tries"),
        ("ssh: connect to host 10.1.2.3 port 2222: refused", "ssh: connect to host […]: refused"),
        (
            "ssh: connect to host connect.westb.example.com port 22: refused",
            "ssh: connect to host […]: refused",
        ),
        (
            "ssh: Could not resolve hostname gpu.example.com: Name not known",
            "ssh: Could not resolve hostname […]: Name not known",
        ),
        ("root@gpu-7.example.com:2200 went away", "[…] went away"),
        ("peer 2001:db8::17 and fe80::1:2:3:4 closed", "peer […] and […] closed"),
        ("Authorization: Bearer eyJhbGciOi.x", "Authorization: Bearer […]"),
        ("HF_TOKEN=hf_abcdefghijkl was refused", "HF_TOKEN=[…] was refused"),
        ("the key sk-proj-0123456789 is unknown", "the key […] is unknown"),
        ("s3://bucket/key is not there", "[…] is not there"),
    ],
)
def test_an_address_a_login_and_a_key_are_left_out(said: str, left: str) -> None:
    assert Private().cleaned(said) == left


@pytest.mark.parametrize(
    "said",
    [
        "M2 CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.20 GiB total)",
        "no step for 903 s (expected one within 900 s), at 12:30:45",
        "torch 2.4.1 and numpy 1.26: a: b: c",
        "box-a: its event log is damaged; what happened after the damage is unknown",
        "没有新的 step：box-a made no step",
    ],
)
def test_what_only_says_what_happened_stays(said: str) -> None:
    assert Private().cleaned(said) == said


def test_a_value_of_the_persons_own_secrets_is_left_out_however_it_looks() -> None:
    private = Private(KnownSecrets(["correct horse", "", "ab"]))
    assert private.cleaned("tried correct horse, ab") == f"tried {LEFT_OUT}, ab"
