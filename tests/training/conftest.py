from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def out_of_the_checkout(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a training writes beside its script by default would lie in the checkout."""
    monkeypatch.setenv("BOXCAR_OUT", str(tmp_path_factory.getbasetemp()))
