"""SCALAR: elementwise ops on values, `(builder, node, operands) -> value`, as NumPy computes them.

RULES says by which instructions, for each class of kinds: f floats, i signed and u unsigned
integers, b bools, c complex numbers. Operands come in the kinds in which NumPy computes the op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from graphcore.analysis.values import is_part
from graphcore.ir import DType, Node, Op, Trait
from graphcore.ir.dtypes import promote
from graphcore.ops import elementwise as e
from graphcore.ops import special as s
from graphcore.ops import tensor as t
from graphcore.ops.elementwise import compute_dtypes

from . import complexes, integers
from .builder import PARTS, Builder, Value, integer, real
from .conversions import (
    KINDS,
    cast,
    is_finite,
    is_infinite,
    kind_of,
    kind_of_dtype,
    literal,
    nonzero,
)
from .elementary import FUNCTIONS
from .quotients import quotient

__all__ = ["KINDS", "SCALAR", "cast", "emits", "kind_of", "kind_of_dtype", "literal"]

Rule: TypeAlias = Callable[..., Value]
Emit: TypeAlias = "Callable[[Builder, Node, Sequence[Value]], Value]"


def instruction(text: str) -> Rule:
    return lambda b, *xs: b.op(text, *xs)


def intrinsic(name: str) -> Rule:
    return lambda b, *xs: b.call(name, *xs)


def function(name: str) -> Rule:
    return lambda b, *xs: b.function(name, *xs)


def itself(b: Builder, x: Value) -> Value:
    return x


def always(text: str) -> Rule:
    def rule(b: Builder, x: Value) -> Value:
        found = Value(text, "i1")
        return b.widen(found) if x.wide else found

    return rule


# ---- floats


def zero(x: Value) -> Value:
    return literal(0.0, x.kind)


def sign(b: Builder, x: Value) -> Value:
    one = b.call("copysign", literal(1.0, x.kind), x)
    number = b.op("fcmp ord", x, x)
    return b.select(b.op("fcmp oeq", x, zero(x)), zero(x), b.select(number, one, x))


def heaviside(b: Builder, x: Value, y: Value) -> Value:
    step = b.select(b.op("fcmp olt", x, zero(x)), zero(x), literal(1.0, x.kind))
    found = b.select(b.op("fcmp oeq", x, zero(x)), y, step)
    return b.select(b.op("fcmp uno", x, x), x, found)


def bits_of(b: Builder, x: Value) -> Value:
    return b.convert("bitcast", x, f"i{x.kind[1:]}")


def signbit(b: Builder, x: Value) -> Value:
    return b.op("icmp slt", bits_of(b, x), integer(0, f"i{x.kind[1:]}"))


def nextafter(b: Builder, x: Value, y: Value) -> Value:
    bits, kind = bits_of(b, x), f"i{x.kind[1:]}"
    one = integer(1, kind)
    smallest = b.call("copysign", b.convert("bitcast", one, x.kind), y)
    outwards = b.op("xor", b.op("fcmp olt", x, y), b.op("fcmp olt", x, zero(x)))
    step = b.select(outwards, b.op("add", bits, one), b.op("sub", bits, one))
    found = b.convert("bitcast", step, x.kind)
    found = b.select(b.op("fcmp oeq", x, zero(x)), smallest, found)
    found = b.select(b.op("fcmp oeq", x, y), y, found)
    return b.select(b.op("fcmp uno", x, y), b.op("fadd", x, y), found)


def spacing(b: Builder, x: Value) -> Value:
    kind = f"i{x.kind[1:]}"
    after = b.convert("bitcast", b.op("add", bits_of(b, x), integer(1, kind)), x.kind)
    found = b.op("fsub", after, x)
    smallest = b.convert("bitcast", integer(1, kind), x.kind)
    found = b.select(b.op("fcmp oeq", x, zero(x)), smallest, found)
    return b.select(is_finite(b, x), found, literal(float("nan"), x.kind))


def remainder(b: Builder, x: Value, y: Value) -> Value:
    rest = b.function("fmod", x, y)
    other = b.op("xor", b.op("fcmp olt", rest, zero(x)), b.op("fcmp olt", y, zero(x)))
    moved = b.select(other, b.op("fadd", rest, y), rest)
    none = b.op("fcmp oeq", rest, zero(x))
    return b.select(none, b.call("copysign", zero(x), y), moved)


def floor_divide(b: Builder, x: Value, y: Value) -> Value:
    """As Python divides: exact before it is rounded down."""
    rest, quotient = b.function("fmod", x, y), b.op("fdiv", x, y)
    whole = b.op("fdiv", b.op("fsub", x, rest), y)
    other = b.op("xor", b.op("fcmp olt", rest, zero(x)), b.op("fcmp olt", y, zero(x)))
    other = b.op("and", other, b.op("fcmp une", rest, zero(x)))
    whole = b.select(other, b.op("fsub", whole, literal(1.0, x.kind)), whole)
    down = b.call("floor", whole)
    above = b.op("fcmp ogt", b.op("fsub", whole, down), literal(0.5, x.kind))
    found = b.select(above, b.op("fadd", down, literal(1.0, x.kind)), down)
    nothing = b.call("copysign", zero(x), quotient)
    found = b.select(b.op("fcmp oeq", whole, zero(x)), nothing, found)
    return b.select(b.op("fcmp oeq", y, zero(x)), quotient, found)


def ldexp(b: Builder, x: Value, n: Value) -> Value:
    """In three steps: powers of two are no longer floats before results are, but in float32."""
    n = cast(b, n, "i64")
    if x.kind == "f32":
        near = b.call("smin", b.call("smax", n, integer(-400)), integer(400))
        return cast(b, b.op("fmul", cast(b, x, "f64"), power_of_two(b, near)), "f32")
    wide = b.call("smin", b.call("smax", n, integer(-4000)), integer(4000))
    y = cast(b, x, "f64")
    for _ in range(2):
        down, up = b.op("icmp slt", wide, integer(-1022)), b.op("icmp sgt", wide, integer(1023))
        step = b.select(down, integer(-969), b.select(up, integer(1023), integer(0)))
        y, wide = b.op("fmul", y, power_of_two(b, step)), b.op("sub", wide, step)
    rest = b.call("smin", b.call("smax", wide, integer(-1022)), integer(1023))
    return cast(b, b.op("fmul", y, power_of_two(b, rest)), x.kind)


def power_of_two(b: Builder, n: Value) -> Value:
    return b.convert("bitcast", b.op("shl", b.op("add", n, integer(1023)), integer(52)), "f64")


# ---- comparisons and bools


def compare(of_floats: str, signed: str, unsigned: str = "") -> dict[str, Rule]:
    integral = integers.compare(signed, unsigned or signed)
    return {"f": instruction(f"fcmp {of_floats}"), "iub": integral}


def logical(text: str) -> dict[str, Rule]:
    return {"fiubc": lambda b, *xs: b.op(text, *[nonzero(b, x) for x in xs])}


def ordered(name: str, of_floats: str, of_bools: str) -> dict[str, Rule]:
    """The larger, or the smaller, of two."""
    return {
        "f": intrinsic(of_floats),
        "i": intrinsic(f"s{name}"),
        "u": intrinsic(f"u{name}"),
        "b": instruction(of_bools),
    }


def bitwise(text: str) -> dict[str, Rule]:
    return {"iub": instruction(text)}


def rounding(name: str) -> dict[str, Rule]:
    return {"f": intrinsic(name), "iub": itself}


# A product and the sum it is a term of are each rounded, except within contractions: values that
# are compared or rounded to integers next would differ from NumPy's, as ceil(0.1 * 10 - 1) would.
RULES: dict[Op, dict[str, Rule]] = {
    e.add: {
        "f": instruction("fadd"),
        "iu": instruction("add"),
        "b": instruction("or"),
        "c": complexes.by_parts(instruction("fadd")),
    },
    e.subtract: {
        "f": instruction("fsub"),
        "iu": instruction("sub"),
        "c": complexes.by_parts(instruction("fsub")),
    },
    e.multiply: {
        "f": Builder.multiply,
        "iu": instruction("mul"),
        "b": instruction("and"),
        "c": complexes.multiply,
    },
    e.divide: {"f": quotient, "c": complexes.divide},
    e.floor_divide: {
        "f": floor_divide,
        "i": integers.floor_divide,
        "u": integers.unsigned(integers.divided),
    },
    e.remainder: {
        "f": remainder,
        "i": integers.remainder,
        "u": integers.unsigned(integers.rest_of),
    },
    e.fmod: {"f": function("fmod"), "i": integers.fmod, "u": integers.unsigned(integers.rest_of)},
    e.power: {"u": integers.power},
    e.negative: {
        "f": Builder.negative,
        "iu": lambda b, x: b.op("sub", integer(0, x.kind), x),
        "c": complexes.by_parts(Builder.negative),
    },
    e.absolute: {
        "f": intrinsic("fabs"),
        "i": lambda b, x: b.call("abs", x, flags="i1 false"),
        "ub": itself,
        "c": complexes.absolute,
    },
    e.sign: {
        "f": sign,
        "i": integers.sign,
        "u": lambda b, x: cast(b, nonzero(b, x), x.kind),
        "c": complexes.sign,
    },
    e.square: {
        "f": lambda b, x: b.multiply(x, x),
        "iu": lambda b, x: b.op("mul", x, x),
        "c": complexes.square,
    },
    e.sqrt: {"f": intrinsic("sqrt"), "c": complexes.sqrt},
    e.exp: {"c": complexes.exp},
    e.exp2: {"c": complexes.exp2},
    e.expm1: {"c": complexes.expm1},
    e.log: {"c": complexes.log},
    e.log2: {"c": complexes.log_times(1.4426950408889634)},
    e.log10: {"c": complexes.log_times(0.4342944819032518)},
    e.log1p: {"c": complexes.log1p},
    e.sinh: {"c": complexes.sinh},
    e.cosh: {"c": complexes.cosh},
    e.tanh: {"c": complexes.tanh},
    e.sin: {"c": complexes.rotated(complexes.sinh)},
    e.cos: {"c": complexes.cos},
    e.tan: {"c": complexes.rotated(complexes.tanh)},
    e.reciprocal: {
        "f": lambda b, x: b.op("fdiv", literal(1.0, x.kind), x),
        "iu": lambda b, x: cast(b, b.op("fdiv", real(1.0), cast(b, x, "f64")), x.kind),
        "c": complexes.reciprocal,
    },
    e.floor: rounding("floor"),
    e.ceil: rounding("ceil"),
    e.trunc: rounding("trunc"),
    e.rint: {"f": intrinsic("rint"), "c": complexes.by_parts(intrinsic("rint"))},
    e.copysign: {"f": intrinsic("copysign")},
    e.heaviside: {"f": heaviside},
    e.maximum: {**ordered("max", "maximum", "or"), "c": complexes.extreme("ge", "gt")},
    e.minimum: {**ordered("min", "minimum", "and"), "c": complexes.extreme("le", "lt")},
    e.fmax: ordered("max", "maxnum", "or"),
    e.fmin: ordered("min", "minnum", "and"),
    e.ldexp: {"f": ldexp},
    e.nextafter: {"f": nextafter},
    e.spacing: {"f": spacing},
    e.conjugate: {"fiub": itself, "c": complexes.conjugate},
    e.equal: compare("oeq", "eq") | {"c": complexes.equal},
    e.not_equal: compare("une", "ne") | {"c": complexes.not_equal},
    e.less: compare("olt", "slt", "ult") | {"c": complexes.before("lt", "lt")},
    e.less_equal: compare("ole", "sle", "ule") | {"c": complexes.before("lt", "le")},
    e.greater: compare("ogt", "sgt", "ugt") | {"c": complexes.before("gt", "gt")},
    e.greater_equal: compare("oge", "sge", "uge") | {"c": complexes.before("gt", "ge")},
    e.logical_and: logical("and"),
    e.logical_or: logical("or"),
    e.logical_xor: logical("xor"),
    e.logical_not: {"fiubc": lambda b, x: b.neither(nonzero(b, x))},
    e.bitwise_and: bitwise("and"),
    e.bitwise_or: bitwise("or"),
    e.bitwise_xor: bitwise("xor"),
    e.invert: {"iu": lambda b, x: b.op("xor", x, integer(-1, x.kind)), "b": Builder.neither},
    e.left_shift: {"iu": integers.left_shift},
    e.right_shift: {"iu": integers.right_shift},
    e.bitwise_count: {
        "i": lambda b, x: cast(b, b.call("ctpop", b.call("abs", x, flags="i1 false")), "u8"),
        "u": lambda b, x: cast(b, b.call("ctpop", x), "u8"),
    },
    e.gcd: {"iu": integers.gcd},
    e.lcm: {"iu": integers.lcm},
    e.isnan: {
        "f": lambda b, x: b.op("fcmp uno", x, x),
        "iub": always("false"),
        "c": complexes.either(lambda b, x: b.op("fcmp uno", x, x), "or"),
    },
    e.isinf: {"f": is_infinite, "iub": always("false"), "c": complexes.either(is_infinite, "or")},
    e.isfinite: {"f": is_finite, "iub": always("true"), "c": complexes.either(is_finite, "and")},
    e.signbit: {"f": signbit},
    e.real: {"c": lambda b, z: b.parts(z)[0]},
    e.imag: {"c": lambda b, z: b.parts(z)[1]},
}
for named in (*vars(e).values(), *vars(s).values()):
    if isinstance(named, Op) and named.name in FUNCTIONS:
        RULES.setdefault(named, {}).setdefault("f", function(named.name))


# ---- ops whose operands are not alike


def cast_to(b: Builder, node: Node, xs: Sequence[Value]) -> Value:
    return cast(b, xs[0], kind_of(node))


def where(b: Builder, node: Node, xs: Sequence[Value]) -> Value:
    condition, x, y = xs
    kind = kind_of(node)
    return b.select(condition, cast(b, x, kind), cast(b, y, kind))


def multiply_no_nan(b: Builder, node: Node, xs: Sequence[Value]) -> Value:
    """x * factor, but x where that is 0 and the factor is not finite."""
    x, factor = [cast(b, v, kind_of(node)) for v in xs]
    if x.kind[0] not in "fc":
        return b.op("mul" if x.kind != "i1" else "and", x, factor)
    finite = rule_of(e.isfinite, x.kind)(b, factor)
    kept = b.op("and", b.neither(nonzero(b, x)), b.neither(finite))
    return b.select(kept, x, rule_of(e.multiply, x.kind)(b, x, factor))


def where_greater(b: Builder, node: Node, xs: Sequence[Value]) -> Value:
    """`value` where x > y, half of it where they are equal, 0 elsewhere."""
    value, x, y = xs
    kinds = [cast(b, v, common(node)) for v in (x, y)]
    half = scaled(b, value, 0.5)
    lost = b.select(rule_of(e.equal, common(node))(b, *kinds), half, literal(0.0, value.kind))
    return b.select(rule_of(e.greater, common(node))(b, *kinds), value, lost)


def common(node: Node) -> str:
    """The kind in which the last two operands are compared."""
    _, x, y = node.inputs
    return kind_of_dtype(promote(x.type.dtype, y.type.dtype))


def scaled(b: Builder, x: Value, factor: float) -> Value:
    if x.kind in PARTS:
        return b.complex(*[scaled(b, part, factor) for part in b.parts(x)])
    return b.op("fmul", x, literal(factor, x.kind))


OTHERS: dict[Op, Emit] = {
    e.cast: cast_to,
    e.where: where,
    t.multiply_no_nan: multiply_no_nan,
    t.where_greater: where_greater,
}
"""Ops that no ufunc computes, of operands in kinds of their own."""

CLASSES = {"i1": "b"}
"""The class of a kind, where it is not the first letter."""
EXACT_HALVES = frozenset({e.nextafter, e.spacing})
"""Ops that cannot be computed in float32 and rounded to float16."""


def rule_of(op: Op, kind: str) -> Rule:
    """How an op is computed in a kind.

    Raises
    ------
    KeyError
        If it has no rule for it.
    """
    letter = CLASSES.get(kind, kind[0])
    for letters, rule in RULES[op].items():
        if letter in letters:
            return rule
    raise KeyError(op)


@cache
def plan(op: Op, dtypes: tuple[DType, ...]) -> tuple[Rule, tuple[str, ...]] | None:
    """The rule of an op, and the kinds that it takes its operands in; None where it has none.

    NumPy too computes float16 in float32, and rounds each result.
    """
    computed = dtypes if op in (e.real, e.imag) else compute_dtypes(op, *dtypes)[: len(dtypes)]
    kinds = tuple([kind_of_dtype(dtype) for dtype in computed])
    if "f16" in kinds and op in EXACT_HALVES:
        return None
    kinds = tuple(["f32" if kind == "f16" else kind for kind in kinds])
    try:
        return rule_of(op, kinds[0]), kinds
    except KeyError:
        return None


def elementwise(b: Builder, node: Node, xs: Sequence[Value]) -> Value:
    if (n := exponent(node)) is not None:
        return integers.known_power(b, cast(b, xs[0], kind_of(node)), n)
    found = plan(node.op, tuple([x.type.dtype for x in node.inputs]))
    assert found is not None, f"{node.op} has no rule for its operands"
    rule, kinds = found
    if node.op is e.log1p and is_part(node.inputs[0]):
        rule = function("log1p_of_part")
    given = [cast(b, x, kind) for x, kind in zip(xs, kinds, strict=True)]
    if node.op is e.power and kinds == ("f64", "f64") and given[0].level < given[1].level:
        rule, given = function("power_by_log"), [*given, *logarithm_of(b, given[0])]
    result = rule(b, *given)
    return cast(b, result, kind_of(node))


def logarithm_of(b: Builder, x: Value) -> list[Value]:
    """The logarithm of a base, which is then found once for all exponents of a loop."""
    return [function(name)(b, x) for name in ("log_high", "log_low")]


def computed_in(node: Node) -> tuple[str, ...]:
    """The kinds in which an elementwise node takes its operands, where these are not their own."""
    if node.op not in RULES or exponent(node) is not None:
        return ()
    found = plan(node.op, tuple([x.type.dtype for x in node.inputs]))
    return () if found is None else found[1]


def exponent(node: Node) -> int | None:
    """The exponent of a power of signed integers, if it is one number from 0 on."""
    if node.op is not e.power or node.type.dtype.kind != "i":
        return None
    n = node.inputs[1]
    if Trait.KNOWN in n.op.traits and n.attrs["value"].array.size == 1:
        value = n.attrs["value"].item()
        return value if value >= 0 else None
    return None


SCALAR: dict[Op, Emit] = {**dict.fromkeys(RULES, elementwise), **OTHERS}


def emits(node: Node) -> bool:
    """Whether an elementwise node can be computed by machine code, for the dtypes that it has."""
    if node.op in OTHERS:
        return True
    if node.op not in RULES:
        return False
    if exponent(node) is not None:
        return True
    return plan(node.op, tuple([x.type.dtype for x in node.inputs])) is not None
