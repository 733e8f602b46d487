from __future__ import annotations

import pytest

from boxcar.shared.disk.digest import BLOCK_BYTES
from onbox.result.collect import holds_any, is_secret_by_name, long_enough


@pytest.mark.parametrize(
    "path",
    [
        "wandb/settings",
        "a/wandb/settings",
        "wandb/run-1/files/.netrc",
        "wandb/_netrc",
        "tb/my.netrc",
        ".env",
        "wandb/.env.local",
        "wandb/run/prod.ENV",
        "swanlog/environ.txt",
        "x/credentials",
        "mlruns/id_rsa",
        "runs/server.pem",
    ],
)
def test_a_file_is_known_for_one_that_holds_secrets_by_its_name(path):
    assert is_secret_by_name(path)


@pytest.mark.parametrize(
    "path",
    [
        "settings",
        "wandb/offline-run-1/run-1.wandb",
        "wandb/run/files/config.yaml",
        "wandb/run/files/wandb-metadata.json",
        "tb/events.out.tfevents.1",
        "environment.yaml",
    ],
)
def test_a_log_is_none(path):
    assert not is_secret_by_name(path)


def test_a_secret_is_found_also_across_two_blocks(tmp_path):
    values = long_enough(["hunter2-long-enough", "short"])
    assert values == [b"hunter2-long-enough"]
    path = tmp_path / "log"
    path.write_bytes(b"x" * (BLOCK_BYTES - 5) + values[0] + b"y")
    assert holds_any(path, values)
    path.write_bytes(b"x" * BLOCK_BYTES + b"short")
    assert not holds_any(path, values) and not holds_any(path, [])
