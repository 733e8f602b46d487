from __future__ import annotations

from dataclasses import replace

from boxcar.shared.artifacts.to_load import files_of, loaded_of, to_load
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.plan import BYTES_ONLY, TRUSTED, Artifact

SIZES = {
    "best.pth": 1,
    "shards/0.pt": 1,
    "shards/deep/1.pt": 1,
    "shards/_SUCCESS": 0,
    "shards.json": 1,
}
MANIFEST = Manifest(
    run="tiny", cell="a", queue="q1", box="box-a", release="r", attempt=1, task="t", cfg="a.yaml",
    epochs=1, started_at="", ended_at="",
    files=tuple(FileRecord(name, size_bytes, "") for name, size_bytes in SIZES.items()),
)  # fmt: skip


def test_an_artifact_is_a_file_or_a_folder_by_its_whole_name() -> None:
    assert [file.path for file in files_of("best.pth", MANIFEST)] == ["best.pth"]
    assert [file.path for file in files_of("shards", MANIFEST)] == [
        "shards/0.pt", "shards/deep/1.pt", "shards/_SUCCESS",
    ]  # fmt: skip
    assert files_of("shard", MANIFEST) == []


def test_an_empty_file_is_loaded_only_where_it_is_the_artifact() -> None:
    assert loaded_of("shards", MANIFEST) == ["shards/0.pt", "shards/deep/1.pt"]
    assert loaded_of("shards/_SUCCESS", MANIFEST) == ["shards/_SUCCESS"]


def test_a_file_of_two_artifacts_is_loaded_once_with_the_keys_of_both() -> None:
    wanted = [Artifact("shards", ("model",)), Artifact("shards/0.pt", ("step", "model"))]
    assert to_load(wanted, MANIFEST) == [
        Artifact("shards/0.pt", ("model", "step")), Artifact("shards/deep/1.pt", ("model",)),
    ]  # fmt: skip


def test_of_a_pattern_belongs_what_the_manifest_says_was_taken() -> None:
    taken = replace(MANIFEST, matches={"*.pth": ("best.pth",), "sh*/": ("shards",)})
    assert loaded_of("*.pth", taken) == ["best.pth"]
    assert loaded_of("sh*/", taken) == ["shards/0.pt", "shards/deep/1.pt"]
    assert files_of("never-*.pt", taken) == []


def test_how_a_file_is_loaded_says_who_names_it_itself_else_the_first() -> None:
    taken = replace(MANIFEST, matches={"*.p*": ("best.pth",)})
    wanted = [Artifact("*.p*", load=TRUSTED), Artifact("best.pth", load=BYTES_ONLY)]
    assert to_load(wanted, taken) == [Artifact("best.pth", load=BYTES_ONLY)]
    assert to_load([Artifact("shards", load=TRUSTED), Artifact("shards")], taken) == [
        Artifact("shards/0.pt", load=TRUSTED), Artifact("shards/deep/1.pt", load=TRUSTED),
    ]  # fmt: skip


def test_each_match_that_is_a_sharded_checkpoint_has_its_keys_in_its_own_index() -> None:
    files = ("s-1/.metadata", "s-1/__0_0.distcp", "s-2/.metadata", "s-2/__0_0.distcp")
    records = tuple(FileRecord(name, 1, "") for name in files)
    sharded = replace(MANIFEST, files=records, matches={"s-*/": ("s-2", "s-1")})
    assert to_load([Artifact("s-*/", ("model",))], sharded) == [
        Artifact(files[0], ("model",)), Artifact(files[1]),
        Artifact(files[2], ("model",)), Artifact(files[3]),
    ]  # fmt: skip


def test_a_folder_that_is_a_sharded_checkpoint_has_its_keys_in_its_index() -> None:
    files = ("ckpt/.metadata", "ckpt/__0_0.distcp", "ckpt/complete.json")
    sharded = replace(MANIFEST, files=tuple(FileRecord(name, 1, "") for name in files))
    assert to_load([Artifact("ckpt", ("model",))], sharded) == [
        Artifact("ckpt/.metadata", ("model",)), Artifact(files[1]), Artifact(files[2]),
    ]  # fmt: skip


def test_of_a_cell_that_leaves_no_artifact_its_log_is_the_result() -> None:
    made = replace(MANIFEST, files=(*MANIFEST.files, FileRecord("a.log", 3, "")))
    assert to_load([], made) == [Artifact("a.log", load=BYTES_ONLY)]
