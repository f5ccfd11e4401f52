"""Flow through a channel until it is steady: pressure and velocity on a grid.

npbench's channel_flow (Barba's twelve steps to Navier-Stokes): a force drives the fluid along x,
where the channel is periodic, between walls at both ends of y. The steps end when the total
velocity grows by less than `settled`, there a thousandth.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"y": 7, "x": 9, "settled": 0.02}, "small": {"y": 41, "x": 41, "settled": 0.01}}
SWEEPS = 5
RHO, NU, FORCE = 1.0, 0.1, 1.0


def inputs(size: str) -> dict[str, np.ndarray]:
    ny, nx, settled = SIZES[size].values()
    return {
        "u": np.zeros((ny, nx)), "v": np.zeros((ny, nx)), "p": np.ones((ny, nx)),
        "dx": np.array(2 / (nx - 1)), "dy": np.array(2 / (ny - 1)),
        "dt": np.array(0.4 / ((nx - 1) * (ny - 1))), "settled": np.array(settled),
    }  # fmt: skip


def east(a: gc.Tensor) -> gc.Tensor:
    return a.roll(x=-1)


def west(a: gc.Tensor) -> gc.Tensor:
    return a.roll(x=1)


def north(a: gc.Tensor) -> gc.Tensor:
    return a[{"y": slice(2, None)}]


def south(a: gc.Tensor) -> gc.Tensor:
    return a[{"y": slice(None, -2)}]


def inner(a: gc.Tensor) -> gc.Tensor:
    return a[{"y": slice(1, -1)}]


def program() -> gc.Compiled:
    u, v, p = (gc.tensor(name, {"y": None, "x": None}) for name in ("u", "v", "p"))
    dx, dy, dt, settled = (gc.tensor(name, {}) for name in ("dx", "dy", "dt", "settled"))

    def pressure(p: gc.Tensor, u: gc.Tensor, v: gc.Tensor) -> gc.Tensor:
        row_u, row_v = inner(u), inner(v)
        u_x, v_x = (east(row_u) - west(row_u)) / (2 * dx), (east(row_v) - west(row_v)) / (2 * dx)
        u_y, v_y = (north(u) - south(u)) / (2 * dy), (north(v) - south(v)) / (2 * dy)
        b = RHO * ((u_x + v_y) / dt - u_x**2 - 2 * u_y * v_x - v_y**2)

        def sweep(_: gc.Tensor, p: gc.Tensor) -> gc.Tensor:
            row = inner(p)
            sides = (east(row) + west(row)) * dy**2 + (north(p) + south(p)) * dx**2
            new = (sides - dx**2 * dy**2 * b) / (2 * (dx**2 + dy**2))
            return new.pad(y=1, mode="edge")

        return gc.fori_loop(0, SWEEPS, sweep, p)

    def moved(a: gc.Tensor, u: gc.Tensor, v: gc.Tensor, slope: gc.Tensor) -> gc.Tensor:
        row = inner(a)
        carried = inner(u) * (row - west(row)) / dx + inner(v) * (row - south(a)) / dy
        spread_x = (east(row) - 2 * row + west(row)) / dx**2
        spread_y = (north(a) - 2 * row + south(a)) / dy**2
        return row + dt * (NU * (spread_x + spread_y) - carried - slope / RHO)

    def step(state: tuple[gc.Tensor, ...]) -> tuple[gc.Tensor, ...]:
        u, v, p, _, steps = state
        p = pressure(p, u, v)
        p_x = (east(inner(p)) - west(inner(p))) / (2 * dx)
        p_y = (north(p) - south(p)) / (2 * dy)
        new_u = (moved(u, u, v, p_x) + FORCE * dt).pad(y=1, constant_values=0.0)
        new_v = moved(v, u, v, p_y).pad(y=1, constant_values=0.0)
        growth = (new_u.sum() - u.sum()) / new_u.sum()
        return new_u, new_v, p, growth, steps + 1

    start = u, v, p, 1.0, 0
    u_, v_, p_, _, steps = gc.while_loop(lambda state: state[3] > settled, step, start)
    return gc.compile([u, v, p, dx, dy, dt, settled], {"u": u_, "v": v_, "p": p_, "steps": steps})


def reference(
    u: np.ndarray,
    v: np.ndarray,
    p: np.ndarray,
    dx: np.ndarray,
    dy: np.ndarray,
    dt: np.ndarray,
    settled: np.ndarray,
) -> dict[str, np.ndarray]:
    def east(a):
        return np.concatenate([a[1:-1, 1:], a[1:-1, :1]], 1)

    def west(a):
        return np.concatenate([a[1:-1, -1:], a[1:-1, :-1]], 1)

    growth, steps = 1.0, 0
    while growth > settled:
        old_u, old_v = u, v
        u_x, v_x = (east(u) - west(u)) / (2 * dx), (east(v) - west(v)) / (2 * dx)
        u_y, v_y = (u[2:] - u[:-2]) / (2 * dy), (v[2:] - v[:-2]) / (2 * dy)
        b = RHO * ((u_x + v_y) / dt - u_x**2 - 2 * u_y * v_x - v_y**2)
        for _ in range(SWEEPS):
            sides = (east(p) + west(p)) * dy**2 + (p[2:] + p[:-2]) * dx**2
            p = np.empty_like(p)
            p[1:-1] = (sides - dx**2 * dy**2 * b) / (2 * (dx**2 + dy**2))
            p[0], p[-1] = p[1], p[-2]
        slope = (east(p) - west(p)) / (2 * dx) - RHO * FORCE, (p[2:] - p[:-2]) / (2 * dy)
        u, v = np.zeros_like(u), np.zeros_like(v)
        for new, a, down in ((u, old_u, slope[0]), (v, old_v, slope[1])):
            row = a[1:-1]
            carried = old_u[1:-1] * (row - west(a)) / dx + old_v[1:-1] * (row - a[:-2]) / dy
            spread_x = (east(a) - 2 * row + west(a)) / dx**2
            spread_y = (a[2:] - 2 * row + a[:-2]) / dy**2
            new[1:-1] = row + dt * (NU * (spread_x + spread_y) - carried - down / RHO)
        growth = (u.sum() - old_u.sum()) / u.sum()
        steps += 1
    return {"u": u, "v": v, "p": p, "steps": np.array(steps)}
