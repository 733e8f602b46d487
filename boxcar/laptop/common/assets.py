"""Where the files lie that Boxcar ships but does not import: templates, profiles, onbox, examples.

An installed wheel holds them in `boxcar/assets/` (pyproject.toml, force-include), a checkout at its
root, in the same arrangement.
"""

from __future__ import annotations

from pathlib import Path

import boxcar


def training_program(name: str) -> str:
    """The text of a program of boxcar/training, which the laptop ships and never imports."""
    return (Path(boxcar.__file__).resolve().parent / "training" / f"{name}.py").read_text("utf-8")


def assets_root() -> Path:
    """The folder that holds `templates/`, `profiles/`, `onbox/`, `examples/` and `tasks.py`."""
    package = Path(boxcar.__file__).resolve().parent
    installed = package / "assets"
    return installed if installed.is_dir() else package.parent
