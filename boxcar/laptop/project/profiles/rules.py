"""What must hold between the groups of one profile, which no single field can see. Pure.

Not covered: whether the durable tier outlives the meter, see `survival.py`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from boxcar.laptop.common.near import did_you_mean
from boxcar.laptop.project.profiles.schema import OWN_DURABLE, OWN_SCOPES, ProfileModel
from boxcar.shared.files.plan import AUTO
from boxcar.shared.sentence import _

_FILE = "file://"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def inconsistencies(profile: ProfileModel) -> Iterator[str]:
    """What is wrong between the groups, each with its file and line."""
    yield from _unknown_tiers(profile)
    yield from _bad_paths(profile)
    yield from _secrets_on_the_tier(profile)
    yield from _second_home_on_a_tier(profile)
    yield from _slurm_elsewhere(profile)
    yield from _kubernetes_elsewhere(profile)
    if profile.connection.kind != "local" and profile.env.training_python == AUTO:
        yield (
            _(
                "{profile}: {auto!r} works only in the local profile. Name the Python to train "
                "with: python3, or its path on the box",
                profile=profile.at("env", "training_python"),
                auto=AUTO,
            )
        )
    if getattr(profile.meter, profile.meter.down) is None:
        yield (
            _(
                "{profile}: is {down!r}, but meter has no such key. Write meter: {{{down}: …}}, "
                "or name another one",
                profile=profile.at("meter", "down"),
                down=profile.meter.down,
            )
        )


def _unknown_tiers(profile: ProfileModel) -> Iterator[str]:
    storage = profile.storage
    for role, name in (("data", storage.data), ("durable", storage.durable)):
        if name is not None and name not in storage.tiers:
            near = did_you_mean(name, storage.tiers)
            yield (
                _(
                    "{profile}: there is no tier {name!r}{near}; storage.tiers has: {tiers}",
                    profile=profile.at("storage", role),
                    name=name,
                    near=near,
                    tiers=", ".join(storage.tiers),
                )
            )
        elif name is not None and storage.tiers[name].access != "read-write":
            yield (
                _(
                    "{profile}: the tier {name!r} is {access}. Name one that can be written like "
                    "a folder",
                    profile=profile.at("storage", role),
                    name=name,
                    access=storage.tiers[name].access,
                )
            )
    if profile.connection.kind == "slurm" and _scope_of_durable(profile) in OWN_SCOPES:
        yield (
            _(
                "{profile}: a cluster needs a tier that the login node and all nodes see: name "
                "one with scope: cluster",
                profile=profile.at("storage", "durable"),
            )
        )
    if storage.durable is None and profile.connection.kind == "local":
        yield _(
            "{profile}: the local profile needs a tier here",
            profile=profile.at("storage", "durable"),
        )


def _scope_of_durable(profile: ProfileModel) -> str:
    tier = profile.storage.tiers.get(profile.storage.durable or "")
    return tier.scope if tier else OWN_SCOPES[0]


def _slurm_elsewhere(profile: ProfileModel) -> Iterator[str]:
    if profile.connection.kind != "slurm" and profile.slurm.model_fields_set:
        yield (
            _(
                "{profile}: is for a cluster, but connection.kind of this profile is {kind}. "
                "Write extends: slurm",
                profile=profile.at("slurm"),
                kind=profile.connection.kind,
            )
        )


def _kubernetes_elsewhere(profile: ProfileModel) -> Iterator[str]:
    if profile.connection.kind != "kubernetes" and profile.kubernetes.model_fields_set:
        yield (
            _(
                "{profile}: is for Kubernetes, but connection.kind of this profile is {kind}. "
                "Write extends: kubernetes",
                profile=profile.at("kubernetes"),
                kind=profile.connection.kind,
            )
        )


def _bad_paths(profile: ProfileModel) -> Iterator[str]:
    storage, is_local = profile.storage, profile.connection.kind == "local"
    for name, tier in storage.tiers.items():
        if tier.path is not None:
            holds = ("box",) if is_local and name == storage.data else ()
            at = profile.at("storage", "tiers", name, "path")
            yield from _bad_path(at, tier.path, holds, is_local)
    at = profile.at("storage", "credentials")
    yield from _bad_path(
        at, storage.credentials, ("box", "run") if is_local else ("run",), is_local
    )
    paths = [_path(profile, name) for name in (storage.data, storage.durable or "")]
    if paths[0] is not None and paths[0] == paths[1]:
        yield (
            _(
                "{profile}: is in the same place as the data tier, {paths}. Live checkpoints and "
                "results need two places: name another tier in storage.data",
                profile=profile.at("storage", "durable"),
                paths=paths[0],
            )
        )


def _bad_path(at: str, text: str, wanted: tuple[str, ...], is_local: bool) -> Iterator[str]:
    # Exactly these placeholders: without {box}, two boxes of this machine would share a file.
    if sorted(_PLACEHOLDER.findall(text)) != sorted(wanted):
        names = " and ".join(f"{{{name}}}" for name in wanted) or "no placeholder"
        yield _(
            "{at}: expected a path with {names}, found {text!r}",
            at=at,
            names=names,
            text=text,
        )
    if not is_local and not text.startswith(("/", "~/")):
        yield _(
            "{at}: expected a path on the box that begins with / or ~/, found {text!r}",
            at=at,
            text=text,
        )
    if ".." in text.split("/") or not text.isprintable():
        yield _("{at}: expected a plain path without '..', found {text!r}", at=at, text=text)


def _secrets_on_the_tier(profile: ProfileModel) -> Iterator[str]:
    """Other boxes read the durable tier, and what lies there outlives the run."""
    durable = _path(profile, profile.storage.durable or "")
    if profile.storage.durable is None and (data := _path(profile, profile.storage.data)):
        durable = data / OWN_DURABLE
    if durable and _at_home(profile, profile.storage.credentials).is_relative_to(durable):
        yield (
            _(
                "{profile}: is on the durable tier, {durable}. Secrets belong on the box's own "
                "system disk",
                profile=profile.at("storage", "credentials"),
                durable=durable,
            )
        )


def _second_home_on_a_tier(profile: ProfileModel) -> Iterator[str]:
    """What dies with the first home is no second one."""
    storage, second = profile.storage, profile.storage.second or ""
    for name in (storage.data, storage.durable or "") if second.startswith(_FILE) else ():
        tier = _path(profile, name)
        if tier and PurePosixPath(second.removeprefix(_FILE)).is_relative_to(tier):
            yield (
                _(
                    "{profile}: is on the tier {name!r}, {tier}. Name a place that is not lost "
                    "with it",
                    profile=profile.at("storage", "second"),
                    name=name,
                    tier=tier,
                )
            )


def _path(profile: ProfileModel, tier: str) -> PurePosixPath | None:
    found = profile.storage.tiers.get(tier)
    return _at_home(profile, found.path) if found and found.path is not None else None


def _at_home(profile: ProfileModel, text: str) -> PurePosixPath:
    """`~/x` as the absolute path that it most likely is, so that two spellings compare equal."""
    user = profile.connection.user
    if user and text.startswith("~/"):
        text = posixpath.join("/root" if user == "root" else f"/home/{user}", text[2:])
    # Two slashes at the beginning are kept by PurePosixPath, and mean the same as one.
    return PurePosixPath("/" + text.lstrip("/") if text.startswith("/") else text)
