"""Public functions and their derivatives as C functions, at all sizes.

All of `CASES` take minutes; `check(name)` holds for each.
"""

from __future__ import annotations

import re
from unittest import mock

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.c_interface import FAILED
from graphcore.backends.targets import NATIVE
from graphcore.ir.errors import GraphError
from graphcore.ir.sizes import evaluate
from tests.backends.cfunction.calling import Call
from tests.backends.llvm_kernels.native import needs_machine_code
from tests.operations import CASES
from tests.operations.case import DEFAULT
from tests.ops import test_every_function as every
from tests.ops.test_ops import draw
from tests.targets import drawing
from tests.targets.comparing import attempt, near, same

pytestmark = needs_machine_code


NEEDS_PYTHON = re.compile("is a NumPy call|while the program runs|prints|calls a Python function")


def without_line(text: str) -> str:
    """What an error says but for where it was asked."""
    return "\n".join(x for x in text.splitlines() if not x.startswith("  called at"))


def check(name: str) -> str:
    """Bits of results, and words of failures, are those of a call from Python; else a refusal."""
    case, rng = CASES[name], np.random.default_rng(0)
    kept = (
        mock.patch.object(every, "Both", lambda f: f),
        mock.patch.object(drawing, "Both", lambda f: f),
    )
    with kept[0], kept[1]:
        compiled, more = every.compiled(case)
    f: gc.Compiled = compiled._for(NATIVE)  # type: ignore[attr-defined]
    try:
        c = f.cfunc()
    except GraphError as error:
        return str(error)
    for sizes in every.lengths(name, case):
        known = sizes | {dim: DEFAULT[dim] for dim in (*case.fixed, "one")}
        values = [x.values for x in draw(case, sizes)]
        for x in more:
            shape = [evaluate(size, known) for size in x.shape]
            values.append(np.asarray(rng.normal(size=shape)).astype(x.dtype))
        try:
            arrays = f._boundary.bind(values)[0]
        except GraphError:
            continue  # sizes that no arrays of C could tell apart
        expected = attempt(f._values, arrays)
        call = Call(f, c, *arrays)
        if isinstance(expected, str):
            assert call() == FAILED, sizes
            assert without_line(str(c.failure())) == without_line(expected)
            continue
        for y, z in zip(call.run(), expected, strict=True):
            assert same(y, z) or near(y, z), sizes  # LAPACK's bits depend on where arrays lie
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CASES][::32])
def test_at_every_size(name: str) -> None:
    refused = check(name)
    assert not refused or NEEDS_PYTHON.search(refused)
