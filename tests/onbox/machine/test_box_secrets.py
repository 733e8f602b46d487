from __future__ import annotations

import json
from pathlib import Path

from onbox.machine.credentials import BoxSecrets

WEBHOOK = {
    "url": "https://hooks.example/t0ken-of-it",
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2L=",
}
CHAT = {
    "channel": "telegram",
    "url": "https://chat.example/",
    "secret": "b0t-token",
    "to": "471142",
}


def written(path: Path, **record: object) -> str:
    new = path.with_name("new")
    new.write_text(json.dumps(record))
    new.chmod(0o600)
    new.replace(path)
    return str(path)


def test_the_values_of_variables_webhooks_and_chats_are_known(tmp_path: Path) -> None:
    file = written(tmp_path / "c", env={"A": "value-of-a"}, webhooks=[WEBHOOK], channels=[CHAT])
    known = BoxSecrets(file).known()
    for value in ("value-of-a", *WEBHOOK.values(), "b0t-token", "471142"):
        assert value not in known.left_out_of(f"no access with {value}")


def test_a_value_that_was_replaced_meanwhile_is_known_still_and_the_new_one_too(
    tmp_path: Path,
) -> None:
    secrets = BoxSecrets(written(tmp_path / "c", env={"A": "old-value"}))
    assert "old-value" not in secrets.known().left_out_of("an old-value")
    written(tmp_path / "c", env={"A": "new-value"})
    assert secrets.known().left_out_of("old-value new-value") == "[…] […]"
    (tmp_path / "c").unlink()
    assert secrets.values() == {"old-value", "new-value"}


def test_a_file_that_is_not_there_or_not_ours_alone_tells_nothing(tmp_path: Path) -> None:
    assert BoxSecrets().values() == BoxSecrets(str(tmp_path / "none")).values() == frozenset()
    file = Path(written(tmp_path / "c", env={"A": "a-value"}))
    file.chmod(0o644)
    assert BoxSecrets(str(file)).values() == frozenset()
