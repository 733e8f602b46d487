from __future__ import annotations

import importlib.util
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from boxcar.laptop.project.profiles import training_here


def environment(folder: Path) -> str:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    return str(folder)


def test_the_active_environment_is_the_virtual_one_before_condas(tmp_path: Path) -> None:
    made, conda = environment(tmp_path / "venv"), environment(tmp_path / "conda")
    both = {"VIRTUAL_ENV": made, "CONDA_PREFIX": conda}
    assert training_here.active_python(both) == f"{made}/bin/python"
    assert training_here.active_python({"CONDA_PREFIX": conda}) == f"{conda}/bin/python"


@pytest.mark.parametrize("folder", ["", "relative", "/gone"])
def test_what_is_no_environment_is_none(folder: str) -> None:
    assert training_here.active_python({"VIRTUAL_ENV": folder}) is None


@pytest.mark.parametrize(
    ("has_torch", "has_active", "is_own"),
    [(True, False, True), (True, True, False), (False, False, False), (False, True, False)],
)
def test_boxcars_own_python_trains_only_where_no_other_is_active_or_it_alone_has_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_torch: bool, has_active: bool, is_own: bool
) -> None:
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    made = environment(tmp_path / "venv")
    (tmp_path / "venv/lib/python3.12/site-packages" / ("torch" * has_active)).mkdir(parents=True)
    monkeypatch.setenv("VIRTUAL_ENV", made)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if has_torch else None)
    assert (training_here.for_training() == sys.executable) == is_own
    monkeypatch.delenv("VIRTUAL_ENV")
    assert training_here.for_training() == sys.executable


@pytest.mark.parametrize("how", ["pth", "system", "none", "no Python"])
def test_torch_that_comes_from_elsewhere_is_the_environments_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    (tmp_path / "elsewhere" / "torch").mkdir(parents=True)
    (tmp_path / "elsewhere" / "torch" / "__init__.py").touch()
    made = tmp_path / "it's a venv"
    venv.create(made, symlinks=True, system_site_packages=how == "system")
    if how == "pth":
        [packages] = made.glob("lib/python3*/site-packages")
        (packages / "elsewhere.pth").write_text(f"{tmp_path / 'elsewhere'}\n")
    if how == "system":
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        user = subprocess.run(
            [made / "bin" / "python", "-m", "site", "--user-site"], capture_output=True, text=True,
            check=False,
        ).stdout.strip()  # fmt: skip
        Path(user).parent.mkdir(parents=True)
        Path(user).symlink_to(tmp_path / "elsewhere")
    if how == "no Python":
        (made / "bin" / "python").unlink()
        (made / "bin" / "python").write_text("")
    monkeypatch.setenv("VIRTUAL_ENV", str(made))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    (tmp_path / "torch").mkdir()
    monkeypatch.chdir(tmp_path)
    others = str(made / "bin" / "python")
    assert training_here.for_training() == (others if how in ("pth", "system") else sys.executable)
