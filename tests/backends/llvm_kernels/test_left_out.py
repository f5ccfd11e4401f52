"""Ops that no machine code computes, and that stay calls of NumPy's, each with its reason."""

from __future__ import annotations

from graphcore.backends import llvm_kernels
from graphcore.ir.node import OPS

LEFT_OUT = {
    "a series or a recurrence of its own, not written as machine code": (
        "elementwise.beta_density elementwise.betainc_by elementwise.gamma_density "
        "elementwise.gammainc_by elementwise.hyp1f1 elementwise.zeta"
    ),
    "NumPy and SciPy compute it, from several routines of LAPACK": (
        "linalg.cofactor linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.logm "
        "linalg.lu linalg.lyapunov linalg.pinv linalg.polar linalg.qr linalg.qr_complete "
        "linalg.sqrtm linalg.svd linalg.svd_full linalg.svdvals"
    ),
    "NumPy's transforms compute it": "tensor.fft tensor.irfft tensor.rfft",
    "rewrites leave none of it for a backend": (
        "leaf.tuple linalg.expm tensor.einsum tensor.log_softmax tensor.logsumexp tensor.softmax "
        "elementwise.arctan_slope elementwise.cosine elementwise.digamma_step "
        "elementwise.inversion elementwise.inversion_slope elementwise.square_complement "
        "elementwise.pseudo_huber elementwise.pseudo_huber_by_delta elementwise.pseudo_huber_by_r"
    ),
    "a user's function computes it": "tensor.callback",
    "a size is found and bound between kernels": "leaf.after leaf.as_size",
}
"""For each reason the ops that have no machine code because of it."""
REASONS = {op: reason for reason, ops in LEFT_OUT.items() for op in ops.split()}

PLAIN = {"elementwise", "tensor", "linalg", "control", "leaf", "schedule"}
WAYS = {
    "elementwise": (
        "a function of SciPy's that scipy.special.cython_special offers needs its name in ARITIES "
        "of llvm_kernels/maths/special.py, another a function in llvm_kernels/maths and an entry "
        "in FUNCTIONS of llvm_kernels/elementary.py"
    ),
}
OTHERWISE = "an entry in PLACES (places.py), SCALAR (arithmetic.py) or ALONE (routines.py)"


def test_every_op_has_machine_code_or_a_reason() -> None:
    plain = [op for op in OPS.values() if op.dialect in PLAIN and op.module.startswith("graphcore")]
    left = {str(op): op for op in plain if op not in llvm_kernels.EMITTED}
    wrong = [
        f"{name} has no machine code. Either give it some ({WAYS.get(op.dialect, OTHERWISE)}), or "
        "enter it in LEFT_OUT of test_left_out.py under the reason why it has none."
        for name, op in left.items()
        if name not in REASONS
    ]
    wrong += [
        f"{name} is no op without machine code any more: take it out of LEFT_OUT."
        for name in REASONS
        if name not in left
    ]
    assert not wrong, "\n".join(wrong)
