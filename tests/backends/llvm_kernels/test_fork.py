"""A child that is forked while another thread compiles can compile, call and drop programs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphcore.backends import llvm_kernels

SCRIPT = """
import os, signal, threading, time, warnings
import numpy as np
import graphcore as gc

warnings.simplefilter("ignore")  # Python's own on fork with threads
x = gc.tensor("x", {"row": None})

@gc.function(x=("row",), native=True)
def shared(x, n):
    return gc.exp(x * n).sum()

def run(n):
    f = gc.compile([x], gc.grad(gc.sin(x * n).sum() * gc.exp(x).sum(), x), native=True)
    return f(np.ones(3)), shared(np.ones(3), n)

run(0)  # a fork within an import leaves the locks of Python's own import
ended = False
def work(start):
    for n in range(start, 10**6):
        if ended: break
        run(n)

threads = [threading.Thread(target=work, args=(start,)) for start in (1, 10**5)]
for thread in threads: thread.start()
children = []
for k in range({count}):
    time.sleep(0.01 * k)
    child = os.fork()
    if not child:
        signal.alarm(30)
        run(-k - 1)
        os._exit(0)
    children.append(child)
states = [os.waitpid(child, 0)[1] for child in children]
ended = True
for thread in threads: thread.join()
print(states)
"""


@pytest.mark.skipif(llvm_kernels.unavailable() is not None, reason="no machine code here")
@pytest.mark.slow
def test_children_of_a_process_that_compiles() -> None:
    count = 6
    command = [sys.executable, "-c", SCRIPT.replace("{count}", str(count))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.stdout == f"{[0] * count}\n", done.stdout + done.stderr
