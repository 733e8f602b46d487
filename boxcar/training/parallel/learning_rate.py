"""The learning rate of a larger batch: in proportion to it, and reached in some first steps.

    lr = scaled_lr(3e-4, effective_batch=accumulator.effective_batch_size(32, me.world),
                   reference_batch=32)
    optimizer = torch.optim.SGD(model.parameters(), lr)
    scheduler = warm_up(optimizer, steps=500)

More ranks or a longer accumulation make one step of more samples, and the rate that was found for
fewer is too small then. It changes the training: a run with another effective batch is another run.
Source: P. Goyal et al., "Accurate, Large Minibatch SGD", 2017.
"""

from __future__ import annotations

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LinearLR, LRScheduler, SequentialLR

from boxcar.shared.errors import InputError
from boxcar.training import run_manifest


def scaled_lr(base_lr: float, effective_batch: int, reference_batch: int) -> float:
    """`base_lr * effective_batch / reference_batch`, and a line of it in training.json.

    Give it to the optimizer together with `warm_up`. Raises InputError for a batch below 1.
    """
    if effective_batch < 1 or reference_batch < 1:
        raise InputError(
            "scaled_lr: a batch has 1 sample or more, found effective_batch="
            f"{effective_batch}, reference_batch={reference_batch}"
        )
    lr = base_lr * effective_batch / reference_batch
    run_manifest.record(
        base_lr=base_lr, lr=lr, effective_batch=effective_batch, reference_batch=reference_batch
    )
    return lr


def warm_up(optimizer: Optimizer, steps: int, then: LRScheduler | None = None) -> LRScheduler:
    """From 1/steps of the rate to the whole of it in `steps` optimizer steps, then as `then` says.

    Call `.step()` after each optimizer step, and give it to TrainingState as `scheduler=`: torch's
    own LinearLR, or SequentialLR where something follows. Raises InputError for fewer than 1 step.
    """
    if steps < 1:
        raise InputError(f"warm_up: steps should be 1 or more, found {steps}")
    rising = LinearLR(optimizer, start_factor=1 / steps, total_iters=steps - 1 or 1)
    return rising if then is None else SequentialLR(optimizer, [rising, then], [steps])
