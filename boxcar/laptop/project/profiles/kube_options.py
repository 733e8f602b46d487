"""What a person says of a Kubernetes cluster, in a profile that extends kubernetes.

Pure. Not checked here: whether the cluster has such a claim or resource, see audit.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.project.profiles.slurm_options import plain_text
from boxcar.shared.sentence import mark

_NAME = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
Name = Annotated[
    str, AfterValidator(plain_text(mark("a name of lower-case letters, digits, - and ."), _NAME))
]
# Contexts of cloud providers hold slashes, colons and @.
Context = Annotated[
    str,
    AfterValidator(
        plain_text(mark("a context that kubectl knows"), r"[A-Za-z0-9][A-Za-z0-9_.@:/+-]{0,252}")
    ),
]
Resource = Annotated[
    str,
    AfterValidator(
        plain_text(
            mark("a resource such as nvidia.com/gpu"),
            r"[a-z0-9]([-a-z0-9.]{0,62}[a-z0-9])?/[A-Za-z0-9][A-Za-z0-9_.-]{0,62}",
        )
    ),
]
Quantity = Annotated[
    str,
    AfterValidator(
        plain_text(
            mark("a quantity such as 8, 500m or 64Gi"),
            r"\d{1,9}(\.\d{1,3})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?",
        )
    ),
]

# Of memory a number alone would be bytes, which nobody means.
Memory = Annotated[
    str,
    AfterValidator(
        plain_text(mark("an amount with its unit, such as 64Gi"), r"\d{1,9}(\.\d{1,3})?[MGT]i?")
    ),
]


class KubeOptions(Model):
    """What is None is left to the cluster, or to kubectl."""

    context: Context | None = None
    namespace: Name | None = None
    # The PersistentVolumeClaim that is the durable tier.
    claim: Name | None = None
    gpus: Annotated[int, Field(ge=0, le=64)] = 1
    gpu_resource: Resource = "nvidia.com/gpu"
    cpu: Quantity | None = None
    memory: Memory | None = None
    shm: Memory = "8Gi"
    # Of Kueue: the LocalQueue that lets the Jobs begin.
    kueue: Name | None = None
