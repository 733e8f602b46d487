from __future__ import annotations

import pytest
from pretended import Pretended

from boxcar.shared.disk import atomic
from boxcar.shared.files import codec, resume_pointer
from boxcar.shared.files.manifest import FileRecord
from boxcar.shared.files.resume_pointer import Resume
from onbox.slurm import submit

AT = "2026-11-22T10:00:00.000Z"


@pytest.mark.parametrize(
    ("own_s", "copied_s", "most_s", "lead_s"),
    [(90, 5.0, 900, 90), (90, 100.0, 900, 330), (90, 1000.0, 900, 900), (15, 100.0, None, 330)],
)
def test_the_lead_grows_with_what_the_last_copies_took_within_the_limits_share(
    own_s: int, copied_s: float, most_s: int | None, lead_s: int
) -> None:
    assert submit.lead_s(own_s, copied_s, most_s) == lead_s


def test_only_a_longer_lead_than_the_scripts_is_asked_for(slurm: Pretended) -> None:
    script = slurm.folder / "run_slurm.sh"
    script.write_text("#!/bin/bash\n#SBATCH --signal=B:USR1@90\n")
    assert submit._lead_option(script, slurm.tier, 900) == []
    for cell, seconds in (("a", 3.0), ("b", 60.0), ("c", None)):
        file = FileRecord("x", 1, "0" * 64)
        pointer = Resume(cell, 1, AT, "latest.pth", file, seconds=seconds)
        atomic.make_folder(slurm.tier.resume(cell))
        path = slurm.tier.resume(cell) / resume_pointer.FILE
        atomic.write_whole(path, codec.to_document(pointer))
    assert submit._lead_option(script, slurm.tier, 900) == ["--signal=B:USR1@210"]
    assert submit._lead_option(script, slurm.tier, 100) == ["--signal=B:USR1@100"]
