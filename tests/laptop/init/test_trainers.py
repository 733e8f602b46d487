"""Programs that train by a config alone: what is written for one, in their own examples' keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.laptop.init import folder, trainers
from boxcar.laptop.verbs import init

LLAMA_FACTORY = "model_name_or_path: q\nstage: sft\nfinetuning_type: lora\noutput_dir: saves\n"
TORCHTUNE = (
    "# To launch, run:\n#   tune run --nproc_per_node 2 lora_dpo_distributed --config a/b\n"
    "model:\n  _component_: torchtune.models.llama3_2.lora_llama3_2_1b\n"
)


@pytest.mark.parametrize(
    ("text", "command", "artifact"),
    [
        (LLAMA_FACTORY, "llamafactory-cli train {cfg} output_dir={out}",
         "adapter_model.safetensors"),
        (LLAMA_FACTORY.replace("lora", "full"), "llamafactory-cli train {cfg} output_dir={out}",
         "*.safetensors"),
        ("base_model: m\ndatasets: []\nmicro_batch_size: 2\nadapter: lora\n",
         "axolotl train {cfg} --output-dir {out}", "adapter_model.safetensors"),
        ("model_name_or_path: q\ndataset_name: d\n", "trl sft --config {cfg} --output_dir {out}",
         "*.safetensors"),
        (TORCHTUNE, "tune run lora_dpo_distributed --config {cfg} output_dir={out}", "epoch_*/"),
        ("task: detect\nmode: train\nmodel: y.pt\ndata: d.yaml\n",
         "yolo cfg={cfg} mode=train project={out}", "train*/weights/best.pt"),
        ("model: {}\ntrain_dataloader: {}\ntrain_cfg: {}\n",
         "mim train PACKAGE {cfg} --work-dir {out}", "epoch_*.pth"),
    ],
)  # fmt: skip
def test_a_config_alone_is_started_by_whose_keys_it_has(
    tmp_path: Path, text: str, command: str, artifact: str
) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    made = init.drafted(folder.read_folder(tmp_path), "", can_ask=False, with_help=False)
    assert (" ".join(made.words), made.launcher) == (command, "none")
    assert made.artifacts[0].path == artifact
    assert made.lines == ("mine.yaml train",)
    is_open = "PACKAGE" in command or "trl" in command
    assert ("command" in made.open) == is_open


@pytest.mark.parametrize("text", ["a: [", "- 1", "lr: 1", "", "model_name_or_path: x"])
def test_any_other_file_is_nobodys(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert trainers.of_config(tmp_path / "a.yaml") is None


def test_the_words_of_its_page_are_kept_but_for_where_it_writes(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        "```\npip install trl\ntrl dpo --model_name_or_path q --output_dir x\n```\n"
    )
    made = init.drafted(folder.read_folder(tmp_path), "", can_ask=False, with_help=False)
    assert made.words == (
        "trl", "dpo", "--model_name_or_path", "q", "--output_dir", "{out}",
    )  # fmt: skip
