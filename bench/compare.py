"""What became slower since an older run, by ratios first: they last from machine to machine."""

from __future__ import annotations

from typing import Any

COLUMNS = ("part", "what", "then", "now", "change")
# Below this two runs on shared cores say nothing.
NOISE = 1.15


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """A line for each figure that both have and that differs by more than noise, and for each that
    one of them lacks. Pure.
    """
    rows = []
    for part in sorted(set(old["parts"]) | set(new["parts"])):
        then, now = (_by_name(run["parts"].get(part, [])) for run in (old, new))
        for what in dict.fromkeys([*then, *now]):
            if change := _change(then.get(what), now.get(what)):
                rows.append((part, what, *change))
    return rows


def _by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    # Of two lines with one name the peers differ.
    return {f"{row['what']} / {row['peer_name']}".rstrip(" /"): row for row in rows}


def _change(then: dict[str, Any] | None, now: dict[str, Any] | None) -> tuple[str, str, str] | None:
    if then is None or now is None or then["reason"] or now["reason"]:
        said = tuple("-" if row is None else row["reason"] or "measured" for row in (then, now))
        return None if said[0] == said[1] else (*said, "not comparable")  # type: ignore[return-value]
    unit = "x" if then["ratio"] and now["ratio"] else then["unit"]
    before, after = (row["ratio"] if unit == "x" else row["value"] for row in (then, now))
    # What a part adds to a step may come out below nothing: that is chance.
    if before <= 0 or after <= 0 or 1 / NOISE < after / before < NOISE:
        return None
    word = "slower" if after > before else "faster"
    return f"{before:.3g} {unit}", f"{after:.3g} {unit}", f"{word}, {after / before:.2f}x"
