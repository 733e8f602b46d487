"""Credentials on a box that was given up: nobody can take them off it, so they have to be replaced.

They are listed by name until a person says of each that it was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from boxcar.laptop.common.near import pick
from boxcar.laptop.project import launches
from boxcar.laptop.project.from_environment import credential_names
from boxcar.laptop.project.job import Job
from boxcar.laptop.teardown.gate import Steps
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.files import receipt
from boxcar.shared.files.receipt import Teardown
from boxcar.shared.paths import ResultPaths
from boxcar.shared.sentence import _

_WHERE = {
    "WANDB_API_KEY": "https://wandb.ai/settings",
    "HF_TOKEN": "https://huggingface.co/settings/tokens",
    "HUGGING_FACE_HUB_TOKEN": "https://huggingface.co/settings/tokens",
    "GITHUB_TOKEN": "https://github.com/settings/tokens",
    "GH_TOKEN": "https://github.com/settings/tokens",
    "AWS_ACCESS_KEY_ID": _("the IAM console, together with its secret"),
    "AWS_SECRET_ACCESS_KEY": _("the IAM console, together with its id"),
    "OPENAI_API_KEY": "https://platform.openai.com/api-keys",
}


def held_credentials(job: Job, results: ResultPaths) -> list[str]:
    """What boxes of the run may hold: what was ever handed over, and what the job names now."""
    return sorted({*credential_names(job), *launches.credentials_of(results)})


def exposed_credentials(
    begun: Teardown, gone: Iterable[str], credentials: Sequence[str]
) -> dict[str, str]:
    """The teardown's, and those on boxes that are given up now with their secrets on them."""
    keeps = [box for box in gone if box not in begun.boxes and box not in begun.gone]
    kept = dict(begun.exposed)
    for name in credentials if keeps else ():
        kept[name] = ", ".join(filter(None, (kept.get(name), *keeps)))
    return kept


def unrotated(teardown: Teardown | None) -> dict[str, str]:
    """The credentials that are still to be replaced, and the boxes that hold them."""
    if teardown is None:
        return {}
    return {name: boxes for name, boxes in teardown.exposed.items() if name not in teardown.rotated}


def rotation_steps(teardown: Teardown | None) -> list[Message]:
    """What a person has to do, and how to say that it is done; none where nothing is left."""
    names_left = unrotated(teardown)
    if not names_left:
        return []
    rows = [
        Message(
            _(
                "rotate {name}: it is still on {boxes}. Replace it: {where}",
                name=name,
                boxes=boxes,
                where=where_to_rotate(name),
            )
        )
        for name, boxes in names_left.items()
    ]
    words = tuple(word for name in names_left for word in ("--rotated", name))
    return [*rows, Message(_("When that is done"), Command("down", words))]


def where_to_rotate(name: str) -> str:
    """Where a credential of that name is replaced, as far as its name tells."""
    return _WHERE.get(name) or _("where you created it")


def confirm_rotated(results: ResultPaths, credentials: Sequence[str]) -> Teardown:
    """Write down that these were replaced. Raises InputError for one that was not to be."""
    teardown = receipt.read_teardown(results.teardown)
    if teardown is None or not teardown.exposed:
        raise InputError(
            _(
                "--rotated {credentials}: no box with credentials on it was given up",
                credentials=credentials[0],
            )
        )
    chosen = pick(credentials, teardown.exposed, what="credential to rotate", of=_("the teardown"))
    steps = Steps(results.teardown, teardown)
    for name in chosen:
        steps.rotated(name)
    return steps.now
