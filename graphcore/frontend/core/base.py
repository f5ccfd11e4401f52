"""The core of `Tensor`: one object for each node, its properties, and the protocols it refuses.

`frontend/tensor.py` completes the class with operators and methods, which are the functions of the
other packages. These need only this file, so imports run one way. Type checkers need the methods as
well: for them alone, `Tensor` here is the completed class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from graphcore.ir import DType, Graph, Node, Shape, Size
from graphcore.ir.errors import (
    GraphAttributeError,
    GraphError,
    GraphKeyError,
    GraphTypeError,
    GraphValueError,
)
from graphcore.ir.interning import Interned
from graphcore.ir.name_text import show_dim
from graphcore.ir.node import describe_operand
from graphcore.ir.provenance import current_line, public_call
from graphcore.ops import leaf
from graphcore.ops.named.dims import close_match

if TYPE_CHECKING:
    from graphcore.frontend.tensor import Tensor as Tensor


class Base:
    """A named tensor: a node of a graph, `node`, in the form that users hold."""

    __slots__ = ("__weakref__", "node")
    _complete: ClassVar[type[Any]]
    """The one subclass, `Tensor`, which needs this class to be defined first."""

    node: Node

    def __new__(cls, *given: Node, **options: object) -> Tensor:
        """The one tensor of a node."""
        if len(given) == 1 and isinstance(given[0], Node) and not options:
            if given[0].type.dims is not None:
                return wrap(given[0])
            cure = "take nodes of the stage 'named' of the program, which can be compiled again"
            reason = f"{given[0]!r} has no dims: it is of a stage after 'named', or several values"
            raise type_refusal(reason, cure=cure, name="Tensor")
        cure = "write gc.tensor(name, dims) for an input, gc.constant(array, dims) for a constant"
        reason = "its class takes a node of a graph, not values"
        raise type_refusal(reason, cure=cure, name="Tensor")

    def __init_subclass__(cls) -> None:
        Base._complete = cls

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the axes."""
        dims: tuple[str, ...] = self.node.type.dims
        return dims

    @property
    def shape(self) -> Shape:
        """The size of each dim: an int, or an expression in the unknown sizes of the inputs."""
        shape: Shape = self.node.type.shape
        return shape

    @property
    def sizes(self) -> dict[str, Size]:
        """The size of each dim, by name."""
        return Sizes(zip(self.dims, self.shape, strict=True))

    @property
    def size(self) -> Size:
        """The number of elements."""
        count: Size = self.node.type.count
        return count

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def dtype(self) -> DType:
        """The NumPy dtype of the elements."""
        dtype: DType = self.node.type.dtype
        return dtype

    @property
    def name(self) -> str | None:
        """The name of an input; None for any other tensor."""
        return self.node.attrs.get("name") if self.node.op.name == "input" else None

    def __repr__(self) -> str:
        name = self.name
        label = "Tensor" if name is None else f"Tensor {show_dim(name)}"
        return f"<{label}: {self.node.type}>"

    def _repr_html_(self) -> str:
        """The tensor in a notebook: a line, and its graph folded."""
        return Graph.folded(repr(self), {"graph": Graph((), (self.node,))})

    def __copy__(self) -> Base:
        return self

    def __deepcopy__(self, memo: object) -> Base:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self.node,)

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._no_value(f"a number to format as {spec!r}", self._way_to_evaluate())
        return repr(self)

    def __bool__(self) -> bool:
        raise self._no_value("a truth value", TRUTH)

    def _no_value(self, what: str, cure: str) -> GraphError:
        reason = f"asked for {what}, but a tensor has no value yet"
        return type_refusal(reason, self, cure=cure, name=public_call("Tensor"))

    def _way_to_evaluate(self) -> str:
        """How a user computes the value."""
        names = [x.attrs["name"] for x in leaf.inputs_among(Graph((), (self.node,)).nodes())]
        plain = all(name.isidentifier() for name in names) and len(names) <= 4
        given = ", ".join(f"{name}=value" for name in names) if plain else "{input: value}"
        return f"compute it, y.eval({given}), or make a function: gc.compile(inputs, outputs)"

    def _parts(self) -> str:
        """What a user writes in place of an iteration."""
        if not self.dims:
            return "leave it out: it is one number"
        dim = self.dims[0]
        every = f"gc.unbind(x, dim={dim!r}) for all, " if isinstance(self.shape[0], int) else ""
        return (
            f"write x.isel({{{dim!r}: 0}}) for one part, {every}gc.scan for a loop; in place of "
            f"sum, max and sorted of Python x.sum(), x.max() and x.sort({dim!r})"
        )

    def _some_dim(self) -> str:
        """A dim that cures speak of."""
        return next(iter(self.dims), "row")

    if TYPE_CHECKING:

        def __iter__(self) -> None:
            """None, so that x[0], x[1], ... is not a way to iterate."""
    else:  # hidden from type checkers, which then report the use of these

        def __setattr__(self, name: str, value: object) -> NoReturn:
            cure = "make a new one: x.rename(...), or x.at[...].set(y)"
            reason = f"is immutable: cannot set {name!r}"
            raise refusal(reason, self, cure=cure, kind=GraphAttributeError, name="Tensor")

        def __setitem__(self, key: object, value: object) -> NoReturn:
            cure = "make a new one: x.at[...].set(y), or .add and others"
            reason = "is immutable: no element can be set"
            raise type_refusal(reason, self, cure=cure, name="Tensor")

        def __iter__(self) -> NoReturn:
            raise self._no_value("items to iterate over", self._parts())

        def __len__(self) -> int:
            raise self._no_value("a length", f"use x.ndim, x.size or x.sizes[{self._some_dim()!r}]")

        def __contains__(self, item: object) -> bool:
            raise self._no_value("members", "use (x == value).any()")

        def __float__(self) -> float:
            raise self._no_value("a number", self._way_to_evaluate())

        def __int__(self) -> int:
            raise self._no_value("a number", self._way_to_evaluate())

        def __complex__(self) -> complex:
            raise self._no_value("a number", self._way_to_evaluate())

        def __index__(self) -> int:
            raise self._no_value("an integer", "index with it: y.isel(row=index)")

        def __array__(self, *args: object, **kwargs: object) -> NoReturn:
            joined = "gc.concat([x, y], 'new') joins tensors"
            raise self._no_value("an array", f"{self._way_to_evaluate()}; {joined}")


if not TYPE_CHECKING:
    Tensor = Base


class Sizes(dict[str, Size]):
    """The sizes of dims by name; the error for a missing name suggests a similar one."""

    def __missing__(self, dim: object) -> NoReturn:
        cure = close_match(str(dim), tuple(self))
        raise refusal(f"there is no dim {dim!r}", cure=cure, kind=GraphKeyError)


TRUTH = (
    "use gc.where or gc.cond(pred, then, otherwise) to choose, & | ~ to combine, and for max and "
    "min of Python gc.maximum and gc.minimum"
)
_set_node = vars(Base)["node"].__set__
_tensors: Interned[Tensor] = Interned()


def wrap(node: Node) -> Tensor:
    """The one Tensor of a node."""
    found = _tensors.get(node)
    if found is not None:
        return found
    new = object.__new__(Base._complete)
    _set_node(new, node)
    return _tensors.add(node, new)


def brief(value: object) -> str:
    """A value given by a user, shortened to one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def refusal(
    reason: str,
    *operands: Base | Node,
    cure: str = "",
    kind: type[GraphError] = GraphValueError,
    where: str = "built",
    name: str = "",
) -> GraphError:
    """The error for arguments that cannot be accepted, worded like those of type rules.

    It names the function that the user's line calls, unless a `name` says who refuses.
    """
    nodes = dict.fromkeys(x.node if isinstance(x, Base) else x for x in operands)
    lines = [
        f"{name or public_call()}: {reason}",
        *[describe_operand(node, reason) for node in nodes],
        f"  {where} at {current_line()}",
    ]
    if cure:
        lines.append(f"  cure: {cure}")
    return kind("\n".join(lines))


def type_refusal(reason: str, *operands: Base | Node, cure: str = "", name: str = "") -> GraphError:
    """The refusal of arguments that are not of the type that they must have."""
    return refusal(reason, *operands, cure=cure, kind=GraphTypeError, name=name)
