"""Learning rates, as numbers or as functions of the number of the step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.core.preferred_dtype import default
from graphcore.frontend.core.user_functions import callback
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.elementwise import cos, minimum
from graphcore.ir.help_text import parameters

__all__ = [
    "cosine_decay",
    "exponential_decay",
    "linear_warmup",
]

Real: TypeAlias = float | Tensor
"""A hyperparameter: a number, or a tensor without dims."""

Schedule: TypeAlias = Callable[[Tensor], Tensor | float]
"""The learning rate from the number of the step, counted from 0."""


SHARE = 0.0, math.nextafter(1, 0), "a share is at least 0 and less than 1"
SIZE = 0.0, math.inf, "give 0 or more"
LIMITS = {
    "steps": (1.0, math.inf, "give 1 or more; in linear_warmup the steps come first"),
    **dict.fromkeys(("b1", "b2", "decay"), SHARE),
    **dict.fromkeys(("momentum", "eps", "max_norm", "factor", "weight_decay"), SIZE),
}
"""The least and the greatest value of hyperparameters, and the cure for others."""


def check_hyperparameters(**values: Real) -> None:
    """Refuse hyperparameters that are no real numbers or tensors, or that make no sense."""
    for name, value in values.items():
        node = single(value)
        least, most, cure = LIMITS.get(name, (-math.inf, math.inf, "give a real number"))
        outside = isinstance(value, int | float) and not least <= value <= most
        if outside or node.type.dtype.kind == "c":
            raise refusal(f"{name} is {value!r:.60}", cure=cure)


def schedule_of(rate: Real | Schedule) -> Schedule:
    """A learning rate as a function of the number of the step."""
    if callable(rate):
        return callback("learning_rate", rate, "step")
    check_hyperparameters(learning_rate=rate)
    return lambda step: rate


@parameters(
    learning_rate="The learning rate of the first step.",
    steps="The number of steps over which it is multiplied by `factor` once.",
    factor="The factor, such as 0.5.",
)
def exponential_decay(learning_rate: Real, steps: Real, factor: Real) -> Schedule:
    """A learning rate that is multiplied by `factor` over each `steps` steps, smoothly.

    `learning_rate * factor**(step / steps)`.

    >>> gc.optimize.exponential_decay(0.1, 100, 0.5)(200).eval()
    array(0.025)
    """
    check_hyperparameters(learning_rate=learning_rate, steps=steps, factor=factor)
    return lambda step: learning_rate * factor ** (step_tensor(step) / steps)


@parameters(
    learning_rate="The learning rate of the first step.",
    steps="The number of steps until it is `final`.",
    final="The learning rate from then on.",
)
def cosine_decay(learning_rate: Real, steps: Real, final: Real = 0.0) -> Schedule:
    """A learning rate that falls to `final` over `steps` steps along a cosine, and stays there.

    `final + (learning_rate - final) * (1 + cos(pi * step / steps)) / 2`, one cycle of Loshchilov
    and Hutter 2017, "SGDR: stochastic gradient descent with warm restarts".

    >>> rate = gc.optimize.cosine_decay(0.1, 100)
    >>> gc.evaluate([rate(0), rate(50), rate(1000)])
    [array(0.1), array(0.05), array(0.)]
    """
    check_hyperparameters(learning_rate=learning_rate, steps=steps, final=final)

    def rate(step: Operand) -> Tensor:
        share = minimum(step_tensor(step) / steps, 1.0)
        return final + (learning_rate - final) * (1 + cos(math.pi * share)) / 2

    return rate


@parameters(
    steps="The number of steps.",
    then="The learning rate: a number, or a function of the number of the step.",
)
def linear_warmup(steps: Real, then: Real | Schedule) -> Schedule:
    """A learning rate that rises to that of `then` in the first `steps` steps, in equal parts.

    `min((step + 1) / steps, 1) * then(step)`. Source: Goyal et al. 2017, "Accurate, large minibatch
    SGD".

    >>> rate = gc.optimize.linear_warmup(4, 0.1)
    >>> gc.evaluate([rate(0), rate(3), rate(9)])
    [array(0.025), array(0.1), array(0.1)]
    """
    check_hyperparameters(steps=steps)
    rate = schedule_of(then)
    return lambda step: minimum((step_tensor(step) + 1) / steps, 1.0) * rate(step_tensor(step))


def step_tensor(step: Operand) -> Tensor:
    """The number of a step as a float of the default dtype, which is at least float32 here."""
    return astype(wrap(single(step)), np.promote_types(default(), np.float32))
