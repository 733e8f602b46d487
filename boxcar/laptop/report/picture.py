"""The page as PNG, drawn by a Chromium that is on this machine. Boxcar brings none."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from boxcar.shared.errors import InputError

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTH = 1400  # pixels
# What each part of a page needs at this width, in pixels: a browser draws no more than its window
# holds.
_HEIGHTS = {"<h2": 128, "<tr": 37, "<li>": 26, "<figure": 190}
_ROUND_ABOUT = 190
WALL_S = 120.0


def of_page(page: Path, *, width: int = WIDTH, is_dark: bool = False) -> Path:
    """Writes it beside the page. Raises InputError where there is no Chromium, or it fails."""
    browser = next((found for name in NAMES if (found := shutil.which(name))), None)
    if browser is None:
        raise InputError(
            "--to png needs a Chromium on this machine, and there is none: install it (Debian and "
            "Ubuntu: apt install chromium; macOS: brew install --cask chromium), or take --to html"
        )
    path = page.with_suffix(".png")
    with tempfile.TemporaryDirectory() as profile:
        command = _command(browser, page, path, Path(profile), width)
        scheme = ["--blink-settings=preferredColorScheme=0"] if is_dark else []
        try:
            subprocess.run(
                [*command, *scheme, page.as_uri()],
                check=True,
                capture_output=True,
                timeout=WALL_S,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise InputError(f"{browser} drew no picture of {page}: {error}") from None
    return path


def height_px(page: Path) -> int:
    """About as high as the page is."""
    text = page.read_text(encoding="utf-8")
    return _ROUND_ABOUT + sum(each * text.count(part) for part, each in _HEIGHTS.items())


def _command(browser: str, page: Path, path: Path, profile: Path, width: int) -> list[str]:
    # Root has no user namespace to sandbox in; the page is our own, and runs nothing.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return [
        *(browser, "--headless", "--disable-gpu", "--hide-scrollbars", *sandbox),
        *(f"--user-data-dir={profile}", f"--window-size={width},{height_px(page)}"),
        f"--screenshot={path}",
    ]
