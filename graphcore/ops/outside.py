"""Functions of arrays that users give: NumPy's, SciPy's and their own, run as they are.

An op calls its function once for each element of the batch. The result of a function depends on its
operands alone, so that equal calls are one node, as with all ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from graphcore.ir import DType, Node, Shape, TensorType, Trait, TupleType
from graphcore.ir.axes import AxisKind, How, Source, Sources
from graphcore.ir.errors import require
from graphcore.ir.name_text import escape
from graphcore.ir.node import agree, agree_in_type, natural
from graphcore.ir.op import op

from .named.dims import Dims, union


class Function:
    """A function of arrays as a user gave it; it equals itself alone.

    Parameters
    ----------
    given
        The function.
    arranged
        Puts arrays in the form of the function's operands.
    apart
        Takes a result apart into pairs of paths and values.
    paths
        The paths that a result must have.
    """

    __slots__ = ("_apart", "_arranged", "given", "paths")

    def __init__(
        self,
        given: Callable[..., Any],
        arranged: Callable[[Sequence[Any]], Sequence[Any]],
        apart: Callable[[Any], Sequence[tuple[str, Any]]],
        paths: tuple[str, ...],
    ) -> None:
        self.given, self._arranged, self._apart, self.paths = given, arranged, apart, paths

    def __call__(self, arrays: Sequence[Any]) -> Any:
        """The result of the function for some arrays, as it returns it."""
        return self.given(*self._arranged(arrays))

    def parts(self, result: Any) -> list[tuple[str, Any]]:
        """The values in a result with their paths; one value that is expected is itself."""
        if len(self.paths) == 1 and "[" not in self.paths[0]:
            return [(self.paths[0], result)]
        return list(self._apart(result))

    def __reduce__(self) -> tuple[Any, ...]:
        return Function, (self.given, self._arranged, self._apart, self.paths)

    def __repr__(self) -> str:
        name = getattr(self.given, "__qualname__", type(self.given).__name__)
        return escape(str(name)[:60])


class Calls(AxisKind):
    """A function of some axes of the operands; all other axes are batch.

    In named ops the attr `dims` lists the dims of each operand that the function works along, in
    plain ops the attr `batch` names the batch axes, which come first in all operands.
    """

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        if y.dims is None:
            batch = len(node.attrs["batch"])
            return tuple(Source((i,), How.EACH) if i < batch else None for i in range(y.ndim))
        known, own = node.attrs["dims"][operand], x.dims or ()
        return tuple(
            Source((own.index(dim),), How.MOVED if dim in known else How.EACH)
            if dim in own
            else None
            for dim in y.dims
        )


def regroup(items: Sequence[Any], several: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Items in groups as long as some others."""
    rest = iter(items)
    return (tuple(islice(rest, len(group))) for group in several)


def check(function: object) -> None:
    """Refuse what no user can have given, such as the text of a file."""
    require(isinstance(function, Function), "there is no function to be called")


@op(axes=Calls(), traits=[Trait.MAY_RAISE], dialect="named")
def callback(
    *operands: TensorType,
    function: Function,
    dims: tuple[Dims, ...],
    made: tuple[Dims, ...],
    sizes: Shape,
    dtypes: tuple[DType, ...],
    masked: bool,
) -> TupleType:
    """The results of a user's function, for each position along the dims that it does not know.

    `dims` are those of each operand that the function works along, in its order. The results have
    the dims `made`, whose `sizes` follow each other. If it is `masked`, the last operand is a mask:
    the function is called where that holds, and results are 0 elsewhere.
    """
    check(function)
    known = {dim for own in dims for dim in own}
    batch = {dim: size for dim, size in union(*operands).items() if dim not in known}
    results = []
    for names, shape, dtype in zip(made, regroup(sizes, made), dtypes, strict=True):
        own = {}
        for dim, size in zip(names, shape, strict=True):
            natural(dim, size)
            if dim in batch:
                agree(dim, batch[dim], size)
            else:
                own[dim] = size
        results.append(TensorType.of(dtype, {**batch, **own}))
    return TupleType(tuple(results))


@op(axes=Calls(), traits=[Trait.MAY_RAISE], dialect="tensor", said="callback")
def callback_(
    *operands: TensorType,
    function: Function,
    batch: tuple[str, ...],
    made: tuple[Dims, ...],
    sizes: Shape,
    dtypes: tuple[DType, ...],
    masked: bool,
) -> TupleType:
    """The results of a user's function, for each position along the first axes of all operands.

    `made` names the other axes of the results.
    """
    check(function)
    lead: Shape = operands[0].shape[: len(batch)] if operands else ()
    for x in operands:
        agree_in_type(TensorType(x.dtype, (*lead, *x.shape[len(batch) :])), x, "batches differ")
    types = zip(dtypes, regroup(sizes, made), strict=True)
    return TupleType(tuple(TensorType(dtype, (*lead, *shape)) for dtype, shape in types))


CALLBACKS = frozenset({callback, callback_})
"""The ops that run functions of users: derivatives need rules that users give as well."""
