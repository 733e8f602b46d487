"""Each proposal is tried on what the script really prints."""

from __future__ import annotations

import contextlib
import io
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from boxcar.laptop.common import yaml_models
from boxcar.laptop.common.yaml_models import Model
from boxcar.laptop.init import draft, folder, job_text, script
from boxcar.laptop.init.metrics_proposal import proposed
from boxcar.laptop.project.metric_values import Metrics, cutting_pattern
from boxcar.shared.metrics import read

EXAMPLES = Path(__file__).parents[3] / "examples"
REAL = Path(__file__).parents[2] / "data" / "numbers"


class Asked(Model):
    metrics: Metrics


def printed(source: str, **values: Any) -> str:
    """What the source prints, with its names given."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logger = logging.Logger("script")
    logger.addHandler(handler)
    with contextlib.redirect_stdout(said):
        exec(source, {"logger": logger, **values})
    return said.getvalue()


def taken(source: str, log: str) -> dict[str, float]:
    """What the proposals of the source take of the log; each is a line that job.yaml takes."""
    found = {}
    for one in proposed(source):
        asked = yaml_models.parse(f"metrics:\n  {one.yaml}\n".encode(), "job.yaml", Asked)
        assert list(cutting_pattern(asked.metrics)) == []
        [metric] = [metric.planned(name) for name, metric in asked.metrics.items()]
        matches = read.in_log(io.BytesIO(log.encode()), 0, re.compile(metric.of), lambda: None)
        found[metric.name] = read.chosen(matches, metric.best)[0]
    return found


class Tensor:
    """As torch prints one; formatted it is a number."""

    def __repr__(self) -> str:
        return "tensor(0.2500, grad_fn=<MeanBackward0>)"

    def __format__(self, spec: str) -> str:
        return format(0.25, spec) if spec else repr(self)

    def item(self) -> float:
        return 0.25


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('print(f"step {n}: train loss {x:.4f}, val loss {x:.4f}")', ["val_loss", "train_loss"]),
        ('print(f"Epoch {n} | loss: {x:.3f} | acc: {x:.2}%")', ["loss", "acc"]),
        ('print("acc", x)', ["acc"]),
        ('print("val acc:", x.item(), "loss:", x)', ["val_acc", "loss"]),
        ('print(f"loss {x}")', ["loss"]),
        ('print("Test Accuracy: {:.2f}%".format(x))', ["test_accuracy"]),
        ('print("loss [%.4f] lr %g" % (x, 0.1))', ["loss"]),
        ('print("loss " + str(x.item()))', ["loss"]),
        ('logger.info("Epoch %d: val_loss %.4f acc %.3f%%", n, x, x)', ["val_loss", "acc"]),
        ('message = f"val_acc={x:8.3f}|"\nprint(message)', ["val_acc"]),
        ('print(f"Epoch {n}\\nTrain loss: {x:.4f}")', ["train_loss"]),
        ('print(f"valLoss={x:.3f};trainLoss={x:.3f}")', ["valloss", "trainloss"]),
        ('print(f"Average loss: {x:.4f}, Accuracy: {n}/{n} ({n:.0f}%)")', ["average_loss"]),
        ('print(f" * Acc@1 {x:.3f} Acc@5 {x:.3f}")', ["acc_1", "acc_5"]),
        ('print(f"IoU ({x:.3f})")', ["iou"]),
    ],
)
def test_what_is_proposed_takes_what_is_printed(source: str, expected: list[str]) -> None:
    x = 0.25 if "%" in source and "%}" not in source else Tensor()
    found = taken(source, printed(source, x=x, n=3))
    assert found == dict.fromkeys(expected, 0.25)


def test_a_percentage_is_taken_without_its_sign() -> None:
    for source in ('print(f"acc: {x:.1%}")', 'print("acc: {:.1%}".format(x))'):
        assert taken(source, printed(source, x=0.25)) == {"acc": 25.0}


def test_tqdms_postfix_is_taken_from_its_bar() -> None:
    source = 'bar.set_postfix(loss=loss.item(), acc=f"{acc:.3f}")\nbar.set_postfix({"dice": d})'
    bar = "10%|# | 1/10 [00:01<00:09,  1.00it/s, loss=0.123, acc=0.900]\r [1.0it/s, dice=0.5]"
    assert taken(source, bar) == {"loss": 0.123, "acc": 0.9, "dice": 0.5}


def test_transformers_trainer_is_known_by_what_it_prints() -> None:
    source = "from transformers import Trainer\nTrainer(m, A(eval_strategy='epoch')).train()\n"
    log = (REAL / "trainer/train.log").read_text()
    assert taken(source, log) == {"eval_loss": 1.082}
    assert taken(source.replace("eval_strategy='epoch'", ""), log) == {"loss": 1.422}
    older = "{'eval_loss': 0.5, 'eval_runtime': 1.0, 'epoch': 1.0}\n"
    assert taken(source, older) == {"eval_loss": 0.5}


def test_a_name_that_another_text_ends_with_is_left_out() -> None:
    source = 'print(f"loss {a:.3f}")\nprint(f"val loss {b:.3f}")\nprint(f"best val loss {c:.3f}")\n'
    [one] = proposed(source)
    assert (one.name, one.line) == ("best_val_loss", 3)


@pytest.mark.parametrize(
    "source",
    [
        'print(f"learning rate {x}")',
        'print("error", e)',
        'print(f"saved the model with the best loss to {path}")',
        'print(f"{name}: {value:.4f}")',
        'print("loss", x, sep="")',
        'file.write(f"loss {x:.3f}")',
        'self.log("val_loss", loss)',
        "print(",
        "\x00",
        "",
    ],
)
def test_what_is_rarely_right_is_not_proposed(source: str) -> None:
    assert proposed(source) == ()


def test_at_most_three_are_proposed_those_of_a_validation_first() -> None:
    source = "\n".join(f'print(f"{name} {{x:.3f}}")' for name in ("loss", "acc", "f1", "val auc"))
    assert [one.name for one in proposed(source)] == ["val_auc", "loss", "acc"]


def test_what_stands_before_a_text_says_whether_it_is_of_a_test() -> None:
    """As the examples of torch print it."""
    source = (
        "print('Train Epoch: {} [{}/{} ({:.0f}%)]\\tLoss: {:.6f}'.format(e, n, m, p, x))\n"
        "print('\\nTest set: Average loss: {:.4f}, Accuracy: {}/{} ({:.0f}%)'.format(x, n, n, p))"
    )
    assert [one.name for one in proposed(source)] == ["average_loss", "loss"]


def test_each_example_gets_lines_that_a_job_takes() -> None:
    for path in EXAMPLES.glob("habits/*/*.py"):
        for one in proposed(path.read_text()):
            yaml_models.parse(f"metrics:\n  {one.yaml}\n".encode(), "job.yaml", Asked)


def test_init_writes_what_a_script_prints_as_metrics(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse\n"
        "parser = argparse.ArgumentParser()\n"
        'parser.add_argument("--out")\n'
        'parser.add_argument("--epochs", type=int, default=3)\n'
        "args = parser.parse_args()\n"
        "for epoch in range(args.epochs):\n"
        '    print(f"epoch {epoch}: val_loss {0.5:.4f}")\n'
        'open(args.out + "/best.pt", "w").write("x")\n'
    )
    chosen = script.read_script(tmp_path, tmp_path / "train.py")
    assert chosen
    made = draft.draft_job(folder.read_folder(tmp_path), chosen, "p")
    text = job_text.job(made, [])
    assert "# numbers that the script prints or writes (line 7)" in text
    assert yaml.safe_load(text)["metrics"] == {
        "val_loss": {"log": r"\bval_loss (\S+)", "best": "min"}
    }
