"""Resolvents of a periodic chain summed along a contour in the complex plane.

npbench's contour_integral (from OMEN, a simulator of quantum transport): at each point z of the
contour the matrix of all slabs, weighted by powers of z, is inverted onto Y; within the unit circle
the sign changes. All points are one batch here.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"point": 3, "slab": 3, "row": 4, "rhs": 5},
    "small": {"point": 32, "slab": 3, "row": 50, "rhs": 60},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    points, slabs, rows, rhs = SIZES[size].values()
    rng = np.random.default_rng(42)

    def drawn(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)

    return {"hamiltonian": drawn(slabs, rows, rows), "z": drawn(points), "Y": drawn(rows, rhs)}


def program() -> gc.Compiled:
    hamiltonian = gc.tensor(
        "hamiltonian", {"slab": None, "row": None, "col": "row"}, dtype="complex128"
    )
    z = gc.tensor("z", {"point": None}, dtype="complex128")
    Y = gc.tensor("Y", {"row": None, "rhs": None}, dtype="complex128")

    slabs = hamiltonian.sizes["slab"]
    power = (slabs - 1) / 2 - gc.arange(slabs, dim="slab")
    X = gc.linalg.solve(gc.dot(z**power, hamiltonian, dim="slab"), Y)
    X = X * gc.where(abs(z) < 1, -1.0, 1.0)
    P0, P1 = X.sum("point"), gc.dot(z, X, dim="point")
    order = "col", "rhs"
    return gc.compile([hamiltonian, z, Y], {"P0": P0.transpose(*order), "P1": P1.transpose(*order)})


def reference(hamiltonian: np.ndarray, z: np.ndarray, Y: np.ndarray) -> dict[str, np.ndarray]:
    P0, P1 = np.zeros((2, *Y.shape), complex)
    for point in z:
        T = np.zeros_like(hamiltonian[0])
        for n, each in enumerate(hamiltonian):
            T += point ** ((len(hamiltonian) - 1) / 2 - n) * each
        X = np.linalg.solve(T, Y)
        if abs(point) < 1:
            X = -X
        P0 += X
        P1 += point * X
    return {"P0": P0, "P1": P1}
