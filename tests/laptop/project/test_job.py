from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.common import yaml_models
from boxcar.laptop.project.from_environment import credentials, resolve_secrets, targets
from boxcar.laptop.project.job import Job, read_job
from boxcar.shared.errors import InputError

LEAST = """\
name: digits
command: train.py --config {cfg} --out {out}
queues: {queues/q.txt: box-a}
artifacts: [best.pth]
"""
NOTIFY = """\
notify:
  - webhook: {url: "env:BOXCAR_WEBHOOK_URL", secret: "env:BOXCAR_WEBHOOK_SECRET"}
"""
URL, SECRET = "http://127.0.0.1:8000/hook", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def parse(text: str) -> Job:
    return yaml_models.parse(text.encode(), "job.yaml", Job)


def problem(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert len(caught.value.problems) == 1, caught.value.problems
    return caught.value.problems[0]


def least_with(key: str, value: str) -> str:
    """The smallest job with one key changed or added, in the last line."""
    lines = [line for line in LEAST.splitlines() if not line.startswith(f"{key}:")]
    return "\n".join([*lines, f"{key}: {value}"]) + "\n"


def test_what_is_collected_is_written_as_artifacts_are() -> None:
    assert parse(least_with("collect", "[wandb/, tb/*.1]")).collect == ("wandb", "tb/*.1")
    assert parse(LEAST).collect == ()


def test_the_smallest_job_has_the_defaults_of_the_contract() -> None:
    job = parse(LEAST)
    assert job.command == ("train.py", "--config", "{cfg}", "--out", "{out}")
    assert (job.code, job.launcher, job.nproc_per_node, job.linger_s) == (".", "torchrun", None, 0)
    assert [artifact.path for artifact in job.artifacts] == ["best.pth"]


def test_every_key_of_the_contract_is_taken() -> None:
    job = parse(
        LEAST
        + """\
code: .
launcher: accelerate
nproc_per_node: auto
cells: {big: {nproc_per_node: 2}}
epochs: 20
resume: latest.pth
scratch: ["latest.pth", "epoch_*.pth"]
smoke: --limit-batches 2 --epochs 1
env: {WANDB_MODE: offline}
secrets: [WANDB_API_KEY]
linger_s: 60
resources: {gpu: {name: A100, count: 1, memory: 24GB+}, disk: 100GB, shm: 8GB}
candidates: [autodl, runpod]
"""
        + NOTIFY
    )
    assert job.cells["big"].nproc_per_node == 2
    assert job.epochs == 20
    assert job.resources.gpu and job.resources.gpu.name == ("A100",)
    assert job.resources.disk and job.resources.disk.least == 100 * 10**9
    assert job.candidates == ("autodl", "runpod")
    assert job.smoke.add == ("--limit-batches", "2", "--epochs", "1")


def test_an_artifact_may_be_a_pattern_and_say_how_it_is_loaded() -> None:
    job = parse(least_with("artifacts", "['*.csv', {path: 'c-*/', take: newest, load: trusted}]"))
    assert [(item.path, item.load, item.take) for item in job.artifacts] == [
        ("*.csv", "safe", "all"),
        ("c-*/", "trusted", "newest"),
    ]


def test_a_cell_may_leave_nothing_but_its_log_where_a_person_says_so() -> None:
    assert parse(least_with("artifacts", "[]")).artifacts == ()


def test_an_artifact_may_name_the_keys_that_it_must_hold() -> None:
    job = parse(least_with("artifacts", "[metrics.json, {path: best.pth, keys: [model, step]}]"))
    assert [(item.path, item.keys) for item in job.artifacts] == [
        ("metrics.json", ()),
        ("best.pth", ("model", "step")),
    ]


def test_quotes_in_the_command_hold_words_together() -> None:
    text = least_with("command", """'train.py --note "a b; $(touch x)" --task {task}'""")
    assert parse(text).command == ("train.py", "--note", "a b; $(touch x)", "--task", "{task}")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("name", "Digits", "found 'Digits'"),
        ("name", "-digits", "with a letter or digit"),
        ("name", "a" * 64, "1 to 63"),
        ("name", '"a\\nb"', r"found 'a\nb'"),
        (
            "command",
            "train.py --taks {taks}",
            "unknown placeholder {taks} (did you mean '{task}'?)",
        ),
        ("command", "'train.py \"a'", "is not closed"),
        ("command", '" "', "expected the training script"),
        ("command", "python train.py", "remove 'python'"),
        ("command", "[train.py]", "expected one string"),
        (
            "launcher",
            "mpirun",
            "expected 'torchrun', 'accelerate', 'deepspeed', 'python' or 'none'",
        ),
        ("nproc_per_node", "0", "expected a number of 1 or more, found '0'"),
        ("nproc_per_node", "all", "expected a whole number, found 'all'"),
        ("cells", "{big: {nproc_per_node: x}}", "cells.big.nproc_per_node: expected a whole"),
        ("cells", "{big: {nproc_per_node: 2, nproc: 2}}", "did you mean 'nproc_per_node'?"),
        ("epochs", "ten", "expected a whole number, found 'ten'"),
        ("epochs", "-1", "expected a number of 1 or more, found '-1'"),
        ("epochs", "1" + "0" * 5000, "expected a smaller whole number"),
        ("queues", "{}", "expected at least one"),
        ("queues", "{queues/a b.txt: box}", "the name 'a b' may have letters,"),
        ("queues", "{q.txt: ../box}", "the name '../box' may have letters,"),
        ("queues", "[q.txt]", "expected keys with values, found a list"),
        ("artifacts", "", "list what a finished cell must leave,"),
        ("artifacts", "[best.pth, best.pth]", "'best.pth' is listed twice"),
        ("artifacts", "[/best.pth]", "'/best.pth' must be a plain relative path"),
        ("artifacts", "[../best.pth]", "'../best.pth' must be a plain relative path"),
        ("artifacts", '["a\\nb"]', "must be a plain relative path"),
        ("artifacts", "['**/*.pth']", "matches within one name;"),
        ("artifacts", "['{name}.pth']", "takes no placeholder"),
        ("collect", "wandb/", "expected a list"),
        ("collect", "[wandb, wandb/]", "'wandb' is listed twice"),
        ("collect", "[../wandb]", "'../wandb' must be a plain relative path"),
        ("collect", "[resume/x]", "is a file that Boxcar writes itself."),
        ("artifacts", "[{path: a.pth, load: unsafe}]", "'safe', 'trusted' or 'bytes'"),
        ("artifacts", "[{path: a.pth, take: newest}]", "needs a pattern,"),
        (
            "artifacts",
            "[{path: a.pth, load: bytes, keys: [b]}]",
            "load: bytes does not load it, so they cannot be checked. Remove",
        ),
        ("artifacts", "[manifest.json]", "is a file that Boxcar writes itself."),
        ("artifacts", "[{path: a.pth, key: b}]", "did you mean 'keys'?"),
        ("resume", "a/../../latest.pth", "must be a plain relative path"),
        ("resume", "/ckpts/step_*.pt", "'/ckpts/step_*.pt' must be a plain relative path"),
        ("resume", "../step_*.pt", "must be a plain relative path"),
        ("resume", "checkpoints//step_*.pt", "must be a plain relative path"),
        ("resume", "/", "must be a plain relative path"),
        ("resume", "'{name}/step_*.pt'", "takes no placeholder"),
        ("resume", "'**/step_*.pt'", "matches within one name;"),
        ("resume", "'step_[0-9]*.pt'", "only * and ? are wildcards"),
        ("cells", "{a: {resume: 'step_**'}}", "matches within one name;"),
        ("scratch", "['../*.pth']", "must be a plain relative path"),
        ("smoke", '--note "a', "is not closed"),
        ("smoke", "--task {taks}", "unknown placeholder {taks} (did you mean '{task}'?)"),
        ("smoke", "[--epochs, 1]", "expected one string"),
        ("resources", "{gpu: {nmae: A100}}", "'resources.gpu.nmae' (did you mean 'name'?)"),
        ("resources", "{gpu: {memory: 24}}", "resources.gpu.memory: expected a size such as 24GB"),
        ("resources", "{disk: 100GB-200GB}", "expected the smallest size you need,"),
        ("candidates", "[autodl, runpod, autodl]", "'autodl' is listed twice"),
        ("candidates", "[../autodl]", "candidates[0]: the name '../autodl' may have"),
        ("env", "{A-B: 1}", "env.A-B: expected the name of an environment variable"),
        ("env", "{BOXCAR_RUN: x}", "sets the names that begin with BOXCAR_"),
        ("env", "{A: [1]}", "env.A: expected text, found a list"),
        ("secrets", "[A_KEY=a]", "secrets[0]: expected the name of an environment variable"),
        ("linger_s", "-1", "expected a number of 0 or more"),
        ("queues", "{q.txt: [box-a, ../box]}", "the name '../box' may have letters,"),
        ("queues", "{q.txt: [box-a, box-a]}", "'box-a' is listed twice"),
        ("queues", "{q.txt: []}", "expected a box, or the boxes of a pool"),
        ("queues", "{q.txt: {a: b}}", "expected a box, or the boxes of a pool"),
        ("queues", "{q@box-a.txt: box-a}", "the name 'q@box-a' may have letters,"),
        ("artefacts", "[a]", "unknown key 'artefacts' (did you mean 'artifacts'?)"),
        ("gpus", "2", "unknown key 'gpus': write gpus_per_cell: for several cells on a box"),
    ],
)
def test_a_bad_value_is_one_sentence_with_its_line(key: str, value: str, words: str) -> None:
    text = least_with(key, value)
    sentence = problem(text)
    assert sentence.startswith(f"job.yaml:{len(text.splitlines())}: ")
    assert words in sentence
    assert "\n" not in sentence


def test_a_job_without_artifacts_is_refused() -> None:
    text = LEAST.replace("artifacts: [best.pth]\n", "")
    assert "list what a finished cell must leave," in problem(text)


@pytest.mark.parametrize("resume", ["checkpoints/step_*.pt", "checkpoint-*/", "*/", "ckpt/", "a"])
def test_what_a_cell_resumes_from_is_a_path_or_a_pattern(resume: str) -> None:
    assert parse(f"{LEAST}resume: '{resume}'\n").resume == resume


@pytest.mark.parametrize("value", ["$(touch x)", "a'b\"c", "a b", "`x`", "ä→b", "; rm -rf ."])
def test_shell_characters_in_values_are_kept_as_text(value: str) -> None:
    quoted = value.replace("'", "''")
    job = parse(f"{LEAST}env: {{A: '{quoted}'}}\nresume: '{quoted}'\n")
    assert (job.env["A"], job.resume) == (value, value)


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "http://", "no url", "http://a b/", "http://[::1/", "http://h:99999/"]
)
def test_a_webhook_url_that_is_no_url_is_refused(url: str) -> None:
    text = f'{LEAST}notify: [{{webhook: {{url: "{url}", secret: "env:S"}}}}]\n'
    assert "notify[0].webhook.url: expected an http(s) URL with a host" in problem(text)


def test_a_literal_webhook_secret_is_refused_and_not_repeated() -> None:
    sentence = problem(f'{LEAST}notify: [{{webhook: {{url: "{URL}", secret: "{SECRET}"}}}}]\n')
    assert "a secret is never written into a file" in sentence
    assert SECRET not in sentence


def test_webhooks_take_url_and_secret_from_the_environment() -> None:
    environ = {"BOXCAR_WEBHOOK_URL": URL, "BOXCAR_WEBHOOK_SECRET": SECRET}
    found = targets(parse(LEAST + NOTIFY), environ)
    assert credentials(found) == {"webhooks": [{"url": URL, "secret": SECRET}], "channels": []}
    assert targets(parse(LEAST), environ) == []


def test_webhooks_are_off_with_a_warning_where_the_url_is_not_set() -> None:
    warning = "BOXCAR_WEBHOOK_URL is not set: no webhooks will be sent"
    assert [one.warning for one in targets(parse(LEAST + NOTIFY), {})] == [warning]


@pytest.mark.parametrize("secret", ["", "hunter2", "whsec_", "whsec_no base64", "whsec"])
def test_a_bad_webhook_is_told_by_its_names_and_never_by_its_values(secret: str) -> None:
    environ = {"BOXCAR_WEBHOOK_URL": "gopher://token@host", "BOXCAR_WEBHOOK_SECRET": secret}
    with pytest.raises(InputError) as caught:
        targets(parse(LEAST + NOTIFY), environ)
    of_url, of_secret = caught.value.problems
    assert of_url == "BOXCAR_WEBHOOK_URL is not an http(s) URL with a host"
    assert of_secret.startswith("BOXCAR_WEBHOOK_SECRET ")
    assert "token" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_all_secrets_that_are_not_set_are_listed_at_once() -> None:
    job = parse(f"{LEAST}secrets: [A_KEY, B_KEY, C_KEY]\n")
    with pytest.raises(InputError) as caught:
        resolve_secrets(job, {"B_KEY": "b", "C_KEY": ""})
    assert [line.split(". ")[0] for line in caught.value.problems] == [
        "job.yaml:5: secrets: A_KEY is not set",
        "job.yaml:5: secrets: C_KEY is not set",
    ]
    environ = {"A_KEY": "a", "B_KEY": "b", "C_KEY": "c", "D_KEY": "d"}
    assert resolve_secrets(job, environ) == {"A_KEY": "a", "B_KEY": "b", "C_KEY": "c"}


def test_a_missing_job_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file. .* --job PATH, .*: invoke init"):
        read_job(tmp_path / "job.yaml")


def test_run_is_another_way_to_name_the_queues() -> None:
    text = "".join(line for line in LEAST.splitlines(True) if not line.startswith("queues"))
    assert parse(f"{text}run: bash run_queue.sh queue.txt\n").queues == {"queue.txt": "box-a"}
    assert "use either run or queues" in problem(f"{LEAST}run: bash run_queue.sh a.txt\n")
    assert "expected bash run_queue.sh FILE" in problem(f"{text}run: bash other.sh a.txt\n")


PORTABLE = """\
resources:
  gpu: {name: A100, count: 1, memory: 24GB+} # a CONSTRAINT, never a platform SKU
  disk: 100GB # ckpt_size x cells_per_instance + scratch
candidates: [autodl, china, runpod] # ordered fallback
run: "bash run_queue.sh queue.txt" # the per-instance entry point
"""


def test_a_portable_request_is_part_of_a_job_as_it_is() -> None:
    text = "".join(line for line in LEAST.splitlines(True) if not line.startswith("queues"))
    job = parse(text + PORTABLE)
    assert job.candidates == ("autodl", "china", "runpod") and list(job.queues) == ["queue.txt"]
    assert (job.resources.gpu.name, job.resources.gpu.count.text) == (("A100",), "1")


def test_a_price_is_for_all_boxes_or_by_box_and_of_boxes_that_there_are() -> None:
    assert parse(f'{LEAST}price: "1.98 CNY/h"\n').price == {"": "1.98 CNY/h"}
    assert parse(f'{LEAST}price: {{box-a: "2 USD/h"}}\n').price == {"box-a": "2 USD/h"}
    assert "job.yaml:5" in problem(f"{LEAST}price: cheap\n")
    assert 'such as "1.98 CNY/h"' in problem(f"{LEAST}price: cheap\n")
    assert "no box 'box-b'" in problem(f'{LEAST}price: {{box-b: "2 USD/h"}}\n')
    assert "job.yaml:6: price: " in problem(f'{LEAST}epochs: 3\nprice: {{b: "2 USD/h"}}\n')


def test_an_address_in_place_of_an_alias_is_answered_with_the_lines_for_ssh() -> None:
    said = problem(LEAST.replace("box-a", '"root@connect.example.com:12345"'))
    assert said.endswith(
        "Host box-a\n    HostName connect.example.com\n    Port 12345\n    User root"
    )
