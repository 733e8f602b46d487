"""Viscous Burgers u_t + (u^2 / 2)_x = viscosity u_xx on [0, 1), periodic: pseudo-spectral.

Fourier modes, of which the upper third is kept empty so that the square does not alias (the 2/3
rule). Diffusion is exact by an integrating factor, the rest goes by the classical Runge-Kutta
method: fourth order in time, faster than any order in space once the fronts are resolved.
Cole and Hopf's transformation gives the exact solution, through the heat equation.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

MODES = 4
TIME = 1.0
VISCOSITIES = (0.002, 0.02)
# The solver's points for each one of the data: fronts are as thin as the viscosity.
FINER = 2


def draw(generator: Generator) -> Tensor:
    """One problem [9]: the viscosity, then amplitude and phase (rad) of each sine; on no grid."""
    numbers = torch.rand(2 * MODES + 1, generator=generator, dtype=torch.float64)
    size, weights, turns = numbers.split([1, MODES, MODES])
    low, high = map(math.log, VISCOSITIES)
    amplitudes = (2 * weights - 1) / torch.arange(1, MODES + 1)
    return torch.cat([(low + (high - low) * size).exp(), amplitudes, 2 * math.pi * turns])


def initial(drawn: Tensor, points: int) -> Tensor:
    """u at time 0 [N, points] of problems [N, 9], at the points i / points."""
    _, amplitudes, phases = drawn.split([1, MODES, MODES], dim=1)
    k = 2 * math.pi * torch.arange(1, MODES + 1, dtype=torch.float64)
    angles = k[:, None] * torch.arange(points, dtype=torch.float64) / points
    return torch.einsum("nk,nkx->nx", amplitudes, (angles + phases[:, :, None]).sin())


def solve(u: Tensor, viscosity: Tensor, time: float, steps: int) -> Tensor:
    """u [N, points] at `time` from u at 0, for viscosities [N]; all float64."""
    points = u.shape[1]
    numbers = torch.arange(points // 2 + 1)
    k = 2 * math.pi * numbers.to(torch.float64)
    slope = torch.where(3 * numbers < points, -0.5j * k, 0)
    half = (-viscosity[:, None] * k**2 * time / steps / 2).exp()
    modes = torch.fft.rfft(u)
    for _ in range(steps):
        modes = _step(modes, slope, half, time / steps, points)
    return torch.fft.irfft(modes, n=points)


def _step(modes: Tensor, slope: Tensor, half: Tensor, dt: float, points: int) -> Tensor:
    """One Runge-Kutta step; `half` is what diffusion leaves of each mode after half of it."""

    def change(at: Tensor) -> Tensor:
        return dt * slope * torch.fft.rfft(torch.fft.irfft(at, n=points).square())

    a = change(modes)
    b = change(half * (modes + a / 2))
    c = change(half * modes + b / 2)
    d = change(half * (half * modes + c))
    return half * (half * (modes + a / 6) + (b + c) / 3) + d / 6


def steps_for(u: Tensor, time: float) -> int:
    """Enough that the fastest mode that is kept turns by one radian at most in a step."""
    fastest = float(u.abs().max()) * 2 * math.pi * u.shape[1] / 3
    return math.ceil(time * fastest)


def cole_hopf(u: Tensor, viscosity: float, time: float) -> Tensor:
    """The exact u [points] at `time`, of u at 0 with mean 0 on a grid that resolves both."""
    k = 2 * math.pi * torch.arange(len(u) // 2 + 1, dtype=torch.float64)
    modes = torch.fft.rfft(u)
    integral = torch.fft.irfft(torch.where(k > 0, modes / (1j * k.clamp(min=1)), 0), n=len(u))
    heat = torch.fft.rfft((-integral / (2 * viscosity)).exp()) * (-viscosity * k**2 * time).exp()
    slope = torch.fft.irfft(1j * k * heat, n=len(u))
    return -2 * viscosity * slope / torch.fft.irfft(heat, n=len(u))


def pairs(drawn: Tensor, points: int) -> tuple[Tensor, Tensor]:
    """Inputs [N, 2, points] (u at 0; log10 of the viscosity) and targets [N, 1, points]."""
    u = initial(drawn, FINER * points)
    end = solve(u, drawn[:, 0], TIME, steps_for(u, TIME))
    viscosity = drawn[:, :1].log10().expand(-1, points)
    inputs = torch.stack([u[:, ::FINER], viscosity], dim=1)
    return inputs, end[:, None, ::FINER]
