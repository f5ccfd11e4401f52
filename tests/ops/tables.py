"""Every table of the package that is keyed by ops, and which ops each must hold.

A table of `ALL` holds just the ops that are said here. One of `SOME` holds exceptions: what is said
is how ops that are not in it fare, so that leaving one out is a decision and no hole.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.special

import graphcore
from graphcore.backends.llvm_kernels.loops import CONTROL as LOOPS
from graphcore.backends.llvm_kernels.places import PLACES
from graphcore.interop import TRANSLATIONS
from graphcore.ir.axes import NamedMatrices
from graphcore.ir.node import OPS
from graphcore.ir.op import Op
from graphcore.ops import autodiff, elementwise, leaf, linalg, special, tensor
from graphcore.ops.meaning import MEANING
from graphcore.ops.outside import CALLBACKS
from graphcore.ops.schedule import kernel
from graphcore.rewrites.derivatives.custom import OWN
from graphcore.rewrites.pipeline import DECOMPOSED, EXPANDED

Ops = set[Op]


def of(*dialects: str) -> Callable[[], Ops]:
    """The ops of some dialects."""
    return lambda: {op for op in OPS.values() if op.dialect in dialects}


plain = of("elementwise", "tensor", "linalg")
control = of("control")

NO_FLOATS = {
    *(tensor.any_, tensor.all_, tensor.argmax, tensor.argmin),
    *(tensor.argsort, tensor.searchsorted),
}
"""Plain ops whose result is never a float."""

INTERNAL = {
    *(special.gamma_density, special.gammainc_by, special.beta_density, special.betainc_by),
    *(special.sigmoid_slope, special.tanh_slope, special.arctan_slope, special.cosine),
    *(special.inversion, special.inversion_slope, special.square_complement),
    *(special.pseudo_huber_by_delta, special.pseudo_huber_by_r, special.digamma_step),
}
"""Ops that only derivatives use."""

LEAVES = {leaf.input_, leaf.constant, leaf.full, leaf.iota, leaf.extent}
FOUND_SIZES = {leaf.as_size, leaf.after}
SHIELDS = {autodiff.barrier, autodiff.stop_gradient}
INSIDE = {
    *autodiff.KINKED,
    autodiff.svd_of,
    autodiff.turn,
    autodiff.matrix_function,
    autodiff.trace_of_function,
}
"""What derivatives of matrices are made of until they are expanded."""


def may_be_float(op: Op) -> bool:
    """Whether an elementwise op may give floats."""
    function = elementwise.UFUNC.get(op, "")
    return isinstance(function, str) or any(loop[-1] == "d" for loop in function.types)


def arity(op: Op) -> int:
    """The operands of an elementwise op, by the function that it means."""
    function = elementwise.UFUNC.get(op, MEANING[op])
    if isinstance(function, str) and function != "zeta":
        function = getattr(scipy.special, function, MEANING[op])
    if isinstance(function, np.ufunc):
        return function.nin
    return len([x for x in inspect.signature(MEANING[op]).parameters if x != "out"])


def differentiable() -> Ops:
    """Plain ops that have a derivative."""
    floats = {op for op in of("elementwise")() if may_be_float(op)}
    return floats | (of("tensor", "linalg")() - NO_FLOATS - linalg.FACTORED - CALLBACKS)


def only(some: Ops) -> Callable[[], Ops]:
    """Just these."""
    return lambda: some


ALL: dict[str, Callable[[], Ops]] = {
    "graphcore.ops.elementwise UFUNC": lambda: of("elementwise")() - own_rules(),
    "graphcore.ops.linalg SIGNATURES": of("linalg"),
    "graphcore.ops.named.matrices PLAIN": lambda: {
        op for op in of("named")() if isinstance(op.axes, NamedMatrices)
    },
    "graphcore.rewrites.lower.table LOWER": lambda: (
        of("named", "elementwise", "control")() | LEAVES | FOUND_SIZES | SHIELDS
    ),
    "graphcore.rewrites.expand EXPAND": only({autodiff.pullback, autodiff.pushforward}),
    "graphcore.rewrites.expand DROP": only(SHIELDS | INSIDE | OWN.keys() | {tensor.einsum}),
    "graphcore.rewrites.derivatives CONTROL": control,
    "graphcore.backends.llvm_kernels.phrases RULES": lambda: {leaf.constant, *PLACES},
    "graphcore.backends.llvm_kernels.pseudocode CONTROL": only({*LOOPS} - {kernel}),
    "graphcore.backends.numpy_backend.emit EMIT": lambda: DECOMPOSED.ops() - control(),
    "graphcore.backends.numpy_backend.loops CONTROL": control,
    "graphcore.backends.jax_backend.entries TABLE": lambda: (
        EXPANDED.ops() - {leaf.input_, leaf.project}
    ),
    "graphcore.inspection.interpreter RUNS": control,
    "graphcore.ops.meaning MEANING": lambda: plain() | LEAVES - {leaf.input_},
}
"""Tables that hold all ops of some kind, and no others."""

DERIVATIVES = (
    "graphcore.rewrites.derivatives.tables PARTIALS",
    "graphcore.rewrites.derivatives.tables VJP",
    "graphcore.rewrites.derivatives.linear TRANSPOSE",
    "graphcore.rewrites.derivatives.factors JVP",
)
"""Tables of which one holds each op that has a derivative."""


def own_rules() -> Ops:
    """Elementwise ops with type rules of their own."""
    return {elementwise.real, elementwise.imag, elementwise.cast, elementwise.where}


SOME: dict[str, str] = {
    "graphcore.interop.blocks.axes REPEATS": "new dims of the result have elements of their own",
    "graphcore.interop.blocks.axes SIZED": "a size of a dim with blocks among its attrs is refused",
    "graphcore.interop.blocks.reductions COMBINED": "over blocks it is refused",
    "graphcore.interop.blocks.reductions AVERAGES": "it is no average",
    "graphcore.interop.coordinates RULES": "its kind of axes says which labels a result has",
    "graphcore.ops.named.derived FORMS": "the op has a type rule and a lowering of its own",
    "graphcore.rewrites.lower OVER_NOTHING": "over no dims it is one over an axis of size 1",
    "graphcore.analysis.cost FACTORED": "the cost of another op on matrices counts a factorisation",
    "graphcore.analysis.cost ITERATIVE": "another op on matrices is no iteration",
    "graphcore.backends.jax_backend.elementwise EXACT": "float32 serves float16",
    "graphcore.backends.jax_backend.elementwise RULES": "JAX's function of the name is right",
    "graphcore.backends.jax_backend.host HOST": "XLA computes it",
    "graphcore.backends.jax_backend.lacks OWN": "the table has an entry for the op",
    "graphcore.backends.jax_backend.padded_ops PADDED": "the entry serves padded axes as well",
    "graphcore.backends.jax_backend.padded_ops UPDATES": "nothing is received",
    "graphcore.backends.jax_backend.padding FORWARD": "elements along axes are brought together",
    "graphcore.backends.jax_backend.padding NEUTRAL": "along padded axes the op is refused",
    "graphcore.backends.jax_backend.padding SUMS": "nothing is added up",
    "graphcore.backends.jax_backend.passes WHOLE": "the op is taken apart, or never is",
    "graphcore.backends.targets COPIES": "another op computes values",
    "graphcore.analysis.dataflow STRUCTURE": "the op computes values and hands none on",
    "graphcore.analysis.matrices ASKING": "no rule for it asks for facts about matrices",
    "graphcore.analysis.matrices MAKES": "facts about the result follow from those of operands",
    "graphcore.analysis.values ASKING": "no rule for it asks for bounds",
    "graphcore.rewrites.derivatives.linearity DERIVATIVES": "the op is no derivative",
    "graphcore.analysis.values BOUNDED": "no bound of the result is known",
    "graphcore.backends.llvm_kernels OF_PRODUCTS": "no products of blocks compute it",
    "graphcore.backends.llvm_kernels OF_FACTORS": "it factors no matrix by products of blocks",
    "graphcore.backends.llvm_kernels EMITTED": "test_left_out.py has it, with a reason",
    "graphcore.backends.llvm_kernels.arithmetic EXACT_HALVES": "float32 serves float16",
    "graphcore.backends.llvm_kernels.flops DIVISIONS": "the op costs no division",
    "graphcore.backends.llvm_kernels.nests JOINED": "no element is looked for in parts",
    "graphcore.backends.llvm_kernels.nests REPEATING": "an element of an operand is read once",
    "graphcore.backends.llvm_kernels.flops SIMPLE": "the op costs a function",
    "graphcore.backends.llvm_kernels.flops VIEWS": "the op is no view",
    "graphcore.backends.llvm_kernels.phrases WORDS": "the op is called by its name",
    "graphcore.backends.llvm_kernels.phrases INFIX": "the op is written as a function",
    "graphcore.backends.llvm_kernels.phrases PREFIX": "the op is written as a function",
    "graphcore.backends.llvm_kernels.receiving START": "the first operand has the values",
    "graphcore.backends.llvm_kernels.routines ROUTINES": "the op calls no BLAS and no LAPACK",
    "graphcore.backends.llvm_kernels.routines RULE": "no two values are combined",
    "graphcore.backends.llvm_kernels.widths SIMPLE": "the op takes sixteen lanes at most",
    "graphcore.backends.numpy_backend.emit INTO": "the line writes into no array that it is given",
    "graphcore.backends.numpy_backend.emit NEW": "the result may be a view, and outputs are copies",
    "graphcore.backends.llvm_kernels.passes.layout ROW_BY_ROW": "short axes come first",
    "graphcore.backends.numpy_backend.scalars MATH": "NumPy computes single numbers",
    "graphcore.backends.numpy_backend.scalars FLOATS": "NumPy computes single numbers",
    "graphcore.backends.numpy_backend.scalars INTEGERS": "NumPy computes single numbers",
    "graphcore.backends.numpy_backend.scalars LOGIC": "NumPy computes single numbers",
    "graphcore.backends.numpy_backend.scalars ANY": "NumPy computes single numbers",
    "graphcore.schedule.order SIZE_FOUND": "the op finds no size",
    "graphcore.rewrites.shared_factors WHOLE": "the op is no part of another",
    "graphcore.rewrites.shared_factors BY_LU": "the op does not share LU factors",
    "graphcore.frontend.core.lift COMPARISONS": "the op is not decided while a program is built",
    "graphcore.frontend.core.values_as_sizes ARITHMETIC": "the result of the op is no size",
    "graphcore.frontend.linalg.solving FACTORS": "no result of the op is triangular",
    "graphcore.frontend.linalg.solving KEEPING": "zeros may change their places",
    "graphcore.frontend.linalg.solving MASKS": "the op compares no rows with columns",
    "graphcore.frontend.derive.vectorize RULES": "more dims are batch, as the kind of axes says",
    "graphcore.inspection.blame MOVED": "elements are computed from those that the kind says",
    "graphcore.inspection.blame RECEIVING": "elements are computed from those that the kind says",
    "graphcore.inspection.blame RUNNING": "elements are computed from those that the kind says",
    "graphcore.inspection.causes EXPLAIN": "a fault has no cause of the op's own",
    "graphcore.inspection.kinks KINKS": "the op has no kink, or is not looked at",
    "graphcore.inspection.interpreter IDENTITIES": "the op is computed",
    "graphcore.inspection.traced_values LEFT_OUT": "results of the op are tensors of the user",
    "graphcore.inspection.variables NUMBERS": "a variable may hold the result of the op",
    "graphcore.inspection.op_text WHOLE": "operands and attrs are printed",
    "graphcore.inspection.op_text PHRASES": "attrs are printed as the kind of axes says",
    "graphcore.ops.autodiff KINKED": "the op is no share that flows through a kink",
    "graphcore.ops.autodiff LAZY": "the op is no derivative to be expanded",
    "graphcore.ops.autodiff WRITTEN": "passes make the op",
    "graphcore.ops.autodiff FUNCTIONS": "the op is no function of a matrix",
    "graphcore.ops.elementwise UNKNOWN": "derivatives by all operands are known",
    "graphcore.ops.outside CALLBACKS": "the op has a derivative of its own",
    "graphcore.ops.linalg FACTORED": "the op stands before factors are shared",
    "graphcore.ops.control LOOPS": "the node is no loop",
    "graphcore.rewrites.axis_order MOVES": "the op gives no order of its axes, or is elementwise",
    "graphcore.rewrites.axis_order MATRICES": "each axis of an operand has its place",
    "graphcore.rewrites.commuted BY_PLACE": "operands of a commutative op change places",
    "graphcore.rewrites.decompose DECOMPOSE": "the backend emits the op",
    "graphcore.rewrites.derivatives.linearity ALIKE": "how the result grows is not known",
    "graphcore.rewrites.logarithms LOGS": "the result is not known to be positive",
    "graphcore.rewrites.logarithms COMPLEMENTS": "the op is no probability",
    "graphcore.rewrites.loops.zeros LINEAR": "a zero that goes through it is carried along",
    "graphcore.rewrites.loops.zeros FOLLOWED": "of the others nothing is known, whatever is given",
    "graphcore.rewrites.expand KINKS": "the op is no size of its operand",
    "graphcore.rewrites.expand LOCAL": "smooth functions of a kink are not followed",
    "graphcore.rewrites.matrix_functions NOT_ANALYTIC": "the op is analytic",
    "graphcore.rewrites.loops.placement REPEATED": "steps record the value itself",
    "graphcore.rewrites.loops.placement VIEWS_OF_SUMS": "the op is applied to each term of a sum",
    "graphcore.rewrites.lower.matrices SOLVES": "right-hand sides are no vectors",
    "graphcore.rewrites.orders RULES": "no contraction is taken into the op",
    "graphcore.rewrites.scales SUMS": "the op adds nothing up, or scales stay inside",
    "graphcore.rewrites.scales SCALING": "the op is no scaling",
    "graphcore.analysis.matrices THROUGH": "the facts of operands say nothing of the result",
    "graphcore.analysis.matrices PARTS": "nothing is known of a factor",
}
"""Tables of exceptions, and how an op that is not in one fares."""

PARTS_OF_OTHERS = (
    *("derivatives LOOPS", "derivatives.control LOOPS", "derivatives.custom OWN"),
    *("derivatives.partials ELEMENTARY", "derivatives.special SPECIAL", "derivatives.rules MIXING"),
    *("derivatives.solving SOLVING", "divided_differences FUNCTIONS"),
    "derivatives.factors TURNING",
    *("llvm_kernels.arithmetic RULES", "llvm_kernels.arithmetic SCALAR"),
    *("llvm_kernels.arithmetic OTHERS", "llvm_kernels.places PLACES", "llvm_kernels.lu LU"),
    *("llvm_kernels.lapack MATRICES", "llvm_kernels.receiving RECEIVING"),
    *("llvm_kernels.reductions FOLDS", "llvm_kernels.reductions REDUCTIONS"),
    *("llvm_kernels.routines ALONE", "llvm_kernels.running RUNNING"),
    "llvm_kernels.sorting SORTING",
    *("llvm_kernels.lu ROUTINES", "llvm_kernels.lapack ROUTINES"),
    *("llvm_kernels.receiving COMBINED", "llvm_kernels.running COMBINED"),
    "llvm_kernels.loops CONTROL",
    *("meaning.tensors TENSORS", "meaning.matrices MATRICES", "meaning.matrices NUMPYS"),
    "meaning.matrices SCIPYS",
)
"""Tables that one of `ALL`, or of the derivatives, is put together from."""

FOREIGN = tuple({f"graphcore.interop.{package}" for package in TRANSLATIONS.values()})
"""Packages of ours that need another library."""


def tables() -> Iterator[tuple[str, Any]]:
    """Every value at the top of a module of the package that is keyed by ops.

    Under the name that it is given where it is made; what is only imported is no other table. Names
    with an underscore are memories that fill as programs are compiled.
    """
    found = pkgutil.walk_packages(graphcore.__path__, "graphcore.")
    for name in [module.name for module in found]:
        if "demo" in name or name.startswith(FOREIGN) or name.endswith("__main__"):
            continue  # programs, and rules by the ops of another library
        module = importlib.import_module(name)
        for target in assigned(inspect.getsource(module)):
            if target[0] != "_" and is_keyed_by_ops(value := getattr(module, target, None)):
                yield f"{name} {target}", value


def assigned(source: str) -> Iterator[str]:
    """The names that a module assigns to."""
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=target)) | ast.AugAssign(target=ast.Name(target)):
                yield target


def is_keyed_by_ops(value: object) -> bool:
    """Whether a mapping has ops, or pairs with ops, for its keys, or a collection holds some."""
    if not isinstance(value, (Mapping, set, frozenset, tuple, list)):
        return False
    keys = [key if isinstance(key, tuple) else (key,) for key in value]
    return any(isinstance(part, Op) for key in keys for part in key)


def holes(found: Mapping[str, Any]) -> list[str]:
    """What tables lack, or hold though they should not, a sentence for each op."""
    return [
        f"{op} {wrong} {name}"
        for name, wanted in ALL.items()
        for wrong, some in (
            ("is missing in", wanted() - set(found[name])),
            ("should not be in", set(found[name]) - wanted()),
        )
        for op in sorted(some, key=repr)
    ] + derivative_holes(found)


def derivative_holes(found: Mapping[str, Any]) -> list[str]:
    """Ops that have no derivative, or several."""
    count = {op: sum(op in found[name] for name in DERIVATIVES) for op in OPS.values()}
    inside = INSIDE | {autodiff.barrier}
    return [
        f"{op} has {number} derivatives, in PARTIALS, TRANSPOSE, VJP and JVP together"
        for op, number in sorted(count.items(), key=lambda pair: repr(pair[0]))
        if (number != 1 if op in differentiable() | inside else number)
    ]
