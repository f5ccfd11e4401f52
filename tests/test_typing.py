"""Type checkers find misspelt names and what a tensor has not, and check the code after them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import graphcore as gc

PROGRAM = """\
import numpy as np
import graphcore as gc


def method(x: gc.Tensor) -> int:
    y = x.summ("b")  # wrong
    return "text"  # wrong


def attribute(x: gc.Tensor) -> int:
    if x.dtpye == "f8":  # wrong
        return 1
    return "text"  # wrong


def iteration(x: gc.Tensor) -> int:
    for v in x:  # wrong
        print(v)
    return "text"  # wrong


def places(x: gc.Tensor) -> int:
    x[0] = 1.0  # wrong
    return "text"  # wrong


def setting(x: gc.Tensor) -> int:
    x.nmae = "y"  # wrong
    return "text"  # wrong


def labels(x: gc.Tensor) -> int:
    y = x.sel(b=1)  # wrong
    z = x.loc[1]  # wrong
    return "text"  # wrong


def values(x: gc.Tensor) -> int:
    y = float(x)  # wrong
    n = len(x)  # wrong
    return "text"  # wrong


def functions(x: gc.Tensor) -> int:
    y = gc.gradd(x, x)  # wrong
    z = gc.linalg.choleskyy(x)  # wrong
    f = gc.compile([x], x, retruns="xarray")  # wrong
    return "text"  # wrong


def derivatives(x: gc.Tensor, w: gc.Tensor) -> int:
    dx = gc.grad((x * w).sum(), x).summ("b")  # wrong
    dw = gc.grad((x * w).sum(), {"w": w})["w"].dtpye  # wrong
    y, z = gc.pushforward((x, w), x, x)
    many = gc.vectorize([y, z], {x: w})[0].summ("b")  # wrong
    return "text"  # wrong


def right(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
    y = gc.tensor("y", {"b": None, "c": "n", "d": 2})
    z = gc.tensor("z", ("b", "c"), shape=(None, 3), dtype="float32")
    total = (2 * x - w / 3 @ y).sum("b", where=x > 0) + gc.where(x > 0, z, 0.0)[{"b": 0}]
    last, partial = gc.scan(lambda c, e: (c + e, c), 0.0, x, dim="b")
    slope = gc.grad(total.sum(), [x, w])
    f = gc.compile({"x": x, "w": w}, {"total": total, "slope": slope, "last": last})
    f(np.ones(3), w=[1.0])["total"].sum()
    if not x.sizes["b"] == 3 or np.exp(x).dims == ("b",) or (x * np.float32(2) * x).ndim:
        return x.T.real
    return total.isel(b=slice(0, 3)).at[{"c": 0}].set(1.0).rename(c="d").rolling(d=3).mean()
"""
WRONG = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}
ROOT = Path(gc.__file__).parents[1]


def mypy(folder: Path) -> set[int]:
    """The lines with errors of mypy --strict."""
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir=cache", "model.py"]
    env = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return {int(n) for n in re.findall(r"^model\.py:(\d+): error", done.stdout, re.MULTILINE)}


def pyright(folder: Path) -> set[int]:
    """The lines with errors of pyright, by its fork that brings the Node.js it runs on."""
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)], "include": ["model.py"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_type_checkers_find_what_is_wrong_and_nothing_else(checker, tmp_path):
    (tmp_path / "model.py").write_text(PROGRAM)
    assert checker(tmp_path) == WRONG
