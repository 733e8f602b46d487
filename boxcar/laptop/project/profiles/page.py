"""A platform as a person wants to know it before renting there.

First what happens by itself and costs money or results, then what each verb of the meter does and
keeps, then the rest. In English or Chinese. The first launch on a platform shows the short of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from boxcar.laptop.common.home import Home
from boxcar.laptop.common.language import language_of
from boxcar.laptop.common.text_layout import TableView
from boxcar.laptop.project.profiles import survival
from boxcar.laptop.project.profiles.page_words import KNOWN
from boxcar.laptop.project.profiles.profile import Profile
from boxcar.laptop.project.profiles.schema import GROUPS, MeterVerb, Sentence, Tier
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import SEMICOLON, Command, Message
from boxcar.shared.files.plan import EACH_BOX
from boxcar.shared.sentence import _, chained, in_language, known_word


def page(profile: Profile, language: str) -> Iterator[str | TableView]:
    """All that the profile says, in `en` or `zh`: lines and tables."""
    return _Page(profile, language).parts()


def first_look(profile: Profile, project_root: Path, language: str = "") -> Iterator[str | Message]:
    """The danger clocks and conveniences, once for each platform and project, before a launch.

    Lines to say. They count as seen when the last of them was taken.
    """
    chosen = language_of(language, os.environ)
    seen = Home(project_root).seen(profile.name)
    if seen.exists():
        return
    yield from _first_lines(profile, chosen)
    atomic.make_folder(seen.parent)
    record = {"profile": profile.name, "shown_at": timestamp.utc_now(), "language": chosen}
    atomic.write_whole(seen, f"{json.dumps(record)}\n".encode())


def document(profile: Profile, language: str) -> dict[str, Any]:
    """Everything that is shown, for `--json`."""
    return {
        "profile": profile.name,
        "language": language,
        "kind": profile.connection.kind,
        "clocks": _told(profile.clocks.dangers, language),
        "meter": [
            _verb_document(profile, ending, verb, language) for ending, verb in _verbs(profile)
        ],
        "price": profile.meter.price,
        "tiers": [_tier_document(profile, name, language) for name in profile.storage.tiers],
        "durable_scope": profile.durable_scope,
        "second": profile.storage.second,
        "problems": survival.survival_problems(profile),
        "notes": _notes(profile, language),
        "hook": profile.hook,
        "env": profile.network.env,
        "spot": profile.spot.is_available,
        "conveniences": _told(profile.conveniences, language),
        "limits": _told(profile.limits.notes, language),
        "gotchas": _told(profile.gotchas, language),
        "facts": [
            dict(zip(("group", "verified", "confidence"), row, strict=True))
            for row in _facts(profile)
        ],
    }


class _Page:
    """The page of one platform in one language."""

    def __init__(self, profile: Profile, language: str) -> None:
        self.profile = profile
        self.language = language

    def parts(self) -> Iterator[str | TableView]:
        profile = self.profile
        yield f"{_headline(profile, self.language)}\n"
        yield from self._list("deadlines", profile.clocks.dangers)
        yield self._meter()
        if self.profile.meter.price:
            price = _("price of a box: {price}", price=self.profile.meter.price)
            yield f"{in_language(price, self.language)}\n"
        yield from self._storage()
        notes = _notes(profile, self.language)
        rows = [(self._word(name), note) for name, note in notes.items()]
        yield self._table("setup", ("group", "note"), rows)
        yield from self._list("conveniences", profile.conveniences)
        yield from self._list("limits", profile.limits.notes)
        yield from self._list("gotchas", profile.gotchas)
        columns = ("group", "verified", "confidence")
        yield self._table("confidence of these facts", columns, self._facts())

    def _facts(self) -> list[tuple[str, str, str]]:
        rows = _facts(self.profile)
        return [(self._word(name), month, self._word(trust)) for name, month, trust in rows]

    def _list(self, title: str, sentences: Sequence[Sentence]) -> Iterator[str]:
        yield self._word(title)
        for text in _told(sentences, self.language) or [self._word("nothing on record")]:
            yield f"  - {text}"
        yield ""

    def _meter(self) -> TableView:
        columns = ("verb", "what it does", "keeps", "still bills", "reversible", "where")
        return self._table("billing", columns, [self._verb(*item) for item in _verbs(self.profile)])

    def _verb(self, ending: str, verb: MeterVerb) -> Sequence[object]:
        is_end = ending == self.profile.meter.down
        ends = in_language(_("{verb} (ends the run)", verb=verb.verb), self.language)
        name = ends if is_end else verb.verb
        kept = "" if ending == "park" else ", ".join(self.profile.preserved_by(ending))
        return (
            name,
            verb.does.said(self.language),
            kept or ("" if ending == "park" else self._word("nothing")),
            in_language(chained(SEMICOLON, verb.still_bills), self.language)
            or self._word("nothing"),
            self._word("yes" if verb.is_reversible else "no"),
            verb.where.said(self.language),
        )

    def _storage(self) -> Iterator[str | TableView]:
        profile = self.profile
        endings = [ending for ending, _ in _verbs(profile) if ending != "park"]
        names = [getattr(profile.meter, ending).verb for ending in endings]
        columns = ("tier", "used for", "path", *names, "size", "speed", "seen by", "note")
        rows = [self._tier(name, tier, endings) for name, tier in profile.storage.tiers.items()]
        yield self._table("what survives", columns, rows)
        if profile.durable_scope == EACH_BOX:
            yield f"{self._word('no shared disk: results go to the laptop as cells end')}\n"
        if profile.storage.second:
            yield f"{self._word('second home')}: {profile.storage.second}\n"

    def _tier(self, name: str, tier: Tier, endings: Sequence[str]) -> Sequence[object]:
        return (
            name,
            self._word(_use(self.profile, name)),
            tier.path,
            *(self._word(getattr(tier, ending) or "?") for ending in endings),
            _size(tier),
            tier.speed,
            self._word("private network" if tier.scope == "network" else tier.scope),
            tier.note.said(self.language) if tier.note else None,
        )

    def _table(
        self, title: str, columns: Iterable[str], rows: Iterable[Sequence[object]]
    ) -> TableView:
        return TableView(
            self._word(title), tuple(map(self._word, columns)), tuple(tuple(row) for row in rows)
        )

    def _word(self, word: str) -> str:
        return _word(word, self.language)


def _first_lines(profile: Profile, language: str) -> list[str | Message]:
    first = _("first launch on {platform}", platform=_headline(profile, language))
    return [
        str(in_language(first, language)),
        *(f"  ! {text}" for text in _told(profile.clocks.dangers, language)),
        *(f"  + {text}" for text in _told(profile.conveniences, language)),
        Message(_("the whole page"), Command("explain", ("--profile", profile.name))),
    ]


def _headline(profile: Profile, language: str) -> str:
    title = profile.title.said(language) if profile.title else ""
    if not title:
        return profile.name
    return str(in_language(_("{head}: {text}", head=profile.name, text=title), language))


def _word(word: str, language: str) -> str:
    return str(in_language(known_word(word, KNOWN), language))


def _told(sentences: Iterable[Sentence], language: str) -> list[str]:
    return [sentence.said(language) for sentence in sentences]


def _verbs(profile: Profile) -> list[tuple[str, MeterVerb]]:
    verbs = [(name, getattr(profile.meter, name)) for name in ("park", "stop", "destroy")]
    return [(name, verb) for name, verb in verbs if verb is not None]


def _use(profile: Profile, tier: str) -> str:
    storage = profile.storage
    return "scratch" if tier == storage.data else "durable" if tier == storage.durable else ""


def _size(tier: Tier) -> str:
    size = f"{tier.size_gb} GB{'+' if tier.expandable else ''}" if tier.size_gb else ""
    inodes = f"{tier.inode_cap} inodes" if tier.inode_cap else ""
    return ", ".join(filter(None, (size, inodes)))


def _notes(profile: Profile, language: str) -> dict[str, str]:
    """What is to be known of each group of facts beside its tables."""
    notes = {name: getattr(profile, name).note for name in GROUPS}
    texts = {name: note.said(language) for name, note in notes.items() if note}
    more = {"network": _told(profile.network.mirrors, language)}
    if profile.env.image:
        more["env"] = [f"{_word('image', language)}: {profile.env.image}"]
    return texts | {
        name: " ".join([texts.get(name, ""), *words]).strip()
        for name, words in more.items()
        if words
    }


def _verb_document(profile: Profile, ending: str, verb: MeterVerb, language: str) -> dict[str, Any]:
    return {
        "kind": ending,
        "verb": verb.verb,
        "ends_the_run": ending == profile.meter.down,
        "does": verb.does.said(language),
        "preserves": None if ending == "park" else list(profile.preserved_by(ending)),
        "still_bills": _told(verb.still_bills, language),
        "is_reversible": verb.is_reversible,
        "where": verb.where.said(language),
        "from_box": verb.from_box,
        "own_key": verb.own_key,
    }


def _tier_document(profile: Profile, name: str, language: str) -> dict[str, Any]:
    tier = profile.storage.tiers[name]
    note = {"note": tier.note.said(language) if tier.note else None}
    return {"tier": name, "used_for": _use(profile, name)} | tier.model_dump() | note


def _facts(profile: Profile) -> list[tuple[str, str, str]]:
    groups = [(name, getattr(profile, name)) for name in GROUPS]
    return [(name, group.verified, group.confidence) for name, group in groups]
