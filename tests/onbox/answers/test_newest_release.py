from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from boxcar.shared.files import release
from onbox.answers import door

ONE, TWO = "1" * 64, "2" * 64


def ask(tmp_path: Path, digest: str, name: str = "newest") -> dict[str, Any]:
    places = {"run": "tiny", "durable_dir": str(tmp_path), "data_dir": str(tmp_path)}
    return door.answer(json.dumps({"ask": name, **places, "digest": digest}).encode())


def releases(tmp_path: Path, *digests: str) -> Path:
    for digest in digests:
        (tmp_path / "boxcar/tiny/releases" / digest).mkdir(parents=True)
    return tmp_path / "boxcar/tiny/newest.json"


def test_the_one_that_was_pushed_last_is_the_newest(tmp_path: Path) -> None:
    path = releases(tmp_path, ONE, TWO)
    for digest, pushed in ((ONE, (ONE,)), (TWO, (ONE, TWO)), (TWO, (ONE, TWO)), (ONE, (TWO, ONE))):
        assert ask(tmp_path, digest) == {}
        assert release.releases(path) == pushed
        assert ask(tmp_path, digest, "release").get("is_newest")


def test_one_that_is_not_there_is_no_newest(tmp_path: Path) -> None:
    path = releases(tmp_path, ONE)
    assert "is not there" in ask(tmp_path, TWO)["error"]["text"]
    assert release.releases(path) == ()


def test_a_damaged_list_is_made_anew(tmp_path: Path) -> None:
    path = releases(tmp_path, ONE)
    path.write_text("{")
    assert not ask(tmp_path, ONE, "release").get("is_newest")
    assert ask(tmp_path, ONE) == {}
    assert release.releases(path) == (ONE,)
