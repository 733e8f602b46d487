"""What an hour of each box costs: the job's own word, else the profile's."""

from __future__ import annotations

from boxcar.laptop.project.job_values import EVERY_BOX
from boxcar.laptop.project.project import Project


def box_prices(project: Project) -> dict[str, str]:
    """By box, those that have one, as `1.98 CNY/h`."""
    typed = project.job.price
    every_box = typed.get(EVERY_BOX, project.profile.meter.price)
    found = {box.name: typed.get(box.name, every_box) for box in project.plan.boxes}
    return {name: text for name, text in found.items() if text}
