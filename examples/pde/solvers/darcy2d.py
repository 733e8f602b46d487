"""Darcy flow -div(a grad u) = f on the unit square, u = 0 at its edge: five-point finite volumes.

Values in the middle of n by n cells. What flows through a face goes by the harmonic mean of `a` on
its two sides, which is exact for a jump at the face: second order, for smooth `a` and for jumps
that follow the cells. The system is solved by conjugate gradients with the Poisson equation's
solver in front (sines diagonalise it), so the number of iterations does not grow with n.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor

MODES = 16
LOW, HIGH = 3.0, 12.0
TOLERANCE = 1e-10
MOST_ITERATIONS = 200


def draw(generator: Generator) -> Tensor:
    """One problem [256]: the random numbers of its medium's cosines; on no grid yet."""
    return torch.randn(MODES * MODES, generator=generator, dtype=torch.float64)


def medium(drawn: Tensor, n: int) -> Tensor:
    """Permeability a [N, n, n] of problems [N, 256]: HIGH where a smooth random field is positive.

    The field has the covariance (9 - Laplace)^-2 with zero slope at the edge.
    """
    k = math.pi * torch.arange(MODES, dtype=torch.float64)
    centres = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    cosines = (k[:, None] * centres).cos()
    weights = 1 / (k[:, None] ** 2 + k**2 + 9)
    weights[0, 0] = 0
    numbers = drawn.unflatten(1, (MODES, MODES)) * weights
    field = torch.einsum("nkl,kx,ly->nxy", numbers, cosines, cosines)
    return torch.where(field > 0, HIGH, LOW).to(torch.float64)


def solve(a: Tensor, f: Tensor) -> Tensor:
    """u [N, n, n] for permeabilities a > 0 and sources f, both [N, n, n], float64.

    Raises ArithmeticError where it does not converge (a is not positive, or not finite).
    """
    faces = transmissibilities(a)
    precondition = _poisson(a.shape[-1])
    u, residual = torch.zeros_like(f), f.clone()
    direction = preconditioned = precondition(residual)
    power = _dot(residual, preconditioned)
    goal = TOLERANCE * _dot(f, f).sqrt()
    for _ in range(MOST_ITERATIONS):
        flow = apply(faces, direction)
        # A sample that is solved already has a direction of nothing.
        length = power / _dot(direction, flow).clamp(min=torch.finfo(f.dtype).tiny)
        u = u + length * direction
        residual = residual - length * flow
        if bool((_dot(residual, residual).sqrt() <= goal).all()):
            return u
        preconditioned = precondition(residual)
        power, before = _dot(residual, preconditioned), power
        direction = preconditioned + power / before.clamp(min=torch.finfo(f.dtype).tiny) * direction
    raise ArithmeticError(f"no solution after {MOST_ITERATIONS} iterations: is a positive?")


def transmissibilities(a: Tensor) -> tuple[Tensor, Tensor]:
    """What flows per difference through the faces across x [N, n + 1, n] and y [N, n, n + 1]."""
    return _across(a), _across(a.mT).mT


def apply(faces: tuple[Tensor, Tensor], u: Tensor) -> Tensor:
    """-div(a grad u) [N, n, n]: what flows out of each cell, over its area."""
    n = u.shape[-1]
    return n * n * (_outflow(faces[0], u) + _outflow(faces[1].mT, u.mT).mT)


def _across(a: Tensor) -> Tensor:
    inner = 2 * a[:, 1:] * a[:, :-1] / (a[:, 1:] + a[:, :-1])
    # The edge is half a cell away.
    return torch.cat([2 * a[:, :1], inner, 2 * a[:, -1:]], dim=1)


def _outflow(faces: Tensor, u: Tensor) -> Tensor:
    nothing = torch.zeros_like(u[:, :1])
    flow = faces * torch.diff(u, dim=1, prepend=nothing, append=nothing)
    return flow[:, :-1] - flow[:, 1:]


def _poisson(n: int) -> Callable[[Tensor], Tensor]:
    """The inverse of `apply` for a = 1."""
    k = torch.arange(1, n + 1, dtype=torch.float64)
    sines = (math.pi * k[:, None] * (torch.arange(n, dtype=torch.float64) + 0.5) / n).sin()
    sines = sines / sines.square().sum(1, keepdim=True).sqrt()
    values = 4 * n * n * (math.pi * k / (2 * n)).sin().square()
    inverse = 1 / (values[:, None] + values)
    return lambda f: sines.T @ (inverse * (sines @ f @ sines.T)) @ sines


def _dot(one: Tensor, other: Tensor) -> Tensor:
    """Of each sample, as [N, 1, 1]."""
    return (one * other).sum((1, 2), keepdim=True)


def pairs(drawn: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Inputs [N, 1, n, n] (a) and targets [N, 1, n, n] (u for f = 1)."""
    a = medium(drawn, n)
    return a[:, None], solve(a, torch.ones_like(a))[:, None]
