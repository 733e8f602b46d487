"""What was typed, as verbs with their flags; and what is said of what cannot be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.door.command_line import ELSEWHERE, WrongCommand, parse_command
from boxcar.door.program import read_settings
from boxcar.door.run_verb import Settings
from boxcar.door.verb_table import VERBS
from boxcar.shared.errors import InputError


def told(*words: str) -> str:
    with pytest.raises(WrongCommand) as refused:
        parse_command(words)
    return str(refused.value.sentence)


def parsed(*words: str) -> list[tuple[str, dict[str, object]]]:
    return [(typed.verb.name, dict(typed.values)) for typed in parse_command(words)]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("pull verify", [("pull", {}), ("verify", {})]),
        ("launch --box a --box b status", [("launch", {"box": ("a", "b")}), ("status", {})]),
        ("status status", [("status", {})]),
        ("pull --cell a pull --cell b", [("pull", {"cell": ("a",)}), ("pull", {"cell": ("b",)})]),
        ("-p x plan audit", [("plan", {"profile": "x"}), ("audit", {"profile": "x"})]),
        ("logs plan", [("logs", {"cell": "plan"})]),
        ("logs a -f", [("logs", {"cell": "a", "follow": True})]),
        ("move a q2", [("move", {"cell": "a", "queue": "q2"})]),
        ("triage -", [("triage", {"log": "-"})]),
        ("triage x --rc -9", [("triage", {"log": "x", "rc": "-9"})]),
        ("plan -pautodl", [("plan", {"profile": "autodl"})]),
        ("plan -p=autodl", [("plan", {"profile": "autodl"})]),
        ("plan --job=a=b.yaml", [("plan", {"job": "a=b.yaml"})]),
        ("report --metric plan", [("report", {"metric": ("plan",)})]),
    ],
)  # fmt: skip
def test_a_line_may_have_several_verbs_and_none_runs_twice(line: str, wanted: object) -> None:
    assert parsed(*line.split()) == wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "plan launch",
            "'launch' acts on the boxes, so it begins a command of its own. Type: "
            "boxcar plan && boxcar launch",
        ),
        ("pull -p x verify down", "boxcar verify && boxcar down"),
        ("plan lunch", "plan takes no word 'lunch'; for its flags: boxcar --help plan"),
        ("plan --jbo x", "plan has no flag '--jbo' (did you mean '--job'?)"),
        ("plan --json=yes", "--json takes no value"),
        ("plan --profile", "--profile needs a value"),
        ("plan --profile --json", "--profile needs a value"),
        ("plan -p a -p b", "--profile is given twice"),
        ("logs", "logs needs a cell"),
        ("logs --cell", "--cell needs a value"),
        ("logs --folow", "'--folow' (did you mean '--follow'?)"),
        ("move a", "move needs a queue"),
        ("status -x", "status has no flag '-x'"),
        ("status --", "status has no flag '--'"),
        ("-p local", "such as: boxcar status -p local"),
        ("-p", "-p needs a verb"),
        ("--job x.yaml", "such as: boxcar status --job x.yaml"),
        ("--follow", "such as: boxcar logs --follow"),
        ("--nonsense", "no verb has a flag '--nonsense'; for all verbs: boxcar --list"),
        ("ssh", "type: ssh HOST"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_of_the_line_is_run(line: str, wanted: str) -> None:
    assert wanted in told(*line.split())


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("ps", "status"), ("ls", "runs"), ("run", "launch"), ("submit", "launch"),
        ("cancel", "stop"), ("kill", "stop"), ("rm", "down"), ("delete", "down"),
        ("sync", "pull"), ("top", "watch"), ("tail", "logs"), ("resume", "launch"),
        ("rent", "up"), ("LS", "runs"), ("strt", "launch"), ("cancle", "stop"),
        ("lunch", "launch"), ("statsu", "status"),
    ],
)  # fmt: skip
def test_a_word_of_another_tool_is_a_hint_and_no_alias(word: str, meant: str) -> None:
    assert f"(did you mean '{meant}'?)" in told(word)


def test_every_hint_leads_to_a_verb_and_none_hides_one() -> None:
    assert set(ELSEWHERE.values()) <= set(VERBS) and not set(ELSEWHERE) & set(VERBS)


@pytest.mark.parametrize("word", ["wibble", "colour", "xyz"])
def test_what_is_near_nothing_gets_no_hint(word: str) -> None:
    assert "did you mean" not in told(word)


# --- invoke.yaml


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_settings_stand_at_home_in_the_folder_and_in_the_environment(folder: Path) -> None:
    assert read_settings({}) == Settings("", "job.yaml")
    (folder / "home/.invoke.yaml").write_text("boxcar: {profile: mine, job: a.yaml}\n")
    assert read_settings({}) == Settings("mine", "a.yaml")
    (folder / "invoke.yml").write_text("boxcar: {profile: autodl}\nrun: {echo: true}\n")
    assert read_settings({}) == Settings("autodl", "a.yaml")
    assert read_settings({"INVOKE_BOXCAR_PROFILE": "slurm"}) == Settings("slurm", "a.yaml")


@pytest.mark.parametrize("text", ["boxcar: [", "- a\n", "boxcar: 3\n", "boxcar: {profile: 3}\n"])
def test_a_file_of_settings_that_is_none_is_one_sentence(folder: Path, text: str) -> None:
    (folder / "invoke.yaml").write_text(text)
    with pytest.raises(InputError, match=r"invoke\.yaml: expected boxcar: \{profile: NAME"):
        read_settings({})


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["version"], "Type: boxcar --version"),
        (["launch", "--dry-run"], "type: boxcar plan"),
        (["plan", "--gpus=2"], "gpus_per_cell"),
    ],
)
def test_the_words_of_other_tools_lead_on(typed: list[str], said: str) -> None:
    with pytest.raises(WrongCommand) as caught:
        parse_command(typed)
    assert said in str(caught.value)
