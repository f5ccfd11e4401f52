"""Ops declared outside of the package reach every part of it, and every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

LOAD = """
import pickle, sys
import numpy as np
f = pickle.load(sys.stdin.buffer)
print("tests.outside.ops" in sys.modules, f(np.ones((2, 4)))["dx"].shape)
"""

TWICE = """
from graphcore.ops.elementwise import elementwise
import numpy as np
elementwise("exp", np.exp, "another one", module="mine")
"""


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments], input=given, capture_output=True, check=False, cwd=ROOT
    )


def test_ops_of_another_package() -> None:
    made = run("-m", "tests.outside.program")
    assert made.returncode == 0, made.stderr.decode()
    loaded = run("-c", LOAD, given=made.stdout)
    assert loaded.stdout.split() == [b"True", b"(2,", b"4)"], loaded.stderr.decode()


def test_two_ops_of_one_name_are_refused() -> None:
    refused = run("-c", TWICE)
    assert b"op elementwise.exp is declared twice, in graphcore.ops.elementwise and in mine" in (
        refused.stderr
    )
