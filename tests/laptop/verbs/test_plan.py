from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxcar.laptop.common import show
from boxcar.laptop.project.profiles import survival
from boxcar.laptop.project.project import Project, open_project
from boxcar.laptop.project.queues.cell_cost import Sample
from boxcar.laptop.tryout import passes
from boxcar.laptop.verbs.plan import first_command, plan
from boxcar.shared.disk.mounts import DiskRoom
from boxcar.shared.errors import InputError
from boxcar.shared.files import codec
from boxcar.shared.files.plan import EACH_BOX, Plan

JOB = """\
name: run-1
command: train.py --config {cfg} --task {task} --epochs {epochs} --out {out}
epochs: 20
cells: {big: {nproc_per_node: 2}}
queues:
  queues/q1.txt: box-a
  queues/q2.txt: box-b
artifacts: [best.pth, {path: metrics.json, keys: [psnr]}]
resume: latest.pth
"""
WEBHOOK = """\
notify:
  - webhook: {url: "env:BOXCAR_WEBHOOK_URL", secret: "env:BOXCAR_WEBHOOK_SECRET"}
"""


def write_project(root: Path, job: str = JOB, **queues: bytes) -> Path:
    """A project with some configs, two queues and its job.yaml."""
    for name in ("base", "big", "small", "odd $(touch x)/ok"):
        path = root / "configs" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (root / "train.py").touch()
    (root / "queues").mkdir()
    lines = {"q1": b"configs/base.json recon\nconfigs/big.json recon 5\n"}
    lines |= {"q2": b"# the small one\n\nconfigs/small.json seg\n"}
    for name, data in (lines | queues).items():
        (root / "queues" / f"{name}.txt").write_bytes(data)
    (root / "job.yaml").write_text(job)
    return root / "job.yaml"


def open_with(root: Path, job: str = JOB, **queues: bytes) -> Project:
    return open_project(write_project(root, job, **queues), "local")


def problems(root: Path, job: str = JOB, **queues: bytes) -> list[str]:
    """What is refused; the project's folder is left out of the sentences."""
    path = write_project(root, job, **queues)
    before = sorted(root.rglob("*"))
    with pytest.raises(InputError) as caught:
        open_project(path, "local")
    assert sorted(root.rglob("*")) == before
    return [line.replace(f"{root}/", "") for line in caught.value.problems]


def test_the_plan_holds_every_cell_with_its_place_epochs_and_ranks(tmp_path: Path) -> None:
    found = open_with(tmp_path).plan
    assert [(c.queue, c.index, c.name, c.task, c.epochs, c.nproc) for c in found.cells] == [
        ("q1", 0, "base", "recon", 20, None),
        ("q1", 1, "big", "recon", 5, 2),
        ("q2", 0, "small", "seg", 20, None),
    ]
    assert found.queues == {"q1": "box-a", "q2": "box-b"}
    assert [box.name for box in found.boxes] == ["box-a", "box-b"]
    assert [(rule.cells, rule.nproc) for rule in found.rules] == [("big", 2)]
    assert found.artifacts[1].keys == ("psnr",)


def test_a_plan_reads_back_as_it_was_written(tmp_path: Path) -> None:
    found = open_with(tmp_path).plan
    assert codec.from_document(Plan, codec.to_document(found), "plan.json") == found


def test_crlf_a_byte_order_mark_and_no_last_line_feed_are_accepted(tmp_path: Path) -> None:
    found = open_with(
        tmp_path, q1=b"\xef\xbb\xbfconfigs/base.json recon\r\nconfigs/big.json recon 5"
    )
    assert [cell.name for cell in found.plan.cells] == ["base", "big", "small"]


def test_all_problems_of_all_queues_are_told_at_once(tmp_path: Path) -> None:
    q1 = b"# c\nconfigs/base.json\nconfigs/bse.json recon\nconfigs/big.json recon ten\n"
    told = problems(tmp_path, q1=q1, q2=b"configs/../small.json seg\n")
    assert len(told) == 4
    assert "queues/q1.txt:2: expected <cfg> <task> [epochs], found 1 field" in told[0]
    assert told[1] == "queues/q1.txt:4: epochs must be a whole number, 1 or more; found 'ten'"
    assert told[2].startswith("queues/q2.txt:1: the config 'configs/../small.json' must be a path")
    assert told[3].startswith("queues/q1.txt:3: there is no config 'configs/bse.json' in ")
    assert told[3].endswith("(did you mean 'configs/base.json'?)")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"configs/base.json\n", "found 1 field"),
        (b"configs/base.json a b c\n", "epochs must be a whole number, 1 or more; found 'b'"),
        (b"configs/base.json 'recon\n", "is not closed"),
        (b"configs/base.json recon 0\n", "epochs must be a whole number, 1 or more; found '0'"),
        (b"configs/base.json recon 1e3\n", "found '1e3'"),
        (b"/etc/base.json recon\n", "must be a path inside the code folder"),
        (b"../base.json recon\n", "must be a path inside the code folder"),
        (b"--config=x.json recon\n", "begins with '-'"),
        (b"'configs/a\rb.json' recon\n", "control character"),
        (b"'configs/$(touch x).json' recon\n", "invalid cell name '$(touch x)'"),
        (b"configs/b\xe4se.json recon\n", "byte 10 is 0xe4): save the file as UTF-8"),
        (b"configs/none/x.json recon\n", "no folder"),
        (b"configs/" + b"x" * 300 + b"/y.json recon\n", "there is no config"),
        (b"python fit.py\n", "A line is <config> <task> [epochs], not a command"),
        (b"configs/small.json recon\nconfigs/small.yaml seg\n", "is already on line 1"),
        (b"configs/base.json " + b"x" * 5000 + b"\n", "at most 4096 are allowed"),
        (b"x" * 34_000_000, "the queue file is larger than 33554432 bytes"),
    ],
)
def test_a_bad_line_is_named_with_file_and_line(tmp_path: Path, line: bytes, words: str) -> None:
    told = problems(tmp_path, q2=line)
    assert len(told) == 1
    assert told[0].startswith("queues/q2.txt:")
    assert words in told[0]


@pytest.mark.parametrize("twin", ["configs/base.json", "configs/./base.json", "configs/BASE.json"])
def test_one_name_in_two_queues_names_both_places(tmp_path: Path, twin: str) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "BASE.json").touch()
    told = problems(tmp_path, q2=f"configs/small.json seg\n{twin} seg\n".encode())
    assert len(told) == 1
    assert told[0].startswith("queues/q2.txt:2: the cell '")
    assert "is already in queues/q1.txt:1. Give one of the two another name" in told[0]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "big:",
            "bog:",
            "job.yaml:4: cells.bog: no queue has a cell with this name (did you mean 'big'",
        ),
        (
            "q2.txt",
            "q3.txt",
            "queues['queues/q3.txt']: the queue file does not exist (did you mean 'queues/q2",
        ),
        ("queues/q2.txt", "queues", "the queue file cannot be read: Is a directory"),
        (
            "box-b",
            "Box-A",
            "the box 'Box-A' already has the queue queues/q1.txt, and a box runs one",
        ),
        (
            "box-b",
            "[box-b, Box-A]",
            "the box 'Box-A' already has the queue queues/q1.txt, and a box runs one",
        ),
        ("queues/q2.txt", "other/q1.txt", "has the same queue name 'q1' as queues/q1.txt"),
        ("train.py", "trian.py", "no script 'trian.py' in the code folder"),
        ("epochs: 20", "code: src", "job.yaml:3: code: there is no folder src"),
        ("epochs: 20", "", "queues/q1.txt:1: the command uses {epochs}, but the line has none"),
    ],
)
def test_a_job_that_does_not_fit_its_files(tmp_path: Path, old: str, new: str, words: str) -> None:
    job = JOB.replace(old, new)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "q1.txt").write_text("configs/small.json seg\n")
    told = problems(tmp_path, job)
    assert words in told[0]


def test_a_command_that_takes_resume_needs_one_in_the_job(tmp_path: Path) -> None:
    job = JOB.replace("{out}", "{out} --from {resume}")
    assert "latest.pth" in first_command(open_with(tmp_path / "named", job).plan)[-1]
    (told,) = problems(tmp_path / "unnamed", job.replace("resume: latest.pth", ""))
    assert "job.yaml:2: command: uses {resume}, but the key 'resume'" in told


def test_resume_words_without_a_resume_are_named_by_their_own_key(tmp_path: Path) -> None:
    job = JOB.replace("resume: latest.pth\n", "")
    for words in ("--resume {resume}", "--resume"):
        (told,) = problems(tmp_path / words[-1], f"{job}resume_args: {words}\n")
        assert told.startswith("job.yaml:9: resume_args: is added only if there is a checkpoint")
        assert told.endswith("but the key 'resume', which names that file, is missing")


def test_a_resume_that_each_cell_has_of_its_own_is_enough(tmp_path: Path) -> None:
    job = JOB.replace("resume: latest.pth\n", "").replace("{out}", "{out} --from {resume}")
    own = "cells: {'*': {resume: last.pt}}"
    assert open_with(tmp_path, job.replace("cells: {big: {nproc_per_node: 2}}", own))


def test_lines_that_ran_and_were_edited_are_told_before_a_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = open_with(tmp_path)
    there = project.on_tier.queue("q1")
    there.parent.mkdir(parents=True)
    there.write_text("configs/base.json recon 7\nconfigs/big.json recon 5\n")
    assert plan(project, as_json=True) == 1
    said = capsys.readouterr()
    json.loads(said.out)
    assert "-configs/base.json recon 7\n+configs/base.json recon" in said.err
    there.write_text("configs/base.json recon\n")
    assert plan(project, as_json=True) == 0


def test_a_pattern_may_be_empty_and_so_is_named_in_resume_args_alone(tmp_path: Path) -> None:
    pattern = JOB.replace("latest.pth", "step_*.pt")
    (told,) = problems(tmp_path / "command", pattern.replace("{out}", "{out} --from {resume}"))
    assert told.startswith("job.yaml:2: command: uses {resume}, which is empty until a file")
    (told,) = problems(tmp_path / "env", pattern + "env: {FROM: '{resume}'}\n")
    assert "env: uses {resume}" in told and "resume_args" in told
    (told,) = problems(tmp_path / "smoke", pattern + "smoke: --from {resume}\n")
    assert "smoke: uses {resume}" in told
    rule = JOB.replace("{nproc_per_node: 2}", "{resume: 'big_*.pt'}")
    (told,) = problems(tmp_path / "cell", rule.replace("{out}", "{out} --from {resume}"))
    assert "until a file matches big_*.pt" in told
    plan = open_with(tmp_path / "args", pattern + "resume_args: --from {resume}\n").plan
    assert plan.resume_args == ("--from", "{resume}")


def test_a_command_without_epochs_needs_none(tmp_path: Path) -> None:
    job = JOB.replace(" --epochs {epochs}", "").replace("epochs: 20\n", "")
    assert [cell.epochs for cell in open_with(tmp_path, job).plan.cells] == [1, 5, 1]


def test_no_cell_at_all_is_refused_and_one_empty_queue_is_not(tmp_path: Path) -> None:
    job = JOB.replace("cells: {big: {nproc_per_node: 2}}\n", "")
    (told,) = problems(tmp_path / "none", job, q1=b"", q2=b"# nothing yet\n")
    assert "no cells yet. Write one line for each, <cfg> <task> [epochs], in" in told
    assert len(open_with(tmp_path / "one", job, q1=b"").plan.cells) == 1


def test_shell_characters_in_paths_tasks_and_folders_stay_in_their_words(tmp_path: Path) -> None:
    root = tmp_path / "my 'project' $(touch x)"
    root.mkdir()
    job = JOB.replace("cells: {big: {nproc_per_node: 2}}\n", "")
    project = open_with(root, job, q1=b"'configs/odd $(touch x)/ok.json' 'a b;$(c)' 3\n")
    assert first_command(project.plan) == [
        *("train.py", "--config", "configs/odd $(touch x)/ok.json", "--task", "a b;$(c)"),
        *("--epochs", "3", "--out", str(project.scratch("box-a").out("ok"))),
    ]


def test_a_script_that_the_task_names_is_not_looked_for(tmp_path: Path) -> None:
    job = JOB.replace("train.py", "tasks/{task}.py --hook=none.py")
    assert first_command(open_with(tmp_path, job).plan)[0] == "tasks/recon.py"


def test_many_missing_configs_are_told_without_looking_for_near_ones(tmp_path: Path) -> None:
    lines = "".join(f"configs/base{number}.json recon\n" for number in range(30))
    told = problems(tmp_path, JOB.replace("cells:", "env: {} #"), q1=lines.encode())
    assert len(told) == 30
    assert not any("did you mean" in line for line in told)


def test_plan_shows_everything_and_touches_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_with(tmp_path, JOB + WEBHOOK + "secrets: [SOME_KEY]\n")
    monkeypatch.setenv("BOXCAR_WEBHOOK_URL", "https://token.example/hook")
    monkeypatch.setenv("BOXCAR_WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    monkeypatch.delenv("SOME_KEY", raising=False)
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    assert plan(project, as_json=False) == 0
    out, err = capsys.readouterr()
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
    for word in ("run-1", "base", "big", "small", "box-b", "best.pth", str(project.on_tier.root)):
        assert word in out
    assert "SOME_KEY is not set" in err
    assert "token" not in out + err
    assert "whsec" not in out + err


def test_plan_as_json_is_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOXCAR_WEBHOOK_URL", raising=False)
    project = open_with(tmp_path, JOB + WEBHOOK)
    assert plan(project, as_json=True) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["webhooks"] == "off"
    assert [cell["cell"] for cell in document["cells"]] == ["base", "big", "small"]
    assert document["artifacts"][1] == {"path": "metrics.json", "keys": ["psnr"]}
    assert {room["place"] for room in document["room"]} == {
        *("durable tier", "scratch of box-a", "scratch of box-b")
    }
    assert all(room["free_bytes"] > 0 for room in document["room"])
    assert "BOXCAR_WEBHOOK_URL is not set: no webhooks will be sent" in err


def test_plan_says_when_a_config_would_not_travel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = open_with(tmp_path)
    (tmp_path / ".boxcarignore").write_text("big.json\n")
    assert plan(project, as_json=False) == 1
    assert "configs/big.json: the config of big would not be sent" in capsys.readouterr().err


def test_plan_shows_the_commit_and_leaves_the_repository_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = open_with(tmp_path)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "a")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "train.py").write_text("changed = True\n")
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    assert plan(project, as_json=True) == 0
    code = json.loads(capsys.readouterr().out)["code"]
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
    assert len(code["commit"]) == 40
    assert code["is_dirty"] is True


def test_what_survives_which_death_is_said(tmp_path: Path, capsys: Any) -> None:
    """A checkpoint is copied where the job has one; without a shared tier only what was brought."""
    project = open_with(tmp_path)
    plan(project, as_json=True)
    here = json.loads(capsys.readouterr().out)["survives"]
    assert here["a box"].endswith("running cells resume from their live checkpoint")
    assert here["this machine"] == "nothing survives"
    own = survival.survivors(replace(project.plan, durable_scope=EACH_BOX), is_here=False)
    assert (
        "results and checkpoints copied to this machine (by pull," in own["a box"]
        and "the durable tier" not in own
    )
    shared = survival.survivors(replace(project.plan, resume=None), is_here=False)
    assert shared["a box"].endswith("running cells start over")
    plan(project, as_json=False)
    assert "if a box is lost" in capsys.readouterr().out


def _last_line(project: Project, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = plan(project, as_json=False)
    return code, capsys.readouterr().err.splitlines()[-1]


def test_it_ends_with_how_much_it_is_and_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = open_with(tmp_path)
    assert _last_line(project, capsys) == (0, "3 cells, 2 boxes. Next: invoke launch")


def test_what_earlier_runs_took_is_the_time_that_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_with(tmp_path, JOB + "smoke: --epochs 1\n")
    measured = [Sample("base", "recon", 20, 4000.0, "box-z")]
    monkeypatch.setattr("boxcar.laptop.verbs.split.measured", lambda project: measured)
    wanted = "3 cells, 2 boxes, about 1h23m (from earlier runs). Next: invoke smoke"
    assert _last_line(project, capsys) == (0, wanted)


def test_a_plan_that_is_refused_says_to_look_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = open_with(tmp_path)
    (tmp_path / ".boxcarignore").write_text("big.json\n")
    wanted = "3 cells, 2 boxes. Fix the problems above, then: invoke plan"
    assert _last_line(project, capsys) == (1, wanted)


def test_a_queue_beyond_what_an_agent_reads_at_no_cost_is_named_in_both_languages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boxcar.laptop.verbs.plan.LONG_QUEUE", 2)
    project = open_with(tmp_path)
    assert plan(project, as_json=False) == 0
    assert "queue q" not in capsys.readouterr().err  # of two cells
    monkeypatch.setattr("boxcar.laptop.verbs.plan.LONG_QUEUE", 1)
    for language, said in (("en", "queue q1 has 2 cells"), ("zh", "队列 q1 有 2 个 cell")):
        show.speak(language)
        assert plan(project, as_json=False) == 0
        [told] = [line for line in capsys.readouterr().err.splitlines() if said in line]
        assert "q2" not in told
    show.begin()


def test_a_candidate_that_does_not_exist_is_refused_with_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = open_with(tmp_path, JOB + "candidates: [runpodd, local]\n")
    assert plan(project, as_json=False) == 1
    said = capsys.readouterr().err
    assert "candidates: no profile 'runpodd' (did you mean 'runpod'?)" in said
    assert "or write one of: " in said


def test_numbers_of_a_disk_have_separators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_with(tmp_path)
    room = DiskRoom(10**10, 10**9, 10**9, 2 * 10**7, 16195706)
    monkeypatch.setattr("boxcar.laptop.verbs.plan.disk_room", lambda folder: room)
    plan(project, as_json=False)
    assert "16,195,706" in capsys.readouterr().out


def test_the_memory_of_all_cells_at_once_is_said_also_where_env_names_the_gpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = 'gpus_per_cell: 1\nenv: {CUDA_VISIBLE_DEVICES: "0,1,2,3"}\n'
    seen = passes.Measured(1, 1, 2 * 10**9, 0, 1)
    monkeypatch.setattr(passes, "measured", lambda project: seen)
    plan(open_with(tmp_path, JOB + more), as_json=False)
    assert "4 x 2.0 GB of RAM" in capsys.readouterr().out


@pytest.mark.parametrize(("profile", "is_said"), [("local", False), ("ssh", True)])
def test_an_address_that_rented_boxes_cannot_reach_is_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
    is_said: bool,
) -> None:
    monkeypatch.setenv("BOXCAR_WEBHOOK_URL", "http://127.0.0.1:8765/")
    monkeypatch.setenv("BOXCAR_WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    plan(open_project(write_project(tmp_path, JOB + WEBHOOK), profile), as_json=False)
    told = capsys.readouterr().err
    assert ("is the box itself" in told) == is_said
    assert ("listen --through box-a --through box-b" in told) == is_said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "resources: {gpu: {count: 8}}",
            "each cell asks for 12 GPUs, and by resources: gpu: count a box has 8",
        ),
        (
            'env: {CUDA_VISIBLE_DEVICES: "1,3"}',
            "each cell asks for 12 GPUs, and env: CUDA_VISIBLE_DEVICES names 1,3",
        ),
    ],
)
def test_more_gpus_than_a_box_has_by_the_job_itself_are_refused(tmp_path, more, said):
    with pytest.raises(InputError, match=f"gpus_per_cell: {re.escape(said)}"):
        open_with(tmp_path, JOB + f"gpus_per_cell: 12\n{more}\n")


def test_more_gpus_than_the_least_that_the_job_wants_are_not_refused(tmp_path):
    open_with(tmp_path, JOB + "gpus_per_cell: 12\nresources: {gpu: {count: 8+}}\n")


def test_the_boxes_of_a_pool_are_said_also_under_a_scheduler(tmp_path, capsys):
    job = JOB.replace("box-b", "[box-b, box-c]")
    project = open_with(tmp_path, job)
    assert list(project.plan.queues) == ["q1", "q2@box-b", "q2@box-c"]
    assert {cell.queue for cell in project.plan.cells} == {"q1", "q2"}
    plan(project)
    assert "q2: box-b, box-c share its cells; each box claims the next" in capsys.readouterr().err
    (tmp_path / "profiles").mkdir()
    mine = "name: mine\nextends: slurm\nstorage: {tiers: {scratch: {path: /s}}}\n"
    (tmp_path / "profiles" / "mine.yaml").write_text(mine)
    plan(open_project(tmp_path / "job.yaml", "mine"))
    told = capsys.readouterr().err
    assert "q2: box-b, box-c share its cells, each in a Slurm job of its own" in told
    assert "dealt" not in told


def test_boxes_without_a_shared_tier_are_dealt_their_cells_which_plan_says(tmp_path, capsys):
    job = write_project(tmp_path, JOB.replace("box-b", "[box-b, box-c]"))
    project = open_project(job, "runpod")
    assert list(project.plan.queues) == ["q1", "q2-box-b", "q2-box-c"]
    plan(project)
    told = capsys.readouterr().err
    assert "launch deals its cells out to q2-box-b, q2-box-c" in told
    assert sorted(path.name for path in (tmp_path / "queues").iterdir()) == ["q1.txt", "q2.txt"]


def test_boxes_that_a_budget_cannot_count_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan(open_with(tmp_path, f"{JOB}budget: 20 CNY\nprice: 1 USD/h\n"))
    assert "in its currency. Write one under `price:`" in capsys.readouterr().err
    plan(open_with(tmp_path / "b", f"{JOB}budget: 20 CNY\nprice: 1 CNY/h\n"))
    assert "in its currency" not in capsys.readouterr().err
