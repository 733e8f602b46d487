from __future__ import annotations

from pathlib import Path

import strange_sources
import yaml

from boxcar.laptop.init import job_text
from boxcar.laptop.init.draft import Draft
from boxcar.laptop.init.frameworks import Kept


def made(tmp_path: Path, source: str, **more: str) -> Draft:
    found = strange_sources.project(tmp_path, train_py=source, **more)
    return strange_sources.draft(found)


def test_a_script_that_writes_beside_itself_starts_in_out(tmp_path: Path) -> None:
    found = made(tmp_path, strange_sources.BESIDE)
    assert found.words == ("train.py", "--epochs", "{epochs}", "--save-model")
    assert (found.workdir, found.launcher, found.epochs) == ("out", "python", 14)
    assert found.artifacts == (Kept("mnist_cnn.pt"),)
    assert found.smoke == "--dry-run --epochs 1"
    assert found.lines == ("- train 14 --seed 1", "- train 14 --seed 2")
    assert (found.resume, found.todo) == (None, [])


def test_a_script_that_is_told_where_to_write_starts_in_its_code(tmp_path: Path) -> None:
    configs = {f"configs__{name}_yaml": "" for name in "abc"}
    found = made(tmp_path, strange_sources.STEPS, **configs)
    assert found.words == ("train.py", "--config", "{cfg}", "--output-dir", "{out}")
    assert (found.workdir, found.launcher) == ("code", "torchrun")
    assert found.artifacts == (Kept("checkpoints/step_*.pt", "newest"), Kept("final.pt"))
    assert (found.resume, found.resume_args) == ("checkpoints/step_*.pt", "--resume {resume}")
    assert found.smoke == "--dist-backend gloo --max-steps 2"
    assert found.lines == (
        "configs/a.yaml train", "configs/b.yaml train", "# configs/c.yaml train",
    )  # fmt: skip


def test_what_a_script_demands_and_nobody_knows_is_for_a_person_to_say(tmp_path: Path) -> None:
    assert list(made(tmp_path, strange_sources.STEPS).todo) == [
        "--config is required (train.py, line 5): add it to command"
    ]
    found = made(tmp_path, strange_sources.POSITIONS)
    assert found.open["command"] == ("train.py reads positional arguments: add them to command",)


def test_bare_settings_are_one_word_each(tmp_path: Path) -> None:
    found = made(tmp_path, strange_sources.SETTINGS, config__train_char_py="")
    assert found.words == ("train.py", "{cfg}", "--out_dir={out}")
    assert (found.resume, found.resume_args) == ("ckpt.pt", "--init_from=resume")
    assert found.smoke == "--backend=gloo --max_iters=2"


def test_hydra_with_lightning(tmp_path: Path) -> None:
    found = made(tmp_path, strange_sources.HYDRA)
    assert found.words == ("train.py", "hydra.run.dir={out}")
    assert (found.workdir, found.launcher) == ("code", "python")
    assert dict(found.env) == {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    assert found.artifacts == (Kept("checkpoints/*.ckpt", "newest"),)
    assert (found.resume, found.resume_args) == ("checkpoints/*.ckpt", "ckpt_path={resume}")


def test_each_framework_says_where_it_writes_and_what(tmp_path: Path) -> None:
    cli = made(tmp_path / "cli", strange_sources.CLI)
    assert cli.words == ("train.py", "fit", "--trainer.default_root_dir={out}")
    assert cli.artifacts[0].path == cli.resume == "lightning_logs/version_*/checkpoints/*.ckpt"
    hf = made(tmp_path / "hf", strange_sources.HF)
    assert hf.words == ("train.py", "--output_dir", "{out}")
    assert (hf.resume, hf.launcher) == ("checkpoint-*/", "torchrun")
    unsaved = made(tmp_path / "unsaved", strange_sources.HF.replace(".save_model()", ""))
    assert unsaved.artifacts == (Kept("checkpoint-*/", "newest", "trusted"),)
    plain = made(tmp_path / "plain", "from transformers import Trainer\nTrainer(m).train()\n")
    assert plain.artifacts == (Kept("*/checkpoint-*/", "newest", "trusted"),)
    assert dict(cli.env) == {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    accelerate = made(tmp_path / "accelerate", strange_sources.ACCELERATE)
    assert accelerate.launcher == "accelerate"
    assert accelerate.words[1:] == ("--output_dir", "{out}", "--num_train_epochs", "{epochs}")


def test_what_only_trusted_code_loads_says_so(tmp_path: Path) -> None:
    found = made(tmp_path, "import joblib\nfit()\njoblib.dump(model, 'model.pkl')\n")
    assert found.artifacts == (Kept("model.pkl", load="trusted"),)


def test_where_nothing_says_what_is_saved_it_is_any_file(tmp_path: Path) -> None:
    found = made(tmp_path, "while True:\n    loss.backward()\nplt.savefig(name)\n")
    assert found.artifacts == (Kept("*"),)
    assert found.todo == [
        "what does train.py save? Its source does not say. smoke shows it; write the name here"
    ]


def test_what_an_imported_file_saves_lies_where_the_script_is_told_to_write(tmp_path: Path) -> None:
    source = "from mine.loop import run\nrun()\nloss.backward()\n"
    source += "parser.add_argument('--out-dir')\nparser.add_argument('--resume')\n"
    loop = "def run():\n    torch.save(1, self.out / f'epoch_{n}.pt')\n"
    found = made(tmp_path, source, mine__loop_py=loop)
    assert found.artifacts == (Kept("epoch_*.pt", "newest"),)
    assert (found.resume, found.resume_args) == ("epoch_*.pt", "--resume {resume}")


def test_words_by_position_stand_in_the_scripts_order(tmp_path: Path) -> None:
    parser = "p.add_argument('out')\np.add_argument('--x')\np.add_argument('epochs')\ntrain()\n"
    found = made(tmp_path / "a", parser + "while True: pass\n")
    assert (found.words, found.open.get("command")) == (("train.py", "{out}", "{epochs}"), None)
    parser = f"p.add_argument('data')\n{parser}"
    found = made(tmp_path / "b", f"{parser}while True: pass\n")
    assert found.words == ("train.py",), "up to one that a person has to say"
    assert found.open["command"] == ("data is required (train.py, line 1): add it to command",)
    (tmp_path / "c" / "data").mkdir(parents=True)
    found = made(tmp_path / "c", f"{parser}while True: pass\n")
    assert found.words == ("train.py", "{code}/data", "{out}", "{epochs}")


def test_folders_that_are_counted_up_are_found_by_a_pattern(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        "p.add_argument('--project', default='runs/train')\n"
        "p.add_argument('--name', default='exp')\n"
        "p.add_argument('--resume', nargs='?', const=True)\nloss.backward()\n"
        "last, best = w / 'last.pt', w / 'best.pt'\ntorch.save(a, last)\ntorch.save(a, best)\n"
        "while True: pass\n",
    )
    assert found.words == ("train.py", "--project", "{out}")
    assert [kept.path for kept in found.artifacts] == ["exp*/last.pt", "exp*/best.pt"]
    assert (found.resume, found.resume_args) == ("exp*/last.pt", "--resume {resume}")


def test_mmengine_is_made_short_and_its_history_is_trusted(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        "from mmengine.runner import Runner\np.add_argument('--work-dir')\n"
        "p.add_argument('--cfg-options', nargs='+')\nRunner.from_cfg(c).train()\n",
    )
    assert found.words == ("train.py", "--work-dir", "{out}")
    assert found.artifacts == (Kept("epoch_*.pth", "newest", "trusted"),)
    assert found.smoke == "--cfg-options train_cfg.max_epochs=1"
    text = job_text.job(found, [])
    assert yaml.safe_load(text)["env"] == {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    assert found.resume_args == "--resume --cfg-options load_from={resume}"


def test_mmengine_is_told_the_path_by_a_flag_that_takes_one(tmp_path: Path) -> None:
    """As mmdetection's tools/train.py has it."""
    found = made(
        tmp_path,
        "from mmengine.runner import Runner\np.add_argument('--cfg-options', nargs='+')\n"
        "p.add_argument('--resume', nargs='?', const='auto')\nc.load_from = args.resume\n"
        "Runner.from_cfg(c).train()\n",
    )
    assert found.resume_args == "--resume {resume}"


def test_ultralytics_saves_objects_one_folder_deeper_under_a_project(tmp_path: Path) -> None:
    source = "from ultralytics import YOLO\nYOLO('m.yaml').train(data='d'{})\n"
    plain = made(tmp_path / "a", source.format(""))
    assert plain.artifacts == (Kept("runs/*/*/weights/best.pt", "newest", "trusted"),)
    flags = "p.add_argument('--epochs')\np.add_argument('--imgsz')\n"
    assert made(tmp_path / "c", f"{source.format('')}{flags}").smoke == "--epochs 1 --imgsz 64"
    below = made(tmp_path / "b", source.format(", project='runs'"))
    assert below.artifacts == (Kept("runs/*/*/*/weights/best.pt", "newest", "trusted"),)


def test_a_config_beside_the_script_is_a_config(tmp_path: Path) -> None:
    source = "p.add_argument('-c', '--config', default=None)\nloss.backward()\nmain()\n"
    found = made(tmp_path, source, config_yaml="", pyproject_toml="")
    assert found.words == ("train.py", "--config", "{cfg}")
    assert found.lines == ("config.yaml train",)


def test_whatever_counts_the_steps_is_made_short(tmp_path: Path) -> None:
    source = "p.add_argument('--total_steps', default=2000)\nloss.backward()\nmain()\n"
    assert made(tmp_path, source).smoke == "--total_steps 2"


def test_a_script_in_a_folder_that_imports_from_the_project_finds_it(tmp_path: Path) -> None:
    saves = "torch.save(1, os.path.join(args.out, 'm.pt'))\nparser.add_argument('--out')\n"
    more = {"mine__loop_py": "", "tools__beside_py": ""}
    for name, env in (("mine.loop", (("PYTHONPATH", "."),)), ("beside", ()), ("torch", ())):
        source = f"import {name}\nloss.backward()\n{saves}while True: pass\n"
        found = strange_sources.project(tmp_path, tools__train_py=source, **more)
        assert strange_sources.draft(found, "tools/train.py").env == env


def test_a_script_that_is_on_the_gpu_unless_it_is_told_is_tried_on_the_cpu(tmp_path: Path) -> None:
    for at, words in (
        ("'--cuda', action='store_false'", "--cuda"),
        ("'--cpu', action='store_true'", "--cpu"),
        ("'--cuda', action='store_true'", ""),
    ):
        source = f"p.add_argument({at})\nloss.backward()\nwhile True: pass\n"
        assert made(tmp_path, source).smoke == words


def test_folders_that_a_script_reads_where_it_starts_are_links(tmp_path: Path) -> None:
    for name in ("data", "models", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "in.pt").touch()
    source = "torch.load('in.pt')\nd = './data'\nx['out'], '.', './gone', '/tmp', 'train.py'\n"
    source += "os.listdir('models')\nopen(os.path.join(root, 'data/x'))\n"
    found = made(tmp_path, f"{source}loss.backward()\nwhile True: pass\n")
    assert found.links == ("data", "models")
    assert "links: [data, models]" in job_text.job(found, [])
    assert "reads in.pt relative to the working directory, but each cell" in "\n".join(
        found.open["links"]
    )
    told = made(tmp_path, f"{source}p.add_argument('--out')\nfor n in x: loss.backward()\n")
    assert not told.links and not told.open.get("links")
    own = "torch.save(1, './data/in.pt')\nd = './data'\nfor n in x: loss.backward()\n"
    assert not made(tmp_path, own).links


def test_accelerate_goes_on_from_the_folder_of_its_state(tmp_path: Path) -> None:
    source = (
        f"{strange_sources.ACCELERATE}parser.add_argument('--resume')\nmain()\n"
        "torch.save(1, os.path.join(args.output_dir, 'step_%d.pt' % n))\n"
        "accelerator.save_state(os.path.join(args.output_dir, f'state_{n}'))\n"
    )
    assert made(tmp_path, source).resume == "state_*/"


def test_a_flag_for_the_task_gets_that_of_the_queue_line(tmp_path: Path) -> None:
    flags = "p.add_argument('--task', default='seg')\np.add_argument('--limit-batches', type=int)\n"
    source = f"import argparse\np = argparse.ArgumentParser()\n{flags}p.parse_args()\n"
    found = made(tmp_path, source)
    assert found.words == ("train.py", "--task", "{task}")
    assert (found.lines, found.smoke) == (("- seg",), "--limit-batches 2")
