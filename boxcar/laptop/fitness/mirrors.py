"""Whether the mirrors that a box would use are alive, as the box itself has tried them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from boxcar.laptop.fitness.rules import Row, Told
from boxcar.shared.sentence import _

# The variables that name one, for pip, Hugging Face and conda.
MIRRORS = ("PIP_INDEX_URL", "HF_ENDPOINT", "CONDA_CHANNEL_ALIAS")


def judge_mirrors(told_by_box: Mapping[str, Told]) -> Iterator[Row]:
    for box, told in told_by_box.items():
        for one in told.facts.mirrors if told.facts else ():
            if one.problem is None:
                yield Row(box, "mirror", "ok", one.url, "")
                continue
            why = _(
                "{name} is dead from here and is not used: {problem}. Name another one under env:",
                name=one.name,
                problem=one.problem,
            )
            yield Row(box, "mirror", "warn", one.url, why)
