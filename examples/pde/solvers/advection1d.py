"""Advection u_t + speed u_x = 0 on [0, 1), periodic: third-order finite volumes.

Cell averages; fluxes by the quadratic that leans upwind (kappa = 1/3), time by the three-stage
Runge-Kutta method of Shu and Osher. Third order in both, for smooth solutions. No limiter: a jump
would ring. Sines are translated exactly, which is what the order is measured against.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

MODES = 4
TIME = 1.0
CFL = 0.5


def draw(generator: Generator) -> Tensor:
    """One problem [9]: the speed, then amplitude and phase (rad) of each sine; on no grid yet."""
    numbers = torch.rand(2 * MODES + 2, generator=generator, dtype=torch.float64)
    size, sign, weights, turns = numbers.split([1, 1, MODES, MODES])
    speed = (0.2 + 0.8 * size) * torch.where(sign < 0.5, -1, 1)
    amplitudes = (2 * weights - 1) / torch.arange(1, MODES + 1)
    return torch.cat([speed, amplitudes, 2 * math.pi * turns])


def exact(drawn: Tensor, time: float, cells: int) -> Tensor:
    """Cell averages [N, cells] of the solution of problems [N, 9] at a time."""
    speed, amplitudes, phases = drawn.split([1, MODES, MODES], dim=1)
    k = 2 * math.pi * torch.arange(1, MODES + 1, dtype=torch.float64)
    centres = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    angles = k[:, None] * (centres - speed[:, :, None] * time) + phases[:, :, None]
    # The average of a sine over a cell is its value in the middle times this.
    damping = torch.sinc(k / (2 * math.pi * cells))
    return torch.einsum("nk,nkx->nx", amplitudes * damping, angles.sin())


def solve(u: Tensor, speed: Tensor, time: float) -> Tensor:
    """Cell averages [N, cells] at `time` from those at 0, for speeds [N]."""
    cells = u.shape[1]
    steps = math.ceil(time * cells * float(speed.abs().max()) / CFL)
    rate = speed[:, None] * cells
    for _ in range(steps):
        u = _step(u, rate, time / steps)
    return u


def _step(u: Tensor, rate: Tensor, dt: float) -> Tensor:
    first = u + dt * _change(u, rate)
    second = 0.75 * u + 0.25 * (first + dt * _change(first, rate))
    return (u + 2 * (second + dt * _change(second, rate))) / 3


def _change(u: Tensor, rate: Tensor) -> Tensor:
    """du/dt [N, cells]: what flows in on one side minus what flows out on the other."""
    left, right = u.roll(1, 1), u.roll(-1, 1)
    from_left = (-left + 5 * u + 2 * right) / 6
    from_right = (2 * u + 5 * right - right.roll(-1, 1)) / 6
    at_right_face = torch.where(rate > 0, from_left, from_right)
    return rate * (at_right_face.roll(1, 1) - at_right_face)


def pairs(drawn: Tensor, cells: int) -> tuple[Tensor, Tensor]:
    """Inputs [N, 2, cells] (u at 0; the speed everywhere) and targets [N, 1, cells] (u at TIME)."""
    fine = solve(exact(drawn, 0.0, 2 * cells), drawn[:, 0], TIME)
    speed = drawn[:, :1].expand(-1, cells)
    inputs = torch.stack([exact(drawn, 0.0, cells), speed], dim=1)
    return inputs, fine.unflatten(1, (cells, 2)).mean(2)[:, None]
