"""`gc.optimize`: gradient methods as pure functions of trees.

An optimizer is a pair of functions: `init(params)` is the state before the first step, and
`update(params, grads, state)` the pair of params and state after one. Nothing is changed in place,
so that a step runs in a program, in a loop, under `vectorize`, and has derivatives itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeAlias

from graphcore.frontend.core.base import Tensor, brief, refusal, type_refusal
from graphcore.frontend.core.other_names import UPDATE
from graphcore.frontend.core.trees import Tree
from graphcore.frontend.create.inputs import constant, zeros_like
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.pointwise.elementwise import absolute, expm1, log, sign
from graphcore.frontend.reduce.masking import root
from graphcore.frontend.tree import map as each
from graphcore.ir.dtypes import real_of
from graphcore.ir.errors import GraphAttributeError
from graphcore.ir.help_text import attributes, fields, parameters

from .params import check_mask, check_rates, like, of_arrays, of_each, rates_of, tensors
from .rates import Real, Schedule, check_hyperparameters

__all__ = [
    "Optimizer",
    "adam",
    "adamw",
    "lion",
    "rmsprop",
    "sgd",
]

Rates: TypeAlias = Real | Schedule | dict[str, Any] | list[Any] | tuple[Any, ...]
"""Learning rates: one for all params, or a tree of them for groups of params."""

Mask: TypeAlias = (
    bool | Callable[[Tree], Tree] | dict[str, Any] | list[Any] | tuple[Any, ...] | None
)
"""Which params decay: all, or those of groups."""


@attributes(
    init="`params -> state`, before the first step. Of arrays it gives arrays.",
    update="`(params, grads, state) -> (params, state)`, after one step. Of arrays it gives "
    "arrays, but compiles anew: a `gc.function` of arrays that takes steps is compiled once.",
)
@fields
class Optimizer(NamedTuple):
    """A gradient method."""

    init: Callable[[Tree], Tree]
    update: Callable[[Tree, Tree, Tree], tuple[Tree, Tree]]

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # a protocol that Python or a library looks for
            raise AttributeError(name)
        reason = f"has no attribute {name!r}"
        raise refusal(reason, cure=UPDATE, kind=GraphAttributeError, name="Optimizer")


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


@fields
class Squares(NamedTuple):
    """The state of `rmsprop`: running means of the squares of gradients."""

    step: Tensor
    square: Tree


@fields
class Means(NamedTuple):
    """The state of `lion`: running means of gradients."""

    step: Tensor
    mean: Tree


@parameters(
    learning_rate="A number, a tensor, or a function of the number of the step, such as "
    '`cosine_decay`. Or a tree of these, like the params or groups of them: `{"body": 1e-4, '
    '"head": 1e-3}`.',
    momentum="The share of the velocity that is kept in each step. With 0 the state has no "
    "velocity.",
    nesterov="Whether to use Nesterov's momentum.",
)
def sgd(learning_rate: Rates, momentum: Real = 0.0, *, nesterov: bool = False) -> Optimizer:
    """Stochastic gradient descent, with momentum.

    `velocity = momentum * velocity + grad`, and `param = param - learning_rate * velocity`. With
    `nesterov` it is `param = param - learning_rate * (grad + momentum * velocity)`. Sources: Polyak
    1964, "Some methods of speeding up the convergence of iteration methods"; Sutskever et al. 2013,
    "On the importance of initialization and momentum in deep learning".

    >>> w = gc.tensor("w", {"row": 2})
    >>> opt = gc.optimize.sgd(0.1)
    >>> new, state = opt.update(w, gc.grad((w**2).sum(), w), opt.init(w))
    >>> gc.compile([w], new)([1.0, 2.0])
    array([0.8, 1.6])
    """
    check_hyperparameters(momentum=momentum)
    moving = not (isinstance(momentum, int | float) and momentum == 0)

    def start(params: Tree) -> Momentum:
        return Momentum(constant(0), each(zeros_like, params) if moving else ())

    def step(params: Tree, moved: Tree, rates: Tree, state: Momentum) -> tuple[Tree, Momentum]:
        velocity = state.velocity
        if moving:
            velocity = each(lambda v, g: like(momentum, g) * v + g, velocity, moved)
            moved = (
                each(lambda v, g: g + like(momentum, g) * v, velocity, moved)
                if nesterov
                else velocity
            )
        return each(stepped, params, moved, rates), Momentum(state.step + 1, velocity)

    return optimizer(learning_rate, start, step)


ADAM = {
    "learning_rate": "As in `sgd`.",
    "b1": "The share of the mean of gradients that is kept in each step.",
    "b2": "The share of the mean of squares that is kept in each step.",
    "eps": "The number added to the root.",
}
DECAY = {
    "weight_decay": "The share of each param that is subtracted, times the learning rate.",
    "mask": "Whether params decay: True or False in a tree like the params or groups of them, or a "
    "function of the params that makes one. By default all do.",
}


@parameters(**ADAM)
def adam(
    learning_rate: Rates,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
) -> Optimizer:
    """Adam: steps scaled by running means of gradients and of their squares.

    In step t, counted from 1, `mean = b1 * mean + (1 - b1) * grad` and `square = b2 * square + (1 -
    b2) * grad**2`. Then `param = param - learning_rate * (mean / (1 - b1**t)) / (sqrt(square / (1 -
    b2**t)) + eps)`. Source: Kingma and Ba 2015, "Adam: a method for stochastic optimization".

    The first step has the size of the learning rate:

    >>> w = gc.tensor("w", {"row": 2})
    >>> opt = gc.optimize.adam(0.1)
    >>> new, state = opt.update(w, gc.grad((w**2).sum(), w), opt.init(w))
    >>> gc.compile([w], new)([1.0, -20.0]).round(6)
    array([  0.9, -19.9])
    """
    return moments(learning_rate, b1, b2, eps, Decay(0.0, None))


@parameters(**ADAM, **DECAY)
def adamw(
    learning_rate: Rates,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    weight_decay: Real = 0.01,
    mask: Mask = None,
) -> Optimizer:
    """Adam with decoupled weight decay.

    As `adam`, and each step also subtracts `learning_rate * weight_decay * param` from the param.
    The running means do not include it. Source: Loshchilov and Hutter 2019, "Decoupled weight decay
    regularization".

    >>> w = gc.tensor("w", {"row": 2})
    >>> opt = gc.optimize.adamw(0.1, weight_decay=0.5)
    >>> new, state = opt.update(w, gc.grad((w**2).sum(), w), opt.init(w))
    >>> gc.compile([w], new)([1.0, -20.0]).round(6)
    array([  0.85, -18.9 ])
    """
    return moments(learning_rate, b1, b2, eps, decay_of(weight_decay, mask))


def moments(learning_rate: Rates, b1: Real, b2: Real, eps: Real, decay: Decay) -> Optimizer:
    """Adam, whose params decay."""
    check_hyperparameters(b1=b1, b2=b2, eps=eps)

    def start(params: Tree) -> Moments:
        return Moments(constant(0), each(zeros_like, params), squares_like(params))

    def step(params: Tree, moved: Tree, rates: Tree, state: Moments) -> tuple[Tree, Moments]:
        t = state.step + 1
        mean = each(lambda m, g: running_mean(m, g, b1), state.mean, moved)
        square = each(lambda s, g: running_mean(s, absolute(g) ** 2, b2), state.square, moved)

        def new(p: Tensor, mean: Tensor, square: Tensor, rate: Real, decayed: Real) -> Tensor:
            first = mean / complement(b1, t, p)
            second = square / complement(b2, t, p)
            return stepped(p, first / (root(second) + like(eps, p)), rate, decayed)

        params = each(new, params, mean, square, rates, decay.shares(params))
        return params, Moments(t, mean, square)

    return optimizer(learning_rate, start, step)


@parameters(
    learning_rate="As in `sgd`.",
    decay="The share of the mean of squares that is kept in each step.",
    eps="The number added to the root.",
)
def rmsprop(learning_rate: Rates, decay: Real = 0.9, eps: Real = 1e-8) -> Optimizer:
    """RMSprop: steps scaled by a running mean of the squares of gradients.

    `square = decay * square + (1 - decay) * grad**2`, and `param = param - learning_rate * grad /
    (sqrt(square) + eps)`, as in PyTorch. Source: Tieleman and Hinton 2012, "Lecture 6.5: RMSprop".

    >>> w = gc.tensor("w", {"row": 2})
    >>> opt = gc.optimize.rmsprop(0.1, decay=0.75)
    >>> new, state = opt.update(w, gc.grad((w**2).sum(), w), opt.init(w))
    >>> gc.compile([w], new)([1.0, -20.0]).round(6)
    array([  0.8, -19.8])
    """
    check_hyperparameters(decay=decay, eps=eps)

    def start(params: Tree) -> Squares:
        return Squares(constant(0), squares_like(params))

    def step(params: Tree, moved: Tree, rates: Tree, state: Squares) -> tuple[Tree, Squares]:
        square = each(lambda s, g: running_mean(s, absolute(g) ** 2, decay), state.square, moved)

        def new(p: Tensor, g: Tensor, square: Tensor, rate: Real) -> Tensor:
            return stepped(p, g / (root(square) + like(eps, p)), rate)

        return each(new, params, moved, square, rates), Squares(state.step + 1, square)

    return optimizer(learning_rate, start, step)


@parameters(
    learning_rate="As in `sgd`; usually a third to a tenth of that of Adam.",
    b1="The share of the mean of gradients in the direction of a step.",
    b2="The share of the mean of gradients that is kept in each step.",
    **DECAY,
)
def lion(
    learning_rate: Rates,
    b1: Real = 0.9,
    b2: Real = 0.99,
    weight_decay: Real = 0.0,
    mask: Mask = None,
) -> Optimizer:
    """Lion: steps of one size, by the sign of a running mean of gradients.

    `param = param - learning_rate * (sign(b1 * mean + (1 - b1) * grad) + weight_decay * param)`,
    then `mean = b2 * mean + (1 - b2) * grad`. Source: Chen et al. 2023, "Symbolic discovery of
    optimization algorithms".

    >>> w = gc.tensor("w", {"row": 2})
    >>> opt = gc.optimize.lion(0.1)
    >>> new, state = opt.update(w, gc.grad((w**2).sum(), w), opt.init(w))
    >>> gc.compile([w], new)([1.0, -20.0])
    array([  0.9, -19.9])
    """
    check_hyperparameters(b1=b1, b2=b2)
    shrink = decay_of(weight_decay, mask)

    def start(params: Tree) -> Means:
        return Means(constant(0), each(zeros_like, params))

    def step(params: Tree, moved: Tree, rates: Tree, state: Means) -> tuple[Tree, Means]:
        def new(p: Tensor, mean: Tensor, g: Tensor, rate: Real, decayed: Real) -> Tensor:
            return stepped(p, sign(running_mean(mean, g, b1)), rate, decayed)

        params = each(new, params, state.mean, moved, rates, shrink.shares(params))
        mean = each(lambda m, g: running_mean(m, g, b2), state.mean, moved)
        return params, Means(state.step + 1, mean)

    return optimizer(learning_rate, start, step)


class Decay(NamedTuple):
    """Weight decay: the share of which params a step subtracts, times the learning rate."""

    weight_decay: Real
    mask: Mask

    def shares(self, params: Tree) -> Tree:
        """The share of each param."""
        mask = self.mask(params) if callable(self.mask) else self.mask
        chosen = of_each("mask", True if mask is None else mask, params)
        return each(lambda p: self.weight_decay if chosen.pop(0) else 0.0, params)


def decay_of(weight_decay: Real, mask: Mask) -> Decay:
    """What is taken away, checked."""
    check_hyperparameters(weight_decay=weight_decay)
    check_mask(mask)
    return Decay(weight_decay, mask)


def optimizer(
    learning_rate: Rates,
    start: Callable[[Tree], Tree],
    step: Callable[[Tree, Tree, Tree, Any], tuple[Tree, Tree]],
) -> Optimizer:
    """The method that begins in the state `start(params)`, and takes arrays as well.

    `step(params, moved, rates, state)` are the params and the state after a step, where the
    function grows fastest in the directions `moved`.
    """
    check_rates(learning_rate)

    def init(params: Tree) -> Tree:
        return start(tensors("params", params))

    def update(params: Tree, grads: Tree, state: Tree) -> tuple[Tree, Tree]:
        if not hasattr(state, "step"):
            cure = "give what init(params) or the last update returned: params, state = update(...)"
            raise type_refusal(f"the state is {brief(state)}", cure=cure)
        params, grads = tensors("params", params), tensors("grads", grads)
        rates = rates_of(learning_rate, params, state.step)
        return step(params, downhill(grads), rates, state)

    return Optimizer(of_arrays(init), of_arrays(update))


def stepped(p: Tensor, moved: Tensor, rate: Real, decayed: Real = 0.0) -> Tensor:
    """A param after one step."""
    if not (isinstance(decayed, float) and decayed == 0):
        moved = moved + like(decayed, p) * p
    return p - like(rate, p) * moved


def squares_like(params: Tree) -> Tree:
    """Zeros for the squares of gradients."""
    return each(lambda p: zeros_like(p, real_of(p.dtype)), params)


def complement(kept: Real, t: Tensor, like_: Tensor) -> Tensor:
    """1 - kept**t, in the precision of a param, without cancellation."""
    rate = math.log(kept) if isinstance(kept, float) and kept > 0 else log(like(kept, like_))
    return -expm1(astype(t, real_of(like_.dtype)) * rate)


def running_mean(mean: Tensor, x: Tensor, kept: Real) -> Tensor:
    """A running mean."""
    return like(kept, mean) * mean + like(1 - kept, mean) * x


def downhill(grads: Tree) -> Tree:
    """The directions in which a function grows fastest: of complex values the conjugates."""
    return each(lambda g: conjugate(g) if g.dtype.kind == "c" else g, grads)
