"""Functions and programs go to other processes: from scripts, notebooks, closures and classes."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import graphcore as gc

X = np.array([1.0, 2.0])


@gc.function(x=("row",), native=False)
def square(x: gc.Tensor, power: int = 2) -> gc.Tensor:
    return (x**power).sum()


class Model:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @gc.function(x=("row",), native=False)
    def apply(self, x: gc.Tensor) -> gc.Tensor:
        return (self.factor * x).sum()


def closure(factor: float) -> Any:
    @gc.function(x=("row",), native=False)
    def scaled(x: gc.Tensor, times: int = 0) -> gc.Tensor:
        return scaled(x, times - 1) if times else (factor * x).sum()

    return scaled


def helper(x: gc.Tensor) -> gc.Tensor:
    return 5 * x.sum()


def test_by_name_it_is_the_same_object() -> None:
    for f in (square, Model.apply):
        assert pickle.loads(pickle.dumps(f)) is f
        assert cloudpickle.loads(cloudpickle.dumps(f)) is f
        assert copy.copy(f) is copy.deepcopy(f) is f
    method = pickle.loads(pickle.dumps(Model(3.0).apply))
    assert method(X) == 9.0


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (closure(3.0), 9.0),
        (gc.function(x=("row",))(lambda x: 4 * x.sum()), 12.0),
        (gc.function(x=("row",))(helper), 15.0),
        (
            gc.function(x=("row",), returns="xarray", native=False, join="inner")(
                lambda x: x.sum()
            ),
            3.0,
        ),
    ],
)
def test_by_value_it_gives_the_same(f: Any, expected: float) -> None:
    again = cloudpickle.loads(cloudpickle.dumps(f))
    assert again is not f
    assert f(X) == again(X) == expected
    assert cloudpickle.loads(cloudpickle.dumps(again))(X) == expected
    assert (again.__name__, repr(again)) == (f.__name__, repr(f))
    assert again._options == f._options
    with pytest.raises((pickle.PicklingError, AttributeError), match="_token"):
        pickle.dumps(f)


def test_one_that_calls_itself_calls_its_copy() -> None:
    again = cloudpickle.loads(cloudpickle.dumps(closure(2.0)))
    assert again(X, times=3) == 6.0
    assert again.__wrapped__.__closure__[1].cell_contents is again


SCRIPT = """
import numpy as np, pickle, sys
import graphcore as gc

RATE = 3.0
def link(x): return RATE * x

@gc.function(x=("row",))
def g(x, power=2):
    return (link(x)**power).sum() + 0 * other(x)

@gc.function(x=("row",))
def other(x):
    return g(x, power=1) if False else x.sum()

def uses(x): return float(g(x))

class Model:
    def __init__(self, factor): self.factor = factor
    @gc.function(x=("row",))
    def apply(self, x): return (self.factor * x).sum()

def closure(factor):
    @gc.function(x=("row",))
    def h(x): return (factor * x).sum()
    return h

X = np.array([1.0, 2.0])
CALLS = [g, uses, Model(2.0).apply, closure(4.0), g.compiled(X)]
WANT = [45.0, 45.0, 6.0, 12.0, 45.0]

def main(run):
    for f, want in zip(CALLS, WANT):
        got = run(f)
        assert got == [want] * len(got) and got, (f, got)
    print("all right")
"""

WAYS = {
    "joblib": """
from joblib import Parallel, delayed
if __name__ == "__main__":
    main(lambda f: Parallel(2)(delayed(f)(X) for _ in range(3)))
""",
    "dask": """
import dask, xarray
if __name__ == "__main__":
    dask.config.set(scheduler="processes", num_workers=2)
    x = gc.tensor("x", ("row",))
    for f in (gc.compile([x], 2 * x), gc.function(x=("row",))(lambda x: 2 * x)):
        data = xarray.DataArray(np.arange(4.0), dims="row").chunk(row=2)
        done = xarray.apply_ufunc(f, data, dask="parallelized", output_dtypes=[float])
        assert done.compute().values.tolist() == [0.0, 2.0, 4.0, 6.0]
    main(lambda f: list(dask.compute(*[dask.delayed(f)(X) for _ in range(2)])))
""",
    "distributed": """
if __name__ == "__main__":
    from distributed import Client, LocalCluster
    with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            main(lambda f: client.gather(client.map(f, [X, X], pure=False)))
""",
    "spawn": """
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        del CALLS[3]  # a closure, which no pickle can take
        del WANT[3]
        main(lambda f: pool.map(f, [X, X]))
""",
    "ray": """
import ray
if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    main(lambda f: ray.get([ray.remote(lambda x: f(x)).remote(X) for _ in range(2)]))
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_from_a_script_or_notebook(way: str, tmp_path: Path) -> None:
    if way == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not there")
    text = SCRIPT + WAYS[way]
    file = tmp_path / "script.py"
    file.write_text(text)
    notebook = ["-c", text]  # a `__main__` without a file, as in notebooks and at the prompt
    command = [sys.executable, *(notebook if way == "joblib" else [str(file)])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.stdout.endswith("all right\n"), done.stdout + done.stderr
