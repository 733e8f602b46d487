"""The whole life of a run on this machine: launch, webhooks, pull, verify, gate, teardown.

Everything is real except the distance: two boxes of the local profile, torchrun, checked copies.
It works in `boxcar-demo/` of the current folder, a project like any other. Killed at any time and
started again, it goes on where it was.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from boxcar.laptop.common import home, show
from boxcar.laptop.common.home import Home
from boxcar.laptop.common.progress import THINGS, Part
from boxcar.laptop.places.open_site import open_site
from boxcar.laptop.places.site import Site
from boxcar.laptop.project.profiles import training_here
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.run.look import look_at_run
from boxcar.laptop.run.view import QueueView, RunView
from boxcar.laptop.verbs.down import down
from boxcar.laptop.verbs.launch import launch
from boxcar.laptop.verbs.pull import pull
from boxcar.laptop.verbs.report import asked_of, report
from boxcar.laptop.verbs.verify import verify
from boxcar.laptop.view.report.run_report import Asked
from boxcar.laptop.view.run_rows import left_by_queue
from boxcar.laptop.webhooks import receiver
from boxcar.laptop.webhooks.receiver import Notification
from boxcar.shared import state, timestamp
from boxcar.shared.disk import atomic
from boxcar.shared.errors import Command, InputError, Message
from boxcar.shared.files import receipt
from boxcar.shared.sentence import _

FOLDER = "boxcar-demo"
_LOOK_EVERY_S = 0.5
_LAUNCHES = 3
_COPIED = ("job.yaml", "queues", "examples/digits")
_TRAINS_WITH = ("torch", "numpy", "safetensors")
# Linux's default index serves torch with several GB of CUDA; this one serves it for the CPU.
_TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_ENDED = ("done", "incomplete", "stopped", "drained", "agent dead")


def demo() -> int:
    """Run the example to its end; 1 where a cell is not verified. InputError without torch."""
    _check_libraries()
    began = time.monotonic()
    root = prepare(Path.cwd() / FOLDER)
    name_the_project()
    project = open_project(root / "job.yaml", "local")
    _put_finished_run_aside(project)
    show.say(_("[1/4] two queues on two local boxes; the project is {folder}", folder=root))
    with _receiver(root) as environ:
        view = _run_queues(project, environ)
    show.say(_("[2/4] pull: copy every result here and check it against its manifest"))
    pull(project)
    show.say(_("[3/4] verify: load and check every artifact"))
    verified = verify(project, allow_pickle=[])
    show.say(_("[4/4] down: the teardown check"))
    took_s = time.monotonic() - began  # before the question: nobody knows how long a person thinks
    is_down = verified == 0 and down(project, abandon=[], because=None, approve=None) == 0
    _report(project, view, took_s, is_down=is_down)
    return verified


def name_the_project() -> None:
    """What is suggested on the way is typed where the demo was, and not in its folder."""
    show.remember_flags("", f"{FOLDER}/job.yaml", program=_program())


def _check_libraries() -> None:
    """Before anything is begun."""
    python = training_here.for_training()
    if missing := training_here.missing_packages(python, _TRAINS_WITH):
        raise InputError(
            _(
                "the demo needs {needs}; {python} lacks {missing}. To install the CPU build, "
                "type: {line}",
                needs=", ".join(_TRAINS_WITH),
                python=python,
                missing=", ".join(missing),
                line=_to_install(python, missing),
            )
        )


def _to_install(python: str, missing: Sequence[str]) -> str:
    if python == sys.executable:
        return home.install_line(*missing, index=_TORCH_CPU_INDEX)
    words = ("-m", "pip", "install", *missing, "--extra-index-url", _TORCH_CPU_INDEX)
    return shlex.join([python, *words])


def prepare(root: Path) -> Path:
    """A copy of the example, whole or not at all; one that is there already is gone on with."""
    if root.exists():
        return root
    for left in root.parent.glob(f".{root.name}.*.part"):  # by a demo that was killed here
        shutil.rmtree(left)
    unfinished = atomic.temporary_name(root)
    for name in _COPIED:
        source, target = home.assets_root() / name, unfinished / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    unfinished.rename(root)
    return root


def _put_finished_run_aside(project: Project) -> None:
    teardown = receipt.read_teardown(project.results.teardown)
    if teardown is None or teardown.finished_at is None:
        return
    stamp = timestamp.utc_now().replace(":", "")
    aside = project.results.root.with_name(f"{project.plan.run}-{stamp}")
    project.results.root.rename(aside)
    show.say(_("moved the results of the last demo to {folder}", folder=aside))


# --- the receiver of the webhooks


@contextlib.contextmanager
def _receiver(root: Path) -> Iterator[dict[str, str]]:
    """What `invoke listen` does, for as long as the queues run; what a launch has to know of it."""
    port, secret = _address(root)

    def take(event: Notification) -> None:
        show.say(_("  webhook  {event}", event=event.line()))

    with receiver.serve(port, secret, take, show.say) as server:
        _keep_address(root, server.server_address[1], secret)
        show.say(_("      signed webhooks arrive at {url}", url=server.url))
        yield {"BOXCAR_WEBHOOK_URL": server.url, "BOXCAR_WEBHOOK_SECRET": secret}


def _address(root: Path) -> tuple[int, str]:
    """The port and secret of an earlier demo here, which its agents may still use, or new ones."""
    try:
        kept = json.loads(_address_file(root).read_text())
        return kept["port"], kept["secret"]
    except FileNotFoundError:
        return 0, receiver.make_secret()


def _keep_address(root: Path, port: int, secret: str) -> None:
    atomic.make_folder(_address_file(root).parent)
    record = json.dumps({"port": port, "secret": secret}).encode()
    atomic.write_whole(_address_file(root), record, mode=0o600)


def _address_file(root: Path) -> Path:
    return Home(root).demo


# --- the queues


def _run_queues(project: Project, environ: dict[str, str]) -> RunView:
    """Launch, and follow the queues to their end; a dead agent's queue is launched again."""
    for _launch in range(_LAUNCHES):
        launch(project, environ=environ)
        with open_site(project, show.say) as site:
            view = _follow(site)
        dead = [q.name for q in view.queues if q.condition.word == "agent dead"]
        if not dead:
            break
        show.say(
            _(
                "the agent of {queues} is gone; launch resumes the queue",
                queues=", ".join(dead),
            )
        )
    return view


def _follow(site: Site) -> RunView:
    with show.progress(_("running"), THINGS, is_left_told=True) as bar:
        of = Counter(cell.queue for cell in site.plan.cells)
        parts = {name: bar.part(of[name], name) for name in site.plan.queues}
        while True:
            view = look_at_run(site, timestamp.utc_now())
            left_s = left_by_queue(view)
            for queue in view.queues:
                _update(parts[queue.name], view, queue)
                parts[queue.name].left_s = left_s[queue.name]
            if all(queue.condition.word in _ENDED for queue in view.queues):
                return view
            time.sleep(_LOOK_EVERY_S)


def _update(part: Part, view: RunView, queue: QueueView) -> None:
    verified = [cell for cell in view.cells if cell.word == state.Verified.word]
    part.at(sum(cell.queue == queue.name for cell in verified))
    part.doing = queue.active or queue.condition.word


# --- the end


def _report(project: Project, view: RunView, seconds: float, *, is_down: bool) -> None:
    took = {"n": len(view.cells), "time": f"{seconds:.0f}"}
    show.say(_("{run}: {n} {n:cell|cells} in {time} s", run=project.plan.run, **took))
    report(project, asked_of(project, (), Asked(())))
    show.say(_("results   {path}", path=project.results.cells))
    show.say(_("receipt   {path}", path=project.results.receipt))
    show.say(_("journals  {path}", path=project.results.journals))
    if is_down:
        show.remember_flags("", "", program=_program())  # the demo itself takes none
        show.say(
            Message(
                _("The local boxes are removed; the results stay. To run it again"), Command("demo")
            )
        )
    else:
        show.say(
            Message(
                _(
                    "Nothing was removed; the run is still there. Look around in {folder}, then",
                    folder=project.root,
                ),
                Command("down"),
            )
        )


def _program() -> str:
    """What to type for `boxcar`: in a checkout it lies in .venv and mostly not on the PATH."""
    beside = Path(sys.executable).with_name("boxcar")
    return "boxcar" if shutil.which("boxcar") or not beside.exists() else str(beside)
