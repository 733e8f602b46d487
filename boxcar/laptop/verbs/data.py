"""`boxcar data`: which data folders lie on each box or on the tier, and whose they are.

They are kept when a run ends, because the next one may need them. Only `--remove` takes one away.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxcar.laptop.common import show, side_by_side, units
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.project import Project
from boxcar.laptop.verbs import send_data
from boxcar.laptop.verbs.serve_tier import CHECK_TIMEOUT_S
from boxcar.shared.disk.digest import short
from boxcar.shared.errors import Command, InputError, Message, message_of
from boxcar.shared.record import replace
from boxcar.shared.sentence import _
from boxcar.shared.wire import data_asks
from boxcar.shared.wire.data_asks import DataFound, DataSeen

_SHORTEST = 6


def data(
    project: Project,
    *,
    boxes: Sequence[str] | None = None,
    remove: Sequence[str] = (),
    as_json: bool = False,
) -> int:
    """Show the data folders of all boxes, or of these; remove those whose digest begins so.

    1 where a box could not be asked, or did not remove one.
    """
    with open_site(project, show.say) as site:
        site.refuse_launch()
        for box in boxes or ():
            project.scratch(box)  # raises for a box that is not in the plan
        names = list(boxes or (box.name for box in site.plan.boxes))
        with show.waiting(_("asking the boxes")):
            site.refresh()
            found, errors = send_data.find_data(site, names)
        told = found
        if remove:
            told, failed = _remove(site, found, remove)
            errors |= failed
        if as_json:
            show.json_document("data", _document(site, told, errors))
            return 1 if errors else 0
        if not remove:
            _show(site, found)
        for box, why in errors.items():
            show.say(message_of(why).under(box))
        return 1 if errors else 0


def _document(
    site: Site, found: dict[str, DataFound], errors: dict[str, Exception]
) -> dict[str, object]:
    is_on_tier = site.plan.is_data_on_tier
    rows = [
        {
            "place": "tier" if is_on_tier else box,
            "digest": one.digest,
            "size_bytes": one.size_bytes,
            "files": one.files,
            "problems": list(one.problems),
            "runs": list(one.runs),
        }
        for box, there in found.items()
        for one in there.folders
    ]
    problems = [{"box": box, "text": message_of(why).text} for box, why in errors.items()]
    return {"run": site.plan.run, "folders": rows, "problems": problems}


def _show(site: Site, found: dict[str, DataFound]) -> None:
    rows = [
        (
            _("the tier") if site.plan.is_data_on_tier else box,
            short(one.digest),
            units.size(one.size_bytes),
            f"{one.files:,}",
            one.problems[0] if one.problems else _("whole"),
            ", ".join(one.runs) or "-",
        )
        for box, there in found.items()
        for one in there.folders
    ]
    if not rows:
        show.line(_("no data folders are there"))
        return
    show.table(
        _("data folders"),
        ("place", "digest", "size", "files", "state", "used by"),
        rows,
        names=(),
    )
    show.say(Message(_("To remove one that no run needs"), Command("data", ("--remove", "DIGEST"))))


def _remove(
    site: Site, found: dict[str, DataFound], wanted: Sequence[str]
) -> tuple[dict[str, DataFound], dict[str, Exception]]:
    """What was removed, and why not. Raises InputError, before anything is removed, for a digest
    that is not one of them.
    """
    known = {one.digest: one for there in found.values() for one in there.folders}
    chosen = {_chosen(text, known).digest for text in wanted}

    def remove(box: str) -> DataFound:
        removed = []
        for one in found[box].folders:
            if one.digest in chosen:
                question = data_asks.RemoveData(site.plan.is_data_on_tier, one.digest)
                size_bytes = site.ask(box, question, timeout_s=CHECK_TIMEOUT_S).size_bytes
                text = _(
                    "{box}: data {digest} removed ({size})",
                    box=box,
                    digest=short(one.digest),
                    size=units.size(size_bytes),
                )
                show.say(text)
                removed.append(one)
        return replace(found[box], folders=tuple(removed))

    return side_by_side.each_or_why(found, remove)


def _chosen(text: str, known: dict[str, DataSeen]) -> DataSeen:
    fitting = [one for digest, one in known.items() if digest.startswith(text)]
    if len(text) < _SHORTEST or len(fitting) != 1:
        raise InputError(
            Message(
                _(
                    "--remove {text}: expected the beginning of one digest, {n} characters or "
                    "more. To see them",
                    text=text,
                    n=_SHORTEST,
                ),
                Command("data"),
            )
        )
    return fitting[0]
