"""The language of the numeric cases in graphcore: every name that `fn` of a case may use.

`NAMED` binds it for inputs with dims, `POSITIONAL` for inputs without, whose axes are called d0,
d1, ... in order. A name that graphcore cannot say yet raises `CannotSay`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

import graphcore as gc

Function = Callable[..., Any]
plain_slice = slice


class CannotSay(Exception):
    """graphcore has no word yet for a name of the language."""


def spelled_alike(names: str) -> dict[str, Function]:
    """Functions of graphcore that have the name they have in the language."""
    return {name: getattr(gc, name) for name in names.split()}


def missing(names: str) -> dict[str, Function]:
    """A refusal for each name."""

    def unsaid(name: str) -> Function:
        def function(*args: object, **kwargs: object) -> NoReturn:
            raise CannotSay(name)

        return function

    return {name: unsaid(name) for name in names.split()}


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
    "pow": operator.pow,
    "rem": gc.fmod,
    "cast": cast,
    "stop_grad": gc.stop_gradient,
}
ELEMENTWISE_LATER = "erf_inv"

REDUCTIONS: dict[str, Function] = {
    **spelled_alike("sum mean prod var std all any argmax argmin"),
    "logsumexp": gc.special.logsumexp,
    "reduce_max": gc.max,
    "reduce_min": gc.min,
}

LINALG_LATER = "qr eigh cholesky solve tri_solve"


def total(y: gc.Tensor) -> gc.Tensor:
    """The real part of the sum: what the cases differentiate."""
    value = gc.sum(y)
    return gc.real(value) if value.dtype.kind == "c" else value


# ---- named axes


def const(data: Any, *dims: str) -> gc.Tensor:
    return gc.constant(np.asarray(data, float), dims)


def isel(x: gc.Tensor, /, **indexers: Any) -> gc.Tensor:
    """gc.isel, where a pair may also hold a tensor of positions."""
    for dim, indexer in indexers.items():
        if isinstance(indexer, tuple) and isinstance(indexer[1], gc.Tensor):
            assert indexer[1].dims == (indexer[0],)
            indexers[dim] = indexer[1]
    return gc.isel(x, indexers)


def set_at(x: gc.Tensor, value: Any, /, add: bool = False, **indexers: Any) -> gc.Tensor:
    region = x.at[indexers]
    return region.add(value) if add else region.set(value)


def unstack_dim(x: gc.Tensor, dim: str, sizes: dict[str, int]) -> gc.Tensor:
    """The new dims stand where the old one stood."""
    at = x.dims.index(dim)
    return gc.unstack(x, {dim: sizes}).transpose(*x.dims[:at], *sizes, *x.dims[at + 1 :])


def stack_new(xs: list[gc.Tensor], dim: str) -> gc.Tensor:
    """The new dim comes last."""
    return gc.concat([gc.expand_dims(x, dim) for x in xs], dim).transpose(..., dim)


def broadcast_dims(x: gc.Tensor, sizes: dict[str, int]) -> gc.Tensor:
    new = {dim: size for dim, size in sizes.items() if dim not in x.dims}
    return gc.expand_dims(x, new).transpose(*sizes, ...)


def windows(x: gc.Tensor, dim: str, size: int) -> list[gc.Tensor]:
    """The places 0, 1, ... of every window along `dim`."""
    last = x.sizes[dim] - size + 1
    return [gc.isel(x, {dim: slice(at, at + last)}) for at in range(size)]


def window_sum(x: gc.Tensor, dim: str, size: int) -> gc.Tensor:
    return sum(windows(x, dim, size)[1:], start=windows(x, dim, size)[0])


def conv1d(x: gc.Tensor, k: gc.Tensor, dim: str) -> gc.Tensor:
    """Cross-correlation over the places where `k` fits."""
    places = windows(x, dim, k.sizes[dim])
    terms = [place * gc.isel(k, {dim: at}) for at, place in enumerate(places)]
    return sum(terms[1:], start=terms[0])


def gradient(function: Function) -> Function:
    """The gradient of the sum of a function by its first argument."""
    return lambda x, *others: gc.grad(total(function(x, *others)), x)


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


def same(x: Any) -> Any:
    return x


NAMED: dict[str, Any] = {
    **ELEMENTWISE,
    **REDUCTIONS,
    **spelled_alike("max min cumsum cumprod rename concat squeeze"),
    "softmax": gc.special.softmax,
    "transpose": gc.transpose,
    "stack_dims": gc.stack,
    "unstack_dim": unstack_dim,
    "stack_new": stack_new,
    "expand_dims": lambda x, dim, size=1: gc.expand_dims(x, {dim: size}),
    "broadcast_dims": broadcast_dims,
    "dot": lambda x, y, dim=None: gc.dot(x, y, dim=dim),
    "isel": isel,
    "set_at": set_at,
    "flip": lambda x, dim: gc.isel(x, {dim: slice(None, None, -1)}),
    "const": const,
    "window_sum": window_sum,
    "conv1d": conv1d,
    "grad": gradient,
    "slice": slice,
    "np": np,
    **stepping(same, same),
    **missing(f"cummax cummin {ELEMENTWISE_LATER} {LINALG_LATER}"),
}

# ---- positions


def elementwise(function: Function) -> Function:
    """`function` with NumPy's broadcasting of axes, the last ones aligned."""

    def broadcasting(*operands: Any) -> Positional:
        xs = [x if np.isscalar(x) else positional(x) for x in operands]
        arrays = [x for x in xs if isinstance(x, Positional)]
        rank = max((len(x.shape) for x in arrays), default=0)
        stretched = np.broadcast_shapes(*[x.shape for x in arrays])

        def aligned(x: Positional) -> gc.Tensor:
            names = axes(rank)[rank - len(x.shape) :]
            tensor = gc.rename(x.tensor, dict(zip(x.tensor.dims, names)))
            sizes = zip(names, x.shape, stretched[rank - len(names) :])
            return gc.squeeze(tensor, [dim for dim, own, wanted in sizes if own != wanted])

        found = function(*[aligned(x) if isinstance(x, Positional) else x for x in xs])
        return Positional(found, axes(rank))

    return broadcasting


def sides(function: Function) -> tuple[Function, Function]:
    """An operator of Python with the operands as they come, and the other way round."""
    return elementwise(function), elementwise(lambda x, y: function(y, x))


class Positional:
    """An array by positions: a tensor with the dims d0, d1, ... in order."""

    __array_ufunc__ = None  # so that NumPy arrays leave their operators to it

    def __init__(self, tensor: gc.Tensor, dims: Iterable[str] | None = None) -> None:
        """`tensor` with its dims in the order `dims`."""
        order = tensor.dims if dims is None else tuple(dims)
        self.tensor = gc.transpose(tensor, *order).rename(dict(zip(order, axes(len(order)))))

    __add__, __radd__ = sides(operator.add)
    __sub__, __rsub__ = sides(operator.sub)
    __mul__, __rmul__ = sides(operator.mul)
    __truediv__, __rtruediv__ = sides(operator.truediv)
    __floordiv__, __rfloordiv__ = sides(operator.floordiv)
    __mod__, __rmod__ = sides(operator.mod)
    __pow__, __rpow__ = sides(operator.pow)
    __lt__, __gt__ = elementwise(operator.lt), elementwise(operator.gt)
    __le__, __ge__ = elementwise(operator.le), elementwise(operator.ge)
    __eq__, __ne__ = elementwise(operator.eq), elementwise(operator.ne)
    __neg__, __abs__ = elementwise(operator.neg), elementwise(operator.abs)
    __hash__ = object.__hash__

    def __matmul__(self, other: Any) -> Positional:
        return matmul(self, other)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def dims(self, at: int | Iterable[int] | None) -> list[str]:
        """The names of some axes, or of all."""
        own = self.tensor.dims
        if at is None:
            return list(own)
        return [own[i] for i in ([at] if isinstance(at, int) else at)]

    def __getitem__(self, key: Any) -> Positional:
        """As in NumPy: integers, slices, `...` and None."""
        parts = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis not in parts:
            parts.append(Ellipsis)
        at = parts.index(Ellipsis)
        named = [part for part in parts if part is not None and part is not Ellipsis]
        rest = [slice(None)] * (len(self.shape) - len(named))
        own = iter(self.tensor.dims)
        indexers, dims, new = {}, [], []
        for i, part in enumerate(parts[:at] + rest + parts[at + 1 :]):
            if part is None:
                new.append(f"new{i}")
                dims.append(f"new{i}")
                continue
            dim = next(own)
            indexers[dim] = part
            if isinstance(part, slice):
                dims.append(dim)
        return Positional(gc.expand_dims(gc.isel(self.tensor, indexers), new), dims)


def axes(count: int) -> list[str]:
    return [f"d{i}" for i in range(count)]


def positional(x: Any) -> Positional:
    if isinstance(x, Positional):
        return x
    array = np.asarray(x)
    return Positional(gc.constant(array, axes(array.ndim)))


def reduction(function: Function) -> Function:
    def reduce(x: Any, axes: Any = None, keep: bool = False, **attrs: Any) -> Positional:
        x = positional(x)
        gone = x.dims(axes)
        found = function(x.tensor, dim=gone, **attrs)
        return Positional(gc.expand_dims(found, gone), x.dims(None)) if keep else Positional(found)

    return reduce


def along(function: Function) -> Function:
    """A function along one axis."""
    return lambda x, axis=-1: Positional(
        function(positional(x).tensor, positional(x).dims(axis)[0])
    )


def argument(function: Function) -> Function:
    """The position of an extreme value, on one axis or among all values."""

    def search(x: Any, axis: int | None = None) -> Positional:
        x = positional(x)
        return Positional(function(x.tensor, None if axis is None else x.dims(axis)[0]))

    return search


def reshape(x: Any, shape: Any) -> Positional:
    flat = gc.stack(positional(x).tensor, flat=...)
    sizes = [shape] if isinstance(shape, int) else list(shape)
    return Positional(gc.unstack(flat, flat=dict(zip(axes(len(sizes)), sizes))))


def transpose(x: Any, perm: Iterable[int] | None = None) -> Positional:
    x = positional(x)
    return Positional(x.tensor, reversed(x.dims(None)) if perm is None else x.dims(perm))


def matrix_transpose(x: Any) -> Positional:
    *batch, row, col = positional(x).dims(None)
    return Positional(positional(x).tensor, [*batch, col, row])


def squeeze(x: Any, axes: Any = None) -> Positional:
    x = positional(x)
    return Positional(gc.squeeze(x.tensor, None if axes is None else x.dims(axes)))


def expand(x: Any, axis: int) -> Positional:
    x = positional(x)
    dims = x.dims(None)
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, "new")
    return Positional(gc.expand_dims(x.tensor, "new"), dims)


def broadcast(x: Any, shape: tuple[int, ...]) -> Positional:
    return elementwise(gc.where)(np.ones(shape, bool), x, x)


def reverse(x: Any, axes: Any = None) -> Positional:
    x = positional(x)
    return Positional(gc.isel(x.tensor, dict.fromkeys(x.dims(axes), slice(None, None, -1))))


def concat(xs: list[Any], axis: int = 0) -> Positional:
    dim = positional(xs[0]).dims(axis)[0]
    return Positional(gc.concat([positional(x).tensor for x in xs], dim))


def stack(xs: list[Any], axis: int = 0) -> Positional:
    return concat([expand(x, axis) for x in xs], axis)


def slice_(x: Any, starts: Any, lengths: Any, strides: Any = None) -> Positional:
    x = positional(x)
    steps = strides or [1] * len(x.shape)
    ranges = zip(x.dims(None), starts, lengths, steps)
    taken = {dim: plain_slice(at, at + span, step) for dim, at, span, step in ranges}
    return Positional(gc.isel(x.tensor, taken))


def take(x: Any, index: Any, axis: int = 0) -> Positional:
    x, index = positional(x), np.asarray(index)
    dims, at, new = x.dims(None), axis % len(x.shape), [f"new{i}" for i in range(index.ndim)]
    found = gc.take(x.tensor, gc.constant(index, new), dims[at])
    return Positional(found, [*dims[:at], *new, *dims[at + 1 :]])


def take_along(x: Any, index: Any, axis: int) -> Positional:
    x = positional(x)
    return Positional(gc.take_along(x.tensor, positional(index).tensor, x.dims(axis)[0]))


def einsum(spec: str, *xs: Any) -> Positional:
    operands, result = spec.replace(" ", "").split("->")
    named = [
        gc.rename(positional(x).tensor, dict(zip(positional(x).dims(None), letters)))
        for x, letters in zip(xs, operands.split(","), strict=True)
    ]
    gone = [dim for dim in dict.fromkeys(operands.replace(",", "")) if dim not in result]
    return Positional(gc.dot(*named, dim=gone), result)


def dot(x: Any, y: Any) -> Positional:
    """numpy.dot: the last axis of x, and the last but one of y or its only one."""
    x, y = positional(x), positional(y)
    if not x.shape or not y.shape:
        return elementwise(operator.mul)(x, y)
    left = [f"x{i}" for i in range(len(x.shape))]
    right = [f"y{i}" for i in range(len(y.shape))]
    right[max(len(right) - 2, 0)] = left[-1]
    named = [gc.rename(z.tensor, dict(zip(z.dims(None), d))) for z, d in ((x, left), (y, right))]
    return Positional(gc.dot(*named, dim=left[-1]))


def matmul(x: Any, y: Any) -> Positional:
    """numpy.matmul, where what comes before the two matrix axes is equal or broadcast."""
    x, y = positional(x), positional(y)
    if len(x.shape) == 1 or len(y.shape) <= 1:
        return dot(x, y)
    product = elementwise(operator.mul)(expand(x, -1), expand(y, -3))
    return REDUCED["sum"](product, -2)


def outer(x: Any, y: Any) -> Positional:
    return einsum("i,j->ij", reshape(x, -1), reshape(y, -1))


def positional_grad(function: Function) -> Function:
    def by_first(x: Positional, *others: Any) -> Positional:
        return Positional(gc.grad(total(function(x, *others).tensor), x.tensor))

    return by_first


REDUCED = {name: reduction(f) for name, f in REDUCTIONS.items() if not name.startswith("arg")}

POSITIONAL: dict[str, Any] = {
    **{name: elementwise(function) for name, function in ELEMENTWISE.items()},
    **REDUCED,
    "argmax": argument(gc.argmax),
    "argmin": argument(gc.argmin),
    "cumsum": along(gc.cumsum),
    "cumprod": along(gc.cumprod),
    "cast": lambda x, dtype: Positional(cast(positional(x).tensor, dtype)),
    "reshape": reshape,
    "transpose": transpose,
    "mT": matrix_transpose,
    "squeeze": squeeze,
    "expand": expand,
    "broadcast": broadcast,
    "reverse": reverse,
    "concat": concat,
    "stack": stack,
    "slice": slice_,
    "take": take,
    "take_along": take_along,
    "einsum": einsum,
    "dot": dot,
    "matmul": matmul,
    "outer": outer,
    "grad": positional_grad,
    "np": np,
    "pi": np.pi,
    **stepping(Positional, lambda x: x if np.isscalar(x) else positional(x).tensor),
    **missing(
        f"{ELEMENTWISE_LATER} {LINALG_LATER} cummax cummin sort pad put_slice "
        "gather indexed_put indexed_add kron cross dot_general conv window_sum window_max "
        "window_min window_scatter_max window_scatter_min fft ifft svd svdvals lu inv det slogdet "
        "pinv norm matrix_power lstsq expm diag make_diag trace tril triu"
    ),
}
