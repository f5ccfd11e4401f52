"""Cases of a file in the language of tests/cases: python tests/run_cases.py FILE [group]."""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import graphcore as gc
from tests.cases.language import NAMED, POSITIONAL, Positional, axes, total

Case = dict[str, Any]
Inputs = dict[str, gc.Tensor]
Function = Callable[[Inputs], gc.Tensor]
ORDER = {"grad2": 2, "grad3": 3}


class Wrong(Exception):
    """A case whose answer is not the expected one."""


def load(path: Path) -> list[Case]:
    cases: list[Case] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return cases


def check(case: Case, cases: list[Case], unknown: bool = False) -> None:
    """Raise Wrong, or whatever graphcore raises, unless `case` comes out as expected.

    `cases` are all of the file, as some speak of others. With `unknown`, no size is known until
    the call.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if case["kind"] == "meta":
            return check_float32(case, cases)
        for spelling in spellings(case):
            if case["kind"] == "behaviour":
                check_integer_input(case, spelling)
            check_values(case, spelling, unknown=unknown)


def spellings(case: Case) -> list[str]:
    """The ways in which `fn` is written, all of which must come out the same."""
    fn = case["fn"]
    return list(fn.values()) if isinstance(fn, dict) else [fn]


def check_float32(case: Case, cases: list[Case]) -> None:
    """The cases that the note names, with their floats in float32, to its tolerance."""
    patterns = re.findall(r"\d+\.[\w.]+(?:\.\*)?", case["note"].split(" in float32")[0])
    rtol = re.search(r"rtol (\S+?)\)", case["note"])
    chosen = [c for c in cases if any(fnmatch.fnmatch(c["id"], p) for p in patterns)]
    if not chosen or rtol is None:
        raise Wrong("the note names no cases or no tolerance")
    for other in chosen:
        for spelling in spellings(other):
            check_values(other, spelling, dtype="float32", rtol=float(rtol[1]))


def check_integer_input(case: Case, spelling: str) -> None:
    """Differentiating by an integer input is refused, whatever is asked of disconnected ones."""
    xs = inputs(case)
    y = total(function(case, spelling)(xs))
    for name, x in xs.items():
        if x.dtype.kind != "i":
            continue
        for disconnected in ("error", "zero"):
            try:
                gc.grad(y, x, disconnected=disconnected)
            except gc.GraphTypeError as error:
                if str(x.dtype) not in str(error):
                    raise Wrong(f"the refusal does not say that {name} is {x.dtype}") from None
            else:
                raise Wrong(f"the gradient by the integer input {name} is not refused")


def check_values(
    case: Case, spelling: str, dtype: str = "", rtol: float | None = None, unknown: bool = False
) -> None:
    """Everything that the case expects, computed by one compiled function."""
    xs = inputs(case, dtype, unknown)
    asked = list(questions(case, function(case, spelling), xs))
    outputs = [aligned(tensor, expected) for _, tensor, expected in asked]
    compiled = gc.compile(list(xs.values()), outputs)
    found = compiled(
        *[values(entry, x.dtype) for entry, x in zip(case["inputs"].values(), xs.values())]
    )
    allowed = case.get("tol", {}).get("rtol", 1e-10) if rtol is None else rtol
    for (label, _, expected), got in zip(asked, found, strict=True):
        compare(label, got, values(expected), allowed, case.get("compare"))


def inputs(case: Case, dtype: str = "", unknown: bool = False) -> Inputs:
    """The inputs declared, floats in `dtype`; without dims, d0, d1, ... stand for positions."""
    made = {}
    for name, entry in case["inputs"].items():
        dims = entry.get("dims", axes(len(entry["shape"])))
        sizes = [f"{name} {dim}" for dim in dims] if unknown else entry["shape"]
        own = dtype if dtype and entry["dtype"] == "float64" else entry["dtype"]
        made[name] = gc.tensor(name, dims, shape=sizes, dtype=own)
    return made


def function(case: Case, spelling: str) -> Function:
    """`fn` as a function of its inputs by name."""
    if any("dims" in entry for entry in case["inputs"].values()):
        named = eval(spelling, dict(NAMED))
        return lambda xs: tensor(named(*xs.values()))
    positional = eval(spelling, dict(POSITIONAL))
    return lambda xs: tensor(positional(*map(Positional, xs.values())))


def tensor(result: Any) -> gc.Tensor:
    if isinstance(result, Positional):
        return result.tensor
    return result if isinstance(result, gc.Tensor) else gc.constant(result)


def questions(case: Case, fn: Function, xs: Inputs) -> Iterator[tuple[str, gc.Tensor, Any]]:
    """What is asked: a label, the tensor that answers, and the expected values."""
    expected, order = case["expected"], ORDER.get(case["kind"], 1)
    y = fn(xs)
    if "value" in expected:
        yield "value", whole(y, xs, expected["value"]), expected["value"]
    if "output" in expected:
        yield "output", y, expected["output"]
    for form in ("grad", "parameter_shaped"):
        for name, entry in expected.get(form, {}).items():
            yield f"{form} {name}", derivative(y, xs[name], order), entry
            direction = towards(entry, case.get("compare"))
            below = total(derivative(y, xs[name], order - 1))
            yield f"pushforward {name}", *forward(below, xs[name], entry, direction)
    if "per_instance" in expected:
        every = instances(case, xs)
        wide = fn(every)
        for name, entry in expected["per_instance"].items():
            yield f"per_instance {name}", derivative(wide, every[name], order), entry
            if (found := each_instance(case, y, xs[name], order)) is not None:
                yield f"per_instance {name} by per", found, entry


def each_instance(case: Case, y: gc.Tensor, x: gc.Tensor, order: int) -> gc.Tensor | None:
    """The gradient of every instance, or nothing where instances mix and it is refused."""
    try:
        for _ in range(order):
            y = gc.grad(y, x, per=case["vec_dims"], disconnected="zero")
    except gc.GraphTypeError as error:
        if "mix" not in str(error):
            raise
        return None
    return y


def whole(y: gc.Tensor, xs: Inputs, expected: Any) -> gc.Tensor:
    """The value, summed unless one is expected for each place of the input."""
    if not np.ndim(values(expected)):
        return gc.sum(y)
    return gc.broadcast_like(y, next(iter(xs.values())))


def derivative(y: gc.Tensor, x: gc.Tensor, order: int) -> gc.Tensor:
    """The gradient of the sum; for higher orders of the sum of the one before."""
    for _ in range(order):
        y = gc.grad(total(y), x, disconnected="zero")
    return y


def towards(gradient: Any, how: str | None) -> np.ndarray:
    """A direction of uneven, small steps; symmetric where only that part is defined."""
    steps = np.sqrt(1.0 + np.arange(values(gradient).size)).reshape(values(gradient).shape)
    return symmetric(steps, how) if how else steps


def forward(
    y: gc.Tensor, x: gc.Tensor, gradient: Any, direction: np.ndarray
) -> tuple[gc.Tensor, np.ndarray]:
    """The derivative of `y` along a direction in forward mode, and what the gradient says it is."""
    dims = gradient["dims"] if is_labelled(gradient) else x.dims
    tangent = gc.constant(direction, dims)
    expected = np.sum(values(gradient) * direction).real
    return gc.pushforward(y, x, tangent, disconnected="zero"), expected


def instances(case: Case, xs: Inputs) -> Inputs:
    """Every input repeated along all dims that the case vectorises over."""
    sizes = {dim: size for x in xs.values() for dim, size in x.sizes.items()}
    return {
        name: gc.expand_dims(x, {d: sizes[d] for d in case["vec_dims"] if d not in x.dims})
        for name, x in xs.items()
    }


def aligned(answer: gc.Tensor, expected: Any) -> gc.Tensor:
    """The answer with its dims in the expected order."""
    return gc.transpose(answer, *expected["dims"]) if is_labelled(expected) else answer


def is_labelled(entry: Any) -> bool:
    return isinstance(entry, dict) and "data" in entry and "dims" in entry


def values(entry: Any, dtype: Any = None) -> np.ndarray:
    """The numbers of an input or of an answer."""
    if isinstance(entry, dict) and "data" in entry:
        entry = entry["data"]
    if isinstance(entry, dict):
        return np.asarray(entry["re"], dtype) + 1j * np.asarray(entry["im"])
    return np.asarray(entry, dtype)


def compare(label: str, got: np.ndarray, want: np.ndarray, rtol: float, how: str | None) -> None:
    if got.shape != want.shape:
        raise Wrong(f"{label}: shape {got.shape}, expected {want.shape}")
    if how and label.split()[0] not in ("value", "output", "pushforward"):
        got, want = symmetric(got, how), symmetric(want, how)
    if not want.size:
        return
    error = np.max(np.abs(got - want)) / max(1.0, np.max(np.abs(want)))
    if not error <= rtol:
        raise Wrong(f"{label}: off by {error:.1e}, allowed {rtol:.0e}: {got} for {want}")


def symmetric(matrix: np.ndarray, how: str) -> np.ndarray:
    """What is defined of the gradient by a matrix of which one triangle is read."""
    other = np.swapaxes(matrix, -1, -2)
    return (matrix + (np.conj(other) if how == "herm" else other)) / 2


def outcome(case: Case, cases: list[Case]) -> str:
    """Why a case fails, or nothing."""
    try:
        check(case, cases)
    except Wrong as error:
        return str(error)
    except Exception as error:  # whatever went wrong is this case's failure, not the end
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("group", nargs="?", help="the `seed` of the cases to run")
    options = parser.parse_args()
    cases = load(options.file)
    chosen = [c for c in cases if options.group in (None, c["seed"])]
    if not chosen:
        parser.error(f"no case of group {options.group!r}")
    reasons = {case["id"]: outcome(case, cases) for case in chosen}
    failed = {name: reason for name, reason in reasons.items() if reason}
    for name, reason in failed.items():
        print(f"{name}: {reason}")
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
