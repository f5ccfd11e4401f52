"""The one data structure: an immutable, interned expression node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .errors import GraphError, GraphTypeError, GraphValueError, Refusal, require
from .interning import Interned
from .name_text import escape, show_dim
from .provenance import NOWHERE, Build, Origin, built_again, current_line, public_call, thread_state
from .remembered import Remembered
from .size_text import show_unknown
from .sizes import Size, lower_bound, same
from .types import TensorType, TupleType, Type, fits

T = TypeVar("T")

if TYPE_CHECKING:
    from .op import Op

OPS: dict[str, Op] = {}
"""Every op by its full name, `dialect.name`; filled as ops are declared."""


class Attrs(dict[str, Any]):
    """Static parameters of a node, with a hashable `key` so that nodes can be interned."""

    __slots__ = ("key",)

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        dict.__init__(self, items)  # quicker than by `super`
        self.key = frozenset(self.items())  # keeps its hash


NO_ATTRS = Attrs()


class Need(NamedTuple):
    """A condition that a type rule could not decide: `left relation right`, checked at the call."""

    dim: str
    left: Size
    relation: str
    right: Size
    kind: type[GraphError] = GraphValueError
    cure: str = ""


class _Pending(threading.local):
    needs: list[Need] | None = None
    """The conditions of the type rule that runs, if one does: helpers of rules serve others too."""


_pending = _Pending()


def need(
    dim: str,
    left: Size,
    relation: str,
    right: Size,
    kind: type[GraphError] = GraphValueError,
    cure: str = "",
) -> None:
    """Have the call check `left relation right` (`==`, `<` or `<=`); used in type rules.

    Without a `cure` the sizes should fit.
    """
    for size in (left, right):
        divides(dim, size)
    if _pending.needs is not None:
        _pending.needs.append(Need(dim, left, relation, right, kind, cure))


def divides(dim: str, size: Size) -> None:
    """Have the call check that `size` divides by no 0."""
    for divisor in divisors(size):
        if lower_bound(divisor) == 0 and _pending.needs is not None:
            _pending.needs.append(Need(dim, 1, "<=", divisor))


def natural(dim: str, size: Size) -> None:
    """Have the call check that `size` is 0 or more, if it may be less, and divides by no 0."""
    divides(dim, size)
    least = lower_bound(size)
    if least is None or least < 0:
        need(dim, 0, "<=", size)


def divisors(size: Size) -> list[Size]:
    """The sizes by which `size` divides, those inside of others first."""
    found: list[Size] = []
    for monomial, _ in () if isinstance(size, int) else size.terms:
        for atom, _ in monomial:
            found += [inner for operand in atom.operands for inner in divisors(operand)]
            if atom.name in ("//", "%") and atom.operands:
                found.append(atom.operands[1])
    return found


class Unfrozen:
    """A node being born: the same slots, still writable. Written once, then the class is `Node`."""

    __slots__ = ("__weakref__", "attrs", "builds", "inputs", "needs", "op", "type")

    op: Op
    inputs: tuple[Node, ...]
    attrs: Attrs
    type: Any
    needs: tuple[Need, ...]
    builds: tuple[Build, ...]


class Node(Unfrozen):
    """`op` applied to `inputs` with static `attrs`; building it twice gives the same object.

    These three are its identity. It also has its `type`, and the `needs` that its type rule left to
    the call. Equal programs share nodes, so a node remembers each of the user's lines that built
    it; the trace of a compilation knows which of them is shown there, and the `labels` of its axes
    after lowering.
    """

    __slots__ = ()
    __match_args__ = ("op", "inputs", "attrs")

    def __new__(cls, op: Op, inputs: tuple[Node, ...] = (), attrs: Attrs = NO_ATTRS) -> Node:
        """The one node of this op, inputs and attrs, or the one that the op folds it to.

        An error names operands and lines.
        """
        key = (op, inputs, attrs.key) if attrs else (op, inputs)
        entry = _entries.get(key)
        node: Any = None if entry is None else entry()
        if node is None:
            inferred = infer(op, inputs, attrs)
            if op.fold is not None and (known := op.fold(*inputs, **attrs)) is not None:
                return known
            node = new_object(Unfrozen)
            node.op = op
            node.inputs = inputs
            node.attrs = attrs
            node.type, node.needs = inferred
            node.builds = ()
            node.__class__ = cls
            node = _interned.add(key, node)
        sources = thread_state.sources
        if sources is None:
            set_builds(node, built_again(node.builds))
        elif node not in sources:
            sources[node] = thread_state.source
        return note(node) if _records else node

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"nodes are immutable: cannot set {name!r}")

    @property
    def said(self) -> str:
        """The public function that the user's line calls, else the users' name of the op."""
        return self.origin.function or self.op.said

    @property
    def origin(self) -> Origin:
        """The user's line: in the compilation that nodes are described by, else the last one."""
        if thread_state.trace is not None:
            origin: Origin = thread_state.trace.origin(self)
            return origin
        return self.last_line

    @property
    def last_line(self) -> Origin:
        """The line of the user's that built it last."""
        return self.builds[-1].origin if self.builds else NOWHERE

    @property
    def labels(self) -> tuple[str | None, ...] | None:
        """The dims of its axes, or those they had before lowering; None if that is not known."""
        dims: tuple[str, ...] | None = self.type.dims
        if dims is None and thread_state.trace is not None:
            found: tuple[str | None, ...] | None = thread_state.trace.labels.get(self)
            return found
        return dims

    def __repr__(self) -> str:
        return f"<{self.op.name}: {self.type}>"

    def __reduce__(self) -> tuple[Any, ...]:
        from .graph import Graph  # a graph is flat: pickling a deep node must not recurse

        return _only_output, (Graph((), (self,)),)

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: object) -> Node:
        return self

    def label(self, labels: tuple[str | None, ...] | None) -> Node:
        """The node itself, its axes labelled in the compilation unless they were."""
        if labels is not None and thread_state.trace is not None:
            thread_state.trace.labels.setdefault(self, labels)
        return self

    def with_inputs(self, *inputs: Node) -> Node:
        """The same operation on other inputs."""
        return self if inputs == self.inputs else Node(self.op, inputs, self.attrs)

    # Infix notation for the plain graphs of rules; `==` stays identity, as nodes are interned.
    def __add__(self, other: Node | complex) -> Node:
        return infix("add", self, other)

    def __radd__(self, other: complex) -> Node:
        return infix("add", other, self)

    def __sub__(self, other: Node | complex) -> Node:
        return infix("subtract", self, other)

    def __rsub__(self, other: complex) -> Node:
        return infix("subtract", other, self)

    def __mul__(self, other: Node | complex) -> Node:
        return infix("multiply", self, other)

    def __rmul__(self, other: complex) -> Node:
        return infix("multiply", other, self)

    def __truediv__(self, other: Node | complex) -> Node:
        return infix("divide", self, other)

    def __rtruediv__(self, other: complex) -> Node:
        return infix("divide", other, self)

    def __pow__(self, other: Node | complex) -> Node:
        return infix("power", self, other)

    def __neg__(self) -> Node:
        return OPS["elementwise.negative"](self)

    def __getitem__(self, index: int) -> Node:
        return OPS["leaf.project"](self, index=index)


def infix(name: str, x: Node | complex, y: Node | complex) -> Node:
    """`name` applied to two operands; one may be a Python number."""
    left = x if isinstance(x, Node) else full_like(y, x)
    right = y if isinstance(y, Node) else full_like(x, y)
    return OPS[f"elementwise.{name}"](left, right)


def full_like(x: Any, value: complex) -> Node:
    """`value` in every place of a tensor typed like `x`."""
    from .literal import Literal, integer_literal

    literal = (integer_literal if type(value) is int else Literal)(value, x.type.dtype)
    if x.type.dtype.kind in "iu" and literal.item() != value:
        cure = "cast the node to a float first: elementwise.cast(x, dtype=dtype)"
        raise GraphTypeError(f"full_like: {value} is no {x.type.dtype}\n  cure: {cure}")
    return OPS["leaf.full"](value=literal, shape=x.type.shape, dims=x.type.dims)


_interned: Interned[Node] = Interned()
_entries = _interned.entries
_records: dict[int, tuple[int, set[Node]]] = {}


@contextmanager
def recording() -> Iterator[set[Node]]:
    """The nodes that this thread builds in this block, those that were there already as well."""
    made: set[Node] = set()
    _records[id(made)] = threading.get_ident(), made
    try:
        yield made
    finally:
        del _records[id(made)]


def note(node: Node) -> Node:
    """`node`, entered in the records of this thread."""
    for thread, made in list(_records.values()):
        if thread == threading.get_ident():
            made.add(node)
    return node


new_object = object.__new__

set_builds = vars(Unfrozen)["builds"].__set__
type_of = attrgetter("type")
inputs_of = attrgetter("inputs")

_inferred = Remembered()
MOST_AXES = 64
CURE_AXES = "merge some of the dims by stack, or keep the values in several tensors"


def infer(op: Op, inputs: tuple[Node, ...], attrs: Attrs) -> tuple[Type, tuple[Need, ...]]:
    """The type by the type rule of `op`, and the conditions that it leaves to the call."""
    try:
        types = tuple(map(type_of, inputs))
    except AttributeError:
        wrong = next(x for x in inputs if not isinstance(x, Node))
        cure = "ops take nodes: x.node of a tensor, leaf.full of a number"
        reason = f"{type(wrong).__name__} {wrong!r:.60} is not a node"
        raise GraphTypeError(f"{op.said}: {reason}\n  cure: {cure}") from None
    key = (op, types, attrs.key) if attrs else (op, types)
    known: tuple[Type, tuple[Need, ...]] | None = _inferred.get(key)
    if known is not None:
        return known
    result = infer_anew(op, inputs, attrs)
    if inputs and op.dialect not in (
        "control",
        "schedule",
    ):  # else arrays or bodies would be kept alive
        _inferred.keep(key, result)
    return result


def infer_anew(op: Op, inputs: tuple[Node, ...], attrs: Attrs) -> tuple[Type, tuple[Need, ...]]:
    """The same by the type rule itself, and not from memory."""
    before, needs = _pending.needs, list[Need]()
    _pending.needs = needs
    try:
        inferred = op.rule(*map(type_of, inputs), **attrs)
        for item in inferred.items if isinstance(inferred, TupleType) else (inferred,):
            axes = len(item.shape)
            require(axes <= MOST_AXES, f"{axes} dims, of at most {MOST_AXES} in NumPy", CURE_AXES)
        return inferred, tuple(needs)
    except Refusal as refusal:
        raise refusal.kind(describe(refusal, op, inputs)) from None
    finally:
        _pending.needs = before


def _only_output(graph: Any) -> Node:
    node: Node = graph.outputs[0]
    return node


def toposort(roots: Iterable[Node], leaves: Collection[Node] = ()) -> list[Node]:
    """Every node below `roots`, each once, inputs before users; iterative, so depth is no limit.

    Nothing below `leaves` is visited, nor are they.
    """
    seen = set(leaves)
    order: list[Node] = []
    above: list[Any] = []  # nodes that wait for one of their inputs, and their other inputs
    enter, append, push, pop = seen.add, order.append, above.append, above.pop
    for root in roots:
        if root in seen:
            continue
        node, rest = root, iter(root.inputs)
        while True:
            for x in rest:
                if x not in seen:
                    if x.inputs:
                        push(node)
                        push(rest)
                        node, rest = x, iter(x.inputs)
                        break
                    enter(x)
                    append(x)
            else:
                enter(node)
                append(node)
                if not above:
                    break
                rest, node = pop(), pop()
    return order


def unwrap(x: Node, op: Op) -> Node:
    """The operand of `x` if that is of this op, else `x` itself."""
    return x.inputs[0] if x.op is op else x


def reached(roots: Iterable[T], follow: Callable[[T], Iterable[T]]) -> dict[T, None]:
    """These roots, and all that `follow` leads to from one of them."""
    found = dict.fromkeys(roots)
    stack = [*found]
    while stack:
        for x in follow(stack.pop()):
            if x not in found:
                found[x] = None
                stack.append(x)
    return found


def agree(dim: str, left: Size, right: Size, kind: type[GraphError] = GraphValueError) -> Size:
    """The size of `dim` in two operands; refused if they differ, checked at the call if unknown."""
    match same(left, right):
        case True:
            return left
        case False:
            raise Refusal(f"dim {dim!r} has sizes {left} and {right}", CURE_SIZES, kind)
    need(dim, left, "==", right, kind)
    return left if isinstance(left, int) else right


def union(*xs: TensorType) -> dict[str, Size]:
    """Every dim with its size, in order of first appearance."""
    sizes: dict[str, Size] = {}
    for x in xs:
        for dim, size in x.sizes.items():
            sizes[dim] = agree(dim, sizes[dim], size) if dim in sizes else size
    return sizes


def agree_in_type(left: TensorType, right: TensorType, reason: str, cure: str = "") -> TensorType:
    """The common type of two values, or a refusal; the call checks sizes that are unknown."""
    require(fits(left, right), reason, cure)
    if left is right:
        return left
    dims = left.dims or ("",) * left.ndim
    both = zip(dims, left.shape, right.shape, strict=True)
    return TensorType(left.dtype, tuple(agree(dim, m, n) for dim, m, n in both), left.dims)


CURE_SIZES = (
    "give both the same size, or rename one of the dims if they are different things "
    "(a size-1 dim is never stretched: squeeze or index it away first)"
)


def describe(refusal: Refusal, op: Op, inputs: tuple[Node, ...]) -> str:
    """The full message of a refused operation: op, reason, operands, lines and the cure."""
    lines = [f"{public_call(op.said)}: {refusal.reason}"]
    lines += [describe_operand(x, refusal.reason) for x in dict.fromkeys(inputs)]
    lines.append(f"  built at {current_line()}")
    if refusal.cure:
        lines.append(f"  cure: {refusal.cure}")
    return "\n".join(lines)


def describe_operand(node: Node, reason: str = "") -> str:
    """`name: dtype[dims]`, where it was built, and how the sizes that `reason` names are known."""
    of = node.inputs[0] if node.op.name == "labelled" else node  # users know what made the values
    name = of.attrs.get("name", f"{of.op.said}(...)")
    if node.op.name == "full" and not node.type.shape:
        name = f"{node.attrs['value'].array}"
    text = f"  {escape(name[:60])}: {node.type}, built at {node.origin}"
    if isinstance(node.type, TensorType) and node.inputs:
        known = [known_from(node, dim) for dim in node.type.dims or () if repr(dim) in reason]
        if known:
            text += f" ({'; '.join(known)})"
    return text


def known_from(node: Node, dim: str) -> str:
    """How the size of `dim` is known: from an input that declares it, else the op that made it."""
    size = node.type.size(dim)
    ends: list[Node] = []
    stack, seen = [node], {node}
    while stack:
        x = stack.pop()
        if "name" in x.attrs:
            ends = [x]
            break
        above = [y for y in x.inputs if isinstance(y.type, TensorType) and y not in seen]
        above = [y for y in above if y.type.sizes.get(dim) == size]
        seen.update(above)
        stack += reversed(above)
        if not above:
            ends.append(x)
    end, *_ = ends
    name = end.attrs.get("name", end.op.said)
    how = "declared by" if "name" in end.attrs else "made by"
    known = "is" if str(size) == show_unknown(dim) else f"is {size},"
    return f"{show_dim(dim)} {known} {how} {escape(name[:60])} at {end.origin}"
