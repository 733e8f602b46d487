from __future__ import annotations

import subprocess
import sys

import pytest

from boxcar.shared.triage import exit_signals

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
def test_an_abort_after_the_end_is_known(log: str) -> None:
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
def test_doubt_is_no_abort_after_the_end(log: str) -> None:
    assert not exit_signals.is_abort_at_exit(log)


_TERMINATE = """
import ctypes
terminate = ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev
print("saved", flush=True)
"""
_AT_EXIT = "ctypes.CDLL(None).__cxa_atexit(ctypes.cast(terminate, ctypes.c_void_p), None, None)"


@pytest.mark.parametrize(("last_line", "is_at_exit"), [(_AT_EXIT, True), ("terminate()", False)])
def test_a_real_abort_is_told_from_one_at_work(last_line: str, is_at_exit: bool) -> None:
    argv = [sys.executable, "-X", "faulthandler", "-c", _TERMINATE + last_line]
    ended = subprocess.run(
        argv, check=False, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True
    )
    assert ended.returncode == -6
    assert "terminate called without an active exception" in ended.stdout
    assert exit_signals.is_abort_at_exit(ended.stdout) is is_at_exit
