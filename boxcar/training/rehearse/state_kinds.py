"""Which part of a training's state a value is, told by the names on the way to it. Pure.

A checkpoint is named by people, so this is a guess by the usual names; what no name tells is
`weights` where it is a tensor of fractions, else `other`.
"""

from __future__ import annotations

import re

from boxcar.training import torch_private

MODEL = "weights"
OPTIMIZER = "optimizer"
RATE = "learning rate"
SCHEDULER = "scheduler"
SCALER = "scaler"
EMA = "EMA"
RNG = "RNG"
LOADER = "loader position"
COUNTER = "counter"
FIGURE = "figure"
OTHER = "other"

# Whole words of a name. The order counts: `best.model` is a model, `ema.model` is an EMA.
_BY_NAME = (
    (RNG, {"rng", "rngs", "random", "generator", "generators"}),
    (EMA, {"ema", "shadow", "averaged", "swa"}),
    (SCALER, {"scaler", "grad_scaler", "gradscaler"}),
    (SCHEDULER, {"scheduler", "schedulers", "sched", "lr_scheduler", "lrs"}),
    (OPTIMIZER, {"optimizer", "optimizers", "optim", "optimiser", "opt"}),
    (LOADER, {"loader", "dataloader", "sampler", "position"}),
    (MODEL, {"model", "module", "net", "network", "weights", "state_dict", "params", "parameters"}),
)
_MOMENTS = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg"}
_RATES = {"lr", "initial_lr", torch_private.LAST_RATE}
_PLACES = {"batches_done", "batch", "batch_idx", "batch_index", "samples_seen", "offset"}
_COUNTERS = {"step", "steps", "epoch", "epochs", "iteration", "iterations", "iter", "global_step"}
_FIGURES = {"loss", "metric", "metrics", "accuracy", "acc", "score", "error"}
_CLOCK = {
    *("seconds", "secs", "sec", "minutes", "hours", "ms", "time", "times", "timestamp", "date"),
    *("datetime", "duration", "elapsed", "wall", "wallclock", "at", "eta", "throughput", "speed"),
    *("started", "ended", "created"),
}
_STARTS = {"starts", "restarts", "attempt", "attempts", "resumes", "pid"}
_NAMES = {"id", "uuid", "host", "hostname"}
_PER = {"s", "sec", "second", "min", "minute", "hour", "h"}
# `time_step` and `time_embedding_dim` are no readings of a clock.
_NO_CLOCK = _COUNTERS | {"dim", "embedding", "embed", "size", "num"}


def kind_of(path: tuple[str, ...], *, is_fraction_tensor: bool = False) -> str:
    """The part of the state that the value at `path` belongs to."""
    leaf = path[-1].lower() if path else ""
    named = _named(path)
    if leaf in _RATES and named in (OPTIMIZER, None):
        return RATE
    if named:
        return named
    if leaf in _MOMENTS:
        return OPTIMIZER
    if is_fraction_tensor:
        return MODEL
    return _plain_kind(leaf)


def is_of_one_run(path: tuple[str, ...], value: object) -> bool:
    """Whether every run has its own: a reading of a clock, a random name, the number of starts.

    Told by the last name on the way. A number of a class has an id too: only texts are names.
    """
    name = path[-1] if path else ""
    words = _words(name)
    if ("per" in words and words & _PER) or words & _STARTS:
        return True
    if words & _NAMES and isinstance(value, str):
        return True
    is_clock = bool(words & _CLOCK) or name.endswith("_s")
    return is_clock and not words & _NO_CLOCK


def is_counter(path: tuple[str, ...]) -> bool:
    """Whether it counts something, in whatever type: Adam keeps its step as a fraction."""
    return bool(path) and path[-1].lower() in _COUNTERS


def _named(path: tuple[str, ...]) -> str | None:
    """By the first name on the way that says it: the upper ones are chosen with most care."""
    for name in path:
        words = _words(name) | {name.lower()}
        for kind, known in _BY_NAME:
            if words & known:
                return kind
    return None


def _plain_kind(leaf: str) -> str:
    words = _words(leaf)
    if leaf in _PLACES:
        return LOADER
    if words & _FIGURES:
        return FIGURE
    return COUNTER if leaf in _COUNTERS or words & _COUNTERS else OTHER


def _words(name: str) -> set[str]:
    """`rngCuda`, `rng_cuda` and `rng.cuda` all hold the word rng."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return {word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word}
