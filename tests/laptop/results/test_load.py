from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.results import load as load_module
from boxcar.laptop.results.load import load
from boxcar.shared.files.plan import BYTES_ONLY, Artifact


def test_without_torch_a_file_is_only_hashed_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "notes.bin").write_bytes(b"x")
    files = [Artifact("best.pth"), Artifact("notes.bin", load=BYTES_ONLY)]
    found = load(tmp_path, files).findings
    assert found["best.pth"].is_hashed and found["best.pth"].is_by_its_box
    assert found["notes.bin"].kind == "bytes" and not found["notes.bin"].is_hashed
    assert "pipx inject boxcar-run torch" in load_module.how_to_get_torch()
    monkeypatch.setattr(load_module.importlib.util, "find_spec", lambda name: object())
    assert "-m pip install torch" in load_module.how_to_get_torch()


def test_text_needs_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "metrics.json").write_text('{"psnr": 30.5}')
    finding = load(tmp_path, [Artifact("metrics.json")]).findings["metrics.json"]
    assert finding.is_good and finding.facts["numbers"] == {"psnr": 30.5}


def test_the_real_checker_tells_good_files_from_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from a folder in which a file is called like a module of Python's."""
    torch = pytest.importorskip("torch")
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(tmp_path)
    weights = {"model": {"w": torch.ones(8)}}
    torch.save(weights, tmp_path / "best.pth")
    (tmp_path / "empty.pth").touch()
    torch.save({"model": {"w": torch.tensor([1.0, float("nan")])}}, tmp_path / "nan.pth")
    (tmp_path / "short.pth").write_bytes((tmp_path / "best.pth").read_bytes()[:-100])
    command = repr(f"touch '{tmp_path}/it-ran'").encode()
    (tmp_path / "evil.pkl").write_bytes(b"cposix\nsystem\n(S" + command + b"\ntR.")
    good, *bad = ("best.pth", "empty.pth", "nan.pth", "short.pth", "evil.pkl")
    loaded = load(tmp_path, [Artifact(name, ("model",)) for name in (good, *bad)])
    assert loaded.loader.startswith("torch ")
    found = [path for path, finding in loaded.findings.items() if not finding.is_good]
    assert found == bad
    assert not (tmp_path / "it-ran").exists()
