"""What is compiled is the same in every process, whatever order sets of nodes and names have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPILES = """
import sys
from graphcore.ir.node import Node

factor = int(sys.argv[1])
Node.__hash__ = lambda self: id(self) * factor % 1000003  # sets of nodes in an order of their own

from benchmarks.programs import FURTHER, NAMES, Program

for name in (*NAMES, *FURTHER):
    for native in (False, True):
        if (f := Program(name).make("native" if native else "graphcore")) is not None:
            for stage, graph in f.stages.items():
                print(f"==== {name}, {native=}: {stage}", graph, sep="\\n")
            print(f"==== {name}, {native=}: source", f.source, sep="\\n")
"""


@pytest.mark.slow
def test_stages_and_sources_of_programs() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILES, factor],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONMALLOC": allocator},
            stdout=subprocess.PIPE,
            text=True,
        )
        for factor, seed, allocator in (("7919", "1", "pymalloc"), ("104729", "2", "malloc"))
    ]
    first, second = (process.communicate(timeout=300)[0].split("\n==== ") for process in running)
    assert [process.returncode for process in running] == [0, 0]
    assert len(first) == len(second) > 57 * 6
    different = [a.partition("\n")[0] for a, b in zip(first, second, strict=True) if a != b]
    assert not different
