"""A setting of an endpoint: "env:NAME", or for a webhook's URL the value itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxcar.laptop.project.job_values import ENV_PREFIX


def value_of(setting: str, environ: Mapping[str, str]) -> str:
    """Empty where the variable is not set."""
    if setting.startswith(ENV_PREFIX):
        return environ.get(name_of(setting), "")
    return setting


def name_of(setting: str) -> str:
    return setting.removeprefix(ENV_PREFIX)


def unset(settings: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The names of the variables that hold nothing."""
    return [name_of(one) for one in settings if not value_of(one, environ)]
