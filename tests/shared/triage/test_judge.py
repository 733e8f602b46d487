from __future__ import annotations

import pytest

from boxcar.shared.files.plan import OwnSignature
from boxcar.shared.triage import exit_signals, own_rows
from boxcar.shared.triage.evidence import Course, Evidence
from boxcar.shared.triage.judge import judge

TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'


@pytest.mark.parametrize(
    ("warning", "error", "id"),
    [
        ("wandb: WARNING No space left on device, retrying", "KeyError: 'x'", "PY-KEY"),
        ("UserWarning: CUDA out of memory was caught once", "TypeError: x", "PY-VALUE"),
        ("INFO port 6006: address already in use", "ValueError: x", "PY-VALUE"),
        ("Retrying: HTTP Error 429: Too Many Requests", "KeyError: 'x'", "PY-KEY"),
        (
            "nccl: Connection closed by peer, ignored",
            "torch.OutOfMemoryError: CUDA out of memory",
            "M2",
        ),
    ],
)
def test_a_line_of_a_survived_warning_never_outranks_the_traceback(warning, error, id):
    assert judge(Evidence(f"{warning}\n{TRACE}{error}\n")).id == id
    assert judge(Evidence(f"{TRACE}{error}\n{warning}\n")).id == id


def test_a_traceback_that_the_script_survived_is_not_the_one_that_ended_it():
    survived = f"{TRACE}OSError: [Errno 28] No space left on device\n"
    steps = "".join(f"epoch 1 step {n} loss 0.{n}\n" for n in range(5))
    assert judge(Evidence(f"{survived}{steps}{TRACE}KeyError: 'x'\n")).id == "PY-KEY"
    assert judge(Evidence(f"{TRACE}KeyError: 'x'\n")).quotes[0].line == 4


def test_the_rank_that_torchrun_names_as_the_first_counts():
    lines = [
        *(f"[rank0]: {line}" for line in f"{TRACE}ValueError: of rank 0".split("\n")),
        *(
            f"[rank1]: {line}"
            for line in f"{TRACE}torch.OutOfMemoryError: CUDA out of memory".split("\n")
        ),
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2026-11-22_03:00:00",
        "  host      : box",
        "  rank      : 1 (local_rank: 1)",
    ]
    assert judge(Evidence("\n".join(lines))).id == "M2"


def test_of_two_nodes_the_one_that_failed_first_counts_wherever_its_report_stands():
    def of_node(rank: int, said: str, at: str) -> str:
        lines = [f"[rank{rank}]: {line}" for line in f"{TRACE}{said}".split("\n")]
        root = ["Root Cause (first observed failure):", "[0]:", f"  time      : {at}"]
        return "\n".join([*lines, *root, f"  rank      : {rank} (local_rank: 0)", ""])

    later = of_node(0, "ValueError: of rank 0", "2026-11-22_03:00:09")
    first = of_node(8, "torch.OutOfMemoryError: CUDA out of memory", "2026-11-22_03:00:07")
    assert judge(Evidence(later + first)).id == judge(Evidence(first + later)).id == "M2"


def test_a_rank_that_lost_its_peer_yields_to_the_one_that_says_why():
    lines = [
        *(f"[rank1]: {line}" for line in f"{TRACE}KeyError: 'x'".split("\n")),
        *(
            f"[rank0]: {line}"
            for line in f"{TRACE}RuntimeError: NCCL communicator was aborted".split("\n")
        ),
    ]
    for text in ("\n".join(lines), "\n".join(reversed(lines[4:])) + "\n" + "\n".join(lines[:4])):
        assert judge(Evidence(text)).id == "PY-KEY"


def test_a_rank_that_torchrun_killed_is_not_why():
    """It was stopped, so that torchrun's first signal did nothing; the other's time-out is told."""
    log = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 19, in main
[rank0]: RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 5000ms for recv
W1122 torch/distributed/elastic/multiprocessing/api.py:1] Sending process 9 closing signal SIGTERM
W1122 api.py:1] Unable to shutdown process 9 via 15, forcefully exiting via 9
Failures:
[1]:
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 9)  (SIGKILL)
  traceback : Signal 9 (SIGKILL) received by PID 9
"""
    assert judge(Evidence(log, rcs=frozenset({1}))).id == "D19"
    assert judge(Evidence(log.replace("process 9", "process 8"), rcs=frozenset({1}))).id == "137-N"


def test_a_connection_that_torch_lost_was_one_to_another_rank():
    frame = '  File "/x/torch/distributed/elastic/rendezvous/c10d_backend.py", line 1, in f\n'
    head = "Traceback (most recent call last):\n"
    assert judge(Evidence(f"{head}{frame}RuntimeError: Broken pipe\n")).id == "RDZV"
    hubs = frame.replace("torch/distributed", "urllib3")
    assert judge(Evidence(f"{head}{hubs}BrokenPipeError: Broken pipe\n")).id == "RESET"


def test_a_connection_of_multiprocessing_was_one_to_a_process_of_this_box():
    connection = '  File "/lib/python3.11/multiprocessing/connection.py", line 399, in _recv\n'
    for error in ("ConnectionResetError: [Errno 104] Connection reset by peer", "EOFError"):
        assert judge(Evidence(f"{TRACE}{connection}{error}\n")).id == "DPW"
        assert judge(Evidence(f"{connection}{error}\n")).id == "DPW"


def test_a_step_that_srun_ended_since_a_task_had_failed_was_not_told_to_end():
    ended = "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-23T00:00:00 ***\n"
    assert judge(Evidence(ended)).id == "TERM"
    failed = "srun: error: n2: task 1: Exited with exit code 1\nsrun: Terminating StepId=1.0\n"
    assert judge(Evidence(failed + ended)).id == "CHILD"


def test_a_rank_is_known_by_what_mpirun_writes_before_its_lines():
    lines = [f"[1,1]<stderr>:{line}" for line in f"{TRACE}NameError: y".splitlines()]
    lost = "[1,0]<stderr>:RuntimeError: Connection closed by peer"
    assert judge(Evidence("\n".join([*lines, lost]))).id == "PY-NAME"


def test_an_exception_is_known_within_a_persons_sentence_where_nothing_else_tells():
    said = "Since yesterday I get `torch.foo.BarError: CUDA out of memory` there, why?"
    assert judge(Evidence(said)).id == "M2"
    assert judge(Evidence("as it said > assert h * w == N AssertionError")).id == "PY-CHECK"
    assert judge(Evidence(f"it said AssertionError: x\n{TRACE}KeyError: 'x'\n")).quotes[0].line == 5


def test_what_may_have_happened_is_no_cause_but_what_stands_before_it_is_said():
    died = "(raylet) A worker died or was killed. There are some potential root causes. (1) OOMKill"
    assert judge(Evidence(died)).id == "137-N"


def test_quotes_that_a_page_has_made_typographic_are_read_as_plain_ones():
    said = "ConnectionError: Couldn’t reach ‘squad’ on the Hub (ConnectionError)"
    assert judge(Evidence(said)).id == "HF1"


def test_an_abort_yields_to_the_last_words_of_the_library_that_aborted():
    words = "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
    assert judge(Evidence(words, rcs=frozenset({1, -6}))).id == "D19"
    assert judge(Evidence("terminate called recursively\n", rcs=frozenset({1, -6}))).id == "ABRT"


def test_the_error_file_of_the_first_rank_counts_before_the_log():
    log = f"{TRACE}ValueError: of another rank\n"
    found = judge(Evidence(log, error_file=f"{TRACE}torch.OutOfMemoryError: CUDA out of memory\n"))
    assert found.id == "M2"


def test_a_kill_is_for_memory_only_where_the_counter_rose():
    assert judge(Evidence(rcs=frozenset({-9}), oom_kills=1)).id == "U9"
    assert judge(Evidence(rcs=frozenset({-9}))).id == "137-N"
    # Somebody else in the container was killed.
    assert judge(Evidence(f"{TRACE}KeyError: 'x'", rcs=frozenset({1}), oom_kills=1)).id == "PY-KEY"


def test_a_gpu_that_the_driver_calls_lost_is_another_boxs_work():
    found = judge(Evidence(f"{TRACE}RuntimeError: x", gpu_problems=("GPU 3: GPU is lost",)))
    assert found.course is Course.OTHER_BOX


def test_a_server_that_says_when_it_may_be_asked_again_is_not_asked_before():
    text = "HTTPError: 429 Client Error: Too Many Requests\nRetry-After: 1200\n"
    assert judge(Evidence(text)).waits_s[:2] == (1200.0, 1200.0)
    assert judge(Evidence(text.replace("1200", "999999"))).waits_s[0] == 6 * 3600
    assert judge(Evidence(text.partition("\n")[0])).waits_s[0] < 1200


def test_what_says_nothing_is_asked_about_and_an_error_of_its_own_is_the_scripts():
    assert judge(Evidence("all is well\n")).course is Course.ASK
    found = judge(Evidence(f"{TRACE}mylib.StrangeThing: 7\n"))
    assert (found.id, found.course) == ("PY", Course.FIX_CODE)


def test_the_last_words_of_a_script_that_ends_itself_are_mostly_a_refusal():
    said = "epoch 1 step 2 loss 0.3\nthe answer to --lr is no\n"
    assert judge(Evidence(said)).is_known is False
    found = judge(Evidence(said, rcs=frozenset({1})))
    assert (found.id, found.course, found.quotes[0].line) == ("SAID", Course.FIX_CONFIG, 2)
    assert judge(Evidence(said, rcs=frozenset({0}))).is_known is False


def test_what_a_shells_exit_code_says_counts_where_nothing_else_does():
    steps = "epoch 1 step 2 loss 0.3\n"
    assert judge(Evidence(steps, rcs=frozenset({124}))).id == "TIME_LIMIT"
    assert judge(Evidence(steps, rcs=frozenset({127}))).id == "NOEXE"
    assert judge(Evidence(f"{TRACE}KeyError: 'x'\n", rcs=frozenset({124}))).id == "PY-KEY"


def test_a_training_that_only_told_of_its_steps_is_not_named_by_one():
    cause = judge(Evidence("epoch 1 step 2 loss 0.3\n", rcs=frozenset({7})))
    assert (cause.is_known, cause.quotes) == (False, ())


def test_a_traceback_whose_end_is_cut_off_is_the_scripts_own():
    assert judge(Evidence(TRACE)).id == "PY"
    assert judge(Evidence(f"{TRACE}Exception: no more\n")).id == "PY"


def test_the_place_in_the_log_is_said():
    log = f"one\ntwo\n{TRACE}KeyError: 'x'\nafter\n"
    [quote] = judge(Evidence(log, log_begins_at_line=100)).quotes
    assert (quote.line, quote.text) == (105, "KeyError: 'x'")


@pytest.mark.parametrize(
    "text",
    [
        "Xid " + "a" * 1_000_000,
        "x" * 1_000_000,
        "CUDA " * 200_000,
        ("nccl " * 800 + "\n") * 250,
        "Traceback (most recent call last):\n" * 20_000,
        ("ab: " * 1000 + "\n") * 250,
        "\n".join(f"[rank{n % 8}]: line {n} of it" for n in range(40_000)),
    ],
)
def test_no_text_keeps_the_judge_busy(text):
    """Each has the size of the most that is read of a log. One that backtracks would never end, and
    pytest's own limit would say so."""
    assert judge(Evidence(text)).id in ("", "PY-CHECK", "PY-VALUE")


def test_a_cpp_abort_is_judged_by_what_its_exception_says():
    words = (
        "terminate called after throwing an instance of 'std::filesystem::__cxx11::error'\n"
        "  what():  cannot create directories: Permission denied [/srv/runs]\n"
        "Aborted (core dumped)\n"
    )
    assert judge(Evidence(words, rcs=frozenset({134}))).id == "PERM"


def test_a_thread_that_cpp_could_not_start_is_known_by_the_type_that_was_thrown():
    words = "  what():  Resource temporarily unavailable\n"
    thrown = "terminate called after throwing an instance of 'std::system_error'\n"
    assert judge(Evidence(thrown + words)).id == "PIDS"
    assert judge(Evidence(thrown.replace("system", "logic") + words)).id == "ABRT"


def test_a_model_that_no_name_finds_is_waited_for_only_where_the_network_failed():
    words = "OSError: Can't load tokenizer for 'org/model'. Make sure that it is a correct name.\n"
    assert judge(Evidence(words)).course.value == "FIX_CONFIG"
    lost = "requests: Failed to resolve 'huggingface.co'\n"
    assert judge(Evidence(lost + words)).course.value == "WAIT_NETWORK"


# --- words that many say


@pytest.mark.parametrize(
    ("said", "id"),
    [
        ("trainer: ran into OOM in step 7", "M2"),
        ("ERROR you do not have enough GPU memory available", "M2"),
        ("luajit: not enough memory", "HOSTMEM"),
        ("the volume is full", "DISK"),
        ("error --resume checkpoint doesn't exist", "C17"),
        ("the loader has no training samples", "NODATA"),
        ("could not decode this image", "BADFILE"),
        ("invalid learning rate setting", "U27"),
        ("please set --data to a folder", "U27"),
        ("fatal: failed to compile the kernels", "MOD"),
        ("failed to download the weights of the encoder", "NET"),
    ],
)
def test_a_last_line_is_named_by_what_it_is_about(said, id):
    assert judge(Evidence(f"epoch 1 step 2 loss 0.3\n{said}\n", rcs=frozenset({1}))).id == id


def test_an_exception_of_the_scripts_own_outranks_what_a_line_is_about():
    trace = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    f()\n'
    log = f"failed to download the weights of the encoder\n{trace}mine.Stopped: that was all\n"
    assert judge(Evidence(log, rcs=frozenset({1}))).course is Course.FIX_CODE


def test_what_was_said_long_before_the_end_tells_nothing():
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    later = "".join(f"a line that tells of {a} and {b}\n" for a in words for b in words[:2])
    log = f"failed to download the weights of the encoder\n{later}"
    assert judge(Evidence(log, rcs=frozenset({1}))).id == "SAID"


# --- what torchrun says


OWN = "epoch 3\nKeyError: 'lr'\n"
REPORT = """\
W1122 torch/distributed/elastic/multiprocessing/api.py:10] Sending process 7 closing signal SIGTERM
E1122 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 0
  exitcode  : 1 (pid: 13604)
  exitcode  : -15 (pid: 13605)
"""


def test_what_ranks_wrote_ends_where_torchrun_tells_of_a_failure():
    assert exit_signals.parted_by_torchrun(OWN + REPORT) == (OWN, REPORT)
    assert exit_signals.parted_by_torchrun(OWN) == (OWN, "")
    # What it warns of at its start is of no failure.
    begun = "W1122 torch/distributed/run.py:851] OMP_NUM_THREADS\n"
    assert exit_signals.parted_by_torchrun(begun + OWN) == (begun + OWN, "")


def test_a_worker_that_torchrun_ended_did_not_fail():
    """Where all were ended by it, somebody told torchrun to end: then how they ended counts."""
    killed = (
        "Sending process 13605 closing signal SIGTERM\n"
        "Unable to shutdown process 13605 via 15, forcefully exiting via 9\n"
    )
    assert exit_signals.worker_rcs(killed + REPORT) == {1}
    both = killed + "Sending process 13604 closing signal SIGTERM\n"
    assert exit_signals.worker_rcs(both + REPORT) == {1, -15}


def test_workers_ended_as_its_report_says():
    assert exit_signals.worker_rcs(REPORT) == {1, -15}
    assert exit_signals.worker_rcs("exitcode : 3\n" + OWN) == set()


# --- a person's own rows


# Of a line that nearly matches, it tries more ways than there are atoms.
ENDLESS = OwnSignature("ENDLESS", "FIX_CODE", "((?:a+)+)$", "never")
STORE = OwnSignature("STORE", "WAIT_NETWORK", r"store \S+ is locked", "locked", waits_s=(60.0,))
LOG = "a\nstore x is locked\n" + "a" * 64 + "!\n"


def test_an_expression_that_never_ends_keeps_nobody_and_the_next_one_is_looked_for():
    found = own_rows.match((ENDLESS, STORE), LOG, 10)
    assert found is not None
    assert (found.id, found.course, found.waits_s) == ("STORE", Course.WAIT_NETWORK, (60.0,))
    assert (found.quotes[0].line, found.quotes[0].text) == (11, "store x is locked")


def test_what_stands_nowhere_or_is_no_expression_is_not_found():
    broken = OwnSignature("BROKEN", "FIX_CODE", "(", "x")
    assert own_rows.match((broken,), LOG) is None
    assert own_rows.match((), LOG) is None
