"""The one table of the kinds of places, by the kind of connection that a profile names."""

from __future__ import annotations

from boxcar.laptop.places.local_site import LocalSite
from boxcar.laptop.places.notebook_site import NotebookSite
from boxcar.laptop.places.site import Site
from boxcar.laptop.places.slurm_site import SlurmSite
from boxcar.laptop.places.ssh_site import SshSite
from boxcar.laptop.project.profiles import training_here
from boxcar.laptop.project.project import Project
from boxcar.laptop.run.open_run import Tell
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import _

SITES: dict[str, type[Site]] = {
    "local": LocalSite,
    "ssh": SshSite,
    "slurm": SlurmSite,
    "notebook": NotebookSite,
}


def find_site(project: Project, tell: Tell) -> Site | None:
    """The run at its place; None where Boxcar can describe the place and not run there yet.

    `tell` hears what is to be said while boxes are asked. Nothing is asked yet.
    """
    make = SITES.get(project.profile.connection.kind)
    return make(project, tell) if make else None


def python_here(project: Project) -> str:
    """This machine's interpreter for a try of a cell."""
    site = find_site(project, lambda _: None)
    return site.python() if site else training_here.for_training()


def open_site(project: Project, tell: Tell) -> Site:
    """The same, for `with`. Raises InputError where none can reach the boxes yet."""
    site = find_site(project, tell)
    if site is None:
        raise InputError(
            _(
                "Boxcar can describe the profile {name!r} (kind {kind!r}), but cannot run on it "
                "yet. If you can ssh to the machine, write a profile that extends ssh",
                name=project.profile.name,
                kind=project.profile.connection.kind,
            )
        )
    return site
