from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxcar.shared import names, paths
from boxcar.shared.errors import DamagedError
from boxcar.shared.paths import DurablePaths, ResultPaths, ScratchPaths
from boxcar.shared.process.strays import find

FOLDER = Path("/durable/boxcar/digits-ablation/cells/recon_baseline")

HOSTILE = {
    "empty": "",
    "the folder itself": ".",
    "the folder above": "..",
    "climbs out": "../recon_no_aug/best.pth",
    "climbs out later": "sub/../../recon_no_aug/best.pth",
    "climbs and comes back": "sub/../best.pth",
    "ends above": "sub/..",
    "absolute": "/etc/passwd",
    "absolute twice": "//etc/passwd",
    "empty part": "sub//best.pth",
    "trailing slash": "sub/",
    "dot part": "./best.pth",
    "NUL": "best.pth\0.png",
    "half of a surrogate pair": "best\ud800.pth",
}

HARMLESS = {
    "plain": "best.pth",
    "below": "samples/epoch_1/0001.png",
    "hidden": ".hydra/config.yaml",
    "three dots": ".../x",
    "dots in the name": "a..b",
    "backslashes are letters here": "..\\..\\etc",
    "home is not expanded": "~/x",
    "what a shell would run": "$(touch x)",
    "line feed": "a\nb",
    "a name that is no UTF-8": "a\udcff.pth",
    "unicode": "größe/名.pth",
}


@pytest.mark.parametrize("relative", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_path_that_leaves_its_folder_is_refused_and_named(relative):
    with pytest.raises(DamagedError) as raised:
        paths.inside(FOLDER, relative)
    assert repr(relative) in str(raised.value)


@pytest.mark.parametrize("relative", HARMLESS.values(), ids=HARMLESS.keys())
def test_a_path_that_stays_inside_is_what_it_says(relative):
    assert str(paths.inside(FOLDER, relative)) == f"{FOLDER}/{relative}"


@given(st.text() | st.text(alphabet="./a\\~\0", max_size=12))
def test_no_text_leads_out_of_the_folder(relative):
    try:
        path = paths.inside(FOLDER, relative)
    except DamagedError:
        return
    assert os.path.normpath(path) == str(path) == f"{FOLDER}/{relative}"
    os.fsencode(path)  # the system can be asked for it


@pytest.mark.parametrize("link", ["a", "a/b", "a/b/c"])
def test_a_link_at_any_step_is_seen(tmp_path, link):
    (tmp_path / "elsewhere" / "b").mkdir(parents=True)
    (tmp_path / "elsewhere" / "c").touch()
    folder = tmp_path / "cell"
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(tmp_path / "elsewhere")
    assert paths.has_symlink(folder, "a/b/c")


def test_a_broken_link_is_a_link(tmp_path):
    (tmp_path / "best.pth").symlink_to("nowhere")
    assert paths.has_symlink(tmp_path, "best.pth")


def test_plain_files_missing_files_and_a_folder_behind_a_link_are_no_links(tmp_path):
    (tmp_path / "cell" / "a").mkdir(parents=True)
    (tmp_path / "cell" / "a" / "b").touch()
    (tmp_path / "link").symlink_to(tmp_path / "cell")
    assert not paths.has_symlink(tmp_path / "cell", "a/b")
    assert not paths.has_symlink(tmp_path / "cell", "a/missing/c")
    # Where the durable tier itself lies behind a link is the user's business.
    assert not paths.has_symlink(tmp_path / "link", "a/b")


# Each: whether one is seen below a folder, and below a link to that folder.
SEEN = {
    "": (False, True),
    ".": (False, True),
    "./": (False, True),
    "./a": (False, True),
    "/": (False, True),
    "/a": (False, True),
    "/etc/passwd": (False, True),
    "a": (False, False),
    "a/": (False, False),
    "a/.": (False, False),
    "a//b": (False, False),
    "..": (False, False),
    "a/..": (False, False),
    "../link": (True, True),
    "a/../inner": (True, True),
    "inner": (True, True),
    "inner/": (True, True),
    "./inner": (True, True),
    "file/x": (False, False),
    "inner\0": (False, False),
    "half of a pair \ud800": (False, False),
}


@pytest.mark.parametrize(("relative", "seen"), SEEN.items(), ids=map(ascii, SEEN))
def test_of_a_folder_that_is_a_link_it_is_said_only_where_itself_is_meant(tmp_path, relative, seen):
    folder, link = tmp_path / "folder", tmp_path / "link"
    (folder / "a").mkdir(parents=True)
    (folder / "file").touch()
    (folder / "inner").symlink_to("a")
    link.symlink_to(folder)
    assert (paths.has_symlink(folder, relative), paths.has_symlink(link, relative)) == seen


def test_what_cannot_be_looked_at_is_not_said_to_be_no_link(tmp_path):
    with pytest.raises(OSError, match="File name too long"):
        paths.has_symlink(tmp_path, "x" * 300)


def test_below_a_link_that_leads_to_itself_there_is_none(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert not paths.has_symlink(tmp_path / "loop", "a")
    assert paths.has_symlink(tmp_path / "loop", ".")


def test_the_layout_of_the_durable_tier():
    durable = DurablePaths(Path("/fs"), "digits-ablation")
    found = {
        durable.root,
        durable.release("3f9a"),
        durable.queue("queue_1"),
        durable.lock("queue_1"),
        durable.control("queue_1"),
        durable.journal("queue_1"),
        durable.heartbeat("queue_1"),
        durable.delivered("queue_1"),
        durable.claim("recon_baseline"),
        durable.cell("recon_baseline"),
        durable.manifest("recon_baseline"),
        durable.receipt("recon_baseline"),
        durable.resume("recon_baseline"),
    }
    root = "/fs/boxcar/digits-ablation"
    assert {str(path) for path in found} == {
        root,
        f"{root}/releases/3f9a",
        f"{root}/queues/queue_1.txt",
        f"{root}/locks/queue_1.lock",
        f"{root}/control/queue_1.json",
        f"{root}/journal/queue_1.jsonl",
        f"{root}/heartbeat/queue_1.json",
        f"{root}/delivered/queue_1.json",
        f"{root}/claims/recon_baseline.json",
        f"{root}/cells/recon_baseline",
        f"{root}/cells/recon_baseline/manifest.json",
        f"{root}/cells/recon_baseline/receipt.json",
        f"{root}/cells/recon_baseline/resume",
    }


def test_every_file_of_the_durable_tier_lies_in_a_folder_that_is_made_before():
    durable = DurablePaths(Path("/fs"), "digits-ablation")
    folders = durable.folders()
    files = [
        getattr(durable, kind)("x")
        for kind in ("release", "queue", "lock", "control", "journal", "heartbeat", "delivered")
    ]
    of_cells = (durable.claim("x"), durable.cell("x"), durable.accepted("x"))
    assert {path.parent for path in (*files, *of_cells)} == set(folders)
    assert len(folders) == len(set(folders))


def test_the_layout_of_scratch():
    scratch = ScratchPaths(Path("/data"), "digits-ablation")
    cell = "/data/boxcar/digits-ablation/cells/recon_baseline"
    assert str(scratch.code("3f9a")) == "/data/boxcar/digits-ablation/code/3f9a"
    assert str(scratch.agent_log("queue_1")) == "/data/boxcar/digits-ablation/agent-queue_1.log"
    assert str(scratch.start("queue_1")) == "/data/boxcar/digits-ablation/start-queue_1.json"
    assert str(scratch.cells) == "/data/boxcar/digits-ablation/cells"
    assert str(scratch.cell("recon_baseline")) == cell
    assert str(scratch.out("recon_baseline")) == f"{cell}/out"
    assert str(scratch.log("recon_baseline")) == f"{cell}/recon_baseline.log"
    assert str(scratch.running("recon_baseline")) == f"{cell}/running.json"
    assert str(scratch.done("recon_baseline", 2)) == f"{cell}/done-2.json"


def test_the_layout_of_the_results():
    results = ResultPaths(Path("results"), "digits-ablation")
    assert str(results.partial) == "results/digits-ablation/.partial"
    assert str(results.cells) == "results/digits-ablation/cells"
    assert str(results.cell("recon_baseline")) == "results/digits-ablation/cells/recon_baseline"
    assert results.manifest("x") == results.cell("x") / "manifest.json"
    assert str(results.journals) == "results/digits-ablation/journal"
    assert str(results.receipt) == "results/digits-ablation/receipt.json"
    assert str(results.teardown) == "results/digits-ablation/teardown.json"


def test_the_runs_of_a_box_and_what_was_started_in_them(tmp_path):
    for name in ("b", "a", ".removing-c"):
        (tmp_path / "boxcar" / name).mkdir(parents=True)
    (tmp_path / "boxcar" / "onbox-0a0bcca53c6c.pyz").touch()
    assert [scratch.run for scratch in paths.scratches(tmp_path)] == ["a", "b"]
    first = paths.scratches(tmp_path)[0]
    assert first.started() == []
    for queue in ("q.2", "start-q1"):
        first.start(queue).touch()
    assert first.started() == ["q.2", "start-q1"]
    assert paths.scratches(tmp_path / "none") == []


def test_a_path_on_a_box_is_absolute_or_below_its_own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "a home"))
    assert paths.on_box("/srv/x") == Path("/srv/x")
    assert paths.on_box("~/x y") == tmp_path / "a home" / "x y"


@pytest.mark.parametrize("text", ["", "x", "./x", "~", "~root/x", "$HOME/x", "/x\0y"])
def test_any_other_path_on_a_box_is_refused(text):
    with pytest.raises(DamagedError, match="begins with ~/"):
        paths.on_box(text)


def test_a_home_that_is_none_is_no_place_for_a_path(monkeypatch):
    monkeypatch.setenv("HOME", "nowhere")
    with pytest.raises(DamagedError, match="HOME"):
        paths.on_box("~/x")


# --- names


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "-x", "_x", "a/b", "a b", "a\n", "a\0", "$(x)", "a;b", "é"]
)
def test_what_could_lead_elsewhere_is_no_name(name):
    for rule in (names.RUN, names.PLACE, names.DIGEST):
        assert not rule.fullmatch(name)


def test_a_run_is_lower_case_and_a_queue_may_have_more():
    assert names.RUN.fullmatch("digits-ablation-2")
    assert not names.RUN.fullmatch("Digits")
    assert names.PLACE.fullmatch("queue_1.A")
    assert names.DIGEST.fullmatch("0a" * 32)
    assert not names.DIGEST.fullmatch("0A" * 32)


# --- strays


def written(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_a_declared_file_is_found_at_its_path_else_under_its_name(tmp_path):
    written(
        tmp_path / "runs/1/best.pt",
        tmp_path / "best.pt",
        tmp_path / "runs/1/last.pt",
        tmp_path / "x/step_2.pt",
    )
    wanted = ("best.pt", "checkpoints/last.pt", "step_*.pt", "none.pt", "configs")
    odd = os.fsdecode(b"\xff.bin")
    written(tmp_path / "x" / odd)
    found = find(tmp_path, ("best.pt", "runs/", "x/"), (*wanted, "*.bin", "runs/?/"))
    assert found == {
        "best.pt": "best.pt",
        "checkpoints/last.pt": "runs/1/last.pt",
        "step_*.pt": "x/step_2.pt",
        "runs/?/": "runs/1",
    }


def test_the_members_of_a_pool_have_one_file_and_all_else_of_their_own(tmp_path):
    tier = DurablePaths(tmp_path, "r")
    one, other = names.member_name("all", "box-a"), names.member_name("all", "box-b")
    assert tier.queue(one) == tier.queue(other) == tier.queue("all")
    for place in (tier.lock, tier.control, tier.journal, tier.heartbeat, tier.delivered):
        assert place(one) != place(other)
    assert names.QUEUE.fullmatch(one) and not names.PLACE.fullmatch(one)
    assert not names.QUEUE.fullmatch("a@b@c") and not names.QUEUE.fullmatch("@b")


def test_a_queue_that_left_is_known_by_its_journal_and_a_pools_file_is_none(tmp_path):
    tier = DurablePaths(tmp_path, "r")
    for path in (tier.queue("all"), tier.queue("old"), tier.journal("all@gone"), tier.journal("x")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert tier.known_queues(["all@box-a"]) == ["all@box-a", "all@gone", "x", "old"]
    assert tier.known_queues(["q"]) == ["q", "all@gone", "x", "old"]
