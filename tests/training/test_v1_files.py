"""One real file of each format of boxcar.training, as version 1 wrote them.

Each was made once, by the layer itself: `Training` below as a script, killed after step 4 and gone
on with to step 6 (the checkpoints are of the kill, the rest is of the end); FSDP2 on two ranks; a
cache of six samples; a fetch, and one that was killed; a script whose rank 0 alone calls a barrier;
a rehearsal of a script that forgets its optimizer. They are never made anew: a reader that cannot
take them, or takes them otherwise, would lose the runs that people have on their disks.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import boxcar.training
from boxcar.shared import timestamp
from boxcar.shared.files import codec, progress
from boxcar.training.cache import cache_index
from boxcar.training.cache.latent_cache import Fingerprint, LatentCache
from boxcar.training.checkpoint import cadence, checkpoint_file, dcp_folder
from boxcar.training.checkpoint.checkpointer import Checkpointer
from boxcar.training.checkpoint.training_state import TrainingState
from boxcar.training.data.loader import RankAwareDataLoader
from boxcar.training.doctor import __main__ as doctor
from boxcar.training.fetch import records
from boxcar.training.hang import hang_gather, rank_dump
from boxcar.training.hang.diagnosis import Diagnosis
from boxcar.training.hang.rank_dump import Attempt, RankDump
from boxcar.training.ranks.config import DistributedConfig
from boxcar.training.rehearse.rehearsal import Report
from onbox.judging import progress_tail as onbox_progress

ROOT = Path(__file__).resolve().parents[2]
V1 = ROOT / "tests" / "data" / "v1" / "training"
V2 = ROOT / "tests" / "data" / "v2" / "training"
CACHE = "afdf8d829da15dd1a77cd529865221138383fb26ac441544c32ed7128aead020"
INDEX = f"latent-cache/{CACHE}/index.json"
COMPLETE = "step_00000003/complete.json"

DOCUMENTS: dict[str, Any] = {
    "training.json": progress.Training,
    "history.json": cadence.History,
    COMPLETE: dcp_folder.Complete,
    INDEX: cache_index.Index,
    "fetched.json": records.Receipt,
    "fetch-part.json": records.PartRecord,
}
# These are written, and read by people and by reports; codec.py does not know them.
REPORTS: dict[str, Any] = {
    "hang/report.json": Diagnosis,
    "hang/rank_00000.json": RankDump,
    "hang/rank_00001.json": RankDump,
    "rehearsal.json": Report,
}
TORCH = ("latest.pth", "best.pth")
BESIDE = {
    "progress.jsonl",
    *("step_00000003/.metadata", "step_00000003/__0_0.distcp", "step_00000003/__1_0.distcp"),
    *(f"latent-cache/{CACHE}/shard-0000{number}.safetensors" for number in (0, 1)),
}


class Training:
    """The training whose checkpoints these are; a step gives its loss."""

    def __init__(self, out: Path) -> None:
        torch.manual_seed(0)
        inputs = torch.arange(24.0).reshape(12, 2) / 24
        data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
        self.loader = RankAwareDataLoader(data, DistributedConfig(), batch_size=4)
        self.model = nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.05, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.state = TrainingState(
            model=self.model,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            loader=self.loader,
        )
        self.checkpointer = Checkpointer(out, self.state, identity={"lr": 0.05})
        self.is_resumed = self.checkpointer.load_latest()

    def rest_of_epoch(self) -> Iterator[dict[str, Any]]:
        for x, y in self.loader:
            loss = (self.model(x) + 0.1 * torch.rand(()) - y).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.state.step += 1
            [lr] = self.scheduler.get_last_lr()
            yield {"step": self.state.step, "loss": loss.item(), "lr": lr}


@pytest.fixture(autouse=True)
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOXCAR_OUT", str(tmp_path))
    return tmp_path


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (V1 / "progress.jsonl").read_bytes().splitlines()]


def value(name: str) -> Any:
    return json.loads((V1 / name).read_bytes())


# --- laws for all of them

# Of these there is a version 2: what is read of version 1 is written back as that.
OF_TWO_VERSIONS = {COMPLETE}


@pytest.mark.parametrize("name", sorted(DOCUMENTS.keys() - OF_TWO_VERSIONS))
def test_a_document_is_written_back_byte_for_byte(name: str) -> None:
    data = (V1 / name).read_bytes()
    assert codec.to_document(codec.from_document(DOCUMENTS[name], data, name)) == data


@pytest.mark.parametrize("name", sorted(OF_TWO_VERSIONS))
def test_a_document_of_version_1_is_written_back_as_version_2_with_all_that_it_says(
    name: str,
) -> None:
    old = codec.from_document(DOCUMENTS[name], (V1 / name).read_bytes(), name)
    written = codec.to_document(old)
    assert codec.from_document(DOCUMENTS[name], written, name) == old
    assert json.loads(written)["format"].endswith("/2")


@pytest.mark.parametrize("name", sorted(DOCUMENTS.keys() - OF_TWO_VERSIONS))
def test_what_a_newer_version_adds_is_kept(name: str) -> None:
    newer = with_more_fields(value(name))
    found = codec.from_document(DOCUMENTS[name], json.dumps(newer).encode(), name)
    assert json.loads(codec.to_document(found)) == newer


def with_more_fields(value: Any) -> Any:
    """The same document with a field more, in itself and in every record of its lists."""
    if isinstance(value, list):
        return [with_more_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    lists = {key: with_more_fields(item) for key, item in value.items() if isinstance(item, list)}
    return value | lists | {"since_version_2": ["kept"]}


def formats() -> dict[str, Any]:
    """`boxcar.training/1` -> the class whose fields it has; none for the files of torch."""
    newest = [(V2 if name in OF_TWO_VERSIONS else V1) / name for name in DOCUMENTS | REPORTS]
    forms = [json.loads(path.read_bytes())["format"] for path in newest]
    known = dict(zip(forms, (DOCUMENTS | REPORTS).values(), strict=True))
    return known | {content(name)["format"]: None for name in TORCH}


def content(name: str) -> dict[str, Any]:
    return torch.load(V1 / name, weights_only=True)


def test_every_format_has_its_file() -> None:
    sources = [*Path(boxcar.training.__file__).parent.rglob("*.py"), Path(progress.__file__)]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    classes = re.findall(r'FORMAT: ClassVar\[str\] = "(.+)"\n +VERSION: .* = (\d+)', text)
    literals = re.findall(r'"(boxcar\.[a-z.-]+/\d+)"', text)
    assert set(formats()) == {f"boxcar.{name}/{version}" for name, version in classes} | {*literals}


def test_every_format_and_each_of_its_fields_stands_in_the_document() -> None:
    for form, cls in formats().items():
        section = section_of(form)
        for name in fields_of(cls):
            assert f"`{name}`" in section or f'"{name}"' in section, f"{form}: {name}"
    for name, form in zip(
        TORCH, (checkpoint_file.FORMAT, checkpoint_file.BEST_FORMAT), strict=True
    ):
        for key in content(name):
            assert f"`{key}`" in section_of(form), f"{name}: {key}"


def section_of(form: str) -> str:
    sections = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8").split("\n##")
    [found] = [section for section in sections if f"`{form}`" in section.partition("\n")[0]]
    return found


def fields_of(hint: Any) -> set[str]:
    """Of a record, and of all records in it."""
    if not dataclasses.is_dataclass(hint):
        return {name for inner in typing.get_args(hint) for name in fields_of(inner)}
    inner = typing.get_type_hints(hint)
    names = {field.name for field in dataclasses.fields(hint)} - {codec.EXTRA}
    return names.union(*(fields_of(inner[name]) for name in names))


def test_every_file_is_read_here_and_small() -> None:
    there = {path.relative_to(V1).as_posix(): path for path in V1.rglob("*") if path.is_file()}
    assert set(there) == {*DOCUMENTS, *REPORTS, *TORCH, *BESIDE}
    assert all(path.stat().st_size < 20_000 for path in there.values())


# --- one by one


def test_a_checkpoint_is_gone_on_from_exactly(out: Path) -> None:
    shutil.copy(V1 / "latest.pth", out)
    training = Training(out)
    assert training.is_resumed and (training.state.step, training.state.epoch) == (4, 1)
    for found, expected in zip(training.rest_of_epoch(), lines()[4:], strict=True):
        assert found == pytest.approx({name: expected[name] for name in found}, rel=1e-4)
    training.checkpointer.save()
    assert (out / "checkpoints" / "step_00000006.pth").samefile(out / "latest.pth")


def test_a_best_result_is_compared_with_and_written_again(out: Path) -> None:
    shutil.copy(V1 / "latest.pth", out)
    training = Training(out)
    best = content("best.pth")
    numbers = {name: best[name] for name in ("metric", "mode", "step", "epoch")}
    assert training.state.best == numbers
    assert numbers["metric"] == lines()[3]["loss"]
    again = torch.load(out / "best.pth", weights_only=True)
    assert again["model"].keys() == best["model"].keys() == {"weight", "bias"}
    assert all(again["model"][name].equal(tensor) for name, tensor in best["model"].items())
    assert not training.checkpointer.save_best(numbers["metric"], mode="min")
    assert training.checkpointer.save_best(numbers["metric"] / 2, mode="min")


def test_a_best_result_that_lies_there_is_not_written_again(out: Path) -> None:
    for name in TORCH:
        shutil.copy(V1 / name, out)
    before = (out / "best.pth").stat().st_ino
    Training(out)
    assert (out / "best.pth").stat().st_ino == before


def test_a_sharded_checkpoint_of_two_ranks_loads_on_one() -> None:
    model = nn.Linear(2, 4)
    tree = {"model": model.state_dict()}
    assert dcp_folder.is_complete(V1 / "step_00000003")
    assert dcp_folder.read_complete(V1 / "step_00000003").world == 2
    dcp_folder.load(V1 / "step_00000003", tree)
    assert model.weight[3].tolist() == [-0.06757204234600067, 0.507095456123352]
    assert model.bias[0].item() == -0.10365045070648193


def test_the_training() -> None:
    found = codec.from_document(
        progress.Training, (V1 / "training.json").read_bytes(), "training.json"
    )
    assert [start.world for start in found.starts] == [8, 4]
    assert found.extra["compile"] == found.starts[1].extra["compile"]


def test_the_history() -> None:
    found = cadence.read_history(V1)
    assert found.starts == 2 and 0 < found.running_s < 5


def test_a_cache_is_read_and_nothing_is_encoded(out: Path) -> None:
    shutil.copytree(V1 / "latent-cache", out / "cache")

    def encoder(batch: Any) -> Any:
        raise AssertionError("all of it was there")

    cache = LatentCache(
        out / "cache",
        dataset=TensorDataset(torch.zeros(6, 4), torch.zeros(6)),
        encoder=encoder,
        fingerprint=Fingerprint(**value(INDEX)["fingerprint"]),
        batch_size=2,
        shard_bytes=100,
    )
    found: Any = cache.fill().dataset()
    assert [int(sample["label"]) for sample in found] == [0, 1, 2, 3, 4, 5]
    assert found[5]["z"].tolist() == [40, 42, 44, 46]


def test_a_file_that_was_fetched_is_not_fetched_again(out: Path) -> None:
    target = out / "burgers1d_val.h5"
    target.write_bytes(bytes(4096))
    shutil.copy(V1 / "fetched.json", records.receipt_of(target))
    assert records.find_receipt(target, by_content=False) is None
    found = records.find_receipt(target, by_content=True)
    assert found and found.url == "http://data.example.org/full/burgers1d_val.h5"
    os.utime(target, ns=(0, found.mtime_ns))
    assert records.find_receipt(target, by_content=False) == found


def test_a_part_is_gone_on_with(out: Path) -> None:
    target = out / "burgers1d_train.h5"
    shutil.copy(V1 / "fetch-part.json", records.part_record_of(target))
    found = records.read_part(target)
    assert found and (found.piece_bytes, found.done) == (16 * 1024 * 1024, (0, 1))


def test_the_progress() -> None:
    assert [line["step"] for line in lines()] == [1, 2, 3, 4, 5, 6]
    assert all(timestamp.parse_utc(line["at"]) for line in lines())
    assert onbox_progress.last(V1) == lines()[-1]


def test_a_hang_is_diagnosed_again(capsys: pytest.CaptureFixture[str]) -> None:
    report = value("hang/report.json")
    assert doctor.main(["hang", str(V1), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {name: report[name] for name in found}
    assert (found["kind"], found["ranks"]) == ("rank-conditional-collective", [0])


def test_the_ranks_of_a_hang_take_its_report_for_theirs() -> None:
    report = value("hang/report.json")
    attempt = Attempt(report["group"], report["host"], report["launcher"], report["at"])
    found = hang_gather.read_report(V1 / "hang", attempt)
    assert found and (found.line, found.exit_code) == ("hangs.py:13", 42)
    later = dataclasses.replace(attempt, launcher=1)
    assert hang_gather.read_report(V1 / "hang", later) is None


def test_a_dump_is_written_back_byte_for_byte(out: Path) -> None:
    for dump in rank_dump.read_all(V1 / "hang"):
        rank_dump.write(out, dump)
        path = rank_dump.path_of(V1 / "hang", dump.rank)
        assert rank_dump.path_of(out, dump.rank).read_bytes() == path.read_bytes()
        newer = json.loads(path.read_bytes()) | {"since_version_2": 1}
        newer["places"] = [place | {"since_version_2": 1} for place in newer["places"]]
        rank_dump.path_of(out, dump.rank).write_text(json.dumps(newer))
        assert rank_dump.read(rank_dump.path_of(out, dump.rank)) == dump


def test_the_rehearsal() -> None:
    found = value("rehearsal.json")
    names = {field.name for field in dataclasses.fields(Report)}
    assert set(found) == names | {"format", "is_good", "lines"}
    assert (found["word"], found["seed"], found["is_good"]) == ("differs", 3, False)
    assert "optimizer" in [suspect["state"] for suspect in found["suspects"]]
