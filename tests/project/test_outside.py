"""Ops, rules and passes of another package reach every part of this one, and every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphcore.backends import llvm_kernels

ROOT = Path(__file__).parents[2]

LOAD = """
import pickle, sys
import numpy as np
f = pickle.load(sys.stdin.buffer)
print("tests.outside.ops" in sys.modules, f(np.ones((2, 4)))["dx"].shape)
for _ in range(3):
    f = pickle.load(sys.stdin.buffer)
    print(f.target.name, f(np.array([800.0]))[0], "sums doubled" in f.stages.every)
"""

TWICE = """
from graphcore.ops.elementwise import elementwise
elementwise("exp", "another one", module="mine")
"""


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments], input=given, capture_output=True, check=False, cwd=ROOT
    )


def test_ops_rules_and_passes_of_another_package() -> None:
    made = run("-m", "tests.outside.program")
    assert made.returncode == 0, made.stderr.decode()
    loaded = run("-c", LOAD, given=made.stdout)
    targets = ["native" if llvm_kernels.unavailable() is None else "numpy", "numpy", "steps"]
    wanted = ["True (2, 4)", *(f"{name} [799.30685282] True" for name in targets)]
    assert loaded.stdout.decode().splitlines() == wanted, loaded.stderr.decode()


def test_two_ops_of_one_name_are_refused() -> None:
    refused = run("-c", TWICE)
    assert b"op elementwise.exp is declared twice, in graphcore.ops.elementwise and in mine" in (
        refused.stderr
    )


PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "energies"
version = "1.0"

[tool.hatch.build.targets.wheel]
only-include = ["energies.py"]
"""

USE = """
import numpy as np
import scipy.special
import energies
import graphcore as gc
x = gc.tensor("x", {"row": None, "col": 4})
y = energies.energy_of(energies.transformed(gc.exp(x), 0.5), "col")
given = np.random.default_rng(0).uniform(0.1, 2.0, size=(3, 4))
z = scipy.special.boxcox1p(np.exp(given), 0.5)
for native in (False, True):
    f = gc.compile([x], [y, gc.grad(y.sum(), x)], native=native and %s)
    value, slope = f(given)
    np.testing.assert_allclose(value, (z * z).sum(1))
    np.testing.assert_allclose(slope, 2 * z * (1 + np.exp(given)) ** -0.5 * np.exp(given))
    print(f.target)
print(f.stages["named"])
print(f.source)
"""


@pytest.mark.slow
def test_an_installed_package_of_ops(tmp_path: Path) -> None:
    """Its ops stay calls of NumPy; what is between them is machine code."""
    project, site = tmp_path / "project", tmp_path / "site"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "energies.py").write_bytes((ROOT / "tests" / "outside" / "ops.py").read_bytes())
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", site]
    installed = run("-m", "pip", "install", *map(str, options), str(project))
    assert installed.returncode == 0, installed.stderr.decode()
    native = llvm_kernels.unavailable() is None
    paths = os.pathsep.join([str(site), str(ROOT)])
    used = subprocess.run(
        [sys.executable, "-c", USE % native],
        capture_output=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, text=True,
    )  # fmt: skip
    assert used.returncode == 0, used.stderr
    assert "energy(%1; over col)" in used.stdout
    assert "energies.py" in used.stdout
    assert "tensor_energy(" in used.stdout
    assert ("k0(" in used.stdout) == native
