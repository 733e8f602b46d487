from __future__ import annotations

import pytest

from boxcar.shared.errors import Command, Message, some


def test_a_message_without_a_command_is_its_text() -> None:
    assert str(Message("could not invoke kernel fused_adam")) == (
        "could not invoke kernel fused_adam"
    )


def test_a_command_stands_behind_the_text_that_leads_to_it() -> None:
    message = Message("queue_1: no release. Send it", Command("push"))
    assert str(message) == "queue_1: no release. Send it: invoke push"
    assert message.typed("boxcar") == "queue_1: no release. Send it: boxcar push"


def test_only_the_command_is_spelled_anew_never_the_text() -> None:
    said = "could not invoke kernel fused_adam"
    assert Message(said, Command("logs")).typed("boxcar", [("--job", "j.yaml")]) == (
        f"{said}: boxcar logs --job j.yaml"
    )


def test_words_of_a_command_are_quoted_for_a_shell() -> None:
    command = Command("logs", ("--cell", "a b; rm -rf ~"))
    assert str(command) == "invoke logs --cell 'a b; rm -rf ~'"


def test_a_flag_that_the_command_has_itself_is_not_given_twice() -> None:
    flags = [("--profile", "autodl"), ("--job", "j.yaml")]
    command = Command("explain", ("--profile", "lambda"))
    assert command.typed("boxcar", flags) == "boxcar explain --job j.yaml --profile lambda"


def test_a_choice_of_commands_says_what_comes_of_each() -> None:
    choice = Command("drain", note="it finishes its cell", or_else=Command("stop"))
    assert str(choice) == "invoke drain (it finishes its cell), or invoke stop"
    assert choice.typed("boxcar", [("--job", "j")]) == (
        "boxcar drain --job j (it finishes its cell), or boxcar stop --job j"
    )


def test_a_message_of_a_box_says_which_and_keeps_its_command() -> None:
    assert Message("is gone", Command("down")).under("box-a") == Message(
        "box-a: is gone", Command("down")
    )


@pytest.mark.parametrize(("count", "text"), [(3, "0, 1, 2"), (5, "0, 1, 2 and 2 more")])
def test_the_first_few_are_named(count: int, text: str) -> None:
    assert some([str(number) for number in range(count)], 3) == text
