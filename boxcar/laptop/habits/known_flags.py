"""What people call the flags that mean something to Boxcar. Of several the first counts."""

from __future__ import annotations

CONFIG = ("config", "cfg", "config_file", "config_path", "conf", "yaml", "c")
OUT = (
    "output_dir", "out_dir", "outdir", "out", "output", "save_dir", "work_dir", "workdir", "logdir",
    "results_dir", "result_dir", "exp_dir", "run_dir", "checkpoint_dir", "checkpoints_dir",
    "ckpt_dir", "log_dir", "outf", "default_root_dir", "save_folder", "results_folder",
    "save_model_dir", "checkpoint_model_dir", "log_folder", "saved_dir", "logs", "model_dir",
    "save_root", "output_directory", "output_folder", "log_root", "checkpoints", "logging_dir",
)  # fmt: skip
# A file to save to, such as `--save model.pt`.
SAVE_AS = ("save", "save_path", "model_path", "checkpoint_path", "output_path", "save_file")
SAVE_AT_ALL = ("save_model", "save")
EPOCHS = (
    "epochs", "num_epochs", "num_train_epochs", "max_epochs", "n_epochs", "nepochs", "total_epochs",
    "epoch", "niter",
)  # fmt: skip
# How long a training takes, in steps of some kind.
STEPS = (
    "max_steps", "max_iters", "max_iter", "num_steps", "train_steps", "num_train_steps",
    "max_train_steps", "total_steps", "num_iterations", "max_iterations", "iterations",
    "train_iters", "num_iters", "total_iters", "n_iters", "total_timesteps", "steps",
)  # fmt: skip
RESUME = (
    "resume", "resume_from_checkpoint", "resume_from", "ckpt_path", "resume_path", "restore",
    "load_checkpoint", "snapshot_path", "checkpoint", "ckpt", "load",
)  # fmt: skip
# Below these something is saved, and they do not say where to write.
NO_PLACE = frozenset(
    {"data", "data_dir", "data_path", "root", "root_path", "model", "name", "dataset"}
)
SEED = ("seed", "manual_seed", "manualseed", "random_seed")
DATA = ("data", "data_dir", "data_path", "dataroot", "dataset_path", "root")
DRY = ("dry_run", "fast_dev_run", "smoke_test")
# Switches: off the GPU, and onto it, where that is the default and the word is its end.
ON_CPU = ("cpu", "use_cpu", "no_cuda", "disable_cuda", "no_gpu", "force_cpu")
ON_GPU = ("cuda", "use_cuda", "gpu", "use_gpu")
BACKEND = ("backend", "dist_backend", "ddp_backend")
# What makes a run short, where the script takes it.
SHORT = dict.fromkeys(STEPS, "2") | {
    "limit_train_batches": "2", "limit_val_batches": "2", "eval_iters": "1",
    "num_workers": "0", "workers": "0", "device": "cpu", "compile": "False",
}  # fmt: skip
