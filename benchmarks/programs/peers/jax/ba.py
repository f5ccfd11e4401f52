from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

CAMERA = "rotation", "centre", "focal", "principal", "radial"


def rotated(x, by):
    square = by @ by
    turns = square > 0
    angle = jnp.sqrt(jnp.where(turns, square, 1))
    axis = by / angle
    along = axis * (axis @ x) * (1 - jnp.cos(angle))
    turned = x * jnp.cos(angle) + jnp.cross(axis, x) * jnp.sin(angle) + along
    return jnp.where(turns, turned, x + jnp.cross(by, x))


def error(p, seen):
    x = rotated(p["point"] - p["centre"], p["rotation"])
    flat = x[:2] / x[2]
    square = flat @ flat
    bent = flat * (1 + p["radial"][0] * square + p["radial"][1] * square**2)
    return p["weight"] * (bent * p["focal"] + p["principal"] - seen)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(seen, cameras, points, **parameters):
        def gathered(parameters):
            of_camera = {name: parameters[name][cameras] for name in CAMERA}
            point, weight = parameters["point"][points], parameters["weight"]
            return {**of_camera, "point": point, "weight": weight}

        def objective(parameters):
            errors = jax.vmap(error)(gathered(parameters), seen)
            regular = 0.5 * jnp.sum((1 - parameters["weight"] ** 2) ** 2)
            return 0.5 * jnp.sum(errors**2) + regular, errors

        value_and_grad = jax.value_and_grad(objective, has_aux=True)
        (value, errors), grads = value_and_grad(parameters)
        jacobians = jax.vmap(jax.jacrev(error))(gathered(parameters), seen)
        return {
            "value": value,
            "errors": errors,
            **{f"by_{name}": jacobian for name, jacobian in jacobians.items()},
            **{f"grad_{name}": grad for name, grad in grads.items()},
        }

    return f
