"""What a call checks of its arguments: each array by itself, sizes against each other.

Programs that are exported have these definitions in their file, so they need no graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from graphcore.ir.errors import DATES, GraphError, GraphTypeError, GraphValueError
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import user_line

Array = npt.NDArray[Any]


def refusal(
    reason: str, *details: str, cure: str, kind: type[GraphError] = GraphValueError
) -> GraphError:
    """The error for a call with arguments that do not fit, worded as those of the build are."""
    lines = [f"call: {reason}", *[f"  {line}" for line in details], f"  called at {user_line()}"]
    return kind("\n".join([*lines, f"  cure: {cure}"]))


def quote(name: object) -> str:
    """A name given by a user, on one line."""
    return f"'{show_dim(str(name))}'"


def brief(value: Any) -> str:
    """An argument on one line; of a table its kind and shape."""
    if hasattr(value, "to_numpy") and hasattr(value, "shape"):
        return f"a {type(value).__name__} of shape {value.shape}"
    return f"{' '.join(repr(value).split()):.60}"


def join_names(names: Iterable[object]) -> str:
    """Names separated by commas; if there are many, only the first."""
    shown = [quote(name) for name in names]
    return ", ".join(shown if len(shown) <= 20 else [*shown[:20], f"… {len(shown) - 20} more"])


CURE_BY_NAME = "pass arrays by name: f(**arrays)"


def by_name(value: Any) -> bool:
    """Whether an argument is several arrays by name: a dict, or a Dataset of xarray."""
    return isinstance(value, Mapping)


def cure_unconverted(value: Any, error: Exception) -> str:
    """The cure for an array of another library that does not become one of NumPy."""
    if "Tracer" in type(error).__name__ + type(value).__name__:
        return "compile it with target='jax', or call it outside jax.jit and jax.grad"
    if getattr(value, "requires_grad", False):
        return "pass its values: value.detach()"
    if "bfloat16" in str(getattr(value, "dtype", "")):
        return "pass it in a dtype that NumPy has: value.float()"
    if hasattr(value, "__array__"):
        return "pass an array of NumPy that is in the memory of the CPU"
    return "pass an array, or nested lists whose rows have one length"


LARGEST_VALUE = 2**40
"""The largest value of an input that is a size: more elements than any memory holds."""

RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""The rank of each kind of dtypes: a kind holds the numbers of all kinds of lower rank."""


class Parameter:
    """One declared input; `fixed` is its shape, if no size is unknown."""

    def __init__(
        self,
        number: int,
        name: str,
        dims: tuple[str, ...],
        dtype: np.dtype[Any],
        fixed: tuple[int, ...] | None,
        declared: str,
    ) -> None:
        self.number, self.name, self.dims, self.ndim = number, name, dims, len(dims)
        self.dtype, self.fixed, self.declared = dtype, fixed, declared
        self.shown = repr(name if len(name) <= 60 else f"{name[:59]}…")

    @property
    def integer(self) -> bool:
        """Whether it is one integer, which may be the size of a dim."""
        return not self.dims and self.dtype.kind in "iu"

    def place(self, axis: int | None) -> str:
        """Where a size comes from: a dim, or the value."""
        return "the value of" if axis is None else f"from dim {quote(self.dims[axis])} of"

    def convert(self, value: Any) -> Array:
        """`value` as an array of the declared dtype and dims."""
        array = self._cast(self._in_order(value) if hasattr(value, "dims") else value)
        if array.ndim != len(self.dims):
            raise refusal(
                f"input {self.shown} has {len(self.dims)} dims ({join_names(self.dims)}), but got "
                f"an array of shape {array.shape}",
                self.declared,
                cure="pass an array with these dims in this order",
            )
        if self.fixed is not None and array.shape != self.fixed:
            for dim, want, got in zip(self.dims, self.fixed, array.shape, strict=True):
                if want != got:
                    raise self.of_another_size(dim, got, want, self.size_cure(dim))
        return array

    def of_another_size(self, dim: str, got: int, want: object, cure: str) -> GraphError:
        """The refusal of an array, for one of its dims."""
        reason = f"dim {quote(dim)} of input {self.shown} has size {got}, but must have {want}"
        return refusal(reason, self.declared, cure=cure)

    def size_cure(self, dim: str) -> str:
        """The cure for a size that was declared as a number."""
        return (
            "pass an array of the declared size, or declare the dim with an unknown size, "
            f"{{{quote(dim)}: None}}"
        )

    def _in_order(self, value: Any) -> Any:
        if by_name(value):
            reason = f"input {self.shown} takes an array, but got a {type(value).__name__}"
            raise refusal(reason, self.declared, cure=CURE_BY_NAME, kind=GraphTypeError)
        given = tuple(value.dims)
        if sorted(given, key=str) != sorted(self.dims):
            raise refusal(
                f"input {self.shown} has dims {join_names(self.dims)}, "
                f"but got dims {join_names(given)}",
                self.declared,
                cure="rename or index the argument to these dims",
            )
        values = getattr(value, "values", getattr(value, "data", None))
        if values is None or callable(values):
            raise refusal(
                f"input {self.shown} takes an array, but got {brief(value)}",
                self.declared,
                cure="pass values; expressions of tensors are built before they are compiled",
                kind=GraphTypeError,
            )
        return self._array(values).transpose([given.index(dim) for dim in self.dims])

    def _array(self, value: Any) -> Array:
        try:
            return np.asarray(value)
        except GraphError:  # a tensor raises its own error
            raise
        except (TypeError, ValueError, RuntimeError) as error:
            said, *_ = str(error).splitlines() or [type(error).__name__]
            reason = f"input {self.shown}: {said}"
            cure = cure_unconverted(value, error)
            kind = GraphValueError if isinstance(error, ValueError) else GraphTypeError
            raise refusal(reason, self.declared, cure=cure, kind=kind) from error

    def _cast(self, value: Any) -> Array:
        array = self._array(value)
        have = array.dtype
        if np.ma.is_masked(value):
            cure = "fill them, value.filled(np.nan), and skip nan: x.mean(skipna=True)"
            raise refusal(f"input {self.shown} has masked values", self.declared, cure=cure)
        if have == self.dtype:
            return array if have.isnative else array.astype(self.dtype)
        if have.kind not in "biufc":
            reason = f"input {self.shown} takes numbers, but got {brief(value)} of dtype {have}"
            cure = f"pass an array of numbers that {self.dtype} holds"
            if have.kind in "mM" or hasattr(value, "timetuple"):
                cure = DATES
            elif by_name(value):
                cure = CURE_BY_NAME
            elif hasattr(value, "to_numpy"):
                cure = f"pass numbers: frame.to_numpy({str(self.dtype)!r}, na_value=np.nan)"
            raise refusal(reason, self.declared, cure=cure, kind=GraphTypeError)
        weak = not hasattr(value, "dtype")
        smaller_kind = RANK[have.kind] <= RANK[self.dtype.kind]
        if not (smaller_kind if weak else np.can_cast(have, self.dtype)):
            cure = f"convert it: array.astype({str(self.dtype)!r})"
            if RANK[have.kind] > RANK[self.dtype.kind] == RANK["f"]:
                cure = "pass its real part, value.real"
            elif smaller_kind and array.ndim == 0:
                number = type(array.item()).__name__
                cure = f"pass a Python number, which takes the dtype of the input: {number}(value)"
            raise refusal(
                f"input {self.shown} is {self.dtype}, but got {have}, which would lose values",
                self.declared,
                cure=f"{cure}, or declare the input with dtype={str(have)!r}",
                kind=GraphTypeError,
            )
        try:
            return np.asarray(value, dtype=self.dtype)
        except OverflowError as error:
            cure = "pass numbers that the dtype holds, or declare another"
            reason = f"input {self.shown}: {error}"
            raise refusal(reason, self.declared, cure=cure, kind=GraphTypeError) from error


# ---- sizes against each other


class Unknown(NamedTuple):
    """An unknown size: its name, and the axis of the parameter that gives it, or its value."""

    name: str
    parameter: int
    axis: int | None


class Term(NamedTuple):
    """A size in words, the numbers of the unknown sizes in it, and its code: "2*n0"."""

    said: str
    of: tuple[int, ...]
    code: str


class Sized(NamedTuple):
    """The size that an axis of a parameter must have."""

    parameter: int
    axis: int
    size: Term


class Needed(NamedTuple):
    """A relation of two sizes that an operation of the program needs."""

    operation: str
    dim: str
    relation: str
    left: Term
    right: Term
    kind: type[GraphError]
    cure: str


Check: TypeAlias = Unknown | Sized | Needed


class Checks(NamedTuple):
    """The sizes that a call must have, in lines of Python that look at arrays and change nothing.

    These call arrays `x0`, ..., unknown sizes `n0`, ... and the sizes of other axes `x0_1`, ...
    """

    parameters: Sequence[Parameter]
    unknowns: Sequence[Unknown]
    sizes: Sequence[Sized | Needed]

    def lines(self) -> list[str]:
        """The lines that find all sizes, and check them.

        They need `shape` of arrays, and `item()` where a value is a size.
        """
        given = {(x.parameter, x.axis): f"n{number}" for number, x in enumerate(self.unknowns)}
        lines = []
        for i, param in enumerate(self.parameters):
            if (i, None) in given:
                lines.append(f"{given[i, None]} = x{i}.item()")
            if param.fixed is None:
                axes = [given.get((i, axis), f"x{i}_{axis}") for axis in range(param.ndim)]
                lines.append(f"{', '.join(axes)}, = x{i}.shape")
        if holds := [condition for condition, *_ in self.conditions()]:
            lines += [f"if not ({' and '.join(holds)}):", "    refuse(locals())"]
        return lines

    def conditions(self) -> Iterator[tuple[str, str, str, Check]]:
        """Each check with its code: the condition, and the two sizes that its error names."""
        for number, given in enumerate(self.unknowns):
            if given.axis is None:
                yield f"0 <= n{number} <= {LARGEST_VALUE}", f"n{number}", "0", given
        for x in self.sizes:
            if isinstance(x, Sized):
                left, relation, right = f"x{x.parameter}_{x.axis}", "==", x.size.code
            else:
                left, relation, right = x.left.code, x.relation, x.right.code
            yield f"{left} {relation} {right}", left, right, x

    def refuse(self, values: dict[str, Any]) -> None:
        """Raise the error of the first condition that does not hold for these values of names."""
        for holds, left, right, x in self.conditions():
            if not eval(holds, values):
                raise self.refusal(x, eval(left, values), eval(right, values), values)

    def refusal(self, x: Check, left: int, right: int, values: Mapping[str, Any]) -> GraphError:
        """The error of a condition that does not hold for these two sizes."""
        if isinstance(x, Needed):
            how = [
                f"{name} = {values[at]}, {giver.place(axis)} input {giver.shown} ({giver.declared})"
                for at, name, giver, axis in self.givers((*x.left.of, *x.right.of))
            ]
            agree = "whose sizes agree" if x.relation == "==" else "of sufficient size"
            cure = x.cure or f"pass arrays {agree}"
            if cure.endswith("agree") and not (x.left.of and x.right.of):
                cure += ", or let what has the known size, such as a mask or the numbers of "
                cure += "groups, be an input too: gc.tensor(name, dims)"
            reason = f"{x.operation} needs {x.left.said} {x.relation} {x.right.said} for dim "
            reason += f"{quote(x.dim)}, but they are {left} and {right}"
            return refusal(reason, *how, cure=cure, kind=x.kind)
        param = self.parameters[x.parameter]
        if isinstance(x, Unknown):
            reason = f"input {param.shown} is {left}, but is the size of a dim"
            return refusal(reason, param.declared, cure=f"pass a number from 0 to {LARGEST_VALUE}")
        dim = param.dims[x.axis]
        others = [
            f"input {giver.shown} has {name} = {values[at]} ({giver.declared})"
            for at, name, giver, _ in self.givers(x.size.of)
        ]
        if not others:
            return param.of_another_size(dim, left, right, param.size_cure(dim))
        cure = "pass arrays of matching sizes, or give the dim a size of its own where it is "
        cure += f"declared, such as {{{quote(dim)}: 'n_other'}}"
        shown = f"{x.size.said} = {right}: {'; '.join(others)}"
        return param.of_another_size(dim, left, shown, cure)

    def givers(self, numbers: Iterable[int]) -> list[tuple[str, str, Parameter, int | None]]:
        """The unknown sizes of some numbers by name, each with its code and what gives it."""
        found = sorted([(self.unknowns[number].name, number) for number in {*numbers}])
        given = [(name, number, self.unknowns[number]) for name, number in found]
        return [
            (f"n{number}", show_dim(name), self.parameters[x.parameter], x.axis)
            for name, number, x in given
        ]
