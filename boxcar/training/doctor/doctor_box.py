"""What this machine gives to a training: each check is a row, and bad ones say what to do.

The numbers are read in thin functions and judged in pure ones. Nothing is changed here.
"""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from boxcar.shared.disk.mounts import disk_room

OK, WARN, BAD = "ok", "warn", "bad"
OLDEST_TORCH = (2, 4)
# What docker gives a container unless it is told otherwise.
DOCKERS_SHM_BYTES = 64 * 1024**2
# A loader's worker holds some descriptors for each batch that is on its way.
FEW_FILES = 4096
SMALL_MEMORY_BYTES = 4 * 1024**3


@dataclass(frozen=True)
class Row:
    """One check: `what` was found, and `advice`, empty where all is well."""

    name: str
    verdict: str
    what: str
    advice: str = ""
    time_s: float = 0.0


def rows(ranks: int) -> list[Row]:
    """All checks of this machine, for `ranks` ranks on it."""
    checks: list[Callable[[], Row]] = [
        _torch,
        _gpus,
        _backends,
        _shm,
        _memory,
        lambda: _cpus(ranks),
        _files,
        _port,
    ]
    return [timed(check) for check in checks]


def timed(check: Callable[[], Row]) -> Row:
    """The row with the time that it took."""
    begun = time.monotonic()
    row = check()
    return Row(row.name, row.verdict, row.what, row.advice, round(time.monotonic() - begun, 3))


# --- judged, from numbers


def judge_torch(version: str) -> Row:
    numbers = tuple(int(part) for part in version.partition("+")[0].split(".")[:2])
    if numbers < OLDEST_TORCH:
        return Row("torch", BAD, version, "boxcar.training needs torch 2.4 or newer")
    return Row("torch", OK, version)


def judge_gpus(built_for_cuda: str | None, devices: list[str], has_nvidia: bool) -> Row:
    """`has_nvidia`: the driver's device files are there."""
    if devices:
        return Row("cuda", OK, f"{len(devices)} x {devices[0]}, CUDA {built_for_cuda}")
    if has_nvidia and built_for_cuda is None:
        return Row("cuda", BAD, "a GPU, but torch for the CPU", "install torch built for CUDA")
    if has_nvidia:
        advice = "look at nvidia-smi: the driver may be too old for this torch, or the GPU is gone"
        return Row("cuda", BAD, f"a driver, but torch (CUDA {built_for_cuda}) sees no GPU", advice)
    return Row("cuda", WARN, "no GPU", "training runs on the CPU")


def judge_backends(gloo: bool, nccl: bool, gpus: int) -> Row:
    names = ", ".join(name for name, is_there in (("gloo", gloo), ("nccl", nccl)) if is_there)
    if not gloo:
        return Row("backends", BAD, names or "none", "torch without gloo: install another build")
    if gpus and not nccl:
        return Row("backends", BAD, names, "GPUs without nccl: install torch for Linux and CUDA")
    return Row("backends", OK, names)


def judge_shm(size_bytes: int | None, free_bytes: int | None) -> Row:
    if size_bytes is None or free_bytes is None:
        return Row("/dev/shm", WARN, "not there", "loaders need num_workers=0")
    what = f"{_mib(size_bytes)} MiB, {_mib(free_bytes)} MiB free"
    if size_bytes <= DOCKERS_SHM_BYTES:
        advice = "small: docker run --shm-size=8g, or RankAwareDataLoader, which fits its batches"
        return Row("/dev/shm", WARN, what, advice)
    if free_bytes < DOCKERS_SHM_BYTES:
        advice = "nearly full: `ls -la /dev/shm` shows what a dead run has left"
        return Row("/dev/shm", WARN, what, advice)
    return Row("/dev/shm", OK, what)


def judge_memory(left_bytes: int | None) -> Row:
    """`left_bytes`: of the tightest limit, the container's or the machine's."""
    if left_bytes is None:
        return Row("memory", WARN, "not known", "look at `free -g`")
    what = f"{_mib(left_bytes)} MiB left before this container or machine is full"
    if left_bytes < SMALL_MEMORY_BYTES:
        return Row("memory", WARN, what, "little for several ranks and workers: fewer workers")
    return Row("memory", OK, what)


def judge_cpus(seen: int, quota: float | None, threads: int | None, ranks: int) -> Row:
    """`seen`: CPUs that programs count; `quota`: what the container may use of them, if limited;
    `threads`: OMP_NUM_THREADS, None where it is not set."""
    cpus = min(seen, quota or seen)
    what = f"{cpus:g} CPUs, OMP_NUM_THREADS {threads or 'not set'}, {ranks} ranks"
    fair = f"export OMP_NUM_THREADS={max(1, int(cpus // ranks))}"
    if threads is None and cpus < seen:
        advice = f"{seen} are seen, and a rank without torchrun starts as many threads: {fair}"
        return Row("cpu", WARN, what, advice)
    if threads is not None and threads * ranks > max(cpus, ranks):
        return Row("cpu", WARN, what, f"more threads than CPUs: {fair}")
    return Row("cpu", OK, what)


def judge_files(soft: int, hard: int) -> Row:
    what = f"ulimit -n {soft}"
    if 0 <= soft < FEW_FILES:
        reach = "65536" if hard < 0 else str(min(65536, hard))
        return Row("open files", WARN, what, f"few for many workers: ulimit -n {reach}")
    return Row("open files", OK, what)


# --- read


def cpu_quota(cgroups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """CPUs that the container may use; None where there is no limit."""
    try:
        quota, period = (cgroups / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (cgroups / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (cgroups / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    return int(quota) / int(period) if quota.isdecimal() else None


def omp_threads(env: Mapping[str, str]) -> int | None:
    text = env.get("OMP_NUM_THREADS", "")
    return int(text) if text.isdecimal() and int(text) else None


def _torch() -> Row:
    import torch

    return judge_torch(torch.__version__)


def _gpus() -> Row:
    import torch

    names = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    return judge_gpus(torch.version.cuda, names, Path("/dev/nvidiactl").exists())


def _backends() -> Row:
    import torch
    import torch.distributed as dist

    gloo, nccl = dist.is_gloo_available(), dist.is_nccl_available()
    return judge_backends(gloo, nccl, torch.cuda.device_count())


def _shm() -> Row:
    try:
        room = disk_room("/dev/shm")
    except OSError:
        return judge_shm(None, None)
    return judge_shm(room.size_bytes, room.free_bytes)


def _memory() -> Row:
    from boxcar.training.cache import memory_budget

    return judge_memory(memory_budget.memory_left_bytes())


def _cpus(ranks: int) -> Row:
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return judge_cpus(seen, cpu_quota(), omp_threads(os.environ), ranks)


def _files() -> Row:
    return judge_files(*resource.getrlimit(resource.RLIMIT_NOFILE))


def _port() -> Row:
    wanted = int(os.environ.get("MASTER_PORT") or 29500)
    try:
        with socket.socket() as listener:
            listener.bind(("", wanted))
    except OSError as error:
        advice = f"`ss -ltnp 'sport = :{wanted}'` shows who; torchrun --standalone finds a free one"
        return Row("port", WARN, f"{wanted}: {error.strerror}", advice)
    return Row("port", OK, f"{wanted} is free")


def _mib(size_bytes: int) -> int:
    return size_bytes // 1024**2
