"""A limit of the address space is an error, or leaves a program to NumPy; LLVM would abort."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphcore.backends import llvm_kernels

SCRIPT = """
import resource, sys
from pathlib import Path
import numpy as np
import graphcore as gc

x = gc.tensor("x", {"row": None})
gc.compile([x], gc.exp(x).sum(), native=True)(np.ones(3))
y = gc.sin(x).sum()
for k in range(10):
    y = y + gc.sin(gc.cbrt(x**2 + 0.1 * k)).sum()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20),) * 2)
try:
    gc.compile([x], [y, gc.grad(y, x)], native=True)(np.ones(3))
except gc.GraphError as error:
    print(error)
f = gc.compile([x], y, target="numpy")
print(float(f(np.ones(3))) > 0, f.target)
"""


@pytest.mark.slow
@pytest.mark.skipif(llvm_kernels.unavailable() is not None, reason="no machine code here")
def test_too_little_for_machine_code() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    refused, cure, runs = done.stdout.splitlines()
    assert refused.startswith("compile: the limit of the address space leaves too little")
    assert cure == "  cure: raise the limit (ulimit -v), or compile with native=False"
    assert runs == "True NumPy calls, as target='numpy'"
