from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.results import load as load_module
from boxcar.laptop.results.load import load
from boxcar.shared.errors import InputError
from boxcar.shared.files.plan import Artifact


def test_a_missing_torch_is_said_with_the_command_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install torch"):
        load(tmp_path, [Artifact("best.pth")])


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
