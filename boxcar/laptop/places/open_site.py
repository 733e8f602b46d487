"""The one table of the kinds of places, by the kind of connection that a profile names."""

from __future__ import annotations

from boxcar.laptop.places.kube_site import KubeSite
from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.places.notebook_site import NotebookSite
from boxcar.laptop.places.site import Site
from boxcar.laptop.places.slurm_site import SlurmSite
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.open_run import Tell

SITES: dict[str, type[Site]] = {
    "local": LocalSite,
    "ssh": SshSite,
    "slurm": SlurmSite,
    "kubernetes": KubeSite,
    "notebook": NotebookSite,
}


def open_site(project: Project, tell: Tell) -> Site:
    """The run at its place. `tell` hears what is to be said while boxes are asked. Nothing is asked
    yet.
    """
    return SITES[project.profile.connection.kind](project, tell)


def python_here(project: Project) -> str:
    """This machine's interpreter for a try of a cell."""
    return open_site(project, lambda _: None).python()
