"""`check_grads`: the derivatives of a program against central differences of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphcore.backends.argument_checks import join_names
from graphcore.compile.compiled import Compiled, compile
from graphcore.frontend.core.base import Base, Tensor, brief, refusal, type_refusal, wrap
from graphcore.frontend.core.trees import Tree, flatten, paths
from graphcore.frontend.core.wrong_calls import reword_errors
from graphcore.frontend.create.inputs import tensor
from graphcore.frontend.derive.derivatives import pullback, pushforward
from graphcore.ir import Array
from graphcore.ir.help_text import attributes, fields, parameters
from graphcore.ir.name_text import show_dim
from graphcore.ir.names import apart
from graphcore.ops import leaf

from .inputs import inputs_by_name

__all__ = ["check_grads"]

Place = dict[str, int]
EXACT = 0.4
"""The power of the rounding error of a dtype up to which derivatives must agree by default."""


@attributes(
    wrt="The name of the input.",
    place="The position of its element, by dim.",
    result='The path of the result, such as "y[0]".',
    result_place="The position of its element, by dim.",
    pullback="The entry in reverse mode.",
    pushforward="The entry in forward mode.",
    differences="The entry by central differences.",
    error="The largest difference between these.",
    allowed="The largest difference that is accepted.",
)
@fields
class Entry(NamedTuple):
    """One entry of a Jacobian: that of an element of a result by an element of an input."""

    wrt: str
    place: Place
    result: str
    result_place: Place
    pullback: complex
    pushforward: complex
    differences: complex
    error: float
    allowed: float

    def __str__(self) -> str:
        result, wrt = at(self.result, self.result_place), at(repr(self.wrt), self.place)
        return (
            f"the derivative of {result} with respect to {wrt} is {number(self.pullback)} by a "
            f"pullback, {number(self.pushforward)} by a pushforward and "
            f"{number(self.differences)} by central differences: {self.error:.2g} apart, where "
            f"{self.allowed:.2g} is allowed"
        )


def at(name: str, place: Place) -> str:
    """An element of a tensor, in words."""
    where = ", ".join(f"{show_dim(dim)}={position}" for dim, position in place.items())
    return f"{name} at {where}" if where else name


def number(value: complex) -> str:
    """A number with as many digits as differences have."""
    return f"{value:.10g}"


@reword_errors
@parameters(
    y="Float tensors of any dims, one or nested.",
    wrt="The inputs that are changed: one, or nested lists, tuples and dicts of them.",
    values='An array for each input that `y` needs: `{x: array}`, or by name, `{"x": array}`. Near '
    "kinks and jumps differences say nothing, so choose values away from them.",
    rtol="How far derivatives may be apart, relative to the largest in the same column of the "
    "Jacobian; by default 5e-7 for float64, 2e-3 for float32.",
    most="The largest number of elements of each input that are changed. If an input has more, "
    "some are drawn at random.",
)
def check_grads(
    y: Tree,
    wrt: Tree,
    values: Mapping[Tensor | str, npt.ArrayLike],
    *,
    rtol: float | None = None,
    most: int = 100,
) -> Entry:
    """Refuse derivatives of `y` that are wrong: both modes against differences and each other.

    One element of an input at a time is changed. The pushforward along it must agree with central
    differences of `y` in every element, and the pullback with the pushforward.

    Returns
    -------
    Entry
        The entry of the Jacobian that is the furthest off, as a tuple of names, positions by dim
        and its three values. `print` shows it as a sentence.

    GraphError if an entry is further off than allowed; the message says which, by dims. If `y` is
    nan somewhere, if a value is missing, or if `wrt` has tensors that are not inputs.

    >>> x = gc.tensor("x", {"row": None})
    >>> found = gc.check_grads(gc.sin(x), x, {x: [0.5, 1.0]})
    >>> found.wrt, found.error < found.allowed
    ('x', True)

    >>> wrong = gc.custom_pullback(gc.sin, lambda operands, y, ct: (ct * 2,))
    >>> gc.check_grads(wrong(x), x, {x: [0.5, 1.0]})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    graphcore.ir.errors.GraphValueError: check_grads: the derivative of y at row=1 with respect ...
    """
    ys, _ = flatten(y, "y")
    xs, _ = flatten(wrt, "wrt")
    if not ys or not xs:
        cure = "give the results, and inputs that they depend on"
        raise refusal(f"{'wrt' if ys else 'y'} has no tensors", cure=cure)
    for x in xs:
        if x.node.op is not leaf.input_:
            cure = "check the inputs that it is computed from"
            reason = f"wrt holds {x.node.op.said}(...), which is not an input"
            raise type_refusal(reason, x, cure=cure)
    if rtol is not None and not 0 <= rtol < np.inf:
        reason, cure = f"rtol={brief(rtol)}", "give a small positive number, as 1e-6"
        raise refusal(reason, cure=cure)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        reason, cure = f"most={brief(most)}", "give an integer of at least 1"
        raise type_refusal(reason, cure=cure)
    if not isinstance(values, Mapping):
        cure = "give an array for each input: {x: array}"
        raise type_refusal(f"values are {brief(values)}", *xs, cure=cure)
    given = [key.node for key in values if isinstance(key, Base)]
    inputs = [*map(wrap, inputs_by_name([t.node for t in (*ys, *xs)], given).values())]
    names = [path for path, _ in paths(y, "y")]
    with np.errstate(all="ignore"):
        checked = Checked(ys, xs, inputs, names, input_arrays(values, inputs), rtol)
        checked.refuse_nan()
        found = checked.worst(most)
    if not found.error <= found.allowed:
        (x,) = [x for x in xs if x.name == found.wrt]
        cure = "look at the rules given to custom_pullback or callback; or, if the values are near "
        cure += "a kink or a jump, where differences say nothing, choose others"
        raise refusal(str(found), ys[names.index(found.result)], x, cure=cure)
    return found


def input_arrays(
    values: Mapping[Tensor | str, npt.ArrayLike], inputs: Sequence[Tensor]
) -> dict[str, Any]:
    """The array of each input, by name."""
    known = {str(x.name) for x in inputs}
    arrays = {}
    for key, value in values.items():
        name = key.name if isinstance(key, Base) else key
        if name not in known:
            cure = f"give arrays for {join_names(sorted(known))}"
            raise refusal(f"y needs no input {brief(name)}", *inputs, cure=cure)
        arrays[str(name)] = value
    for x in inputs:
        if x.name not in arrays:
            cure = "give an array for each input that y needs: {x: array}"
            raise refusal(f"values have none for input {x.name!r}", x, cure=cure)
    return arrays


class Checked:
    """A program, its derivatives in both modes as functions, and the values to check them at."""

    def __init__(
        self,
        ys: Sequence[Tensor],
        xs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        names: Sequence[str],
        values: Mapping[str, Any],
        rtol: float | None,
    ) -> None:
        self.ys, self.xs, self.names = ys, xs, names
        self.value = function(inputs, ys)
        self.arrays, _ = self.value._boundary.convert([values[str(x.name)] for x in inputs])
        self.number = {str(x.name): i for i, x in enumerate(inputs)}
        in_use = {str(x.name) for x in inputs}
        cts, tangents = (
            [tensor(apart(f"{word} {i}", in_use), x.sizes, dtype=x.dtype) for i, x in enumerate(of)]
            for word, of in (("ct", ys), ("tangent", xs))
        )
        back = pullback(list(ys), list(xs), cts, disconnected="zero")
        forth = pushforward(list(ys), list(xs), tangents, disconnected="zero")
        self.back, self.forth = (
            function([*inputs, *cts], back),
            function([*inputs, *tangents], forth),
        )
        self.results = self.value(*self.arrays)
        self.eps = max(float(np.finfo(x.dtype).eps) for x in (*ys, *xs))
        self.rtol = self.eps**EXACT if rtol is None else rtol
        random = np.random.default_rng(0)
        self.random = random
        self.cts = [random_like(random, y) for y in self.results]
        self.pulled = self.back(*self.arrays, *self.cts)

    def refuse_nan(self) -> None:
        """Refuse values at which a result is nan, whose differences are nan as well."""
        for y, name, result in zip(self.ys, self.names, self.results, strict=True):
            if np.isnan(result).any():
                place = dict(zip(y.dims, np.argwhere(np.isnan(result))[0].tolist(), strict=True))
                cure = "choose values where it is a number, or check the elements that are"
                reason = f"{at(name, place)} is nan, which has no derivative to check"
                raise refusal(reason, y, cure=cure)

    def worst(self, most: int) -> Entry:
        """The entry whose error is the largest relative to its bound."""
        found = max(self.columns(most), key=lambda column: column.off)
        return self.entry(found, most)

    def columns(self, most: int) -> Iterator[Column]:
        """The columns of the Jacobian: one for each element that is moved, two if it is complex."""
        for number, x in enumerate(self.xs):
            array = self.arrays[self.number[str(x.name)]]
            flat: Sequence[int] = range(array.size)
            if array.size > most:
                flat = sorted(self.random.choice(array.size, most, replace=False).tolist())
            for position in flat:
                place = tuple(map(int, np.unravel_index(position, array.shape)))
                for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
                    yield self.column(number, place, unit)

    def column(self, number: int, place: tuple[int, ...], unit: complex) -> Column:
        """The derivative of all results by one element, in all ways."""
        at = self.number[str(self.xs[number].name)]
        size = np.abs(self.arrays[at])
        scale = max(float(size[place]), 0.01 * float(size.max())) or 1.0
        step = self.eps**0.2 * scale

        def values_at(by: float) -> list[Array]:
            array = self.arrays[at].copy()
            array[place] += by * unit
            return [*self.value(*self.arrays[:at], array, *self.arrays[at + 1 :])]

        tangents = [np.zeros_like(self.arrays[self.number[str(x.name)]]) for x in self.xs]
        tangents[number][place] = unit
        pushed = self.forth(*self.arrays, *tangents)
        differed = differences(values_at, step)
        largest = max(largest_of(pushed), largest_of(differed))
        noise = 100 * self.eps * largest_of(self.results) / step
        allowed = self.rtol * largest + noise
        error = max(map(distance, pushed, differed), default=0.0)
        terms = sum(float(np.abs(ct * y).sum()) for ct, y in zip(self.cts, pushed, strict=True))
        along = sum(pairing(ct, y) for ct, y in zip(self.cts, pushed, strict=True))
        pulled = np.asarray(pairing(self.pulled[number][place], unit))
        # Both modes are exact but for rounding, which grows with the terms of the sum.
        between = ratio(distance(pulled, np.asarray(along)), self.rtol * terms + noise)
        off = max(ratio(error, allowed), between)
        return Column(number, place, unit, off, allowed, pushed, differed)

    def entry(self, column: Column, most: int) -> Entry:
        """The worst entry of a column; the pullback is taken of single elements of results."""
        entries = []
        for number, (pushed, differed) in enumerate(
            zip(column.pushed, column.differed, strict=True)
        ):
            off = np.abs(np.nan_to_num(pushed - differed, nan=np.inf)).reshape(-1)
            order = np.argsort(-off, kind="stable")[:most].tolist()
            for position in order:
                place = tuple(map(int, np.unravel_index(position, pushed.shape)))
                entries.append(self.of_place(column, number, place))
        return max(entries, key=lambda entry: ratio(entry.error, entry.allowed))

    def of_place(self, column: Column, number: int, place: tuple[int, ...]) -> Entry:
        """One entry, in all ways."""
        cts = [np.zeros_like(ct) for ct in self.cts]
        cts[number][place] = 1
        pulled = self.back(*self.arrays, *cts)[column.number][column.place]
        entry = complex(pairing(pulled, column.unit))
        pushed, differed = column.pushed[number][place], column.differed[number][place]
        if np.iscomplexobj(pushed):  # the imaginary part is that of another cotangent
            cts[number][place] = -1j
            pulled = self.back(*self.arrays, *cts)[column.number][column.place]
            entry += 1j * pairing(pulled, column.unit)
        several = [complex(np.asarray(x)) for x in (entry, pushed, differed)]
        error = max(distance(np.asarray(a), np.asarray(b)) for a in several for b in several)
        reverse, forward, central = [value if value.imag else value.real for value in several]
        x, y = self.xs[column.number], self.ys[number]
        return Entry(
            wrt=str(x.name),
            place=dict(zip(x.dims, column.place, strict=True)),
            result=self.names[number],
            result_place=dict(zip(y.dims, place, strict=True)),
            pullback=reverse,
            pushforward=forward,
            differences=central,
            error=error,
            allowed=column.allowed,
        )


class Column(NamedTuple):
    """The derivatives of all results by one element of an input, and how far off they are."""

    number: int
    place: tuple[int, ...]
    unit: complex
    off: float
    allowed: float
    pushed: list[Array]
    differed: list[Array]


def function(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Compiled:
    """A program as NumPy calls, which need no time to be made."""
    return compile(list(inputs), list(outputs), native=False)


def random_like(random: np.random.Generator, like: Array) -> Array:
    """Random values of the shape and dtype of an array."""
    made = random.normal(size=like.shape)
    if like.dtype.kind == "c":
        made = made + 1j * random.normal(size=like.shape)
    return np.asarray(made, like.dtype)


def differences(moved: Callable[[float], list[Array]], step: float) -> list[Array]:
    """Central differences of two steps, extrapolated."""
    coarse, fine = (
        [(b - a) / (2 * h) for a, b in zip(moved(-h), moved(h), strict=True)]
        for h in (step, step / 2)
    )
    return [(4 * b - a) / 3 for a, b in zip(coarse, fine, strict=True)]


def pairing(x: Any, y: Any) -> float:
    """The real part of the sum of products, as cotangents and tangents are paired."""
    return float(np.sum(x * y).real)


def largest_of(arrays: Sequence[Array]) -> float:
    """The largest finite magnitude."""
    sizes = [np.abs(x[np.isfinite(x)]).max(initial=0) for x in map(np.asarray, arrays)]
    return float(max(sizes, default=0.0))


def distance(x: Array, y: Array) -> float:
    """The largest difference; nan differs infinitely from all but nan."""
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    off = np.where(same, 0.0, np.abs(x - y))
    return float(np.nan_to_num(off, nan=np.inf, posinf=np.inf).max(initial=0))


def ratio(error: float, allowed: float) -> float:
    """An error in units of its bound."""
    return 0.0 if error == 0 else error / allowed if allowed else np.inf
