"""A training that had ended when it was told to, or aborted at its exit."""

from __future__ import annotations

import subprocess
import sys

import pytest

from boxcar.shared.triage import exit_signals
from boxcar.shared.triage.had_ended import (
    began_again,
    had_ended,
    names_last_epoch,
    other_than_asked,
)

TSLIB = "\titers: 100, epoch: 1 | loss: 0.3\nEpoch: 1, Steps: 269 | Train Loss: 0.2\n"


@pytest.mark.parametrize(
    ("progress", "epochs", "log", "is_ended"),
    [
        ({"epoch": 3}, 3, "", True),
        ({"epoch": 1}, 3, "", False),
        ({"epoch": 2}, 3, "", None),
        ({"epoch": 2.98}, 3, "", None),
        ({"epoch": 1}, 3, "Epoch 3/3", False),
        ({}, 3, "Epoch 1/3 loss 2\nEpoch 3/3 loss 1\n", None),
        ({}, 3, "Epoch 1/3\n100%|####| 100/100 [00:01<00:00]", False),
        ({}, 3, "Epoch 1/3 step 100/100\n", False),
        ({}, 3, "Epoch 3/3 loss 1\nEpoch 1/3 of another\n", False),
        ({}, 3, "  7%|#   | 7/100 [00:01<00:09]", False),
        ({}, 3, "100%|####| 100/100 [00:01<00:00]", None),
        ({}, 3, "saved all\n", None),
        ({"epoch": "x"}, 3, "", None),
        ({"epoch": True}, 1, "", None),
        ({"epoch": 0}, 1, "", False),
        ({}, 6, TSLIB, False),
        ({}, 2, TSLIB, None),
        ({}, 0, TSLIB, None),
        ({"epoch": 3}, 0, "", None),  # nobody asked for any number of them
        ({}, 3, "fold 4 of 10\nEpoch 3/3\n", False),
        ({"epoch": 3}, 3, "Fold 4/10\nEpoch 3/3\n", False),
        ({"epoch": 3}, 3, "step 480/500\n", True),
    ],
)
def test_what_tells_of_work_that_was_left_is_no_end(progress, epochs, log, is_ended):
    assert had_ended(progress, epochs, log) is is_ended


@pytest.mark.parametrize(
    ("epochs", "log", "names_it"),
    [
        (3, "Epoch 1/3\nEpoch 2/3\nEpoch 3/3\n", True),
        (3, "Epoch 1/3\nEpoch 2/3\n", False),
        (3, "epoch: 1\nepoch: 2\nepoch: 3\n", True),
        (3, "Epoch 3/3\nEpoch 1/3\nEpoch 3/3\n", False),  # the second of who knows how many
        (3, "fold 1/10\nEpoch 3/3\n", False),
        (3, "saved all\n", False),
        (0, "Epoch 3/3\n", False),
    ],
)
def test_a_log_names_the_last_epoch_where_it_counts_once_and_to_the_end(epochs, log, names_it):
    assert names_last_epoch(epochs, log) is names_it


@pytest.mark.parametrize(
    ("progress", "epochs", "log", "said"),
    [
        ({"epoch": 12}, 100, "", "12 of 100 epochs"),
        ({"epoch": 100}, 100, "", ""),
        ({"epoch": 99}, 100, "", ""),  # counted from 0
        ({"epoch": 0.5}, 1, "", "0.5 of 1 epochs"),
        ({"epoch": 5}, 4, "", "5 of 4 epochs"),
        ({}, 6, TSLIB, "1 of 6 epochs"),
        ({}, 6, "Epoch 5/6\nRestoring the weights of epoch 2\nbest epoch: 2\n", ""),
        ({}, 6, "epoch time 0.4 s\nseconds per epoch: 2\nbest epoch: 3\n", ""),
        ({}, 6, "saved all\n", ""),
        ({}, 0, "Epoch 1/6\n", ""),
        ({"epoch": 1}, 0, "", ""),
        ({}, 4, "resumed at epoch 90\n", ""),
    ],
)
def test_another_number_of_epochs_than_was_asked_for_is_said(progress, epochs, log, said):
    assert other_than_asked(progress, epochs, log) == said


@pytest.mark.parametrize(
    ("before", "own", "began_at"),
    [
        ("Epoch 1/4\nEpoch 2/4\n", "Epoch 1/4\nEpoch 4/4\n", "1"),
        ("epoch: 0\nepoch: 1\n", "epoch: 0\nepoch: 3\n", "0"),
        ("Epoch 1/4\nEpoch 2/4\n", "Epoch 2/4\nEpoch 4/4\n", ""),
        ("epoch: 0\nepoch: 1\nepoch: 2\n", "epoch: 1\nepoch: 3\n", ""),
        ("Epoch 1/4\n", "Epoch 1/4\nEpoch 4/4\n", ""),  # its checkpoint may be of its middle
        ("", "Epoch 1/4\n", ""),
        ("Epoch 2/4\n", "done\n", ""),
    ],
)
def test_who_begins_at_the_first_epoch_again_has_loaded_no_more_than_weights(before, own, began_at):
    said = f"began at epoch {began_at} again, from a checkpoint: 4 epochs and more"
    assert began_again(before, own, 4) == (said if began_at else "")
    assert began_again(before, own, 0) == ""


# --- aborted at its exit


# What two ranks of torch 2.13 printed that had ended well, of a script without a line of its own.
UNWOUND = """\
epoch 3 saved
terminate called without an active exception
Fatal Python error: Aborted

Current thread 0x00007f7aabfff6c0 (most recent call first):
  Garbage-collecting
  <no Python frame>

Thread 0x00007f7ad31eeb80 (most recent call first):
  <no Python frame>

Extension modules: numpy._core._multiarray_umath, torch._C (total: 22)
"""
LEFT_ALONE = """\
terminate called after throwing an instance of 'gloo::IoException'
  what():  [/__w/pytorch/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:1: reset
Fatal Python error: Aborted

Thread 0x00007f77e3a05b80 (most recent call first):
  <no Python frame>
"""
TORCHRUNS = """\
E1122 18:08:50 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -6)
Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
  exitcode  : -6 (pid: 13604)  (SIGABRT)
"""
CLOSED = """\
W1122 torch/distributed/elastic/multiprocessing/api.py:10] Sending process 7 closing signal SIGTERM
"""
IN_SCRIPT = UNWOUND.replace("  <no Python frame>", '  File "/code/train.py", line 3 in <module>', 1)


@pytest.mark.parametrize(
    "log", [UNWOUND, UNWOUND + LEFT_ALONE, LEFT_ALONE + UNWOUND[14:], UNWOUND + TORCHRUNS]
)
def test_an_abort_after_the_end_is_known(log):
    assert exit_signals.is_abort_at_exit(log)


@pytest.mark.parametrize(
    "log",
    [
        "",
        "epoch 3 saved\n",
        IN_SCRIPT,
        IN_SCRIPT + UNWOUND,
        UNWOUND + IN_SCRIPT,
        UNWOUND + "epoch 3 saved\n",  # of another rank: who knows what else it was to do
        "Traceback (most recent call last):\nKeyError: 'lr'\n",
        UNWOUND + CLOSED + TORCHRUNS,
        UNWOUND + TORCHRUNS + "  exitcode  : 1 (pid: 13605)\n",
        UNWOUND + TORCHRUNS.replace("-6 (pid", "-9 (pid"),
    ],
)
def test_doubt_is_no_abort_after_the_end(log):
    assert not exit_signals.is_abort_at_exit(log)


_TERMINATE = """
import ctypes
terminate = ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev
print("saved", flush=True)
"""
_AT_EXIT = "ctypes.CDLL(None).__cxa_atexit(ctypes.cast(terminate, ctypes.c_void_p), None, None)"


@pytest.mark.parametrize(("last_line", "is_at_exit"), [(_AT_EXIT, True), ("terminate()", False)])
def test_a_real_abort_is_told_from_one_at_work(last_line, is_at_exit):
    argv = [sys.executable, "-X", "faulthandler", "-c", _TERMINATE + last_line]
    ended = subprocess.run(
        argv, check=False, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True
    )
    assert ended.returncode == -6
    assert "terminate called without an active exception" in ended.stdout
    assert exit_signals.is_abort_at_exit(ended.stdout) is is_at_exit
