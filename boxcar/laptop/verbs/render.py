"""`invoke render`: the files that run a run on a platform without ssh. Starts and sends nothing."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from boxcar.laptop.common import home, show
from boxcar.laptop.common.home import Home
from boxcar.laptop.common.near import no_choice
from boxcar.laptop.project import launches, profile_choice
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.release import session_files
from boxcar.laptop.release.build import build
from boxcar.laptop.release.session_files import COLAB, KAGGLE, PLACES, Session
from boxcar.laptop.verbs import push
from boxcar.shared import timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.sentence import _

# Before the platform's own end: a session that is cut off may keep nothing.
HOURS = {KAGGLE: 8.5, COLAB: 11.0}
_USER = re.compile(r"[A-Za-z0-9_-]{3,40}")


def render(
    project: Project,
    *,
    platform: str = "",
    user: str = "",
    out: str = "",
    hours: float = 0.0,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Write them. Raises InputError for a platform or a name that is not known."""
    if platform not in PLACES:
        raise InputError(no_choice("--for", tuple(PLACES), platform))
    if project.profile.name != platform:
        project = open_project(project.job_path, platform)
    push.refuse_a_finished_run(project)
    owner = _kaggle_user(user, environ) if platform == KAGGLE else ""
    with show.waiting(_("building the release")):
        made, folder = build(project, show.say)
    lines = {name: path.read_text("utf-8") for name, path in project.queue_files.items()}
    session = Session(
        plan=project.plan,
        release=made,
        secrets=tuple(project.job.secrets),
        lines={name: text if text.endswith("\n") else f"{text}\n" for name, text in lines.items()},
        most_s=3600 * (hours or HOURS[platform]),
        at=timestamp.utc_now(),
    )
    packed = session_files.pack_release(folder)
    if platform == KAGGLE:
        files = session_files.kaggle_files(session, owner, packed)
    else:
        files = session_files.colab_files(session, packed)
    target = Path(out) if out else Home(project.root).folder / platform / "files"
    _write(target, files)
    _remember(project, made.digest)
    if project.job.notify:
        show.say(_("notify: a session on {platform} sends no notifications", platform=platform))
    for step in _steps(platform, target, session, owner):
        show.say(step)
    return 0


def _kaggle_user(named: str, environ: Mapping[str, str]) -> str:
    user = named or environ.get("KAGGLE_USERNAME", "") or _user_of_client(environ)
    if _USER.fullmatch(user):
        return user
    raise InputError(
        Message(
            _("your name on Kaggle is not known, and its files name their owner"),
            Command("render", ("--for", KAGGLE, "--user", "NAME")),
        )
    )


def _user_of_client(environ: Mapping[str, str]) -> str:
    """Of the file that Kaggle's own client keeps; its key is not read."""
    folder = Path(environ.get("KAGGLE_CONFIG_DIR") or Path.home() / ".kaggle")
    try:
        found = json.loads((folder / "kaggle.json").read_bytes())
        return str(found["username"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _write(target: Path, files: Mapping[str, bytes]) -> None:
    with home.results_to(target):
        for name, data in files.items():
            atomic.make_folder((target / name).parent)
            atomic.write_whole(target / name, data)


def _remember(project: Project, digest: str) -> None:
    """So that other verbs know the run and its platform, as after a launch."""
    profile = project.profile.name
    profile_choice.remember_profile(project.results, profile, profile_choice.LAUNCHED)
    home.remember_run(project.plan.run, project.job_path, profile)
    queues = list(project.plan.queues)
    launches.append_launch(project.results, profile, digest, queues, is_smoked=False)


def _steps(platform: str, target: Path, session: Session, owner: str) -> Iterator[str | Message]:
    """What the person types or clicks from here to the results."""
    files = shlex.quote(str(target))
    pulled = Command("pull", ("--from", "output"))
    if platform == COLAB:
        yield _(
            "written: {folder}. Open each notebook in Colab, choose a GPU, and run all cells",
            folder=target,
        )
        yield Message(
            _(
                "Afterwards download the folder boxcar/{run} of your Drive as output, then",
                run=session.plan.run,
            ),
            pulled,
        )
        return
    yield _(
        "written: {folder}. The first time: kaggle datasets create -p {files}/release. With new "
        "code or lines: kaggle datasets version -p {files}/release -m boxcar",
        folder=target,
        files=files,
    )
    for box in session.plan.boxes:
        slug = f"{owner}/{session_files.kaggle_slug(session.plan.run, box.name)}"
        yield _(
            "{box}: kaggle kernels push -p {files}/{box}. Later: kaggle kernels output {slug} -p "
            "output",
            box=box.name,
            files=files,
            slug=slug,
        )
    yield Message(_("Then"), pulled)
