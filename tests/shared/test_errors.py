"""Errors, messages and what is known of an end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from boxcar.shared.environment import clean_environment
from boxcar.shared.errors import (
    BoxcarError,
    Command,
    DamagedError,
    InputError,
    Message,
    NoRoomError,
    TemporaryError,
    message_of,
    some,
)
from boxcar.shared.process import end_reason, told_to_end
from boxcar.shared.sentence import _


def test_all_problems_of_a_file_are_said_at_once():
    error = InputError(["job.yaml:3: unknown key 'comand'", "job.yaml:9: no such file"])
    assert error.problems == ("job.yaml:3: unknown key 'comand'", "job.yaml:9: no such file")
    assert str(error) == "job.yaml:3: unknown key 'comand'\njob.yaml:9: no such file"


def test_one_problem_is_one_problem():
    assert InputError("no job.yaml here").problems == ("no job.yaml here",)


def test_an_error_carries_the_next_command_as_data():
    error = TemporaryError("nothing lies there. Send it again", Command("push"))
    assert error.messages == (Message("nothing lies there. Send it again", Command("push")),)
    assert str(error) == "nothing lies there. Send it again: invoke push"


def test_what_is_said_of_an_error_keeps_its_command():
    error = BoxcarError("no release. Send it", Command("push"))
    assert message_of(error).under("queue_1") == Message(
        "queue_1: no release. Send it", Command("push")
    )
    assert message_of(InputError(["one", "two"])) == Message("one\ntwo")


def test_an_error_is_said_in_the_readers_language_alone_and_inside_another_sentence():
    error = TemporaryError(_("there is no route to it"))
    assert message_of(error).typed(language="zh") == "没有到它的路由"
    outer = _("{box} does not answer ({why})", box="box-a", why=error)
    assert outer.said("zh") == "box-a 没有应答（没有到它的路由）"
    assert outer == "box-a does not answer (there is no route to it)"


def test_an_error_of_the_system_is_said_in_words():
    missing = FileNotFoundError(2, "No such file or directory", "job.yaml")
    assert message_of(missing) == Message("job.yaml: No such file or directory")
    assert message_of(OSError("no host")) == Message("no host")


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [(InputError, 2), (DamagedError, 1), (TemporaryError, 75), (NoRoomError, 3)],
)
def test_each_error_has_the_exit_code_of_the_contract(kind, exit_code):
    assert kind("x").exit_code == exit_code
    assert issubclass(kind, BoxcarError)


def test_a_message_without_a_command_is_its_text():
    assert str(Message("could not invoke kernel fused_adam")) == (
        "could not invoke kernel fused_adam"
    )


def test_a_command_stands_behind_the_text_that_leads_to_it():
    message = Message("queue_1: no release. Send it", Command("push"))
    assert str(message) == "queue_1: no release. Send it: invoke push"
    assert message.typed("boxcar") == "queue_1: no release. Send it: boxcar push"


def test_only_the_command_is_spelled_anew_never_the_text():
    said = "could not invoke kernel fused_adam"
    assert Message(said, Command("logs")).typed("boxcar", [("--job", "j.yaml")]) == (
        f"{said}: boxcar logs --job j.yaml"
    )


def test_words_of_a_command_are_quoted_for_a_shell():
    command = Command("logs", ("--cell", "a b; rm -rf ~"))
    assert str(command) == "invoke logs --cell 'a b; rm -rf ~'"


def test_a_flag_that_the_command_has_itself_is_not_given_twice():
    flags = [("--profile", "autodl"), ("--job", "j.yaml")]
    command = Command("explain", ("--profile", "lambda"))
    assert command.typed("boxcar", flags) == "boxcar explain --job j.yaml --profile lambda"


def test_a_choice_of_commands_says_what_comes_of_each():
    choice = Command("drain", note="it finishes its cell", or_else=Command("stop"))
    assert str(choice) == "invoke drain (it finishes its cell), or invoke stop"
    assert choice.typed("boxcar", [("--job", "j")]) == (
        "boxcar drain --job j (it finishes its cell), or boxcar stop --job j"
    )


def test_a_message_of_a_box_says_which_and_keeps_its_command():
    assert Message("is gone", Command("down")).under("box-a") == Message(
        "box-a: is gone", Command("down")
    )


@pytest.mark.parametrize(("count", "text"), [(3, "0, 1, 2"), (5, "0, 1, 2 and 2 more")])
def test_the_first_few_are_named(count, text):
    assert some([str(number) for number in range(count)], 3) == text


# --- whose doing an end was


@pytest.mark.parametrize(
    ("event_type", "reason", "by"),
    [
        ("queue.done", None, end_reason.DONE),
        ("agent.stopped", "the queue is done", end_reason.DONE),
        ("queue.stopped", "told to end by SIGTERM", end_reason.SIGNAL),
        ("agent.stopped", "told to end by SIGINT", end_reason.SIGNAL),
        ("queue.stopped", "asked to drain", end_reason.DRAIN),
        ("queue.stopped", "asked to stop", end_reason.STOP),
        ("queue.stopped", "a: the script was told to end by SIGTERM", end_reason.TROUBLE),
        ("queue.stopped", "asked to drain the pool", end_reason.TROUBLE),
        ("queue.stopped", None, end_reason.TROUBLE),
    ],
)
def test_an_end_of_v1_is_read_from_the_sentence_that_was_written_then(event_type, reason, by):
    assert end_reason.of_v1(event_type, reason) == by


# --- the environment of an agent


def test_an_agent_gets_what_finds_programs_and_gpus_and_nothing_else():
    kept = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "1"}
    others = {"WANDB_API_KEY": "s3cr3t", "PYTHONPATH": "/x", "SSH_AUTH_SOCK": "/y", "TMUX": "z"}
    assert clean_environment(kept | others) == kept


# --- told to end


# Says how it was left, and is slow to leave.
SLOW = """
import signal, sys, time
from boxcar.shared.process import told_to_end
# Whoever runs these tests may ignore it.
signal.signal(signal.SIGHUP, signal.SIG_IGN if "nohup" in sys.argv else signal.SIG_DFL)
with told_to_end.as_exit():
    try:
        print("at work", flush=True)
        sys.stdin.readline()
        print("to its end", flush=True)
    finally:
        print("leaves", flush=True)
        sys.stdin.readline()
        print("left", flush=True)
"""


def begun(*words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    made = subprocess.Popen(
        [sys.executable, "-c", SLOW, *words], stdin=pipe, stdout=pipe, text=True
    )
    assert made.stdout is not None and made.stdout.readline() == "at work\n"
    return made


def test_the_second_signal_does_not_end_who_ends_its_processes():
    program = begun()
    assert program.stdout is not None
    program.send_signal(signal.SIGHUP)
    assert program.stdout.readline() == "leaves\n"
    program.send_signal(signal.SIGHUP)
    program.send_signal(signal.SIGTERM)
    assert program.communicate("go\n") == ("left\n", None)
    assert program.returncode == 128 + signal.SIGHUP


def test_what_nohup_ignores_stays_ignored():
    program = begun("nohup")
    program.send_signal(signal.SIGHUP)
    assert program.communicate("on\ngo\n") == ("to its end\nleaves\nleft\n", None)
    assert program.returncode == 0


def test_what_somebody_has_chosen_is_left_and_put_back():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with told_to_end.as_exit():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    hangup = signal.getsignal(signal.SIGHUP)
    with told_to_end.as_exit():
        pass
    assert signal.getsignal(signal.SIGHUP) is hangup


def test_another_thread_hears_no_signals():
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with told_to_end.as_exit():
                pass
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []
