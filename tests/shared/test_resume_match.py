from __future__ import annotations

import io
import os
import time
import zipfile
from pathlib import Path

import pytest

from boxcar.shared.artifacts import resume_match
from boxcar.shared.artifacts.resume_match import (
    chosen,
    down_to_whole,
    find_checkpoints,
    newest_complete,
)
from boxcar.shared.artifacts.seen_checkpoint import UNCHANGED_S

LONG_AGO_S = 3 * UNCHANGED_S
STEPS = "checkpoints/step_*.pt"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out/checkpoints").mkdir(parents=True)
    return tmp_path / "out"


def torch_zip() -> bytes:
    """As torch.save writes a file: a zip, its end record last."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("archive/data.pkl", b"weights" * 100)
    return held.getvalue()


def save(out: Path, name: str, data: bytes | None = None, age_s: float = 0.0) -> Path:
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(torch_zip() if data is None else data)
    at = time.time() - age_s
    os.utime(path, (at, at))
    return path


def name(out: Path, resume: str) -> str | None:
    path = chosen(out, resume)
    return path.relative_to(out).as_posix() if path else None


# --- which is the newest


def test_the_highest_number_is_the_newest_whatever_the_alphabet_and_the_times_say(out):
    for step, age_s in ((900, 10.0), (1000, 500.0), (99, 0.0)):
        save(out, f"checkpoints/step_{step}.pt", age_s=age_s)
    assert name(out, STEPS) == "checkpoints/step_1000.pt"


def test_of_equal_numbers_the_one_that_changed_last_is_the_newest(out):
    save(out, "b.ckpt", age_s=5)
    save(out, "a.ckpt", age_s=1)
    save(out, "c.ckpt", age_s=9)
    assert name(out, "*.ckpt") == "a.ckpt"


def test_numbers_count_in_the_order_in_which_they_stand(out):
    for made in ("epoch=2-step=900.ckpt", "epoch=10-step=5.ckpt", "epoch=10-step=5-v1.ckpt"):
        save(out, made)
    assert name(out, "epoch=*.ckpt") == "epoch=10-step=5-v1.ckpt"


def test_a_pattern_of_several_parts_looks_into_every_folder_that_it_matches(out):
    save(out, "runs/v1/step_5.pt")
    save(out, "runs/v2/step_4.pt")
    save(out, "runs/v2/deeper/step_9.pt")
    assert name(out, "runs/v?/step_*.pt") == "runs/v2/step_4.pt"


def test_what_only_looks_like_a_match_does_not_count(out):
    for other in ("step_9.pt.tmp", ".step_8.pt", "xstep_7.pt", "step_6.pth"):
        save(out, f"checkpoints/{other}")
    save(out, "checkpoints/sub/step_5.pt")
    assert name(out, STEPS) is None
    assert name(out, "*") is None


def test_a_star_does_not_find_what_begins_with_a_dot(out):
    save(out, ".unfinished")
    assert name(out, "*") is None
    assert name(out, ".un*") == ".unfinished"


def test_brackets_in_a_name_mean_themselves(out):
    save(out, "step[1].pt")
    save(out, "step1.pt")
    assert name(out, "*[1].pt") == "step[1].pt"


# --- what is complete: files


def test_a_zip_that_was_cut_is_left_for_the_one_before(out):
    save(out, "checkpoints/step_1.pt")
    save(out, "checkpoints/step_2.pt", torch_zip()[:-30])
    assert name(out, STEPS) == "checkpoints/step_1.pt"


def test_an_empty_file_is_left_for_the_one_before(out):
    save(out, "checkpoints/step_1.pt", b"not a zip")
    save(out, "checkpoints/step_2.pt", b"")
    assert name(out, STEPS) == "checkpoints/step_1.pt"


def test_a_file_that_grew_between_two_looks_is_left_for_one_that_stood_still(out):
    save(out, "checkpoints/step_1.pt", b"one")
    save(out, "checkpoints/step_2.pt", b"tw")
    at_ns = time.time_ns()
    before = list(find_checkpoints(out, STEPS))
    save(out, "checkpoints/step_2.pt", b"two")
    found = newest_complete(before, find_checkpoints(out, STEPS), at_ns)
    assert found and found.name == "checkpoints/step_1.pt"


def test_a_file_that_appeared_since_the_first_look_is_not_believed_yet(out):
    save(out, "checkpoints/step_1.pt")
    at_ns = time.time_ns()
    before = down_to_whole(find_checkpoints(out, STEPS), at_ns)
    save(out, "checkpoints/step_2.pt")
    found = newest_complete(before, find_checkpoints(out, STEPS), at_ns)
    assert found and found.name == "checkpoints/step_1.pt"


def test_the_first_look_goes_no_deeper_than_to_one_that_is_whole(out):
    for step in range(5):
        save(out, f"checkpoints/step_{step}.pt", b"" if step > 3 else b"whole")
    seen = down_to_whole(find_checkpoints(out, STEPS), time.time_ns())
    assert [one.name for one in seen] == ["checkpoints/step_4.pt", "checkpoints/step_3.pt"]


# --- what is complete: folders


def test_a_folder_without_an_index_counts_once_it_was_unchanged_for_a_minute(out):
    save(out, "checkpoint-500/model.pt", age_s=LONG_AGO_S)
    weights = save(out, "checkpoint-1000/model.pt", age_s=UNCHANGED_S / 2)
    assert name(out, "checkpoint-*/") == "checkpoint-500"
    os.utime(weights, (time.time() - LONG_AGO_S,) * 2)
    assert name(out, "checkpoint-*/") == "checkpoint-1000"


def test_a_folder_whose_script_had_left_need_not_be_a_minute_old(out):
    save(out, "checkpoint-5/model.pt")
    assert name(out, "checkpoint-*/") is None
    assert chosen(out, "checkpoint-*/", at_rest=True) == out / "checkpoint-5"


def test_a_folder_from_before_the_clock_was_set_back_does_not_wait_until_it_is_there_again(out):
    save(out, "checkpoint-500/model.pt", age_s=-LONG_AGO_S)
    assert name(out, "checkpoint-*/") == "checkpoint-500"
    save(out, "checkpoint-1000/model.pt", age_s=-1.5 * UNCHANGED_S)
    assert chosen(out, "checkpoint-*/", at_rest=True) == out / "checkpoint-1000"


@pytest.mark.parametrize("index", ["trainer_state.json", "model.safetensors.index.json"])
def test_a_folder_whose_index_is_its_newest_file_counts_at_once(out, index):
    save(out, "checkpoint-500/optimizer.pt", age_s=1)
    assert name(out, "checkpoint-*/") is None
    save(out, f"checkpoint-500/{index}")
    assert name(out, "checkpoint-*/") == "checkpoint-500"


def test_an_index_vouches_for_nothing_that_is_newer(out):
    save(out, "checkpoint-500/model.safetensors.index.json", age_s=2)
    save(out, "checkpoint-500/optimizer.pt", age_s=1)
    assert name(out, "checkpoint-*/") is None


def test_an_index_alone_or_an_empty_one_is_no_checkpoint(out):
    save(out, "checkpoint-500/trainer_state.json", b"{}")
    save(out, "checkpoint-400/model.pt", age_s=1)
    save(out, "checkpoint-400/trainer_state.json", b"")
    assert name(out, "checkpoint-*/") is None


def test_shards_without_their_index_are_no_checkpoint_however_old_they_are(out):
    for folder in ("step_1", "step_2", "step_3/model"):
        save(out, f"{folder}/__0_0.distcp", age_s=LONG_AGO_S)
    save(out, "step_1/.metadata", age_s=LONG_AGO_S)
    save(out, "step_1/meta.pt")  # as Lightning adds
    assert name(out, "step_*/") == "step_1"


def test_a_shard_that_is_newer_than_its_index_belongs_to_a_save_that_goes_on(out):
    save(out, "ckpt/__0_0.distcp", age_s=LONG_AGO_S)
    save(out, "ckpt/.metadata", age_s=2 * LONG_AGO_S)
    assert name(out, "ck*/") is None


def test_an_empty_folder_is_no_checkpoint(out):
    (out / "checkpoint-500").mkdir()
    assert name(out, "checkpoint-*/") is None


# --- two kinds


def test_the_slash_at_the_end_decides_whether_files_or_folders_are_meant(out):
    save(out, "step_1.pt")
    save(out, "step_2/model.pt", age_s=LONG_AGO_S)
    assert name(out, "step_*") == "step_1.pt"
    assert name(out, "step_*/") == "step_2"
    assert resume_match.of_other_kind(out, "step_*") == "step_2"
    assert resume_match.of_other_kind(out, "step_*/") == "step_1.pt"
    assert resume_match.of_other_kind(out, "step_*.pt") is None
    assert resume_match.of_other_kind(out, "step_2") is None


# --- a plain path


def test_a_plain_path_is_chosen_as_soon_as_something_lies_there(out):
    assert chosen(out, "latest.pth") is None
    save(out, "latest.pth", b"")
    assert chosen(out, "latest.pth") is None
    save(out, "latest.pth", torch_zip()[:-30])  # what it is the script has to say
    assert chosen(out, "latest.pth") == out / "latest.pth"


@pytest.mark.parametrize("resume", ["ckpt", "ckpt/"])
def test_a_plain_folder_is_chosen_once_it_holds_something(out, resume):
    (out / "ckpt").mkdir()
    assert chosen(out, resume) is None
    save(out, "ckpt/model.pt")
    assert chosen(out, resume) == out / "ckpt"


def test_a_plain_file_is_no_folder(out):
    save(out, "ckpt")
    assert chosen(out, "ckpt/") is None


def test_a_job_without_resume_has_nothing_to_resume_from(out):
    assert chosen(out, None) is None


def test_before_the_first_attempt_there_is_nothing(tmp_path):
    assert chosen(tmp_path / "out", STEPS) is None
    assert chosen(tmp_path / "out", "latest.pth") is None


# --- links, and what is no file


def test_a_link_to_another_checkpoint_of_the_cell_is_followed_under_its_own_name(out):
    save(out, "checkpoints/epoch_3.pt")
    (out / "last-v1.ckpt").symlink_to("checkpoints/epoch_3.pt")
    assert chosen(out, "last*.ckpt") == out / "last-v1.ckpt"
    assert chosen(out, "last-v1.ckpt") == out / "last-v1.ckpt"


def test_a_link_out_of_the_cell_does_not_count(out):
    save(out.parent, "secret/step_9.pt")
    (out / "step_9.pt").symlink_to("../secret/step_9.pt")
    (out / "step_8.pt").symlink_to("nowhere")
    (out / "v1").symlink_to("../secret")
    save(out, "step_1.pt")
    assert name(out, "step_*.pt") == "step_1.pt"
    assert chosen(out, "step_9.pt") is None
    assert chosen(out, "v*/step_*.pt") is None


def test_a_pipe_keeps_nobody_waiting(out):
    os.mkfifo(out / "step_9.pt")
    save(out, "step_1.pt")
    assert name(out, "step_*.pt") == "step_1.pt"


def test_a_name_that_nobody_can_print_does_not_count(out):
    save(out, "step_1.pt")
    Path(os.fsdecode(os.fsencode(out) + b"/step_\xff9.pt")).write_bytes(b"x")
    assert name(out, "step_*.pt") == "step_1.pt"


# --- patterns


@pytest.mark.parametrize(
    ("resume", "name"),
    [
        ("checkpoints/step_*.pt", "checkpoints/step_1.pt"),
        ("checkpoint-*/", "checkpoint-5"),
        ("runs/?/last*", "runs/a/last.ckpt"),
        ("latest.pth", "latest.pth"),
        ("ckpt/", "ckpt"),
        ("*[1].pt", "step[1].pt"),
        ("检查点_*.pt", "检查点_7.pt"),
        (".un*", ".unfinished"),
        ("*.tmp", "step_1.tmp"),
        ("tmp_*/", "tmp_1"),
        ("*/", "attempt-3"),
        ("*.pt", "party-1.part2.pt"),
    ],
)
def test_a_name_is_matched_part_by_part(resume, name):
    assert resume_match.matches(resume, name)


@pytest.mark.parametrize(
    ("resume", "name"),
    [
        ("checkpoints/step_*.pt", "step_1.pt"),
        ("*.pt", "checkpoints/step_1.pt"),
        ("step_?.pt", "step_10.pt"),
        ("step_*.pt", "step_1.pt.tmp"),
        ("*[1].pt", "step1.pt"),
        ("*", ".unfinished"),
        ("*.p.", "step.pt"),
        # Of a killed save: orbax 0.12 and 0.5, transformers 4.38, and as people write them.
        ("*/", "300.orbax-checkpoint-tmp"),
        ("*/", "300.orbax-checkpoint-tmp-1700000000"),
        ("*checkpoint-*/", "tmp-checkpoint-500"),
        ("step_*", "step_1.pt.tmp"),
        ("step_*", "step_1.pt.part"),
        ("step_*", "step_1.unfinished"),
        ("step_*.pt", "step_1_tmp.pt"),
        ("runs/*/last.pt", "runs/tmp/last.pt"),
        ("latest.pth", "latest_pth"),
    ],
)
def test_what_only_looks_alike_is_no_match(resume, name):
    assert not resume_match.matches(resume, name)


def test_numbers_of_a_name_are_compared_as_numbers():
    assert resume_match.numbers("epoch=10-step=5") > resume_match.numbers("epoch=9-step=700")
    assert resume_match.numbers("last-v1.ckpt") > resume_match.numbers("last.ckpt")
