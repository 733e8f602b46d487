from __future__ import annotations

from pathlib import Path

import pytest

from onbox.attempt import stage


@pytest.fixture
def staged(tmp_path: Path, archives) -> Path:
    """The program in its folder, and the agent's file beside it."""
    archive = tmp_path / archives.onbox
    archive.write_bytes(archives.files[archives.onbox])
    made = stage.Program(archive)
    for record in made.records():
        target = tmp_path / record.path
        target.parent.mkdir(parents=True, exist_ok=True)
        made.fetch(record, target)
    return tmp_path / stage.FOLDER
