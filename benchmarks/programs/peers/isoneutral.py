"""Isoneutral mixing in the words that JAX and PyTorch share; `xp` is either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SLOPE, WIDTH, STEEP, LITTLE, DENSITY = 1e-3, 1e-3, 50.0, 1e-20, 1024.0


def model(g: dict[str, Any], xp: Any, padded: Callable[..., Any]) -> dict[str, Any]:
    """`padded` adds zeros before and after along the first axes."""

    def taper(slope):
        return 0.5 * (1 + xp.tanh((SLOPE - xp.abs(slope)) / WIDTH))

    mask_t, mask_u, mask_v, mask_w = (g[f"mask_{name}"] for name in "tuvw")
    salt, temperature, diffusivity = g["salt"], g["temperature"], g["diffusivity"]
    dzt, dzw = g["dzt"], g["dzw"]
    pressure = 9.81 * DENSITY * xp.abs(g["depth"])
    expansion = 1e-5 * (temperature - 9.85) + 1.67e-4 * (1 + 1.1e-8 * pressure)
    by_t, by_s = -DENSITY * expansion * mask_t, 0.78e-3 * DENSITY * mask_t
    length_x = (g["dxu"][:, None] * g["cos_t"])[:-1, :, None]
    length_y = g["dyu"][:-1, None]
    fields = temperature, salt
    t_x, s_x = (mask_u[:-1] * (f[1:] - f[:-1]) / length_x for f in fields)
    t_y, s_y = (mask_v[:, :-1] * (f[:, 1:] - f[:, :-1]) / length_y for f in fields)
    t_z, s_z = (mask_w[:, :, :-1] * (f[:, :, 1:] - f[:, :, :-1]) / dzw[:-1] for f in fields)

    def side_faces(axis, mask, t, s):
        def cells(side):
            along = slice(1 + side, -2 + side)
            return (along, slice(2, -2)) if axis == 0 else (slice(2, -2), along)

        faces = (slice(1, -1), slice(2, -2))[:: 1 if axis == 0 else -1]
        t, s, mask = t[faces], s[faces], mask[cells(0)]
        both = diffusivity[cells(0)] + diffusivity[cells(1)]
        upper = 0.25 * (both[:, :, 1:] + both[:, :, :-1])
        mean = xp.concatenate([0.5 * both[:, :, :1], upper], 2)
        total, slopes = 0.0, []
        for side in range(2):
            at = cells(side)
            for layer in range(2):
                z = slice(1 - layer, None)
                of_t, of_s = by_t[at][:, :, z], by_s[at][:, :, z]
                edges = (0, 0), (0, 0), (0, layer)
                upright = of_t * padded(t_z[at], *edges) + of_s * padded(s_z[at], *edges)
                flat = of_t * t[:, :, z] + of_s * s[:, :, z]
                slope = -flat / (xp.clip(upright, max=0.0) - LITTLE)
                thickness = dzw if layer else dzw[:-1]
                strength = xp.clip(mean[:, :, z] * taper(slope), min=STEEP)
                bottom = (0, 0), (0, 0), (1 - layer, 0)
                total = total + padded(thickness * mask[:, :, z] * strength, *bottom)
                slopes.append(padded(taper(slope) * slope * mask[:, :, z], *bottom))
        return total / (4 * dzt), xp.stack(slopes, -1).reshape(*mask.shape, 2, 2)

    inside = slice(2, -2), slice(2, -2)
    mask = mask_w[:, :, :-1][inside]
    mixed = diffusivity[inside][:, :, :-1] * mask

    def bottom_faces(axis, t, s, length):
        total, slopes = 0.0, {}
        for layer in range(2):
            z = slice(layer, None if layer else -1)
            of_t, of_s = by_t[inside][:, :, z], by_s[inside][:, :, z]
            upright = xp.clip(of_t * t_z[inside] + of_s * s_z[inside], max=0.0) - LITTLE
            for side in range(2):
                along = slice(1 + side, -2 + side)
                faces = (along, inside[0]) if axis == 0 else (inside[0], along)
                slope = -(of_t * t[faces][:, :, z] + of_s * s[faces][:, :, z]) / upright
                total = total + length[1 + side : -3 + side] * mixed * taper(slope) * slope**2
                slopes[side, layer] = taper(slope) * slope * mask
        stacked = xp.stack([slopes[key] for key in sorted(slopes)], -1)
        return total, stacked.reshape(*mask.shape, 2, 2)

    K_11, east = side_faces(0, mask_u, t_x, s_x)
    K_22, north = side_faces(1, mask_v, t_y, s_y)
    by_x, slopes_x = bottom_faces(0, t_x, s_x, g["dxu"][:, None, None])
    by_y, slopes_y = bottom_faces(1, t_y, s_y, (g["dyu"] * g["cos_u"])[:, None])
    by_x = by_x / (4 * g["dxt"][2:-2, None, None])
    by_y = by_y / (4 * (g["dyt"] * g["cos_t"])[2:-2, None])
    x_faces = (1, 2), (2, 2), (0, 0)
    y_faces = (2, 2), (1, 2), (0, 0)
    z_faces = (2, 2), (2, 2), (0, 1)
    return {
        "K_11": padded(K_11, *x_faces),
        "K_22": padded(K_22, *y_faces),
        "K_33": padded(by_x + by_y, *z_faces),
        "slopes_east": padded(east, *x_faces),
        "slopes_north": padded(north, *y_faces),
        "slopes_x": padded(slopes_x, *z_faces),
        "slopes_y": padded(slopes_y, *z_faces),
    }
