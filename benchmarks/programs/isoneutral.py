"""Mixing of water along surfaces of equal density: the tensors of diffusion, on a staggered grid.

pyhpc-benchmarks' isoneutral_mixing, after MOM2 and Veros: slopes of these surfaces on the eastern,
northern and bottom faces of the cells, from each of the sides and layers next to a face. Steep ones
are tapered off.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"places": 400}, "small": {"places": 2**14}}
SLOPE, WIDTH, STEEP, LITTLE, DENSITY = 1e-3, 1e-3, 50.0, 1e-20, 1024.0
FIELDS = "mask_t", "mask_u", "mask_v", "mask_w", "salt", "temperature", "diffusivity"
ALONG = {
    "x": ("dxt", "dxu"), "y": ("dyt", "dyu", "cos_t", "cos_u"), "z": ("dzt", "dzw", "depth")
}  # fmt: skip


def inputs(size: str) -> dict[str, np.ndarray]:
    side = SIZES[size]["places"] ** (1 / 3)
    across, deep = math.ceil(2 * side), max(3, math.ceil(0.25 * side))
    shape = {"x": across, "y": across, "z": deep}
    rng = np.random.default_rng(17)
    whole = tuple(shape.values())
    masks = {name: (rng.uniform(size=whole) < 0.8).astype(float) for name in FIELDS[:4]}
    lines = {
        name: rng.standard_normal(shape[dim]) for dim, names in ALONG.items() for name in names
    }
    return {**masks, **lines, **{name: rng.standard_normal(whole) for name in FIELDS[4:]}}


class Tracer(NamedTuple):
    """Temperature or salt: what a unit of it adds to the density, and how it varies."""

    weight: gc.Tensor
    along: dict[str, gc.Tensor]
    """On the faces in each direction."""


def taper(slope: gc.Tensor) -> gc.Tensor:
    return 0.5 * (1 + gc.tanh((SLOPE - abs(slope)) / WIDTH))


def pairs(x: gc.Tensor, dim: str, name: str) -> gc.Tensor:
    """All neighbours along a dim."""
    return gc.windows(x, {dim: 2}, {dim: name})


def program() -> gc.Compiled:
    grid = {"x": None, "y": None, "z": None}
    given = {name: gc.tensor(name, grid) for name in FIELDS}
    for dim, names in ALONG.items():
        given |= {name: gc.tensor(name, {dim: None}) for name in names}
    mask_t, mask_u, mask_v, mask_w, salt, temperature, diffusivity = (given[n] for n in FIELDS)

    pressure = 9.81 * DENSITY * abs(given["depth"])
    expansion = 1e-5 * (temperature - 9.85) + 1.67e-4 * (1 + 1.1e-8 * pressure)
    masks = {"x": mask_u, "y": mask_v, "z": mask_w}
    lengths = {"x": given["dxu"] * given["cos_t"], "y": given["dyu"], "z": given["dzw"]}

    def tracer(field: gc.Tensor, weight: gc.Tensor | float) -> Tracer:
        along = {
            dim: (masks[dim] / lengths[dim]).isel({dim: slice(-1)}) * field.diff(dim)
            for dim in grid
        }
        return Tracer(mask_t * weight, along)

    tracers = tracer(temperature, -DENSITY * expansion), tracer(salt, 0.78e-3 * DENSITY)

    def side_faces(dim: str, other: str) -> tuple[gc.Tensor, gc.Tensor]:
        """The diffusion across eastern or northern faces, and the slopes there."""
        inner = {dim: slice(1, -1), other: slice(2, -2)}

        def sides(x: gc.Tensor) -> gc.Tensor:
            return pairs(x, dim, "side").isel(inner)

        flat = sum(sides(t.weight) * t.along[dim].isel(inner) for t in tracers)
        edges = {"z": 1}  # no differences through the bottom and the surface
        upright = sum(
            sides(t.weight) * sides(pairs(t.along["z"].pad(edges, constant_values=0), "z", "layer"))
            for t in tracers
        )
        slope = -flat / (gc.minimum(upright, 0) - LITTLE)
        mask = masks[dim].isel({dim: slice(1, -2), other: slice(2, -2)})
        below = mask.isel(z=slice(1, None)).pad(z=(1, 0), constant_values=0)
        mask = gc.concat([below, mask], "layer")
        thickness = pairs(given["dzw"].pad(z=(1, 0), constant_values=0), "z", "layer")
        mean = sides(diffusivity).mean("side").pad(z=(1, 0), mode="edge")
        mean = pairs(mean, "z", "layer").mean("layer")
        total = (thickness * mask * gc.maximum(mean * taper(slope), STEEP)).sum(["side", "layer"])
        return total / (4 * given["dzt"]), taper(slope) * slope * mask

    inside = {"x": slice(2, -2), "y": slice(2, -2)}
    upright = sum(
        pairs(t.weight.isel(inside), "z", "layer") * t.along["z"].isel(inside) for t in tracers
    )
    mask = mask_w.isel(inside).isel(z=slice(-1))
    mixed = mask * diffusivity.isel(inside).isel(z=slice(-1))

    def bottom_faces(
        dim: str, other: str, length: gc.Tensor, cell: gc.Tensor
    ) -> tuple[gc.Tensor, gc.Tensor]:
        """The share of a direction in the diffusion across bottom faces, and the slopes there."""
        inner = {dim: slice(1, -1), other: slice(2, -2)}

        def sides(x: gc.Tensor) -> gc.Tensor:
            return pairs(x, dim, "side").isel(inner, missing_dims="ignore")

        flat = sum(
            pairs(t.weight.isel(inside), "z", "layer") * pairs(sides(t.along[dim]), "z", "layer")
            for t in tracers
        )
        slope = -flat / (gc.minimum(upright, 0) - LITTLE)
        length = sides(length.isel({dim: slice(-1)}))
        total = (length * mixed * taper(slope) * slope**2).sum(["side", "layer"])
        return total / (4 * cell.isel({dim: slice(2, -2)})), taper(slope) * slope * mask

    K_11, slopes_east = side_faces("x", "y")
    K_22, slopes_north = side_faces("y", "x")
    by_x, slopes_x = bottom_faces("x", "y", given["dxu"], given["dxt"])
    by_y, slopes_y = bottom_faces(
        "y", "x", given["dyu"] * given["cos_u"], given["dyt"] * given["cos_t"]
    )

    def whole(x: gc.Tensor, /, **width: tuple[int, int]) -> gc.Tensor:
        """With the faces at the edges of the grid, where nothing flows."""
        order = [dim for dim in (*grid, "side", "layer") if dim in x.dims]
        return x.pad({"x": (2, 2), "y": (2, 2), **width}, constant_values=0).transpose(*order)

    return gc.compile(
        list(given.values()),
        {
            "K_11": whole(K_11, x=(1, 2)),
            "K_22": whole(K_22, y=(1, 2)),
            "K_33": whole(by_x + by_y, z=(0, 1)),
            "slopes_east": whole(slopes_east, x=(1, 2)),
            "slopes_north": whole(slopes_north, y=(1, 2)),
            "slopes_x": whole(slopes_x, z=(0, 1)),
            "slopes_y": whole(slopes_y, z=(0, 1)),
        },
    )


def reference(**given: np.ndarray) -> dict[str, np.ndarray]:
    """Each side and layer in turn, in slices."""
    masks, (salt, temperature, diffusivity) = (
        [given[name] for name in names] for names in (FIELDS[:4], FIELDS[4:])
    )
    mask_t, mask_u, mask_v, mask_w = masks
    dzt, dzw = given["dzt"], given["dzw"]
    pressure = 9.81 * DENSITY * np.abs(given["depth"])
    expansion = 1e-5 * (temperature - 9.85) + 1.67e-4 * (1 + 1.1e-8 * pressure)
    by_t, by_s = -DENSITY * expansion * mask_t, 0.78e-3 * DENSITY * mask_t
    mask_x, mask_y, mask_z = mask_u[:-1], mask_v[:, :-1], mask_w[:, :, :-1]
    length_x = (given["dxu"][:, None] * given["cos_t"])[:-1, :, None]
    length_y = given["dyu"][:-1, None]
    t_x, s_x = (mask_x * np.diff(f, axis=0) / length_x for f in (temperature, salt))
    t_y, s_y = (mask_y * np.diff(f, axis=1) / length_y for f in (temperature, salt))
    t_z, s_z = (mask_z * np.diff(f, axis=2) / dzw[:-1] for f in (temperature, salt))

    def tapered(slope: np.ndarray) -> np.ndarray:
        return 0.5 * (1 + np.tanh((SLOPE - np.abs(slope)) / WIDTH))

    def side_faces(axis: int, mask: np.ndarray, t: np.ndarray, s: np.ndarray) -> tuple:
        def cells(side: int) -> tuple[slice, ...]:
            along = slice(1 + side, -2 + side)
            return (along, slice(2, -2)) if axis == 0 else (slice(2, -2), along)

        faces = (slice(1, -1), slice(2, -2))[:: 1 if axis == 0 else -1]
        t, s, mask = t[faces], s[faces], mask[cells(0)]
        both = diffusivity[cells(0)] + diffusivity[cells(1)]
        mean = 0.5 * both
        mean[:, :, 1:] = 0.25 * (both[:, :, 1:] + both[:, :, :-1])
        total, slopes = np.zeros_like(mask), np.zeros((*mask.shape, 2, 2))
        for side in range(2):
            at = cells(side)
            for layer in range(2):
                z = slice(1 - layer, None)  # the cells that have this layer
                of_t, of_s = by_t[at][:, :, z], by_s[at][:, :, z]
                end = ((0, 0), (0, 0), (0, layer))
                upright = of_t * np.pad(t_z[at], end) + of_s * np.pad(s_z[at], end)
                flat = of_t * t[:, :, z] + of_s * s[:, :, z]
                slope = -flat / (np.minimum(upright, 0) - LITTLE)
                thickness = dzw if layer else dzw[:-1]
                strength = np.maximum(mean[:, :, z] * tapered(slope), STEEP)
                total[:, :, z] += thickness * mask[:, :, z] * strength
                slopes[:, :, z, side, layer] = tapered(slope) * slope * mask[:, :, z]
        return total / (4 * dzt), slopes

    inside = slice(2, -2), slice(2, -2)
    mask = mask_z[inside]
    mixed = diffusivity[inside][:, :, :-1] * mask

    def bottom_faces(axis: int, t: np.ndarray, s: np.ndarray, length: np.ndarray) -> tuple:
        total, slopes = np.zeros_like(mask), np.zeros((*mask.shape, 2, 2))
        for layer in range(2):
            z = slice(layer, None if layer else -1)
            of_t, of_s = by_t[inside][:, :, z], by_s[inside][:, :, z]
            upright = np.minimum(of_t * t_z[inside] + of_s * s_z[inside], 0) - LITTLE
            for side in range(2):
                along = slice(1 + side, -2 + side)
                faces = (along, inside[0]) if axis == 0 else (inside[0], along)
                slope = -(of_t * t[faces][:, :, z] + of_s * s[faces][:, :, z]) / upright
                taper = tapered(slope)
                total += length[1 + side : -3 + side] * mixed * taper * slope**2
                slopes[:, :, :, side, layer] = taper * slope * mask
        return total, slopes

    K_11, east = side_faces(0, mask_u, t_x, s_x)
    K_22, north = side_faces(1, mask_v, t_y, s_y)
    by_x, slopes_x = bottom_faces(0, t_x, s_x, given["dxu"][:, None, None])
    by_y, slopes_y = bottom_faces(1, t_y, s_y, (given["dyu"] * given["cos_u"])[:, None])
    by_x = by_x / (4 * given["dxt"][2:-2, None, None])
    by_y = by_y / (4 * (given["dyt"] * given["cos_t"])[2:-2, None])
    around, below = (2, 2), (0, 1)
    x_faces, y_faces, z_faces = (
        ((1, 2), around, (0, 0)),
        (around, (1, 2), (0, 0)),
        (around, around, below),
    )
    results = {
        "K_11": (K_11, x_faces),
        "K_22": (K_22, y_faces),
        "K_33": (by_x + by_y, z_faces),
        "slopes_east": (east, x_faces),
        "slopes_north": (north, y_faces),
        "slopes_x": (slopes_x, z_faces),
        "slopes_y": (slopes_y, z_faces),
    }
    return {
        name: np.pad(x, edges + ((0, 0),) * (x.ndim - 3)) for name, (x, edges) in results.items()
    }
