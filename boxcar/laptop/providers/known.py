"""All providers, by the name of their profile, and how one is opened with a person's key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from boxcar.laptop.common import provider_keys
from boxcar.laptop.project.profiles.profile import Profile, load_profile
from boxcar.laptop.providers import autodl
from boxcar.laptop.providers.calls import check_base
from boxcar.laptop.providers.lambda_cloud import Lambda
from boxcar.laptop.providers.provider import Access, Balance, Provider
from boxcar.laptop.providers.rented_record import records_of
from boxcar.laptop.providers.runpod import RunPod
from boxcar.laptop.providers.vast import Vast

_KINDS: tuple[type[Provider], ...] = (Vast, RunPod, Lambda)
PROVIDERS: Mapping[str, type[Provider]] = {kind.name: kind for kind in _KINDS}


def open_provider(name: str, environ: Mapping[str, str] = os.environ) -> Provider:
    """Raises InputError where there is no key, or an address that no key goes to."""
    kind = PROVIDERS[name]
    key = provider_keys.need_key(name, kind.title, environ)
    base = check_base(kind.base_variable, kind.usual_base, environ)
    return kind(Access(base, key, provider_keys.fingerprint(key)))


def provider_of(profile: Profile, root: Path) -> str | None:
    """The provider of a profile, or of one that it extends; None where Boxcar cannot rent."""
    while profile.name not in PROVIDERS:
        if not profile.extends:
            return None
        profile = load_profile(profile.extends, root)
    return profile.name


def ids_by_key(profile: Profile, root: Path) -> dict[str, str]:
    """By alias, of the boxes that `up` rented for this folder and that are live: the ids of those
    that the key which is here may end. Another key of the account's may not be believed.
    """
    name = provider_of(profile, root)
    key = provider_keys.find_key(name) if name is not None else None
    if key is None:
        return {}
    mark = provider_keys.fingerprint(key)
    return {
        one.box: one.id
        for one in records_of(root)
        if one.id and not one.replaced_at and (one.provider, one.key) == (name, mark)
    }


def balance_of(profile: Profile, root: Path) -> Balance | None:
    """Of the account behind a profile; None where there is no key, or where its API tells none.
    Raises NoRights, Doubt, InputError.
    """
    name = provider_of(profile, root)
    if name is not None:
        return open_provider(name).balance() if has_key(name) else None
    key = provider_keys.find_key(autodl.NAME) if is_autodl(profile, root) else None
    return autodl.read_balance(key, provider_keys.fingerprint(key)) if key else None


def is_autodl(profile: Profile, root: Path) -> bool:
    while profile.name != autodl.NAME and profile.extends:
        profile = load_profile(profile.extends, root)
    return profile.name == autodl.NAME


def has_key(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    return name in PROVIDERS and provider_keys.find_key(name, environ) is not None
