"""Ops that no machine code computes, and that stay calls of NumPy's, each with its reason."""

from __future__ import annotations

from collections.abc import Callable

from graphcore.backends import llvm_kernels
from graphcore.ir.node import OPS
from graphcore.ir.op import Op

REASONS = {
    "elementwise": "a series or a recurrence of its own, not written as machine code",
    "linalg": "NumPy and SciPy compute it, from several routines of LAPACK",
    "fft": "NumPy's transforms compute it",
    "rewritten": "rewrites leave none of it for a backend",
    "callback": "a user's function computes it",
}
REWRITTEN = {"logsumexp", "softmax", "log_softmax", "einsum", "tuple"}


def reason(op: Op) -> str:
    if op.name in REWRITTEN:
        return REASONS["rewritten"]
    if op.name == "callback":
        return REASONS[op.name]
    return REASONS["fft" if op.name.endswith("fft") else op.dialect]


def test_what_stays_on_the_host(golden: Callable[[str, str], None]) -> None:
    plain = {"elementwise", "tensor", "linalg", "control", "leaf", "schedule"}
    ours = [op for op in OPS.values() if op.module.startswith("graphcore.")]
    left = [op for op in ours if op.dialect in plain and op not in llvm_kernels.EMITTED]
    golden("no_machine_code", "\n".join(sorted(f"{op}: {reason(op)}" for op in left)))
