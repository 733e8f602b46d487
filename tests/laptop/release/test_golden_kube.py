"""What is created on Kubernetes, word for word, and by the schemas of four versions.

Write the files anew with BOXCAR_GOLDEN=write, and read what changed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from boxcar.laptop.project.profiles.kube_options import KubeOptions
from boxcar.laptop.release import kube_jobset, kube_objects
from boxcar.laptop.release.kube_objects import Object, Owner

GOLDEN = Path(__file__).parents[2] / "data" / "golden_kube"
OWNER = Owner("digits", "tier", "/checkpoints")
CREDENTIALS = "/root/.boxcar/credentials-digits.json"
IMAGE = "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"
GPUS = KubeOptions(claim="tier", namespace="lab", gpus=2, cpu="16", memory="64Gi", shm="16Gi")
OPTIONS = {
    "gpus": GPUS,
    "cpu-only": GPUS.model_copy(update={"gpus": 0}),
    "kueue": GPUS.model_copy(update={"kueue": "team-a"}),
}


def job(options: KubeOptions, version: tuple[int, int]) -> Object:
    return kube_objects.job(
        OWNER,
        "queue_1",
        release="/checkpoints/boxcar/digits/release/abcd",
        begin=("0",),
        tier="/checkpoints",
        credentials=CREDENTIALS,
        image=IMAGE,
        grace_s=120.0,
        options=options,
        version=version,
    )


def objects(version: tuple[int, int]) -> dict[str, Object]:
    """By the name of its golden file."""
    jobs = {f"job-{name}": job(options, version) for name, options in OPTIONS.items()}
    secret = kube_objects.secret(OWNER, "queue_1", CREDENTIALS, b"{}")
    helper = kube_objects.helper(OWNER, tier="/checkpoints", image=IMAGE, options=GPUS)
    return jobs | {"secret": secret, "helper": helper}


class _Plain(yaml.SafeDumper):
    """Scripts in lines of their own, and no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Plain.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


@pytest.mark.parametrize("version", [(1, 25), (1, 28), (1, 32), (1, 37)])
def test_each_object_is_one_by_the_schemas_of_that_version(version: tuple[int, int]) -> None:
    for name, made in objects(version).items():
        kubernetes_validate.validate(made, "{}.{}".format(*version), strict=True)
        assert made["metadata"]["labels"]["boxcar-run"] == "digits", name


def test_a_field_that_a_version_does_not_know_would_be_seen() -> None:
    made = job(GPUS, (1, 37))
    with pytest.raises(kubernetes_validate.ValidationError, match="podFailurePolicy"):
        kubernetes_validate.validate(
            made | {"spec": made["spec"] | {"podFailurePolicy": 1}}, "1.37"
        )
    with pytest.raises(kubernetes_validate.ValidationError, match="podReplacementPolicy"):
        kubernetes_validate.validate(made, "1.27", strict=True)


def job_set(name: str, version: tuple[int, int]) -> Object:
    return kube_jobset.job_set(OWNER, "queue_1", job(OPTIONS[name], version), 3)


@pytest.mark.parametrize("version", [(1, 25), (1, 28), (1, 32), (1, 37)])
def test_what_a_jobset_makes_is_a_job_by_the_schemas_of_that_version(
    version: tuple[int, int],
) -> None:
    for one in job_set("gpus", version)["spec"]["replicatedJobs"]:
        made = {"apiVersion": "batch/v1", "kind": "Job", **one["template"]}
        kubernetes_validate.validate(made, "{}.{}".format(*version), strict=True)


def test_the_names_of_a_jobsets_pods_are_short_enough() -> None:
    made = kube_jobset.job_set(Owner("r" * 60, "tier", "/t"), "q" * 60, job(GPUS, (1, 32)), 1000)
    assert len(f"{made['metadata']['name']}-node-0-998-abcde") <= 63


def test_kueue_suspends_the_set_and_finds_its_label_there_only() -> None:
    made = job_set("kueue", (1, 32))
    assert made["spec"]["suspend"] and "kueue.x-k8s.io/queue-name" in made["metadata"]["labels"]
    assert str(made["spec"]["replicatedJobs"]).count("kueue") == 0
    assert "suspend" not in str(made["spec"]["replicatedJobs"])


@pytest.mark.parametrize("name", [*objects((1, 32)), "job-below-1.26", "jobset-gpus"])
def test_what_is_created_is_word_for_word_as_before(name: str) -> None:
    made: Any = objects((1, 32)).get(name) or job(GPUS, (1, 25))
    if name.startswith("jobset-"):
        made = job_set(name.removeprefix("jobset-"), (1, 32))
    text = yaml.dump(made, Dumper=_Plain, sort_keys=False, width=100)
    golden = GOLDEN / f"{name}.yaml"
    if os.environ.get("BOXCAR_GOLDEN") == "write":
        golden.write_text(text)
    assert golden.read_text() == text
