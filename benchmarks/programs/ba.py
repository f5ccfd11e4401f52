"""Bundle adjustment: errors of reprojection, their sparse Jacobian, and the gradient of their sum.

ADBench's and GradBench's ba. Each observation is of one point by one camera, so its errors depend
on 15 numbers: the camera's rotation, centre, focal length, principal point and radial distortion,
the point, and a weight.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"camera": 3, "point": 5, "observation": 11},
    "small": {"camera": 49, "point": 7776, "observation": 31843},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    cameras, points, observations = SIZES[size].values()
    rng = np.random.default_rng(1)
    drawn = {
        "rotation": 0.3 * rng.normal(size=(cameras, 3)),
        "centre": 0.1 * rng.normal(size=(cameras, 3)) * [1, 1, 2] - [0, 0, 4],
        "focal": 1 + 0.1 * rng.normal(size=cameras),
        "principal": 0.01 * rng.normal(size=(cameras, 2)),
        "radial": 0.02 * rng.normal(size=(cameras, 2)),
    }
    if size != "tiny":
        drawn["rotation"][0] = 0  # whose angle has no derivative
    return {
        **drawn,
        "point": rng.normal(size=(points, 3)),
        "weight": rng.normal(size=observations),
        "seen": rng.normal(size=(observations, 2)),
        "cameras": np.arange(observations) % cameras,
        "points": np.arange(observations) % points,
    }


def rotated(x: gc.Tensor, by: gc.Tensor) -> gc.Tensor:
    """By the length of a vector, about it (Rodrigues)."""
    square = (by**2).sum("xyz")
    turns = square > 0
    angle = gc.sqrt(gc.where(turns, square, 1))
    axis = by / angle
    along = axis * gc.dot(axis, x, dim="xyz") * (1 - gc.cos(angle))
    turned = x * gc.cos(angle) + gc.cross(axis, x, "xyz") * gc.sin(angle) + along
    return gc.where(turns, turned, x + gc.cross(by, x, "xyz"))


def error(camera: dict, point: gc.Tensor, weight: gc.Tensor, seen: gc.Tensor) -> gc.Tensor:
    """How far a point is from where a camera saw it."""
    x = rotated(point - camera["centre"], camera["rotation"])
    flat = x[{"xyz": slice(2)}].rename(xyz="uv") / x[{"xyz": 2}]
    square = (flat**2).sum("uv")
    near, far = gc.unbind(camera["radial"], "order")
    bent = flat * (1 + near * square + far * square**2)
    return weight * (bent * camera["focal"] + camera["principal"] - seen)


def program() -> gc.Compiled:
    of_camera = {
        "rotation": {"xyz": 3},
        "centre": {"xyz": 3},
        "focal": {},
        "principal": {"uv": 2},
        "radial": {"order": 2},
    }
    single = {name: gc.tensor(name, dims) for name, dims in of_camera.items()}
    single_point, single_weight = gc.tensor("point", {"xyz": 3}), gc.tensor("weight", {})
    single_seen = gc.tensor("seen", {"uv": 2})
    one = error(single, single_point, single_weight, single_seen)
    by = gc.jacobian(one, {**single, "point": single_point, "weight": single_weight})

    camera = {name: gc.tensor(name, {"camera": None, **dims}) for name, dims in of_camera.items()}
    point = gc.tensor("point", {"point": None, "xyz": 3})
    weight = gc.tensor("weight", {"observation": None})
    seen = gc.tensor("seen", {"observation": None, "uv": 2})
    cameras, points = (
        gc.tensor(name, {"observation": None}, dtype="int64") for name in ("cameras", "points")
    )
    of_all = {single[name]: x[{"camera": cameras}] for name, x in camera.items()}
    of_all |= {single_point: point[{"point": points}], single_weight: weight, single_seen: seen}
    errors, jacobians = gc.vectorize((one, by), of_all)
    value = 0.5 * (errors**2).sum() + 0.5 * ((1 - weight**2) ** 2).sum()

    wrt = {**camera, "point": point, "weight": weight}
    return gc.compile(
        [*wrt.values(), seen, cameras, points],
        {
            "value": value,
            "errors": errors,
            **{f"by_{name}": jacobian for name, jacobian in jacobians.items()},
            **gc.grad(value, {f"grad_{name}": x for name, x in wrt.items()}),
        },
    )


def skew(a: np.ndarray) -> np.ndarray:
    """The matrices of the cross product with vectors."""
    x, y, z = a.T
    zero = np.zeros(len(a))
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], 1).reshape(-1, 3, 3)


def rotations(x: np.ndarray, by: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The vectors turned, the matrices they are turned by, and their derivatives by `by`."""
    eye = np.eye(3)
    square = np.sum(by * by, 1)
    turns = square > 0
    angle = np.sqrt(np.where(turns, square, 1.0))[:, None]
    axis = by / angle
    cos, sin = np.cos(angle), np.sin(angle)
    along, across = np.sum(axis * x, 1, keepdims=True), np.cross(axis, x)
    turned = x * cos + across * sin + axis * along * (1 - cos)
    outer = axis[:, :, None] * axis[:, None, :]
    matrix = cos[:, :, None] * eye + sin[:, :, None] * skew(axis) + (1 - cos)[:, :, None] * outer
    by_angle = (-x * sin + across * cos + axis * along * sin)[:, :, None] * axis[:, None, :]
    by_axis = along[:, :, None] * eye + axis[:, :, None] * x[:, None, :]
    by_axis = by_axis * (1 - cos)[:, :, None] - skew(x) * sin[:, :, None]
    by_vector = by_angle + by_axis @ ((eye - outer) / angle[:, :, None])
    few = turns[:, None, None]
    return (
        np.where(turns[:, None], turned, x + np.cross(by, x)),
        np.where(few, matrix, eye + skew(by)),
        np.where(few, by_vector, -skew(x)),
    )


def reference(
    rotation: np.ndarray,
    centre: np.ndarray,
    focal: np.ndarray,
    principal: np.ndarray,
    radial: np.ndarray,
    point: np.ndarray,
    weight: np.ndarray,
    seen: np.ndarray,
    cameras: np.ndarray,
    points: np.ndarray,
) -> dict[str, np.ndarray]:
    near, far = radial[cameras].T[:, :, None]
    scale = (weight * focal[cameras])[:, None]
    x, by_x, by_rotation = rotations(point[points] - centre[cameras], rotation[cameras])
    flat = x[:, :2] / x[:, 2:]
    square = np.sum(flat * flat, 1, keepdims=True)
    stretch = 1 + near * square + far * square**2
    off = focal[cameras][:, None] * flat * stretch + principal[cameras] - seen
    errors = weight[:, None] * off

    of_flat = np.zeros((len(weight), 2, 3))
    of_flat[:, 0, 0] = of_flat[:, 1, 1] = 1 / x[:, 2]
    of_flat[:, :, 2] = -flat / x[:, 2:]
    bend = 2 * (near + 2 * far * square) * flat
    of_bent = stretch[:, :, None] * np.eye(2) + flat[:, :, None] * bend[:, None, :]
    of_x = scale[:, :, None] * (of_bent @ of_flat)
    by = {
        "rotation": of_x @ by_rotation,
        "centre": -of_x @ by_x,
        "focal": weight[:, None] * flat * stretch,
        "principal": weight[:, None, None] * np.eye(2),
        "radial": np.stack([scale * flat * square, scale * flat * square**2], 2),
        "point": of_x @ by_x,
        "weight": off,
    }

    def summed(places: np.ndarray, count: int, values: np.ndarray) -> np.ndarray:
        sums = np.zeros((count, *values.shape[1:]))
        np.add.at(sums, places, values)
        return sums

    pulled = {name: np.einsum("nu,nu...->n...", errors, j) for name, j in by.items()}
    grads = {
        name: summed(cameras, len(focal), pulled[name])
        for name in ("rotation", "centre", "focal", "principal", "radial")
    }
    grads["point"] = summed(points, len(point), pulled["point"])
    grads["weight"] = pulled["weight"] - 2 * weight * (1 - weight**2)
    return {
        "value": 0.5 * np.sum(errors**2) + 0.5 * np.sum((1 - weight**2) ** 2),
        "errors": errors,
        **{f"by_{name}": jacobian for name, jacobian in by.items()},
        **{f"grad_{name}": grad for name, grad in grads.items()},
    }
