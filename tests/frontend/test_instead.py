"""Names that there are not: what is said of them, and that what is said to be written is there."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontend.core.other_names import INSTEAD
from graphcore.frontend.core.suggestions import instead

MODULES = [gc, gc.fft, gc.linalg, gc.optimize, gc.signal, gc.special, gc.tree]


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_a_cure_names_functions_that_are_there(name: str) -> None:
    cure = instead(name, "", ("row",))
    assert cure.startswith("use ")
    for path in re.findall(r"gc\.([\w.]+)", cure):
        found: object = gc
        for part in path.split("."):
            found = getattr(found, part)
    for method in re.findall(r"\bx\.(\w+)", cure):
        assert hasattr(gc.tensor("x", {"row": 3}), method)


def test_names_that_are_nearly_ours() -> None:
    assert instead("sofmax") == "did you mean gc.special.softmax?"
    assert instead("solv", "linalg") == "did you mean gc.linalg.solve?"
    assert instead("compille") == "did you mean gc.compile?"
    assert instead("zzz") == ""


@pytest.mark.parametrize("space", ["", "fft", "linalg", "optimize", "signal", "special"])
def test_a_function_of_numpy_or_scipy_is_no_misspelling(space: str) -> None:
    module = import_module(f"scipy.{space}" if space else "numpy")
    functions = [name for name in dir(module) if callable(getattr(module, name)) and name[0] != "_"]
    functions = [name for name in functions if not isinstance(getattr(module, name), type)]
    assert [name for name in functions if instead(name, space).startswith("did you mean")] == []


SHORT = ["dt", "elu", "mul", "topk", "lgamma", "long"]
STAN = ["cols", "fma", "lbeta", "lmultiply", "log1m", "log1p_exp", "logp", "trigamma", "Gamma"]


@pytest.mark.parametrize("name", SHORT + STAN)
def test_a_name_of_others_is_not_taken_for_one_of_ours(name: str) -> None:
    assert "did you mean" not in instead(name)


def test_dates_are_made_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    f = gc.compile([x := gc.tensor("x", {"row": None})], x)
    dates = pandas.date_range("2000-01-01", periods=3)
    for given in (dates, dates.values, dates[0]):
        with pytest.raises(gc.GraphTypeError, match="make numbers of dates"):
            f(given)
    assert f((dates - dates[0]) / np.timedelta64(1, "D")).tolist() == [0, 1, 2]


def test_what_comes_between_shows_no_address() -> None:
    x = gc.tensor("x", {"row": 3})
    shown = [
        *(repr(x.at), repr(x.at[1:]), repr(x.rolling(row=2)), repr(x.coarsen(row=3))),
        *(repr(x.weighted(x)), repr(gc.compile([x], x))),
    ]
    assert not any("0x" in text for text in shown), shown


def test_names_that_libraries_look_for_do_not_import_scipy() -> None:
    """Pandas and others ask objects for many attributes: that should cost no import."""
    program = (
        "import sys, graphcore as gc; x = gc.tensor('x', ('i',)); "
        "assert not any(hasattr(x, name) for name in ('columns', 'data_vars', 'to_numpy', 'iloc'));"
        "print('scipy.signal' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
