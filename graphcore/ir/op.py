"""Declaring ops: the decorated function *is* the type rule; axes and traits come with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from importlib import import_module
from inspect import cleandoc
from typing import Any

from .axes import AxisKind, Pointwise
from .help_text import parameters
from .node import NO_ATTRS, OPS, Attrs, Node
from .types import Type


class Trait(Enum):
    """A property of ops that passes may need, in addition to type rules and kinds of axes."""

    __hash__ = object.__hash__  # quicker than that of an Enum, as passes ask for every node

    VIEW = "view"
    """The result may share memory with the first operand, whose elements it shows."""
    MAY_RAISE = "may raise"
    """Some operands are refused at the call: positions outside, a singular matrix.

    With `check=False` an op that has this attr makes nan of them instead: see `may_raise`. An
    iteration that does not converge is not counted, as those of finite matrices do.
    """
    COMMUTATIVE = "commutative"
    """Two operands may be exchanged: the result has the same bits, but for the sign of zeros."""
    FREE = "free"
    """Without operands, and as cheap anywhere: a constant, a range of integers, a size."""
    IN_PLACE = "in place"
    """The result may be written over an operand: each element is read before it is written."""
    EFFECT = "effect"
    """The outside notices when it is computed: it is neither moved nor computed twice."""
    UPDATES = "updates"
    """The result is the first operand with some elements changed, and may be written over it."""
    KNOWN = "known"
    """The attr `value` holds the elements, or the one number that all of them are."""
    PRODUCT = "product"
    """Each element is a sum of products, with one element of each operand in every product."""


Fold = Callable[..., Node | None]
"""The node that stands for an op on given inputs with given attrs, so that none is built."""


class Op:
    """A named operation; calling it builds a node. All else about it is in tables keyed by it."""

    __slots__ = ("axes", "dialect", "doc", "fold", "module", "name", "rule", "said", "traits")

    def __init__(
        self,
        name: str,
        dialect: str,
        rule: Callable[..., Type],
        doc: str,
        *,
        axes: AxisKind,
        traits: Iterable[Trait] = (),
        said: str = "",
        module: str = "",
        fold: Fold | None = None,
    ) -> None:
        self.name, self.dialect, self.rule, self.doc = name, dialect, rule, doc
        self.axes, self.traits, self.fold = axes, frozenset(traits), fold
        self.said = said or name  # its name in errors
        self.module = module or rule.__module__

    def __call__(self, *inputs: Node, **attrs: Any) -> Node:
        """The node of this op on these inputs."""
        return Node(self, inputs, Attrs(attrs) if attrs else NO_ATTRS)

    @property
    def pointwise(self) -> bool:
        """Whether rules may treat it as a function of single elements; barriers are not."""
        return type(self.axes) is Pointwise

    def __repr__(self) -> str:
        return f"{self.dialect}.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _declared, (self.module, repr(self))


def _declared(module: str, name: str) -> Op:
    """An op by its full name; its module is imported first, as a new process may not have."""
    import_module(module)
    return OPS[RENAMED.get(name, name)]


RENAMED = {"tensor.absorb": "tensor.multiply_no_nan", "tensor.wins": "tensor.where_greater"}
"""The names of ops by those that they have in older pickles and texts of graphs."""


def declare(new: Op) -> Op:
    """`new`, known by its full name, which no other module may have given to an op."""
    known = OPS.get(repr(new))
    if known is not None and known.module != new.module:
        modules = f"in {known.module} and in {new.module}"
        raise ValueError(f"op {new} is declared twice, {modules}: give one another name")
    OPS[repr(new)] = new
    for dialect, enter in _entering:
        if dialect == new.dialect:
            enter(new)
    return new


_entering: list[tuple[str, Callable[[Op], object]]] = []


def for_every(dialect: str, enter: Callable[[Op], object]) -> None:
    """Have `enter` called with every op of a dialect, those that are declared later included.

    So a table has an entry for ops that other packages declare, where all of a dialect share one.
    """
    _entering.append((dialect, enter))
    for known in [*OPS.values()]:
        if known.dialect == dialect:
            enter(known)


@parameters(
    axes="How axes of operands become axes of results.",
    traits="Other properties that passes may need.",
    said="What users call it, if that is another name.",
    dialect='"named" or "tensor", of an op that a package of its own declares; else that is the '
    "module's name.",
    fold="The node that an op on these inputs is at its birth, or None: `fold(*inputs, **attrs)`.",
)
def op(
    *,
    axes: AxisKind,
    traits: Iterable[Trait] = (),
    said: str = "",
    dialect: str = "",
    fold: Fold | None = None,
) -> Callable[[Callable[..., Type]], Op]:
    """Declare the op whose type rule is the decorated function, and whose name it bears.

    `docs/developers/adding_an_op.md` says what else an op needs.
    """

    def declare_rule(rule: Callable[..., Type]) -> Op:
        name, doc = rule.__name__.rstrip("_"), cleandoc(rule.__doc__ or "")
        where = dialect or rule.__module__.split(".")[2]
        return declare(Op(name, where, rule, doc, axes=axes, traits=traits, said=said, fold=fold))

    return declare_rule


def may_raise(node: Node) -> bool:
    """Whether a node may refuse the values of its operands at the call, its bodies aside."""
    return Trait.MAY_RAISE in node.op.traits and bool(node.attrs.get("check", True))
