"""What a job takes from the laptop's environment: values of secrets. No value is in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from boxcar.laptop.project.job import Job
from boxcar.laptop.project.notify.targets import variables_for_boxes
from boxcar.shared.errors import InputError
from boxcar.shared.known_secrets import KnownSecrets


def resolve_secrets(job: Job, environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets' values from the environment. Raises InputError that lists all missing names."""
    missing = [name for name in job.secrets if not environ.get(name)]
    if missing:
        raise InputError(
            [f"{job.at('secrets')}: {name} is not set; type: export {name}=…" for name in missing]
        )
    return {name: environ[name] for name in job.secrets}


def credential_names(job: Job) -> tuple[str, ...]:
    """The variables whose values go to each box: secrets, and what webhooks are sent with."""
    return tuple(dict.fromkeys((*job.secrets, *variables_for_boxes(job))))


def known_secrets(job: Job, environ: Mapping[str, str]) -> KnownSecrets:
    """Those of the boxes, as far as this machine has their values now."""
    return KnownSecrets(environ.get(name, "") for name in credential_names(job))
