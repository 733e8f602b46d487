from __future__ import annotations

from pathlib import Path

import pytest

import boxcar
from boxcar.laptop.common import home

CHECKOUT = Path(__file__).resolve().parents[3]
SHIPPED = ("job.yaml", "onbox", "profiles", "queues", "templates", "examples/digits")


def test_a_checkout_holds_the_assets_at_its_root() -> None:
    assert home.assets_root() == CHECKOUT


@pytest.mark.parametrize("name", SHIPPED)
def test_a_wheel_gets_what_the_checkout_has(name: str) -> None:
    assert (home.assets_root() / name).exists()
    included = f'"{name}" = "boxcar/assets/{name}"'
    assert included in (CHECKOUT / "pyproject.toml").read_text()


def test_an_installed_package_holds_them_inside_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site-packages" / "boxcar"
    (installed / "assets").mkdir(parents=True)
    monkeypatch.setattr(boxcar, "__file__", str(installed / "__init__.py"))
    assert home.assets_root() == installed / "assets"
