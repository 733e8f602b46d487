"""What is known of a script by the library that runs its loop. Data: one row each.

Where a script's own flags say more, they count. Versions that these rows were read from: hydra-core
1.3, lightning 2.6, transformers 5.24, accelerate 1.x, mmengine 0.10, ultralytics 8.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from boxcar.laptop.init import flags
from boxcar.laptop.init.script import Script
from boxcar.shared.files.plan import ALL, NEWEST, SAFE, TRUSTED
from boxcar.shared.record import dataclass


@dataclass(frozen=True)
class Kept:
    """An artifact; `take` and `load` as in job.yaml."""

    path: str
    take: str = ALL
    load: str = SAFE


@dataclass(frozen=True)
class Framework:
    """`words` come behind the script, `smoke` makes a run short. `is_told_where`: one of the words
    says where to write. `launcher`: "" where the script says it itself.
    """

    name: str = ""
    words: tuple[str, ...] = ()
    is_told_where: bool = False
    launcher: str = ""
    artifacts: tuple[Kept, ...] = ()
    resume: str | None = None
    resume_args: str = ""
    smoke: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()

    @property
    def why(self) -> str:
        return f", and its loop is {self.name}'s" if self.name else ""

    @property
    def artifacts_why(self) -> str:
        own = "what it saves, each time in a new folder of that name"
        return f"what {self.name} writes by itself" if self.name else own


_LOOPS = frozenset({"backward", "fit", "zero_grad", "learn"})
_LIGHTNING_LOGS = "lightning_logs/version_*/checkpoints/*.ckpt"
# Lightning 2.6 and mmengine 0.10 save objects of classes: with it alone their own resume loads them
# under torch 2.6 and later.
_OWN_CLASSES = (("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),)
# In it lies training_args.bin, an object of transformers' own.
_HF = Kept("checkpoint-*/", NEWEST, TRUSTED)
_SHORT_TRAINER = ("max_epochs=1", "limit_train_batches=2", "limit_val_batches=2")


def framework_of_script(script: Script) -> Framework:
    """The first that fits; one that knows nothing where none does. Of a script that hands on, what
    it reaches counts.
    """
    whole = script
    if not (script.trains and script.calls & _LOOPS):
        imports = script.imports | script.reaches_imports
        whole = replace(script, imports=imports, calls=script.calls | script.reaches)
    found = (made(script) for fits, made in _ROWS if fits(script))
    return next(found, None) or next(
        (m(whole) for fits, m in _ROWS[:-1] if fits(whole)), Framework()
    )


def _has_lightning(script: Script) -> bool:
    return bool({"lightning", "pytorch_lightning"} & script.imports)


def _hydra(script: Script) -> Framework:
    is_told_where = not any(saved.is_in_cwd for saved in script.saves)
    named = Framework("Hydra", ("hydra.run.dir={out}",), is_told_where)
    if not _has_lightning(script):
        return named
    has_path = "ckpt_path" in script.words
    return Framework(
        "Hydra and Lightning",
        named.words,
        is_told_where,
        "python",
        artifacts=(Kept("checkpoints/*.ckpt", NEWEST),),
        resume="checkpoints/*.ckpt" if has_path else None,
        resume_args="ckpt_path={resume}" if has_path else "",
        smoke=("trainer.max_epochs=1", *(f"+trainer.{word}" for word in _SHORT_TRAINER[1:])),
        env=_OWN_CLASSES,
    )


def _lightning_cli(script: Script) -> Framework:
    return Framework(
        "LightningCLI",
        ("fit", "--trainer.default_root_dir={out}"),
        is_told_where=True,
        launcher="python",
        artifacts=(Kept(_LIGHTNING_LOGS, NEWEST),),
        resume=_LIGHTNING_LOGS,
        resume_args="--ckpt_path={resume}",
        smoke=tuple(f"--trainer.{word}" for word in _SHORT_TRAINER),
        env=_OWN_CLASSES,
    )


def _lightning(script: Script) -> Framework:
    own = () if script.saves else (Kept(_LIGHTNING_LOGS, NEWEST),)
    return Framework("Lightning", launcher="python", artifacts=own)


def _hf_trainer(script: Script) -> Framework:
    if "HfArgumentParser" not in script.calls:
        place = "" if script.flag(*flags.OUT) else "*/"
        return Framework("transformers' Trainer", artifacts=(replace(_HF, path=place + _HF.path),))
    saves_model = "save_model" in script.calls
    return Framework(
        "transformers' Trainer",
        ("--output_dir", "{out}"),
        is_told_where=True,
        launcher="torchrun",
        artifacts=(Kept("model.safetensors"),) if saves_model else (_HF,),
        resume=_HF.path,
        resume_args="--resume_from_checkpoint {resume}",
        smoke=("--max_steps", "2", "--save_steps", "2"),
    )


def _mmengine(script: Script) -> Framework:
    """Told to resume and not from where, it reads a file beside its checkpoints that names the last
    one, and begins anew without a word where that is missing, as on a new box. `--resume` takes a
    path in scripts that hand it on, as mmdetection's.
    """
    takes_path = "load_from" in script.words
    has_options = script.flag("cfg_options") is not None
    return Framework(
        "mmengine",
        artifacts=(Kept("epoch_*.pth", NEWEST, TRUSTED),),
        resume="epoch_*.pth",
        resume_args="--resume"
        + (" {resume}" if takes_path else " --cfg-options load_from={resume}" * has_options),
        env=_OWN_CLASSES,
        smoke=("--cfg-options", "train_cfg.max_epochs=1") * has_options,
    )


def _has_run_folders(script: Script) -> bool:
    """As YOLO's scripts: `--project runs/train --name exp` becomes runs/train/exp, exp2, ..."""
    name = script.flag("name")
    is_named = bool(script.flag("project") and name and isinstance(name.default, str))
    return is_named and bool(script.saves)


def _run_folders(script: Script) -> Framework:
    name = script.flag("name")
    # Without the part that is the run's own folder.
    files = [each.name.removeprefix("*/" * (each.root == "project")) for each in script.saves]
    named = [file for file in files if re.search(r"(last|best|results)\.\w+$", file)] or files
    kept = [f"{name.default if name else ''}*/{file}" for file in named]
    last = next((path for path in kept if "last" in path), None) if script.flag("resume") else None
    return Framework(
        "",
        ("--project", "{out}"),
        True,
        artifacts=tuple(Kept(path, NEWEST) for path in kept),
        resume=last,
        resume_args="--resume {resume}" if last else "",
    )


def _ultralytics(script: Script) -> Framework:
    """A relative `project` lies below runs/TASK, one deeper than without it; its checkpoints hold
    the model as an object.
    """
    own = "*/" if "project" in script.words else ""
    best = Kept(f"runs/*/{own}*/weights/best.pt", NEWEST, TRUSTED)
    # What a script hands on under these names to `train`.
    short = (("epochs", "1"), ("imgsz", "64"), ("fraction", "0.05"), ("workers", "0"))
    known = [(flag, value) for key, value in short if (flag := script.flag(key))]
    smoke = (word for flag, value in known for word in (flag.word, value))
    return Framework("ultralytics", launcher="python", artifacts=(best,), smoke=tuple(smoke))


_ROWS: tuple[tuple[Callable[[Script], bool], Callable[[Script], Framework]], ...] = (
    (lambda script: "LightningCLI" in script.calls, _lightning_cli),
    (lambda script: script.is_hydra, _hydra),
    (lambda script: "HfArgumentParser" in script.calls, _hf_trainer),
    (lambda script: "transformers" in script.imports and "Trainer" in script.calls, _hf_trainer),
    (_has_lightning, _lightning),
    (lambda script: "mmengine" in script.imports, _mmengine),
    (_has_run_folders, _run_folders),
    (lambda script: "ultralytics" in script.imports, _ultralytics),
    (
        lambda script: "accelerate" in script.imports,
        lambda script: Framework("accelerate", launcher="accelerate"),
    ),
)
