"""The resident child that reads the cards, and what NVML says of real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from waiting import until

from onbox.machine import gpus
from onbox.machine.card_reader import AGAIN_S, SILENT_S, CardReader


class Stand:
    """A reader whose children are shell scripts, by a clock of our own."""

    def __init__(self, *scripts: str) -> None:
        self.now_s, self.children, self._scripts = 0.0, list[subprocess.Popen[bytes]](), [*scripts]
        self.reader = CardReader(self._start, lambda: self.now_s)

    def _start(self) -> subprocess.Popen[bytes]:
        script = self._scripts.pop(0)
        self.children.append(subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE))
        return self.children[-1]

    def reads(self, name: str | None) -> None:
        """Wait until the reader says this of the first card; None: nothing."""
        until(lambda: next((row["name"] for row in self.reader.read()), None) == name)

    def end(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()


@pytest.fixture(autouse=True)
def _device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidiactl").touch()
    monkeypatch.setattr(gpus, "_DEVICES", (tmp_path / "nvidiactl",))


def said(name: str) -> str:
    return f"echo '{json.dumps([{'name': name}])}'"


def test_the_newest_answer_is_read_without_waiting_for_one():
    stand = Stand(f"{said('old')}; {said('new')}; exec sleep 600")
    stand.reads("new")
    stand.end()


def test_a_driver_that_hangs_is_killed_and_asked_again_later():
    stand = Stand(f"{said('A100')}; exec sleep 600", f"{said('again')}; exec sleep 600")
    stand.reads("A100")
    stand.now_s += SILENT_S + 1
    assert stand.reader.read() == []
    until(lambda: stand.children[0].poll() is not None)
    assert stand.reader.read() == [] and len(stand.children) == 1
    stand.now_s += AGAIN_S
    stand.reads("again")
    stand.end()


def test_beside_a_child_that_no_signal_reaches_none_is_started(monkeypatch):
    stand = Stand("exec sleep 600", said("never"))
    stand.reader.read()
    # As one that sleeps in the kernel, in a driver's call.
    monkeypatch.setattr(stand.children[0], "kill", lambda: None)
    for _ in range(20):
        stand.now_s += SILENT_S + AGAIN_S
        assert stand.reader.read() == []
    assert len(stand.children) == 1
    monkeypatch.undo()
    stand.end()


@pytest.mark.parametrize(
    "script", ["exit 1", "echo nothing", "kill -9 $$", "echo '{}'", "echo [7]"]
)
def test_a_driver_that_breaks_whoever_asks_names_no_card(script):
    stand = Stand(script)
    until(lambda: stand.reader.read() == [] and stand.children[0].poll() is not None)
    assert stand.reader.read() == []
    stand.end()


def test_without_a_device_no_child_is_there(monkeypatch, tmp_path):
    monkeypatch.setattr(gpus, "_DEVICES", (tmp_path / "none",))
    stand = Stand("exit 7")
    assert stand.reader.read() == [] and not stand.children


def test_the_child_ends_with_the_agent_that_hears_it(capfd):
    gpus.follow(os.getppid() + 1, 0.0)  # another one is its parent by now
    assert capfd.readouterr().out == ""


# --- what NVML says, of cards as they were seen


class Error(Exception):
    pass


GIB = 1 << 30
CARDS: dict[str, dict[str, Any]] = {
    "NVIDIA A100-SXM4-80GB": {"power": 391_412, "reasons": 0x4, "ecc": 0, "rows": (2, 1, 0, 0)},
    "NVIDIA GeForce RTX 4090": {"power": 447_850, "reasons": 0x20 | 0x4},
    "Tesla V100-SXM2-16GB": {"power": 55_120, "reasons": 0x1, "ecc": 12, "pages": [7, 9]},
    "NVIDIA H100 80GB HBM3": {"power": 699_873, "reasons": 0x8 | 0x40, "ecc": 3, "rows": (0,) * 4},
}


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, **facts: Any) -> None:
    """NVML with one card; what a card does not support is refused, as NVML does."""
    library: Any = ModuleType("pynvml")

    def told(key: str, wrap: Any = lambda value: value) -> Any:
        def ask(*_: Any) -> Any:
            if key not in facts:
                raise Error("Not Supported")
            return wrap(facts[key])

        return ask

    library.NVMLError = Error
    library.nvmlInit = lambda: None
    library.nvmlDeviceGetCount = lambda: 1
    library.nvmlDeviceGetHandleByIndex = lambda index: index
    library.nvmlDeviceGetName = lambda handle: name
    library.nvmlDeviceGetPciInfo = told("bus")
    library.nvmlDeviceGetUUID = lambda handle: "GPU-1"
    library.nvmlSystemGetDriverVersion = lambda: "550.54.15"
    memory = type("Memory", (), {"used": GIB, "total": 80 * GIB})
    library.nvmlDeviceGetMemoryInfo = lambda handle: memory
    rates = type("Rates", (), {"gpu": 97})
    library.nvmlDeviceGetUtilizationRates = told("rates") if "mig" in facts else lambda _: rates
    library.nvmlDeviceGetTemperature = lambda handle, kind: 71
    library.nvmlDeviceGetMigMode = told("mig")
    library.nvmlDeviceGetPowerUsage = told("power")
    library.nvmlDeviceGetCurrentClocksThrottleReasons = told("reasons")
    library.nvmlDeviceGetTotalEccErrors = told("ecc")
    library.nvmlDeviceGetRemappedRows = told("rows")
    library.nvmlDeviceGetRetiredPages = told("pages")
    monkeypatch.setitem(sys.modules, "pynvml", library)


@pytest.mark.parametrize(
    ("name", "health"),
    [
        ("NVIDIA A100-SXM4-80GB", {"power_w": 391, "slowed_by": [], "ecc_errors": 0, "rows": 1}),
        ("NVIDIA GeForce RTX 4090", {"power_w": 448, "slowed_by": ["heat (software)"]}),
        ("Tesla V100-SXM2-16GB", {"power_w": 55, "slowed_by": [], "ecc_errors": 12, "rows": 2}),
        (
            "NVIDIA H100 80GB HBM3",
            {
                "power_w": 700,
                "slowed_by": ["hardware slowdown", "heat (hardware)"],
                "ecc_errors": 3,
                "rows": 0,
            },
        ),
    ],
)
def test_the_health_of_real_cards_and_nothing_that_a_card_does_not_know(monkeypatch, name, health):
    pretend(monkeypatch, name, **CARDS[name])
    [row] = gpus.rows()
    expected = {"retired_rows" if key == "rows" else key: value for key, value in health.items()}
    known = ("power_w", "slowed_by", "ecc_errors", "retired_rows")
    assert {key: row[key] for key in known if key in row} == expected
    assert (row["name"], row["utilization_percent"], row["temperature_c"]) == (name, 97, 71)


def test_a_card_that_fell_off_the_bus_is_a_row_that_says_so(monkeypatch):
    pretend(monkeypatch, "A100", power=1)
    monkeypatch.setattr(sys.modules["pynvml"], "nvmlDeviceGetHandleByIndex", _is_lost)
    assert gpus.rows() == [{"problem": "GPU is lost"}]


def test_a_divided_card_names_its_slices_though_nvml_does_not_tell_how_busy_it_is(monkeypatch):
    pretend(monkeypatch, "NVIDIA H100 80GB HBM3", mig=(1, 1), power=1000)
    library: Any = sys.modules["pynvml"]
    library.nvmlDeviceGetMaxMigDeviceCount = lambda handle: 7
    library.nvmlDeviceGetMigDeviceHandleByIndex = lambda handle, at: (
        f"MIG-{at}" if at < 2 else _is_lost(at)
    )
    library.nvmlDeviceGetUUID = lambda handle: handle if isinstance(handle, str) else "GPU-1"
    [row] = gpus.rows()
    assert (row["uuid"], row["mig"]) == ("GPU-1", ["MIG-0", "MIG-1"])
    assert "utilization_percent" not in row and "problem" not in row


def _is_lost(index: int) -> int:
    raise Error("GPU is lost")
