"""Special functions of SciPy's, called for one lane after the other: what its ufuncs call."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from graphcore.backends.llvm_kernels import capsules
from graphcore.backends.llvm_kernels.builder import TRUE, Builder, Value

ARITIES = {
    1: "erfcx erfinv erfcinv dawsn erf erfc ndtr log_ndtr ndtri ndtri_exp gamma rgamma gammaln "
    "loggamma gammasgn digamma logit entr exprel cosm1 j0 j1 y0 y1 i0 i1 i0e i1e k0 k1 k0e k1e "
    "exp1 expi spence ellipk ellipe",
    2: "xlogy xlog1py rel_entr kl_div owens_t poch binom beta betaln gammainc gammaincc "
    "gammaincinv gammainccinv jv yv iv ive kv kve expn",
    3: "betainc betaincc betaincinv betainccinv",
    4: "hyp2f1",
}
"""The ops that have SciPy's names, by how many operands they have."""
ARITY = {name: arity for arity, names in ARITIES.items() for name in names.split()}
SCIPY = {"digamma": "psi"}
"""What SciPy calls an op among its functions for compiled code."""


def address(name: str) -> int | None:
    """Where the function of an op is; None if SciPy does not offer it."""
    return capsules.special(SCIPY.get(name, name), ARITY[name])


def calling(name: str) -> Callable[..., Value]:
    """The function of vectors that calls SciPy's."""
    ways: dict[int, Callable[..., Value]] = {
        1: lambda b, x: side_by_side(b, name, (x,)),
        2: lambda b, x, y: side_by_side(b, name, (x, y)),
        3: lambda b, x, y, z: side_by_side(b, name, (x, y, z)),
        4: lambda b, x, y, z, w: side_by_side(b, name, (x, y, z, w)),
    }
    return ways[ARITY[name]]


def side_by_side(b: Builder, name: str, xs: Sequence[Value]) -> Value:
    """The value of each lane; one that has the operands of the lane before has its value."""
    parameters = ", ".join(["double"] * len(xs))
    b.declared[name] = f"declare double @scipy_{name}({parameters}, i32) nounwind"

    def call(lane: int) -> Sequence[Value]:
        given = ", ".join([b.lane(x, lane).typed for x in xs])
        return [b.now("f64", f"call double @scipy_{name}({given}, i32 0)")]

    (value,) = call(0)
    found = Value("poison", "f64", xs[0].wide)
    for lane in range(xs[0].wide):
        if lane:
            same = TRUE
            for x in xs:
                pair = [b.convert("bitcast", b.lane(x, n), "i64") for n in (lane - 1, lane)]
                same = b.both(same, b.op("icmp eq", *pair))
            (value,) = b.branch(same, partial(list, [value]), partial(call, lane))
        text = f"insertelement {found.typed}, {value.typed}, i32 {lane}"
        found = b.now("f64", text, xs[0].wide)
    return found


FUNCTIONS = {name: calling(name) for name in ARITY}


def needed(text: str) -> dict[str, int]:
    """The addresses of SciPy's functions that a module calls."""
    found = {}
    for name in dict.fromkeys(re.findall(r"@scipy_(\w+)\(", text)):
        at = address(name)
        assert at is not None, f"SciPy offers no {name} to compiled code"
        found[f"scipy_{name}"] = at
    return found
