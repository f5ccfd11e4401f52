from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

SWEEPS = 5
RHO, NU, FORCE = 1.0, 0.1, 1.0


def east(a):
    return jnp.roll(a[1:-1], -1, 1)


def west(a):
    return jnp.roll(a[1:-1], 1, 1)


def flow(u, v, p, dx, dy, dt, settled):
    def pressure(p, u, v):
        u_x, v_x = (east(u) - west(u)) / (2 * dx), (east(v) - west(v)) / (2 * dx)
        u_y, v_y = (u[2:] - u[:-2]) / (2 * dy), (v[2:] - v[:-2]) / (2 * dy)
        b = RHO * ((u_x + v_y) / dt - u_x**2 - 2 * u_y * v_x - v_y**2)

        def sweep(_, p):
            sides = (east(p) + west(p)) * dy**2 + (p[2:] + p[:-2]) * dx**2
            p = p.at[1:-1].set((sides - dx**2 * dy**2 * b) / (2 * (dx**2 + dy**2)))
            return p.at[0].set(p[1]).at[-1].set(p[-2])

        return jax.lax.fori_loop(0, SWEEPS, sweep, p)

    def moved(a, u, v, slope):
        row = a[1:-1]
        carried = u[1:-1] * (row - west(a)) / dx + v[1:-1] * (row - a[:-2]) / dy
        spread_x = (east(a) - 2 * row + west(a)) / dx**2
        spread_y = (a[2:] - 2 * row + a[:-2]) / dy**2
        return row + dt * (NU * (spread_x + spread_y) - carried - slope / RHO)

    def step(state):
        u, v, p, _, steps = state
        p = pressure(p, u, v)
        new_u = moved(u, u, v, (east(p) - west(p)) / (2 * dx)) + FORCE * dt
        new_v = moved(v, u, v, (p[2:] - p[:-2]) / (2 * dy))
        new_u, new_v = jnp.zeros_like(u).at[1:-1].set(new_u), jnp.zeros_like(v).at[1:-1].set(new_v)
        return new_u, new_v, p, (new_u.sum() - u.sum()) / new_u.sum(), steps + 1

    u, v, p, _, steps = jax.lax.while_loop(lambda s: s[3] > settled, step, (u, v, p, 1.0, 0))
    return {"u": u, "v": v, "p": p, "steps": steps}


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)
    return jax.jit(flow)
