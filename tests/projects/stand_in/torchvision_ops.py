"""Beside torch for the CPU, torchvision's wheel for CUDA cannot load its compiled operators, and
then does not import at all. This declares them, so that all of it that is Python runs; nothing
that needs one of these operators does.

Typed in an environment, `python torchvision_ops.py` puts it there, to be asked when torchvision is
imported; where its operators load, nothing is changed.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

OPERATORS = ("nms", "qnms")  # those without which torchvision 0.19 to 0.29 does not import
_TAKES = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class _BeforeTorchvision:
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            _declare()
        return None


def _declare() -> None:
    import torch

    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return
    try:
        for library in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(str(library))
    except OSError:
        for name in OPERATORS:
            torch.library.define(f"torchvision::{name}", _TAKES)


def install() -> None:
    folder = Path(sysconfig.get_path("purelib"))
    shutil.copy(__file__, folder / "boxcar_torchvision_ops.py")
    (folder / "boxcar_torchvision_ops.pth").write_text("import boxcar_torchvision_ops\n")


if __name__ == "__main__":
    install()
else:
    sys.meta_path.insert(0, _BeforeTorchvision())
