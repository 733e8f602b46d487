"""Which GPUs of a box are asked for by name: what keeps two runs there apart.

A job says so by CUDA_VISIBLE_DEVICES in its `env`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from boxcar.shared.files.plan import Plan

VISIBLE = "CUDA_VISIBLE_DEVICES"
Devices = tuple[str, ...]


def of_plan(plan: Plan) -> Devices | None:
    """Those that any of its cells may see; None where one of them sees all, or nobody can tell."""
    of_all = {**plan.env, **plan.job_env}
    return together(map(of_env, (of_all, *({**of_all, **rule.env} for rule in plan.all_rules))))


def of_env(env: Mapping[str, str]) -> Devices | None:
    value = env.get(VISIBLE)
    if value is None or "{" in value:  # a placeholder differs from cell to cell
        return None
    return tuple(name.strip() for name in value.split(",") if name.strip() not in ("", "-1"))


def together(found: Iterable[Devices | None]) -> Devices | None:
    """Of several; None where one of them is not known, or there is none."""
    several = list(found)
    if not several or None in several:
        return None
    return tuple(sorted({name for one in several for name in one or ()}))


def are_apart(one: Devices | None, other: Devices | None) -> bool:
    """Whether both name their GPUs, and no GPU twice. An index and a UUID may be the same one."""
    if one is None or other is None:
        return False
    has_indices = {name.isdigit() for name in (*one, *other)}
    return len(has_indices) < 2 and not set(one) & set(other)
