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


Pair = tuple[gc.Tensor, gc.Tensor]


def step(c: gc.Tensor, e: gc.Tensor) -> Pair:
    return c + e, c


def both(c: Pair, e: gc.Tensor) -> tuple[Pair, None]:
    return (c[0] + e, c[1]), None


def more(c: gc.Tensor) -> gc.Tensor:
    return c + 1


def counted(i: gc.Tensor, c: gc.Tensor) -> gc.Tensor:
    return i * c


def going(c: gc.Tensor) -> gc.Tensor:
    return c.sum() < 3


def loops(x: gc.Tensor) -> int:
    last, steps = gc.scan(step, 0.0, x, dim="b")
    a = last.summ("b")  # wrong
    b = steps.dtpye  # wrong
    pair, none = gc.scan(both, (x, x), x, dim="b")
    c = pair[0].summ("b")  # wrong
    d = pair[2]  # wrong
    e = gc.fori_loop(0, 3, counted, x).summ("b")  # wrong
    f = gc.while_loop(going, more, x).summ("b")  # wrong
    g = gc.map(gc.exp, x, "b").summ("b")  # wrong
    h = gc.cond(x.sum() > 0, lambda: x, lambda: 0.0).summ("b")  # wrong
    return "text"  # wrong


def calculus(x: gc.Tensor, w: gc.Tensor) -> int:
    y, dw = gc.value_and_grad((x * w).sum(), {"w": w})
    a = dw["w"].summ("b")  # wrong
    b = y.summ("b")  # wrong
    c = gc.jacobian(x, {"w": w})["w"].summ("b")  # wrong
    d = gc.hessian(x.sum(), w).summ("b")  # wrong
    e = gc.hvp(x.sum(), [w], [w])[0].summ("b")  # wrong
    f = gc.optimize.clip_by_global_norm({"w": w}, 1.0)["w"].summ("b")  # wrong
    return "text"  # wrong


def results(x: gc.Tensor) -> int:
    a = gc.compile([x], x)(1.0).summ("b")  # wrong
    b = gc.compile([x], [x, x])(1.0)["x"]  # wrong
    c = gc.compile([x], {"y": x})(1.0)["y"].summ("b")  # wrong
    d, e, f = gc.compile([x], (x, x))(1.0)  # wrong
    g = gc.evaluate({"x": x})["x"].summ("b")  # wrong
    h = x.eval(x=1.0).summ("b")  # wrong
    return "text"  # wrong


@gc.function(x={"b": None}, returns="xarray")
def twice(x: gc.Tensor, n: int = 2) -> gc.Tensor:
    return n * x


@gc.function(x={"b": None})
def three(x: gc.Tensor, n: int = 2) -> tuple[gc.Tensor, gc.Tensor, gc.Tensor]:
    return n * x, x, x


@gc.function(x={"b": None})
def total(x: gc.Tensor) -> gc.Tensor:
    return x.sum()


@gc.function(x={"b": None})
def named(x: gc.Tensor) -> dict[str, gc.Tensor]:
    return {"y": x}


class Model:
    @gc.function(x={"b": None})
    def apply(self, x: gc.Tensor) -> gc.Tensor:
        return x.sum()


def arrays(x: gc.Tensor) -> int:
    a = total(np.ones(3)).summ()  # wrong
    b = total(np.ones(3)).sum() + total(np.ones(3)).shape[0]
    c = named([1.0])["y"].summ("b")  # wrong
    d, e = three(np.ones(3), n=3)  # wrong
    f = three(np.ones(3))[2].summ()  # wrong
    g = three(x)[2].summ()  # wrong
    h = total(x).summ()  # wrong
    i = twice(np.ones(3)).coords["b"]
    j = Model().apply(np.ones(3)) + Model().apply(x)
    return "text"  # wrong


def units(x: gc.Tensor) -> int:
    a = twice(x).summ("b")  # wrong
    b = twice(x, n=3).dtpye  # wrong
    c = twice.programm  # wrong
    d = gc.checkpoint(twice.__wrapped__)(x).summ("b")  # wrong
    e = gc.custom_pullback(twice.__wrapped__, lambda xs, y, ct: ct)(x).summ("b")  # wrong
    return "text"  # wrong


def public(x: gc.Operand, dim: gc.Dim = None, more: gc.Tree = ()) -> gc.Compiled:
    y = gc.sum(x, dim).summ("b")  # wrong
    return gc.compile(more, gc.exp(x))


def right(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
    values = twice(np.ones(3)), twice.compiled([1.0], n=3).target.name, x.eval({x: 1.0}).tolist()
    kept = gc.zeros({"b": x.sizes["b"]}, like=x) + gc.arange(w, dim="b")
    vector, unravel = gc.ravel({"x": x})
    state = gc.optimize.adam(gc.optimize.cosine_decay(0.1, 9)).init(unravel(vector))
    many: gc.Compiled = gc.compile([x], gc.tree.map(gc.exp, {"state": state, "x": [x]}))
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
