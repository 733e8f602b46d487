"""A sharded checkpoint is whole or not there, and loads on any number of ranks."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from ranks_at_work import RanksFailed, run_ranks
from torch.distributed.device_mesh import init_device_mesh

from boxcar.shared.disk import digest
from boxcar.shared.errors import BoxcarError, DamagedError, InputError, NoRoomError
from boxcar.training import stall
from boxcar.training.checkpoint import dcp_files, dcp_folder
from boxcar.training.ranks import ranks
from boxcar.training.ranks.config import DistributedConfig

try:
    from torch.distributed.tensor import Shard, distribute_tensor
except ImportError:  # torch 2.4
    from torch.distributed._tensor import Shard, distribute_tensor

ON_CPU = {"CUDA_VISIBLE_DEVICES": ""}
VALUES = torch.arange(24.0).reshape(12, 2)


def joined(body: Any) -> Any:
    ranks.join(DistributedConfig(strategy="fsdp"))
    try:
        return body()
    finally:
        ranks.leave()


def sharded(values: torch.Tensor) -> torch.Tensor:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return distribute_tensor(values.clone(), mesh, [Shard(0)])


def state(values: torch.Tensor) -> dict[str, Any]:
    return {
        "model": {"weight": sharded(values), "empty": torch.zeros(0)},
        "optimizer": {"state": {}, "param_groups": [{"lr": 0.1, "betas": (0.9, 0.99)}]},
        "step": 7,
    }


def save_in_all_ways(folder: Path) -> None:
    held = []

    def body() -> None:
        dcp_folder.save(folder / "blocking", state(VALUES))
        held.append(dcp_folder._sides[0].group)
        saved = state(VALUES)
        save = dcp_folder.copy_and_save(folder / "async", saved)()
        saved["model"]["weight"].zero_()  # training goes on
        save.result()

    joined(body)
    # A second process group, while somebody still holds what belonged to the first.
    joined(lambda: dcp_folder.save(folder / "again", state(VALUES)))
    assert held


def load_all(folder: Path) -> dict[str, Any]:
    def body() -> dict[str, Any]:
        loaded = {}
        for path in folder.iterdir():
            found = state(torch.zeros_like(VALUES))
            found["step"], found["optimizer"]["param_groups"][0]["lr"] = 0, 0.0
            dcp_folder.load(path, found)
            weight = found["model"]["weight"].full_tensor().tolist()
            loaded[path.name] = (weight, found["optimizer"]["param_groups"], found["step"])
        return loaded

    return joined(body)


def test_what_two_ranks_saved_loads_on_one_and_on_four(tmp_path: Path) -> None:
    run_ranks(2, save_in_all_ways, tmp_path, env=ON_CPU)
    assert all(dcp_folder.is_complete(path) for path in tmp_path.iterdir())
    whole = (VALUES.tolist(), [{"lr": 0.1, "betas": (0.9, 0.99)}], 7)
    expected = {"blocking": whole, "async": whole, "again": whole}
    for world in (1, 4):
        assert run_ranks(world, load_all, tmp_path, env=ON_CPU) == [expected] * world


def save_from_a_gpu(folder: Path) -> list[list[float]]:
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    mesh = init_device_mesh("cuda", (1,))
    weight = distribute_tensor(VALUES.to("cuda"), mesh, [Shard(0)])
    save = dcp_folder.copy_and_save(folder, {"weight": weight, "step": torch.tensor(7.0).cuda()})()
    weight.zero_()
    save.result()
    found = {"weight": torch.zeros_like(weight), "step": torch.tensor(0.0).cuda()}
    dcp_folder.load(folder, found)
    assert found["step"].item() == 7 and found["weight"].device.type == "cuda"
    loaded = found["weight"].full_tensor().tolist()
    dist.destroy_process_group()
    return loaded


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_an_async_save_takes_its_copy_off_the_gpu(tmp_path: Path) -> None:
    assert run_ranks(1, save_from_a_gpu, tmp_path / "step_7") == [VALUES.tolist()]


def plain() -> dict[str, Any]:
    return {"model": {"weight": torch.ones(3, 2)}, "step": 7, "more": {"note": "a"}}


def test_without_a_process_group_one_rank_saves_and_loads(tmp_path: Path) -> None:
    dcp_folder.save(tmp_path / "a" / "step_7", plain())
    found = {"model": {"weight": torch.zeros(3, 2)}, "step": 0}
    dcp_folder.load(tmp_path / "a" / "step_7", found)
    assert torch.equal(found["model"]["weight"], torch.ones(3, 2)) and found["step"] == 7


def test_a_folder_that_exists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "step_7").mkdir()
    with pytest.raises(InputError, match="exists already"):
        dcp_folder.save(tmp_path / "step_7", plain())
    assert [path.name for path in tmp_path.iterdir()] == ["step_7"]


def test_a_foreign_checkpoint_is_told_by_its_keys_shapes_and_dtypes(tmp_path: Path) -> None:
    dcp_folder.save(tmp_path / "step_7", plain())
    wanted = {
        "model": {"weight": torch.zeros(3, 4), "bias": torch.zeros(3)},
        "more": {"note": torch.zeros(())},
    }
    with pytest.raises(InputError) as raised:
        dcp_folder.load(tmp_path / "step_7", wanted)
    assert raised.value.problems[1:] == (
        "missing in the checkpoint: model.bias",
        "model.weight: shape (3, 2) in the checkpoint, (3, 4) here",
        "more.note: a plain value in the checkpoint, a tensor here",
    )
    halves = {"model": {"weight": torch.zeros(3, 2, dtype=torch.bfloat16)}}
    with pytest.raises(InputError, match=r"weight: torch\.float32 in .*, torch\.bfloat16 here"):
        dcp_folder.load(tmp_path / "step_7", halves)
    with pytest.raises(InputError, match=r"only in the checkpoint: model\.weight"):
        dcp_folder.load(tmp_path / "step_7", {"model": {}})


def test_a_value_that_could_not_be_loaded_again_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^more\.note: a PosixPath cannot be kept"):
        dcp_folder.save(tmp_path / "step_7", plain() | {"more": {"note": tmp_path}})
    assert list(tmp_path.iterdir()) == []


def shard_of(folder: Path) -> Path:
    return next(folder.glob("__0_*"))


@pytest.mark.parametrize("harm", ["flip", "cut", "remove", "no complete.json", "half of it"])
def test_a_damaged_checkpoint_is_never_loaded(tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "step_7"
    dcp_folder.save(folder, plain())
    shard, complete = shard_of(folder), folder / "complete.json"
    data = bytearray(shard.read_bytes())
    if harm == "flip":
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)
    elif harm == "cut":
        shard.write_bytes(data[:-1])
    elif harm == "remove":
        shard.unlink()
    elif harm == "no complete.json":
        complete.unlink()
    else:
        complete.write_bytes(complete.read_bytes()[:50])
    found = {"model": {"weight": torch.zeros(3, 2)}}
    with pytest.raises(DamagedError):
        dcp_folder.load(folder, found)
    assert not found["model"]["weight"].any()
    assert dcp_folder.is_complete(folder) == (harm == "flip")


def meet_trouble(folder: Path) -> list[tuple[type, str]]:
    def body() -> list[tuple[type, str]]:
        dcp_folder.save(folder / "step_7", state(VALUES))
        if dist.get_rank() == 0:
            damage_of_the_last_bit(shard_of(folder / "step_7"))
        dist.barrier()
        said = [error_of(dcp_folder.load, folder / "step_7")]
        fsync = os.fsync
        for code in (errno.ENOSPC, errno.EIO):

            def broken(fd: int, code: int = code) -> None:
                raise OSError(code, os.strerror(code))

            os.fsync = broken if dist.get_rank() == 1 else fsync
            said.append(error_of(dcp_folder.save, folder / "step_8"))
            os.fsync = fsync
        return said

    return joined(body)


def error_of(act: Any, folder: Path) -> tuple[type, str]:
    with pytest.raises(BoxcarError) as raised:
        act(folder, state(torch.zeros_like(VALUES)))
    return type(raised.value), str(raised.value)


def test_all_ranks_raise_what_one_of_them_met_and_nothing_is_left_behind(tmp_path: Path) -> None:
    first, second = run_ranks(2, meet_trouble, tmp_path, env=ON_CPU)
    assert first == second
    assert [kind for kind, _ in first] == [DamagedError, NoRoomError, BoxcarError]
    damaged, full, broken = (text for _, text in first)
    assert "__0_0.distcp: its CRC-32 is not" in damaged
    assert "saving failed on rank 1: [Errno 28]" in full and "on rank 1: [Errno 5]" in broken
    assert [path.name for path in tmp_path.iterdir()] == ["step_7"]


def save_with_a_plan_of(plans: type, folder: Path) -> None:
    usual, dcp_files.PlainSaves = dcp_files.PlainSaves, plans  # type: ignore[misc]
    dcp_folder.copy_and_save(folder / "step_7", plain())().result()
    dcp_folder.save(folder / "step_8", plain())
    dcp_files.PlainSaves = usual  # type: ignore[misc]


def save_and_go(folder: Path) -> None:
    patience = []

    class Watched(dcp_files.PlainSaves):
        def set_up_planner(self, *args: Any, **more: Any) -> None:
            patience.append(stall._watching[0]._patient)
            super().set_up_planner(*args, **more)

    class Gone(dcp_files.PlainSaves):
        def set_up_planner(self, *args: Any, **more: Any) -> None:
            os._exit(3)

    me = ranks.join(DistributedConfig(strategy="fsdp"))
    save_with_a_plan_of(Watched, folder)
    (folder / f"patience of {me.rank}").write_text(str(patience))
    save_with_a_plan_of(Gone if me.rank else Watched, folder / "more")


def test_a_save_is_waited_for_and_a_rank_that_goes_in_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(RanksFailed, match="TemporaryError: another rank has left") as failed:
        run_ranks(2, save_and_go, tmp_path, env=ON_CPU)
    assert failed.value.codes == [1, 3]
    for rank in (0, 1):
        # In the thread of an asynchronous save, the watch over the steps goes on.
        assert (tmp_path / f"patience of {rank}").read_text() == "[0, 1]"
    assert not list((tmp_path / "more").iterdir())


def rewrite_metadata(folder: Path, data: bytes) -> None:
    """As somebody would who can write the folder: complete.json agrees with what lies there."""
    (folder / ".metadata").write_bytes(data)
    complete = json.loads((folder / "complete.json").read_text())
    for file in complete["files"]:
        if file["name"] == ".metadata":
            file["size_bytes"] = len(data)
            file["crc32"] = f"{zlib.crc32(data):08x}"
    (folder / "complete.json").write_text(json.dumps(complete))


def test_a_metadata_that_would_run_code_is_refused_unread(tmp_path: Path) -> None:
    folder, canary = tmp_path / "step_7", tmp_path / "canary"
    dcp_folder.save(folder, plain())
    rewrite_metadata(folder, b"cos\nmkdir\n(V" + str(canary).encode() + b"\ntR.")
    with pytest.raises(DamagedError, match=r"names os\.mkdir"):
        dcp_folder.load(folder, plain())
    assert not canary.exists()


def test_a_metadata_that_names_a_file_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "step_7"
    dcp_folder.save(folder, plain())
    data = (folder / ".metadata").read_bytes()
    rewrite_metadata(folder, data.replace(b"__0_0.distcp", b"../../secret"))
    with pytest.raises(DamagedError, match=r"names the file '\.\./\.\./secret'"):
        dcp_folder.load(folder, plain())


def save_until_killed(parent: Path, delay_s: float) -> None:
    def body() -> None:
        big = state(VALUES) | {"more": sharded(torch.ones(256, 1024))}
        dcp_folder.save(parent / "step_0", big)
        threading.Thread(target=die, args=(delay_s,), daemon=True).start()
        for step in range(1, 1000):
            dcp_folder.copy_and_save(parent / f"step_{step}", big)()

    joined(body)


def die(delay_s: float) -> None:
    time.sleep(delay_s)
    os.kill(os.getpid(), signal.SIGKILL)


def kill_a_save(parent: Path, delay_s: float) -> None:
    parent.mkdir()
    with pytest.raises(RanksFailed):
        run_ranks(2, save_until_killed, parent, delay_s, env=ON_CPU)
    found = sorted(parent.glob("step_*"))
    assert found and all(dcp_folder.is_complete(folder) for folder in found)
    whole = {"model": {"weight": torch.zeros(12, 2), "empty": torch.zeros(0)}}
    dcp_folder.load(found[-1], whole)
    assert torch.equal(whole["model"]["weight"], VALUES)
    dcp_folder.remove_unfinished(parent)
    assert sorted(parent.iterdir()) == found


@pytest.mark.parametrize("delay_s", [0.011, 0.037])
def test_only_whole_checkpoints_exist_after_a_kill(tmp_path: Path, delay_s: float) -> None:
    kill_a_save(tmp_path / "run", delay_s)


@pytest.mark.faults
def test_only_whole_checkpoints_exist_after_forty_kills(tmp_path: Path) -> None:
    for number in range(40):
        kill_a_save(tmp_path / str(number), 0.001 + 0.0023 * number)


def test_complete_json_names_each_file_with_its_size_and_crc32(tmp_path: Path) -> None:
    dcp_folder.save(tmp_path / "step_7", plain())
    found = {
        path.name: (path.stat().st_size, f"{zlib.crc32(path.read_bytes()):08x}")
        for path in (tmp_path / "step_7").iterdir()
    }
    complete = dcp_folder.read_complete(tmp_path / "step_7")
    assert {f.name: (f.size_bytes, f.crc32) for f in complete.files} == {
        name: of_file for name, of_file in found.items() if name != "complete.json"
    }


def test_a_check_of_the_disk_reads_every_byte_back_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dcp_folder.save(tmp_path / "step_7", plain())
    forgotten: list[int] = []
    monkeypatch.setattr(
        digest, "forget_cached_pages", lambda fd: forgotten.append(os.fstat(fd).st_size)
    )
    dcp_folder.check_on_disk(tmp_path / "step_7")
    sizes = [file.size_bytes for file in dcp_folder.read_complete(tmp_path / "step_7").files]
    assert sorted(forgotten) == sorted(sizes)
    damage_of_the_last_bit(shard_of(tmp_path / "step_7"))
    with pytest.raises(DamagedError, match="its CRC-32 is not"):
        dcp_folder.check_on_disk(tmp_path / "step_7")


def damage_of_the_last_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
