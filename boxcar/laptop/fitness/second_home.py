"""Does each box reach the run's second home? Asked only where the profile names one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from boxcar.laptop.common import assets, side_by_side
from boxcar.laptop.fitness.rules import Row
from boxcar.laptop.fitness.tier_check import Ask
from boxcar.shared import second_home_child
from boxcar.shared.errors import BoxcarError
from boxcar.shared.files.plan import Plan
from boxcar.shared.paths import DurablePaths
from boxcar.shared.wire import box_asks

WHAT = "second home"
# Of the kinds that people have; fsspec itself comes with torch.
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    "oss": "ossfs",
}
TRY_TIMEOUT_S = 150.0
# What the packages of fsspec look for, where no file of the box's own has it.
_CREDENTIALS = {
    **dict.fromkeys(("s3", "s3a"), ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
    **dict.fromkeys(("gs", "gcs"), ("FSSPEC_GCS_TOKEN",)),
    **dict.fromkeys(("az", "abfs", "abfss"), ("AZURE_STORAGE_CONNECTION_STRING",)),
}


def needs(plan: Plan) -> list[str]:
    """What has to be installed for it, which no plan can see; a sentence, or none."""
    package = _PACKAGES.get(urlsplit(plan.second or "").scheme)
    if package is None:
        return []
    return [
        f"the second home, {plan.second}, needs the package {package}: pip install {package} for "
        "the training's Python on each box, where audit tries it, and here, for a pull from there"
    ]


def check(
    ask: Ask, plan: Plan, boxes: Sequence[str], hook: str, secrets: Mapping[str, str]
) -> list[Row]:
    """A row for each box; none where no second home is named. `ask` is as `Boxes.ask`."""
    if plan.second is None:
        return []
    tier = DurablePaths(Path(plan.durable_dir), plan.run)
    question = box_asks.TrySecondHome(
        second_home_child.url_of(plan.second, tier, tier.root),
        plan.training_python,
        hook,
        assets.training_program("second_home"),
        second_home_child.variables(plan),
        dict(secrets),
    )
    problems = side_by_side.each(boxes, lambda box: _try(ask, box, question))
    pairs = zip(boxes, problems, strict=True)
    return [judge(box, plan.second, problem, plan.secrets) for box, problem in pairs]


def judge(box: str, url: str, problem: str | None, secrets: Collection[str]) -> Row:
    """`secrets` are the names that the job has."""
    if problem is None:
        return Row(box, WHAT, "ok", url)
    # Of credentials nothing is known before the package is there.
    hint = "" if "is not installed" in problem else _hint(url, secrets)
    return Row(box, WHAT, "refuse", url, f"{problem}{hint}")


def _hint(url: str, secrets: Collection[str]) -> str:
    names = _CREDENTIALS.get(urlsplit(url).scheme, ())
    if missing := [name for name in names if name not in secrets]:
        return (
            f". The job hands over no {' and no '.join(missing)}: where it is credentials that are "
            f"missing, write secrets: [{', '.join(names)}] into job.yaml"
        )
    return ""


def _try(ask: Ask, box: str, question: box_asks.TrySecondHome) -> str | None:
    try:
        return ask(box, question, timeout_s=TRY_TIMEOUT_S).problem
    except (BoxcarError, OSError) as error:
        return str(error)
