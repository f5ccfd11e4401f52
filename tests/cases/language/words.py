"""What the names of the language mean for tensors, whether axes have names or positions."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import graphcore as gc

Function = Callable[..., Any]


def spelled_alike(names: str) -> dict[str, Function]:
    """Functions of graphcore that have the name they have in the language."""
    return {name: getattr(gc, name) for name in names.split()}


def cast(x: gc.Tensor, dtype: str) -> gc.Tensor:
    real = gc.real(x) if np.dtype(dtype).kind != "c" else x
    return real.astype(dtype)


ELEMENTWISE: dict[str, Function] = {
    **spelled_alike(
        "abs sign exp expm1 log log1p sqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh "
        "acosh atanh real imag conj floor atan2 maximum minimum where clip"
    ),
    "neg": gc.negative,
    "rsqrt": lambda x: 1 / gc.sqrt(x),
    "sigmoid": gc.special.sigmoid,
    "erf": gc.special.erf,
    "erfc": gc.special.erfc,
    "erf_inv": gc.special.erfinv,
    "pow": operator.pow,
    "rem": gc.fmod,
    "cast": cast,
    "stop_grad": gc.stop_gradient,
}

REDUCTIONS: dict[str, Function] = {
    **spelled_alike("sum mean prod var std all any argmax argmin"),
    "logsumexp": gc.special.logsumexp,
    "reduce_max": gc.max,
    "reduce_min": gc.min,
}


def total(y: gc.Tensor) -> gc.Tensor:
    """The real part of the sum: what the cases differentiate."""
    value = gc.sum(y)
    return gc.real(value) if value.dtype.kind == "c" else value


STAND_INS = itertools.count()


def gradient(wrap: Function, unwrap: Function) -> Function:
    """The gradient of the sum of a function by its first argument.

    The function may capture what it is called with, so the argument is a tensor of its own first.
    """

    def by_argument(function: Function) -> Function:
        def differentiated(x: Any, *others: Any) -> Any:
            own = unwrap(x)
            argument = gc.tensor(f"argument {next(STAND_INS)}", own.sizes, dtype=own.dtype)
            y = unwrap(function(wrap(argument), *others))
            return wrap(gc.vectorize(gc.grad(total(y), argument), {argument: own}))

        return differentiated

    return by_argument


def stepping(wrap: Callable[[gc.Tensor], Any], unwrap: Callable[[Any], Any]) -> dict[str, Function]:
    """Loops and branches over values that are `wrap` of a tensor."""

    def outside(tree: Any) -> Any:
        return tuple(map(unwrap, tree)) if isinstance(tree, (tuple, list)) else unwrap(tree)

    def inside(tree: Any) -> Any:
        return tuple(map(wrap, tree)) if isinstance(tree, tuple) else wrap(tree)

    def spread(function: Function) -> Function:
        """A function of a state, given one that takes its entries apart."""
        return lambda state: outside(
            function(*inside(state)) if isinstance(state, tuple) else function(inside(state))
        )

    def scan(body: Function, init: Any, xs: Any, dim: str = "d0") -> Any:
        """Along `dim`; by positions along the first axis, where results stand as well."""

        def step(carry: Any, x: gc.Tensor) -> Any:
            return tuple(map(outside, body(inside(carry), wrap(x))))

        xs = unwrap(xs).rename({dim: "step"})
        last, ys = gc.scan(step, outside(init), xs, "step")
        return inside(last), wrap(ys) if dim == "d0" else ys.rename(step=dim)

    return {
        "cond": lambda pred, then, otherwise: inside(
            gc.cond(unwrap(pred), lambda: outside(then()), lambda: outside(otherwise()))
        ),
        "while_loop": lambda test, body, init: inside(
            gc.while_loop(spread(test), spread(body), outside(init))
        ),
        "fori": lambda count, body, init: inside(
            gc.fori_loop(
                0, count, lambda i, state: outside(body(wrap(i), inside(state))), outside(init)
            )
        ),
        "scan": scan,
    }
