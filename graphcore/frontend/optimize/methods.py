"""`gc.optimize`: gradient methods as pure functions of trees.

An optimizer is a pair of functions: `init(params)` is the state before the first step, and
`update(params, grads, state)` the pair of params and state after one. Nothing is changed in place,
so that a step runs in a program, in a loop, under `vectorize`, and has derivatives itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np

from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.callbacks import callback
from graphcore.frontend.core.documents import parameters
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.core.other_names import UPDATE
from graphcore.frontend.core.trees import T, Tree, flatten
from graphcore.frontend.create.inputs import constant, zeros_like
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.pointwise.elementwise import absolute, cos, minimum
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.reduce.masking import root
from graphcore.frontend.tree import map as each
from graphcore.ir.dtypes import real_of
from graphcore.ir.errors import GraphAttributeError, GraphTypeError
from graphcore.ir.help_text import fields
from graphcore.ir.structures import leaves

__all__ = [
    "Optimizer",
    "adam",
    "adamw",
    "clip_by_global_norm",
    "cosine_decay",
    "exponential_decay",
    "global_norm",
    "linear_warmup",
    "sgd",
]

Real: TypeAlias = float | Tensor
"""A hyperparameter: a number, or a tensor without dims."""

Schedule: TypeAlias = Callable[[Tensor], Tensor | float]
"""The learning rate from the number of the step, counted from 0."""


Decay: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""The change of a step, from the step and the param."""


@fields
class Optimizer(NamedTuple):
    """A gradient method.

    Attributes
    ----------
    init
        `params -> state`, before the first step.
    update
        `(params, grads, state) -> (params, state)`, after one step.
    """

    init: Callable[[Tree], Tree]
    update: Callable[[Tree, Tree, Tree], tuple[Tree, Tree]]

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # a protocol that Python or a library looks for
            raise AttributeError(name)
        reason = f"has no attribute {name!r}"
        raise refusal("Optimizer", reason, cure=UPDATE, kind=GraphAttributeError)


@fields
class Momentum(NamedTuple):
    """The state of `sgd`."""

    step: Tensor
    velocity: Tree


@fields
class Moments(NamedTuple):
    """The state of `adam` and `adamw`: running means of gradients and of their squares."""

    step: Tensor
    mean: Tree
    square: Tree


def sgd(
    learning_rate: Real | Schedule, momentum: Real = 0.0, *, nesterov: bool = False
) -> Optimizer:
    """Stochastic gradient descent, with momentum.

    `velocity = momentum * velocity + grad`, and `param = param - learning_rate * velocity`. With
    `nesterov` it is `param = param - learning_rate * (grad + momentum * velocity)`. Sources: Polyak
    1964, "Some methods of speeding up the convergence of iteration methods"; Sutskever et al. 2013,
    "On the importance of initialization and momentum in deep learning".

    Parameters
    ----------
    learning_rate
        A number, a tensor, or a function of the number of the step, such as `cosine_decay`.
    momentum
        The share of the velocity that is kept in each step. With 0 the state has no velocity.
    nesterov
        Whether to use Nesterov's momentum.

    Examples
    --------
    >>> import graphcore as gc
    >>> w = gc.tensor("w", {"row": 2})
    >>> opt = gc.optimize.sgd(0.1)
    >>> new, state = opt.update(w, gc.grad((w**2).sum(), w), opt.init(w))
    >>> gc.compile([w], new)([1.0, 2.0])
    array([0.8, 1.6])
    """
    check("sgd", momentum)
    moving = not (isinstance(momentum, int | float) and momentum == 0)
    rate = schedule_of("sgd", learning_rate)

    def init(params: Tree) -> Momentum:
        params = tensors("sgd", "params", params)
        return Momentum(constant(0), each(zeros_like, params) if moving else ())

    def update(params: Tree, grads: Tree, state: Momentum) -> tuple[Tree, Momentum]:
        params, grads = tensors("sgd", "params", params), tensors("sgd", "grads", grads)
        now = rate(state.step)
        moved = downhill(grads)
        velocity = state.velocity
        if moving:
            velocity = each(lambda v, g: like(momentum, g) * v + g, velocity, moved)
            moved = (
                each(lambda v, g: g + like(momentum, g) * v, velocity, moved)
                if nesterov
                else velocity
            )
        new = each(lambda p, v: p - like(now, p) * v, params, moved)
        return new, Momentum(state.step + 1, velocity)

    return Optimizer(init, update)


ADAM = {
    "learning_rate": "As in `sgd`.",
    "b1": "The share of the mean of gradients that is kept in each step.",
    "b2": "The share of the mean of squares that is kept in each step.",
    "eps": "The number added to the root.",
}


@parameters(**ADAM)
def adam(
    learning_rate: Real | Schedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
) -> Optimizer:
    """Adam: steps scaled by running means of gradients and of their squares.

    In step t, counted from 1, `mean = b1 * mean + (1 - b1) * grad` and `square = b2 * square + (1 -
    b2) * grad**2`. Then `param = param - learning_rate * (mean / (1 - b1**t)) / (sqrt(square / (1 -
    b2**t)) + eps)`. Source: Kingma and Ba 2015, "Adam: a method for stochastic optimization".

    The first step has the size of the learning rate:

    >>> import graphcore as gc
    >>> w = gc.tensor("w", {"row": 2})
    >>> opt = gc.optimize.adam(0.1)
    >>> new, state = opt.update(w, gc.grad((w**2).sum(), w), opt.init(w))
    >>> gc.compile([w], new)([1.0, -20.0]).round(6)
    array([  0.9, -19.9])
    """
    return moments("adam", learning_rate, b1, b2, eps, lambda moved, p: moved)


@parameters(
    **ADAM, weight_decay="The share of each param that is subtracted, times the learning rate."
)
def adamw(
    learning_rate: Real | Schedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    weight_decay: Real = 0.01,
) -> Optimizer:
    """Adam with decoupled weight decay.

    As `adam`, and each step also subtracts `learning_rate * weight_decay * param` from the param.
    The running means do not include it. Source: Loshchilov and Hutter 2019, "Decoupled weight decay
    regularization".

    >>> import graphcore as gc
    >>> w = gc.tensor("w", {"row": 2})
    >>> opt = gc.optimize.adamw(0.1, weight_decay=0.5)
    >>> new, state = opt.update(w, gc.grad((w**2).sum(), w), opt.init(w))
    >>> gc.compile([w], new)([1.0, -20.0]).round(6)
    array([  0.85, -18.9 ])
    """
    check("adamw", weight_decay)

    def decay(moved: Tensor, p: Tensor) -> Tensor:
        return moved + like(weight_decay, p) * p

    return moments("adamw", learning_rate, b1, b2, eps, decay)


def moments(
    function: str,
    learning_rate: Real | Schedule,
    b1: Real,
    b2: Real,
    eps: Real,
    decayed: Decay,
) -> Optimizer:
    """Adam, whose steps `decayed` changes."""
    check(function, b1, b2, eps)
    rate = schedule_of(function, learning_rate)

    def init(params: Tree) -> Moments:
        params = tensors(function, "params", params)
        squares = each(lambda p: zeros_like(p, real_of(p.dtype)), params)
        return Moments(constant(0), each(zeros_like, params), squares)

    def update(params: Tree, grads: Tree, state: Moments) -> tuple[Tree, Moments]:
        params, grads = tensors(function, "params", params), tensors(function, "grads", grads)
        now, t = rate(state.step), state.step + 1

        def step(p: Tensor, mean: Tensor, square: Tensor) -> Tensor:
            first = mean / like(1 - b1**t, p)
            second = square / like(1 - b2**t, p)
            moved = first / (root(second) + like(eps, p))
            return p - like(now, p) * decayed(moved, p)

        moved = downhill(grads)
        mean = each(lambda m, g: running_mean(m, g, b1), state.mean, moved)
        square = each(lambda s, g: running_mean(s, absolute(g) ** 2, b2), state.square, moved)
        return each(step, params, mean, square), Moments(t, mean, square)

    return Optimizer(init, update)


def tensors(function: str, name: str, tree: Tree) -> Tree:
    """A tree of tensors; arrays without dims are refused, as steps run in a program."""
    for path, x in leaves(tree, name):
        if isinstance(x, np.ndarray) and x.ndim:
            cure = "give inputs, gc.tensor(name, dims); to make a function of arrays, write "
            cure += f"@gc.function(params=params, state={function}.init(params))"
            reason = f"{path} is an array of shape {x.shape}, which has no dims"
            raise refusal(function, reason, cure=cure, kind=GraphTypeError)
    found, rebuild = flatten(tree, f"{function}: {name}")
    return rebuild(found)


def running_mean(mean: Tensor, x: Tensor, kept: Real) -> Tensor:
    """A running mean."""
    return like(kept, mean) * mean + like(1 - kept, mean) * x


def like(value: Real, x: Tensor) -> Real:
    """A hyperparameter in the precision of `x`."""
    return value if type(value) in (int, float) else astype(value, real_of(x.dtype))


def downhill(grads: Tree) -> Tree:
    """The directions in which a function grows fastest: of complex values the conjugates."""
    return each(lambda g: conjugate(g) if g.dtype.kind == "c" else g, grads)


def check(function: str, *values: Real) -> None:
    """Refuse hyperparameters that are neither numbers nor tensors."""
    for value in values:
        single(function, value)


def schedule_of(function: str, rate: Real | Schedule) -> Schedule:
    """A learning rate as a function of the number of the step."""
    if callable(rate):
        return callback(function, "learning_rate", rate, "step")
    single(function, rate)
    return lambda step: rate


def global_norm(tree: Tree) -> Tensor:
    """The Euclidean norm of all elements of all tensors of a tree together.

    Its derivative at 0 is 0.

    >>> import graphcore as gc
    >>> gc.optimize.global_norm({"w": gc.constant([3.0, 0.0], "row"), "b": 4.0}).eval()
    array(5.)
    """
    found, _ = flatten(tree, "global_norm")
    if not found:
        return constant(0.0)
    squares = [(absolute(as_float(x)) ** 2).sum() for x in found]
    return root(sum(squares[1:], squares[0]))


def clip_by_global_norm(tree: T, max_norm: Real) -> T:
    """A tree scaled down to a global norm of `max_norm`, where it is larger.

    Source: Pascanu, Mikolov and Bengio 2013, "On the difficulty of training recurrent neural
    networks".

    Parameters
    ----------
    tree
        Tensors, such as gradients, in any structure, which the result has.
    max_norm
        The largest norm.

    Examples
    --------
    >>> import graphcore as gc
    >>> grads = {"w": gc.constant([3.0, 0.0], "row"), "b": gc.constant(4.0)}
    >>> gc.evaluate(gc.optimize.clip_by_global_norm(grads, 1.0))
    {'w': array([0.6, 0. ]), 'b': array(0.8)}
    """
    found, rebuild = flatten(tree, "clip_by_global_norm")
    norm = global_norm(found)
    scale = where(norm <= max_norm, 1.0, max_norm / norm)  # nan if the norm is
    clipped: T = rebuild([x * like(scale, x) for x in found])
    return clipped


@parameters(
    learning_rate="The learning rate of the first step.",
    steps="The number of steps over which it is multiplied by `factor` once.",
    factor="The factor, such as 0.5.",
)
def exponential_decay(learning_rate: Real, steps: Real, factor: Real) -> Schedule:
    """A learning rate that is multiplied by `factor` over each `steps` steps, smoothly.

    `learning_rate * factor**(step / steps)`.

    >>> import graphcore as gc
    >>> gc.optimize.exponential_decay(0.1, 100, 0.5)(200).eval()
    array(0.025)
    """
    check("exponential_decay", learning_rate, steps, factor)
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

    >>> import graphcore as gc
    >>> rate = gc.optimize.cosine_decay(0.1, 100)
    >>> gc.evaluate([rate(0), rate(50), rate(1000)])
    [array(0.1), array(0.05), array(0.)]
    """
    check("cosine_decay", learning_rate, steps, final)

    def rate(step: Operand) -> Tensor:
        share = minimum(step_tensor(step) / steps, 1.0)
        return final + (learning_rate - final) * (1 + cos(math.pi * share)) / 2

    return rate


def linear_warmup(steps: Real, then: Real | Schedule) -> Schedule:
    """A learning rate that rises to that of `then` in the first `steps` steps, in equal parts.

    `min((step + 1) / steps, 1) * then(step)`. Source: Goyal et al. 2017, "Accurate, large minibatch
    SGD".

    Parameters
    ----------
    steps
        The number of steps.
    then
        The learning rate: a number, or a function of the number of the step.

    Examples
    --------
    >>> import graphcore as gc
    >>> rate = gc.optimize.linear_warmup(4, 0.1)
    >>> gc.evaluate([rate(0), rate(3), rate(9)])
    [array(0.025), array(0.1), array(0.1)]
    """
    check("linear_warmup", steps)
    rate = schedule_of("linear_warmup", then)
    return lambda step: minimum((step_tensor(step) + 1) / steps, 1.0) * rate(step_tensor(step))


def step_tensor(step: Operand) -> Tensor:
    """The number of a step as a tensor."""
    return wrap(single("schedule", step))
