"""torch.compile that is chosen, said and written down: compiled code can give other numbers.

    model = wrapper.setup()
    compile_model(model, config, mode="reduce-overhead")

Compiles in place, so the names in the state dict stay the model's own (no `_orig_mod.`). Call it
after `setup`. Inside DDP it compiles the wrapped module: torch's DDPOptimizer cuts its graph at the
gradient buckets while DDP's forward runs, so that the reduction overlaps the backward pass, and
DDP's own Python is not traced. Under FSDP it compiles each unit's forward, between the hooks that
gather and free: blocks of one class share one graph, and a fallback gathers nothing twice.

Not covered: a failure while the backward pass is compiled, which torch raises from `backward()`,
and a module's own `forward` that was replaced after compilation.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from boxcar.shared.errors import InputError
from boxcar.training import run_manifest, torch_private
from boxcar.training.checkpoint.training_state import unwrapped
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.reporting.say import say_on_main

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# Both replay CUDA graphs. Under DDP that crashed or was slower: pytorch issues 113809, 128218,
# 139207 and 140395 (still open with 2.5).
_WITHOUT_GRAPHS = {"reduce-overhead": "default", "max-autotune": "default"}


@dataclass(frozen=True)
class CompileChoice:
    """What is done about compilation. `mode` is torch's, or "eager"."""

    is_compiled: bool
    mode: str
    reason: str


def choose(
    mode: str,
    *,
    strategy: str,
    world: int,
    device_type: str,
    has_compiler: bool,
    torch_version: str,
) -> CompileChoice:
    """The mode that works here, and why. Pure. Raises InputError for a mode that torch has not."""
    if mode not in MODES:
        raise InputError(f"compile mode {mode!r} is not known; write one of {', '.join(MODES)}")
    if not has_compiler:
        needs = "triton and a C compiler" if device_type == "cuda" else "a C++ compiler (g++)"
        return CompileChoice(False, "eager", f"torch.compile needs {needs}, which is missing here")
    if strategy == "fsdp" and _numbers(torch_version) < (2, 6):
        reason = f"fully_shard and torch.compile work together from torch 2.6, not {torch_version}"
        return CompileChoice(False, "eager", reason)
    if world > 1 and strategy in ("ddp", "fsdp") and mode in _WITHOUT_GRAPHS:
        reason = f"the CUDA graphs of {mode!r} and {strategy} on {world} ranks do not go together"
        return CompileChoice(True, _WITHOUT_GRAPHS[mode], reason)
    return CompileChoice(True, mode, "as asked")


def compile_model(
    model: nn.Module,
    config: DistributedConfig,
    *,
    mode: str = "default",
    backend: str | Callable[..., Any] = "inductor",
) -> nn.Module:
    """Compile `model` in place and return it, or leave it eager where that cannot work.

    The first call compiles, in minutes for a large model; where that fails, the call is made again
    without compilation, and so are all later ones. The model's own errors come through, from that
    second call. The choice is said on rank 0 and stands in `training.json` under `compile`.
    """
    joined = ranks.current()
    choice = choose(
        mode,
        strategy=config.strategy,
        world=joined.world,
        device_type=joined.device.type,
        has_compiler=backend != "inductor" or has_compiler(joined.device.type),
        torch_version=torch.__version__,
    )
    written = _Written(mode, backend if isinstance(backend, str) else backend.__name__)
    written.choice(choice)
    if choice.is_compiled:
        options = {"mode": choice.mode} if backend == "inductor" else {}
        compilation = _Compilation(written, {"backend": backend, **options})
        if config.strategy == "fsdp":
            for unit in _units(model):
                unit.forward = _Guarded(unit.forward, compilation)
        else:
            torch_private.replace_call(unwrapped(model), lambda call: _Guarded(call, compilation))
    return model


def has_compiler(device_type: str) -> bool:
    """Whether inductor finds what it needs: a C++ compiler for the CPU, triton for CUDA."""
    names = (os.environ.get("CXX"), "g++", "clang++")
    if device_type == "cuda":
        # Triton compiles its launchers with it, at the first call.
        names = (os.environ.get("CC"), "gcc", "clang")
    has_triton = device_type != "cuda" or importlib.util.find_spec("triton") is not None
    return has_triton and any(shutil.which(name) for name in names if name)


def _units(model: nn.Module) -> list[nn.Module]:
    # Late: FSDP takes a second to import, and only its own users need it.
    from boxcar.training.parallel import fsdp

    if units := fsdp.units(model):
        return units
    raise InputError("compile_model: nothing is sharded yet; call FSDPWrapper.setup before it")


@dataclass(frozen=True)
class _Written:
    """What was asked for, and the one who writes down what came of it."""

    asked: str
    backend: str

    def choice(self, choice: CompileChoice) -> None:
        run_manifest.record(
            compile={
                "asked": self.asked,
                "backend": self.backend,
                "is_compiled": choice.is_compiled,
                "mode": choice.mode,
                "reason": choice.reason,
            }
        )
        if choice.mode != self.asked:
            say_on_main(f"compile mode {self.asked!r} became {choice.mode!r}: {choice.reason}")


class _Compilation:
    """What all compiled calls of one model share: when one fails, all go on without."""

    def __init__(self, written: _Written, options: dict[str, Any]) -> None:
        self._written = written
        self._options = options
        self.is_given_up = False

    def compiled(self, eager: Callable[..., Any]) -> Callable[..., Any]:
        # A frame of our own: torch skips its own ones, and with them all of an nn.Sequential.
        def call(*args: Any, **kwargs: Any) -> Any:
            return eager(*args, **kwargs)

        return torch.compile(call, **self._options)

    def give_up(self, failure: Exception) -> None:
        self.is_given_up = True
        cause = getattr(failure, "inner_exception", failure)
        line = next(iter(str(cause).strip().splitlines()), "")
        reason = f"compilation failed: {type(cause).__name__}: {line[:200]}"
        self._written.choice(CompileChoice(False, "eager", reason))


class _Guarded:
    """A compiled call, until the compilation is given up."""

    def __init__(self, eager: Callable[..., Any], compilation: _Compilation) -> None:
        self._eager = eager
        self._compiled = compilation.compiled(eager)
        self._compilation = compilation
        self._has_worked = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._compilation.is_given_up:
            return self._eager(*args, **kwargs)
        try:
            result = self._compiled(*args, **kwargs)
        except Exception as error:
            if self._has_worked and not _is_of_the_compiler(error):
                raise
            failure = error
        else:
            self._has_worked = True
            return result
        # Outside of `except`: an error of the model itself is raised from here, as its own.
        result = self._eager(*args, **kwargs)
        self._compilation.give_up(failure)
        return result


def _is_of_the_compiler(error: Exception) -> bool:
    # The compiler is there by now, so asking for its error imports nothing more.
    return isinstance(error, torch_private.compiler_error())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
