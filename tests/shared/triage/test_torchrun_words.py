from __future__ import annotations

from boxcar.shared.triage import exit_signals

OWN = "epoch 3\nKeyError: 'lr'\n"
REPORT = """\
W1122 torch/distributed/elastic/multiprocessing/api.py:10] Sending process 7 closing signal SIGTERM
E1122 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 0
  exitcode  : 1 (pid: 13604)
  exitcode  : -15 (pid: 13605)
"""


def test_what_ranks_wrote_ends_where_torchrun_tells_of_a_failure() -> None:
    assert exit_signals.parted_by_torchrun(OWN + REPORT) == (OWN, REPORT)
    assert exit_signals.parted_by_torchrun(OWN) == (OWN, "")
    # What it warns of at its start is of no failure.
    begun = "W1122 torch/distributed/run.py:851] OMP_NUM_THREADS\n"
    assert exit_signals.parted_by_torchrun(begun + OWN) == (begun + OWN, "")


def test_a_worker_that_torchrun_ended_did_not_fail() -> None:
    """Where all were ended by it, somebody told torchrun to end: then how they ended counts."""
    killed = (
        "Sending process 13605 closing signal SIGTERM\n"
        "Unable to shutdown process 13605 via 15, forcefully exiting via 9\n"
    )
    assert exit_signals.worker_rcs(killed + REPORT) == {1}
    both = killed + "Sending process 13604 closing signal SIGTERM\n"
    assert exit_signals.worker_rcs(both + REPORT) == {1, -15}


def test_workers_ended_as_its_report_says() -> None:
    assert exit_signals.worker_rcs(REPORT) == {1, -15}
    assert exit_signals.worker_rcs("exitcode : 3\n" + OWN) == set()
