from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from benchmarks.programs.peers.ba import CAMERA, error_with

error = error_with(jnp, jnp.cross)


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
