"""Plain tensor ops: axes are positions. Derivative rules and backends know no named ops."""

from __future__ import annotations

from graphcore.ir import Literal, Op, Shape, Size, TensorType, Trait, dtypes
from graphcore.ir import axes as kinds
from graphcore.ir.errors import GraphTypeError, Refusal, require
from graphcore.ir.op import declare, op
from graphcore.ir.sizes import count, maximum, same

Axes = tuple[int, ...]


def without(shape: Shape, axes: Axes) -> Shape:
    """`shape` less `axes`."""
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def differ(a: Size, b: Size) -> bool:
    """Whether two sizes are proven different; undecided ones were settled at the entrance."""
    return same(a, b) is False


@op(axes=kinds.Inserts("axes"), traits=[Trait.VIEW])
def expand(x: TensorType, *, axes: Axes, sizes: Shape) -> TensorType:
    """`x` repeated along new axes: result axis `axes[i]` is new and has `sizes[i]` places.

    The transpose of `sum`. An axis of size 1 is never stretched.
    """
    rank = len(x.shape) + len(axes)
    require(len(axes) == len(sizes) and list(axes) == sorted(set(axes)), f"bad axes {axes}")
    require(all(0 <= axis < rank for axis in axes), f"axes {axes} are not in rank {rank}")
    old, new = iter(x.shape), dict(zip(axes, sizes, strict=True))
    return TensorType(x.dtype, tuple(new[i] if i in new else next(old) for i in range(rank)))


def reshaped_type(x: TensorType, shape: Shape) -> TensorType:
    """`x` in another shape of as many values."""
    if differ(x.count, count(shape)):
        raise Refusal(f"{x} has {x.count} values, not {count(shape)}")
    return TensorType(x.dtype, shape)


@op(axes=kinds.Reshapes(), traits=[Trait.VIEW])
def reshape(x: TensorType, *, shape: Shape) -> TensorType:
    """The same values, row-major, in another shape."""
    return reshaped_type(x, shape)


@op(axes=kinds.Reshapes())
def pack(x: TensorType, *, shape: Shape) -> TensorType:
    """A `reshape` that cannot be a view: the values are copied, row-major."""
    return reshaped_type(x, shape)


@op(axes=kinds.Permutes("perm"), traits=[Trait.VIEW])
def transpose(x: TensorType, *, perm: Axes) -> TensorType:
    """Axes in another order: result axis i is axis `perm[i]` of `x`."""
    require(sorted(perm) == list(range(len(x.shape))), f"{perm} is no order of the axes of {x}")
    return TensorType(x.dtype, tuple(x.shape[axis] for axis in perm))


@op(axes=kinds.Ranges(kinds.How.MOVED), traits=[Trait.VIEW], said="isel")
def slice_(x: TensorType, *, starts: Shape, sizes: Shape, steps: Axes) -> TensorType:
    """On each axis the places start, start + step, ..., as many as `sizes` says."""
    require(len(starts) == len(sizes) == len(steps) == len(x.shape), f"one range an axis of {x}")
    return TensorType(x.dtype, sizes)


@op(axes=kinds.Ranges(kinds.How.WITHIN), said="pad")
def embed(x: TensorType, *, shape: Shape, starts: Shape, steps: Axes) -> TensorType:
    """Zeros of `shape` with `x` at the places start, start + step, ...: `slice` transposed."""
    require(len(starts) == len(shape) == len(steps) == len(x.shape), f"one range an axis of {x}")
    return TensorType(x.dtype, shape)


def window_count(size: Size, window: Size, stride: int, dilation: int) -> Size:
    """How many windows fit: each reaches over (window - 1) * dilation + 1 places."""
    return maximum((size - (window - 1) * dilation - 1) // stride + 1, 0)


@op(axes=kinds.Windows("axes"), traits=[Trait.VIEW])
def windows(
    x: TensorType, *, axes: Axes, sizes: Shape, strides: Axes, dilations: Axes
) -> TensorType:
    """Place j of window i along `axes`: x[i * stride + j * dilation], for as many as there are.

    The axes of j, of `sizes`, come before the first of `axes`, which become those of i. So the last
    axis stays the last, and ops that read windows run along memory.
    """
    require(list(axes) == sorted(set(axes)) and len(axes) > 0, f"bad axes {axes}")
    require(
        len(axes) == len(sizes) == len(strides) == len(dilations),
        f"one window for each axis of {axes}",
    )
    shape = list(x.shape)
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations, strict=True):
        shape[axis] = window_count(shape[axis], size, stride, dilation)
    return TensorType(x.dtype, (*shape[: axes[0]], *sizes, *shape[axes[0] :]))


@op(axes=kinds.Overlaps("axes"))
def overlap_add(
    x: TensorType, *, axes: Axes, sizes: Shape, strides: Axes, dilations: Axes
) -> TensorType:
    """Each window's values added up where they came from: `windows` transposed.

    The result has `sizes` places along `axes`.
    """
    first, wide = axes[0], len(axes)
    shape = [*x.shape[:first], *x.shape[first + wide :]]
    for axis, window, size, stride, dilation in zip(
        axes, x.shape[first:], sizes, strides, dilations, strict=False
    ):
        fits = window_count(size, window, stride, dilation)
        require(not differ(fits, shape[axis]), f"{fits} windows fit {size} places, not {x}")
        shape[axis] = size
    return TensorType(x.dtype, tuple(shape))


@op(axes=kinds.Ranges(kinds.How.ALONG, kinds.How.WITHIN), traits=[Trait.UPDATES], said="at")
def overwrite(x: TensorType, part: TensorType, *, starts: Shape, steps: Axes) -> TensorType:
    """`x` with `part` at the places start, start + step, ... of each axis."""
    require(len(starts) == len(steps) == len(x.shape) == len(part.shape), f"{part} in {x}")
    require(x.dtype == part.dtype, f"dtypes {x.dtype} and {part.dtype}")
    return x


@op(axes=kinds.Joins("axis"))
def concat(*xs: TensorType, axis: int) -> TensorType:
    """Tensors one after the other along `axis`."""
    first = xs[0]
    alike = (first.dtype, len(first.shape))
    odd = next((x for x in xs if (x.dtype, len(x.shape)) != alike), None)
    require(odd is None, f"dtypes or ranks of {first} and {odd}")
    total: Size = 0
    for x in xs:
        total = total + x.shape[axis]
    return TensorType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def reduction(name: str, dtype: dtypes.DtypeRule, doc: str) -> Op:
    """Declare an op that makes one value of all over `axes`, which vanish."""

    def rule(x: TensorType, *, axes: Axes) -> TensorType:
        return TensorType(dtype(x.dtype), without(x.shape, axes))

    return declare(Op(name, "tensor", rule, doc, axes=kinds.Reduces("axes")))


sum_ = reduction("sum", dtypes.sum_of, "Sum over `axes`, which vanish.")
any_ = reduction(
    "any", lambda _: dtypes.BOOL, "Whether any value over `axes` is true, that is, not 0."
)
all_ = reduction(
    "all", lambda _: dtypes.BOOL, "Whether all values over `axes` are true, that is, not 0."
)
norm = reduction(
    "norm",
    lambda dtype: dtypes.real_of(dtypes.float_for(dtype)),
    "Square root of the sum of |x|^2 over `axes`, without overflow; its derivative at 0 is 0.",
)
logsumexp = reduction(
    "logsumexp",
    dtypes.float_for,
    "log sum exp over `axes`, without overflow; -inf where all are, with derivative 0.",
)


def reduction_along(name: str, dtype: dtypes.DtypeRule, doc: str) -> Op:
    """Declare an op that makes one value of those along `axis`, which vanishes."""

    def rule(x: TensorType, *, axis: int) -> TensorType:
        return TensorType(dtype(x.dtype), without(x.shape, (axis,)))

    return declare(Op(name, "tensor", rule, doc, axes=kinds.Reduces("axis")))


prod = reduction_along("prod", dtypes.sum_of, "Product over `axis`, which vanishes.")
argmax = reduction_along(
    "argmax", lambda _: dtypes.INT, "Position of the first largest value along `axis`."
)
argmin = reduction_along(
    "argmin", lambda _: dtypes.INT, "Position of the first smallest value along `axis`."
)


@op(axes=kinds.Reduces("axes"))
def max_(x: TensorType, *, axes: Axes, initial: Literal | None = None) -> TensorType:
    """Largest value over `axes` and of `initial`; nan if any is, the lowest if none is.

    Tied values share its derivative evenly.
    """
    return TensorType(x.dtype, without(x.shape, axes))


@op(axes=kinds.Reduces("axes"))
def min_(x: TensorType, *, axes: Axes, initial: Literal | None = None) -> TensorType:
    """Smallest value over `axes` and of `initial`; nan if any is, the highest if none is.

    Tied values share its derivative evenly.
    """
    return TensorType(x.dtype, without(x.shape, axes))


@op(axes=kinds.Pointwise())
def where_greater(value: TensorType, x: TensorType, y: TensorType) -> TensorType:
    """`value` where x > y, half of it where they are tied, 0 elsewhere."""
    sizes = zip(value.shape, x.shape, y.shape, strict=True)
    require(not any(differ(a, b) or differ(a, c) for a, b, c in sizes), f"{value}, {x}, {y}")
    return value


@op(axes=kinds.Pointwise(), traits=[Trait.IN_PLACE])
def multiply_no_nan(x: TensorType, factor: TensorType) -> TensorType:
    """x * factor, but x where that is 0, even if the factor is infinite or nan there."""
    sizes = zip(x.shape, factor.shape, strict=True)
    require(not any(differ(a, b) for a, b in sizes), f"{x}, {factor}")
    return TensorType(dtypes.promote(x.dtype, factor.dtype), x.shape)


def along(name: str, dtype: dtypes.DtypeRule, doc: str, *, moves: bool = False) -> Op:
    """Declare an op that makes as many values of those along `axis`."""

    def rule(x: TensorType, *, axis: int) -> TensorType:
        return TensorType(dtype(x.dtype), x.shape)

    return declare(Op(name, "tensor", rule, doc, axes=kinds.Along("axis", moves=moves)))


sort = along("sort", lambda dtype: dtype, "The values along `axis` in order, nan last.", moves=True)
cumsum = along("cumsum", dtypes.sum_of, "Running sum along `axis`.")
cumprod = along("cumprod", dtypes.sum_of, "Running product along `axis`.")
cummax = along(
    "cummax", lambda dtype: dtype, "Largest value so far along `axis`; nan from the first on."
)
cummin = along(
    "cummin", lambda dtype: dtype, "Smallest value so far along `axis`; nan from the first on."
)


@op(axes=kinds.Along("axis", moves=False))
def logcumsumexp(x: TensorType, *, axis: int) -> TensorType:
    """log of the running sum of exp along `axis`, without overflow; -inf while all are."""
    cure = "take real and imaginary parts apart"
    require(x.dtype.kind != "c", f"is not defined for {x}", cure, GraphTypeError)
    return TensorType(dtypes.float_for(x.dtype), x.shape)


@op(axes=kinds.Along("axis", moves=True))
def argsort(x: TensorType, *, axis: int, size: Size, descending: bool) -> TensorType:
    """Positions of the first `size` values along `axis` in order; nan counts as the largest.

    Ties keep the order they have.
    """
    return TensorType(dtypes.INT, (*x.shape[:axis], size, *x.shape[axis + 1 :]))


@op(axes=kinds.Searches())
def searchsorted(x: TensorType, values: TensorType, *, side: str) -> TensorType:
    """How many values of a row of `x`, which is sorted, are below each of `values`.

    x (*batch, n), values (*batch, *any). With `side` "right" those that are equal count as well.
    """
    batch = x.shape[:-1]
    require(len(batch) <= len(values.shape), f"ranks of {x} and {values}")
    require(not any(map(differ, batch, values.shape)), f"batch sizes of {x} and {values}")
    return TensorType(dtypes.INT, values.shape)


@op(axes=kinds.Along("axes", moves=False, word="over"))
def softmax(x: TensorType, *, axes: Axes) -> TensorType:
    """exp(x - logsumexp(x)) over `axes`; 0 where all are -inf."""
    return TensorType(dtypes.float_for(x.dtype), x.shape)


@op(axes=kinds.Along("axes", moves=False, word="over"))
def log_softmax(x: TensorType, *, axes: Axes) -> TensorType:
    """x - logsumexp(x) over `axes`, to the last digit also where x is large."""
    return TensorType(dtypes.float_for(x.dtype), x.shape)


@op(axes=kinds.Along("axis", moves=True))
def fft(x: TensorType, *, axis: int, inverse: bool) -> TensorType:
    """sum over j of x[j] e^(-2 pi i j k / n) along `axis`; of e^(+2 pi i j k / n) if `inverse`."""
    require(x.dtype.kind == "c", f"transforms complex values, not {x}", "", GraphTypeError)
    return x


@op(axes=kinds.Along("axis", moves=True))
def rfft(x: TensorType, *, axis: int) -> TensorType:
    """The first n // 2 + 1 values of `fft` of real `x`: the rest are their conjugates."""
    cure = "use fft, or take the real and imaginary parts apart"
    require(x.dtype.kind == "f", f"transforms real values, not {x}", cure, GraphTypeError)
    shape = (*x.shape[:axis], x.shape[axis] // 2 + 1, *x.shape[axis + 1 :])
    return TensorType(dtypes.complex_for(x.dtype), shape)


@op(axes=kinds.Along("axis", moves=True))
def irfft(x: TensorType, *, axis: int, size: Size) -> TensorType:
    """The real values, `size` of them, whose `rfft` is `x`, times `size`."""
    require(x.dtype.kind == "c", f"transforms complex values, not {x}", "", GraphTypeError)
    require(same(size, 0) is not True, "gives no values", "give n, at least 1")
    require(not differ(x.shape[axis], size // 2 + 1), f"{x} is not an rfft of {size} values")
    return TensorType(dtypes.real_of(x.dtype), (*x.shape[:axis], size, *x.shape[axis + 1 :]))


@op(axes=kinds.Along("axis", moves=False))
def recurrence(a: TensorType, b: TensorType, *, axis: int) -> TensorType:
    """The linear recurrence h[t] = a[t] * h[t-1] + b[t] along `axis`, from h[-1] = 0.

    A factor of 0 drops the value before, even if it is infinite.
    """
    alike = a.dtype == b.dtype and len(a.shape) == len(b.shape)
    require(alike and not any(map(differ, a.shape, b.shape)), f"factors {a} and terms {b} differ")
    return b


@op(axes=kinds.Contracts(), traits=[Trait.PRODUCT])
def einsum(*xs: TensorType, operands: tuple[Axes, ...], result: Axes) -> TensorType:
    """Product of all operands, their axes named by letters, summed over those not in `result`.

    No letter stands twice in one operand. Any number of letters.
    """
    require(len(xs) == len(operands), f"{len(operands)} lists of letters for {len(xs)} operands")
    sizes: dict[int, Size] = {}
    for x, letters in zip(xs, operands, strict=True):
        require(len(letters) == len(x.shape) == len(set(letters)), f"letters {letters} for {x}")
        for letter, size in zip(letters, x.shape, strict=True):
            require(not differ(sizes.setdefault(letter, size), size), f"letter {letter} of {x}")
    return TensorType(dtypes.promote(*[x.dtype for x in xs]), tuple(sizes[i] for i in result))


@op(axes=kinds.Matrices("i k, k j -> i j", batch="i j"), traits=[Trait.PRODUCT])
def matmul(x: TensorType, y: TensorType) -> TensorType:
    """Matrix product: x (*batch, i, k), y (*batch, k, j) -> (*batch, i, j)."""
    require(len(x.shape) == len(y.shape) >= 2, f"ranks of {x} and {y}")
    require(not differ(x.shape[-1], y.shape[-2]), f"inner sizes of {x} and {y}")
    return TensorType(dtypes.promote(x.dtype, y.dtype), (*x.shape[:-1], y.shape[-1]))


@op(axes=kinds.Matrices("i k, k -> i", batch="i"), traits=[Trait.PRODUCT])
def matvec(x: TensorType, y: TensorType) -> TensorType:
    """Matrix times vector: x (*batch, i, k), y (*batch, k) -> (*batch, i)."""
    require(len(x.shape) == len(y.shape) + 1 >= 2, f"ranks of {x} and {y}")
    require(not differ(x.shape[-1], y.shape[-1]), f"inner sizes of {x} and {y}")
    return TensorType(dtypes.promote(x.dtype, y.dtype), x.shape[:-1])


@op(axes=kinds.Matrices("k, k -> "), traits=[Trait.PRODUCT])
def vecdot(x: TensorType, y: TensorType) -> TensorType:
    """Dot product of vectors, nothing conjugated: x (*batch, k), y (*batch, k) -> (*batch)."""
    require(len(x.shape) == len(y.shape) >= 1, f"ranks of {x} and {y}")
    require(not differ(x.shape[-1], y.shape[-1]), f"inner sizes of {x} and {y}")
    return TensorType(dtypes.promote(x.dtype, y.dtype), x.shape[:-1])


@op(axes=kinds.Indexes("axes"), traits=[Trait.MAY_RAISE], said="isel")
def gather(x: TensorType, *indices: TensorType, axes: Axes) -> TensorType:
    """Values at positions: `indices[i]`, all of one shape, run along `axes[i]` of `x`, pointwise.

    The indices' axes come first, then the other axes of `x`. Negative positions count from the end.
    """
    check_indices(indices, axes)
    return TensorType(x.dtype, indices[0].shape + without(x.shape, axes))


def check_indices(indices: tuple[TensorType, ...], axes: Axes) -> None:
    """Refuse all but integers, and fewer or more than one for each of `axes`."""
    require(len(indices) == len(axes) > 0, f"{len(indices)} indices for axes {axes}")
    for index in indices:
        require(
            index.dtype.kind in "iu", f"positions must be integers, not {index}", "", GraphTypeError
        )


@op(axes=kinds.Receives("axes", base=0), traits=[Trait.MAY_RAISE], said="at")
def scatter(updates: TensorType, *indices: TensorType, axes: Axes, shape: Shape) -> TensorType:
    """Zeros of `shape` to which `updates` are added at positions: the transpose of `gather`."""
    check_indices(indices, axes)
    return TensorType(updates.dtype, shape)


@op(axes=kinds.Receives("axes", base=0), traits=[Trait.MAY_RAISE], said="at")
def scatter_prod(updates: TensorType, *indices: TensorType, axes: Axes, shape: Shape) -> TensorType:
    """Ones of `shape` multiplied by `updates` at positions."""
    check_indices(indices, axes)
    return TensorType(updates.dtype, shape)


def receiver(name: str, doc: str, said: str = "at") -> Op:
    """Declare an op that gives its first operand when updates have come to it."""

    def rule(x: TensorType, updates: TensorType, *indices: TensorType, axes: Axes) -> TensorType:
        check_indices(indices, axes)
        require(x.dtype == updates.dtype, f"dtypes {x.dtype} and {updates.dtype}")
        return x

    kind, traits = kinds.Receives("axes", base=1), [Trait.MAY_RAISE, Trait.UPDATES]
    return declare(Op(name, "tensor", rule, doc, axes=kind, traits=traits, said=said))


scatter_add = receiver("scatter_add", "`x` with `updates` added at positions.", said="")
put = receiver(
    "put", "`x` with `updates` at positions as `gather` has them; of several in one place the last."
)
scatter_max = receiver(
    "scatter_max",
    "The largest of `x` and the `updates` at each position; nan if any is.\n\n"
    "Tied values share the derivative evenly, but an infinite one of `x` leaves it to the updates.",
)
scatter_min = receiver(
    "scatter_min",
    "The smallest of `x` and the `updates` at each position, as `scatter_max` the largest.",
)


@op(axes=kinds.Seen(), traits=[Trait.EFFECT])
def print_(x: TensorType, *, label: str, number: int, dims: tuple[str, ...]) -> TensorType:
    """`x`, printed when it is computed, its axes by the names `dims`."""
    return x
