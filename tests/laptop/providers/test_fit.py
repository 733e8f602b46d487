"""What is looked for: the disk that a box gets, and why."""

from __future__ import annotations

import pytest

from boxcar.laptop.project.job import Job
from boxcar.laptop.providers.fit import wish_of

GB = 10**9


def job(**resources: str) -> Job:
    asked = {"resources": resources} if resources else {}
    wanted = {"name": "tiny", "command": "t.py --out {out}", "queues": {"q.txt": "box-a"}}
    return Job.model_validate(wanted | {"artifacts": ["a.json"]} | asked)


@pytest.mark.parametrize(
    ("typed", "room_bytes", "disk_gb", "because"),
    [
        ("300GB", 900 * GB, 300, "resources"),
        (None, None, 50, "smoke"),
        (None, 10 * GB, 50, "less"),
        (None, 100 * GB, 150, "1.5 times"),
        (None, 100 * GB + 1, 151, "1.5 times"),
    ],
)
def test_a_disk_is_as_typed_else_half_as_much_again_as_was_measured(
    typed: str | None, room_bytes: int | None, disk_gb: int, because: str
) -> None:
    made = wish_of(
        job(**({"disk": typed} if typed else {})), "", is_spot=False, room_bytes=room_bytes
    )
    assert made.disk_gb == disk_gb and because in made.disk_because
