from __future__ import annotations

from boxcar.shared.environment import clean_environment


def test_an_agent_gets_what_finds_programs_and_gpus_and_nothing_else() -> None:
    kept = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "1"}
    others = {"WANDB_API_KEY": "s3cr3t", "PYTHONPATH": "/x", "SSH_AUTH_SOCK": "/y", "TMUX": "z"}
    assert clean_environment(kept | others) == kept
