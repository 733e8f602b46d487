from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.results import load as load_module
from boxcar.laptop.results.load import SHARE_BYTES, load, shares
from boxcar.shared.files.plan import BYTES_ONLY, Artifact
from boxcar.shared.files.receipt import Finding
from boxcar.shared.process.load_child import UNCHECKED, Child, Loaded, Manner


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


def test_text_and_what_nobody_looks_into_need_no_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "metrics.json").write_text('{"psnr": 30.5}')
    (tmp_path / "model.txt").write_text("tree")
    (tmp_path / "notes").write_text("of no kind that its name or its bytes say")
    names = ("metrics.json", "model.txt", "notes")
    found = load(tmp_path, [Artifact(name) for name in names]).findings
    assert [found[name].kind for name in names] == ["json", "bytes", "bytes"]
    assert all(one.is_good and not one.is_hashed for one in found.values())
    assert found["metrics.json"].facts["numbers"] == {"psnr": 30.5}


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


def test_large_files_are_shared_out_evenly_and_small_ones_are_left_to_one_child() -> None:
    files = [Artifact(f"{number}.pth") for number in range(9)]
    small = {file.path: SHARE_BYTES // 9 for file in files}
    assert shares(files, small, 4) == [files]
    sizes = {file.path: SHARE_BYTES for file in files} | {"0.pth": 3 * SHARE_BYTES}
    parts = shares(files, sizes, 4)
    assert sorted(sum(sizes[file.path] for file in part) for part in parts) == [
        size * SHARE_BYTES for size in (2, 3, 3, 3)
    ]
    assert sorted(file.path for part in parts for file in part) == [file.path for file in files]
    assert shares([], {}, 4) == []


def test_several_children_find_what_one_finds_and_a_file_that_kills_one_takes_no_other_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module, "SHARE_BYTES", 8)
    monkeypatch.setattr(load_module.os, "cpu_count", lambda: 3)
    names = [f"{number}.json" for number in range(6)]
    for name in names:
        (tmp_path / name).write_text('{"psnr": 30.5}')
    (tmp_path / "4.json").write_text('{"psnr": NaN}')
    told: list[str] = []
    manner = Manner(on_finding=lambda finding: told.append(finding.path))
    loaded = load(tmp_path, [Artifact(name) for name in (*names, "none.json")], manner)
    bad = sorted(path for path, finding in loaded.findings.items() if not finding.is_good)
    assert bad == ["4.json", "none.json"]
    assert sorted(told) == sorted(loaded.findings) == [*names, "none.json"]
    by_one = load(tmp_path, [Artifact("0.json")])
    assert loaded.loader == by_one.loader
    # How much memory there is differs from one moment to the next.
    without = [[one.partition("=")[0] for one in each.sandbox] for each in (loaded, by_one)]
    assert without[0] == without[1]


def test_what_one_of_several_children_could_not_tell_is_asked_of_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module, "SHARE_BYTES", 1)
    monkeypatch.setattr(load_module.os, "cpu_count", lambda: 2)
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    real, asked = load_module.load_child.load, []

    def short_of_memory(child: Child, folder: Path, files: list[Artifact], how: Manner) -> Loaded:
        asked.append([file.path for file in files])
        if len(asked) <= 2 and files[0].path == "b.json":
            return Loaded({"b.json": Finding("b.json", UNCHECKED, ("no memory",))})
        return real(child, folder, files, how)

    monkeypatch.setattr(load_module.load_child, "load", short_of_memory)
    loaded = load(tmp_path, [Artifact("a.json"), Artifact("b.json")])
    assert sorted(asked[:2]) == [["a.json"], ["b.json"]] and asked[2:] == [["b.json"]]
    assert all(finding.is_good for finding in loaded.findings.values())
