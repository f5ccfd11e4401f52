"""Exported programs need NumPy and SciPy alone, and give the same bits and the same refusals."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import graphcore as gc
from benchmarks.programs import NAMES, Program
from graphcore.backends.numpy_backend.by_function import computed_by
from graphcore.backends.numpy_backend.emit import EMIT
from graphcore.ops import tensor
from tests.operations import CASES, special
from tests.operations.case import DEFAULT
from tests.ops.test_ops import declare, draw

HOSTILE = (
    "')\nimport os\nos.abort()#",
    '"""\nraise SystemExit(1)\n"""',
    "x = __import__('os').abort()",
    "\\",
    "\\N{BULLET}",
    "\r\x0c\u2028\x00raise SystemExit(1)",
    "\ud800",
    "{0}",
    "# -*- coding: utf-7 -*-",
    "\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL X}\N{PERPENDICULAR}",
)
APART = """
import importlib, sys
{begin}
import numpy as np
for name in {names!r}:
    given = dict(np.load({folder!r} + f"/{{name}}_given.npz"))
    wanted = dict(np.load({folder!r} + f"/{{name}}_wanted.npz"))
    found = {load}(**given)
    assert list(found) == list(wanted)
    for key, value in wanted.items():
        same = found[key].dtype == value.dtype and found[key].shape == value.shape
        assert same and found[key].tobytes() == value.tobytes(), (name, key)
others = ("graphcore", "llvmlite", "opt_einsum", "networkx", "xarray")
assert {known} or all(importlib.util.find_spec(other) is None for other in others)
print(len({names!r}), "programs")
"""


def apart(
    names: list[str],
    folder: Path,
    write: Callable[[gc.Compiled, Path], None],
    load: str,
    *flags: str,
    begin: str = "import graphcore as gc",
) -> None:
    """Programs in a process of their own, which gets them from files, give the same bits."""
    for name in names:
        program = Program(name)
        given, f = program.module.inputs("tiny"), program.compiled(native=False)
        write(f, folder / name)
        np.savez(folder / f"{name}_given.npz", **given)
        np.savez(folder / f"{name}_wanted.npz", **f(**given))
    code = APART.format(begin=begin, names=names, folder=str(folder), load=load, known=not flags)
    ran = subprocess.run(
        [sys.executable, *flags, "-c", code], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == f"{len(names)} programs"


def imported(f: gc.Compiled, folder: Path, name: str = "exported") -> Any:
    """The module of an exported program."""
    path = folder / f"{name}.py"
    f.export(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def alone(names: list[str], folder: Path) -> None:
    """Programs in a process that knows no packages but NumPy and SciPy."""
    packages = folder / "packages"
    packages.mkdir()
    for package in (np, scipy):
        root = Path(package.__file__).parent
        for part in (root, *root.parent.glob(f"{root.name}.libs")):
            (packages / part.name).symlink_to(part)
    begin = f"sys.path[:0] = [{str(packages)!r}, {str(folder)!r}]"
    write = lambda f, path: f.export(path.with_suffix(".py"))
    apart(names, folder, write, "importlib.import_module(name).program", "-I", "-S", begin=begin)


def test_programs_run_with_numpy_and_scipy_alone(tmp_path: Path) -> None:
    alone(["eight_schools"], tmp_path)


@pytest.mark.slow
def test_all_programs_run_with_numpy_and_scipy_alone(tmp_path: Path) -> None:
    alone(NAMES, tmp_path)


def program(native: bool | None = False) -> gc.Compiled:
    """Sizes that depend on each other, dtypes, nested arguments and results."""
    x = gc.tensor("x", {"row": None, "col": 3})
    y = gc.tensor("y", {"row": None}, dtype="int64")
    z = gc.tensor("z", {"more": "row + 1"}, dtype="complex64")
    w = gc.tensor("w", {"other": "n"})
    table = gc.constant(np.arange(300.0).reshape(3, 100) - 0.5, ("col", "k"))
    loss = gc.linalg.norm(x.isel(row=y), dims=("row", "col")) + w.isel(other=4)
    several = [gc.dot(x, table, dim="col"), z * gc.constant([np.inf, -0.0], "edge")]
    several += [y.sum("row").astype("float64"), x.max("row")]
    outputs = {"loss": loss, 7: several, "trees": ({"a": w.cumsum("other")}, (y,))}
    return gc.compile([x, [y, {"z": z}], w], outputs, native=native)


def arguments() -> list[Any]:
    return [
        np.arange(12.0).reshape(4, 3),
        [np.array([3, 0, -1, 2]), {"z": np.ones(5, "c8")}],
        np.arange(6.0),
    ]


def leaves(tree: Any) -> list[Any]:
    if not isinstance(tree, dict | list | tuple):
        return [tree]
    return [leaf for x in (tree.values() if isinstance(tree, dict) else tree) for leaf in leaves(x)]


def test_structures_and_sizes_are_the_same(tmp_path: Path) -> None:
    f = program()
    run = imported(f, tmp_path).program
    wanted = f(*arguments())
    assert str(run(*arguments())) == str(wanted)
    x, (y, rest), w = arguments()
    assert str(run(x=x, y=y, z=rest["z"], w=w)) == str(wanted)
    same_bits(f, arguments(), tmp_path)


WRONG: dict[str, Callable[[Any, Any, Any], tuple[list[Any], dict[str, Any]]]] = {
    "too few": lambda x, y, w: ([x], {}),
    "another structure": lambda x, y, w: ([x, [y[0]], w], {}),
    "another size": lambda x, y, w: ([x[:, :2], y, w], {}),
    "sizes that differ": lambda x, y, w: ([x[:3], y, w], {}),
    "too small": lambda x, y, w: ([x, y, w[:1]], {}),
    "a dtype": lambda x, y, w: ([x * 1j, y, w], {}),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[Callable[..., Any]]:
    """A program, and the same exported."""
    f = program()
    return [f, imported(f, tmp_path_factory.mktemp("both"), "both").program]


@pytest.mark.parametrize("how", WRONG)
def test_wrong_arguments_are_refused_in_the_same_words(
    how: str, both: list[Callable[..., Any]]
) -> None:
    args, options = WRONG[how](*arguments())
    said = []
    for run in both:
        with pytest.raises((TypeError, ValueError, IndexError)) as error:
            run(*args, **options)
        said.append((type(error.value).__name__, str(error.value).splitlines()))
    assert said[0][0] == said[1][0]
    ours, theirs = ([line for line in lines if "called at" not in line] for _, lines in said)
    assert ours == theirs
    assert any("called at test_export.py:" in line for line in said[1][1])


def test_a_machine_code_program_is_exported_as_numpy_calls(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    wanted = program(native=False)(*arguments())
    found = imported(program(native=True), tmp_path).program(*arguments())
    assert [x.tobytes() for x in leaves(found)] == [x.tobytes() for x in leaves(wanted)]


def test_strings_of_users_are_no_code(tmp_path: Path) -> None:
    """Names, dims, keys and labels that would run, end a literal or break the file."""
    tensors = [
        gc.tensor(name, {f"{name} row": None, f"{name} col": 2}, dtype="float64")
        for name in HOSTILE
    ]
    outputs = {
        name: gc.print(x, name).sum(f"{name} row") * x.isel({f"{name} col": 0}).sum()
        for name, x in zip(HOSTILE, tensors, strict=True)
    }
    outputs["sizes"] = gc.arange(tensors[0].shape[0], dim=HOSTILE[0]) * 1.0
    f = gc.compile(tensors, outputs, native=False)
    module = imported(f, tmp_path)
    given = [np.full((3, 2), float(i)) for i in range(len(HOSTILE))]
    wanted, found = f(*given), module.program(*given)
    assert list(found) == [*HOSTILE, "sizes"]
    assert all(found[key].tobytes() == wanted[key].tobytes() for key in wanted)
    with pytest.raises(TypeError, match="no argument for input"):
        module.program(*given[:-1])
    tree = ast.parse((tmp_path / "exported.py").read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {
        alias.name for node in ast.walk(tree) if hasattr(node, "names") for alias in node.names
    }
    assert names.isdisjoint({"os", "SystemExit", "__import__", "abort"})


def test_named_tuples_are_returned_under_their_names(tmp_path: Path) -> None:
    Pair = namedtuple("Pair", ["left", "right"])
    x = gc.tensor("x", {})
    found = imported(gc.compile([x], [Pair(x, Pair(2 * x, x))]), tmp_path).program(2.0)
    assert type(found[0]).__name__ == "Pair"
    assert (found[0].left, found[0].right.left) == (2.0, 4.0)


def test_keys_that_are_members_of_enumerations_become_plain_ones(tmp_path: Path) -> None:
    x, Color = gc.tensor("x", {}), IntEnum("Color", ["RED"])
    assert imported(gc.compile([x], {Color.RED: x}), tmp_path).program(2.0) == {1: 2.0}


def test_only_what_is_used_is_in_the_file(tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": None})
    path = tmp_path / "small.py"
    gc.compile([x], x.sort("row")).export(path)
    text = path.read_text(encoding="utf-8")
    assert "def sort(" in text
    assert "scipy" not in text
    assert "graphcore.backends.numpy_backend.linalg" not in text
    assert "It needs NumPy, and nothing else." in text
    assert max(map(len, text.splitlines())) < 200


@dataclass
class Model:
    w: Any
    kind: Any = field(default="plain", metadata={"static": True})
    b: Any = None


@pytest.mark.parametrize("kind", [*HOSTILE, (0.5, None)])
def test_dataclasses_are_replaced_by_others_of_their_fields(kind: Any, tmp_path: Path) -> None:
    x, b = gc.tensor("x", {"row": None}), gc.tensor("b", {})
    model = Model(x, kind, [b])
    f = gc.compile([model], {"new": Model(b, kind, (2 * x,)), "x": x}, native=False)
    run = imported(f, tmp_path).program
    found = run(Model([1.0, 2.0], kind, [3.0]))["new"]
    assert (type(found).__name__, found.kind, float(found.w)) == ("Model", kind, 3.0)
    np.testing.assert_array_equal(found.b[0], [2.0, 4.0])
    for wrong in (Model([1.0], "other", [2.0]), {"w": [1.0]}):
        said = []
        for program in (f, run):
            with pytest.raises(
                TypeError, match="argument 0 must be a Model of fields 'w', 'b'"
            ) as e:
                program(wrong)
            said.append([line for line in str(e.value).splitlines() if "called" not in line])
        assert said[0] == said[1]


class Registered:
    def __init__(self, w: Any) -> None:
        self.w = w


gc.tree.register(Registered, lambda x: ((x.w,), None), lambda rest, parts: Registered(*parts))


def failing() -> tuple[gc.Compiled, dict[str, list[Any]]]:
    """A program of ops that may fail, alone and in loops, and arguments for which they do."""
    a = gc.tensor("a", {"batch": None, "row": 2, "col": 2})
    i = gc.tensor("i", {"time": None, "k": None}, dtype="int64")
    v = gc.tensor("v", {"n": None})
    root = gc.linalg.cholesky(a, dims=("row", "col"))
    picked = v.isel(n=i.isel(time=0))
    walk = lambda c, at: (c + v.isel(n=at).sum("k"), None)
    total, _ = gc.scan(walk, 0.0, i, dim="time")
    put = gc.zeros({"m": "n + 1"}).at[{"m": i.isel(time=-1)}].add(1.0)
    eyes, at, n = np.stack([np.eye(2)] * 3), np.zeros((3, 2), int), np.arange(4.0)
    indefinite, first, second, last = eyes.copy(), at.copy(), at.copy(), at.copy()
    indefinite[1] *= -1
    first[0, 1], second[1, 0], last[2, 1] = 9, -7, 4
    given = {"matrix": [indefinite, at, n], "first": [eyes, first, n], "step": [eyes, second, n]}
    given["last"] = [eyes, last, n]
    return gc.compile([a, i, v], [root, picked, total, put], native=False), given


def test_failures_have_the_same_words(tmp_path: Path) -> None:
    f, given = failing()
    run = imported(f, tmp_path).program
    words = {}
    for how, arguments in given.items():
        said = []
        for program in (f, run):
            with pytest.raises((ValueError, IndexError)) as error:
                program(*arguments)
            said.append((type(error.value).__name__, str(error.value)))
            assert error.value.__cause__ is not None
        assert said[0] == said[1]
        words[how] = said[0][1]
    assert "cholesky at test_export.py:" in words["matrix"]
    assert "for batch=1" in words["matrix"]
    assert "in step 1 (from 0) of scan at test_export.py:" in words["step"]
    assert "position 4 is outside dim 'n', which has size 4" in words["last"]


def same_bits(f: gc.Compiled, given: list[Any], folder: Path) -> None:
    """A program and the same exported give the same bits."""
    wanted, found = f(*given), imported(f, folder).program(*given)
    for a, b in zip(leaves(wanted), leaves(found), strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def check_function(name: str, folder: Path) -> None:
    """A special function is exported with its first two derivatives."""
    xs = declare(CASES[name])
    found = [CASES[name].ours(*xs)]
    with suppress(gc.GraphError, StopIteration, AttributeError, TypeError):
        for _ in range(2):
            found += [gc.grad(found[-1].sum(), next(x for x in xs[::-1] if x.dtype.kind == "f"))]
    if isinstance(found[0], gc.Tensor):
        same_bits(gc.compile(xs, found, native=False), draw(CASES[name], DEFAULT), folder)


@pytest.mark.parametrize("name", ["gammainc", "betaincinv", "hyp1f1"])
def test_special_functions_of_our_own(name: str, tmp_path: Path) -> None:
    check_function(name, tmp_path)


@pytest.mark.slow
def test_every_special_function(tmp_path: Path) -> None:
    for name in special.SPECIAL:
        check_function(name, tmp_path)


def test_sizes_that_divide(tmp_path: Path) -> None:
    """A product of quotients: a // b * c // d is none."""
    x = gc.tensor("x", {"row": None})
    v = x[{"row": slice(1, None, 2)}]
    w = x[{"row": slice(None, None, 3)}] * v.rename(row="q")
    y = gc.tanh(v - 0.5 * v.rename(row="q"))
    f = gc.compile([x], [gc.exp(gc.sin(y) + 1).sum(), gc.tanh(w + gc.sin(w))], native=False)
    for n in range(12):
        same_bits(f, [np.arange(n)], tmp_path)


def test_an_op_of_another_package_by_a_function_of_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EMIT, tensor.argmax, computed_by(np.argmax))
    x = gc.tensor("x", {"row": None, "col": 3})
    same_bits(gc.compile([x], x.argmax("col"), native=False), [np.eye(3)], tmp_path)


def test_what_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": None})
    Odd = type("Odd'name", (namedtuple("Odd", ["a"]),), {})
    for f, message in (
        (gc.compile([x], gc.callback(np.sin, x)(x)), "runs sin, the function of a callback"),
        (gc.compile([x], x, returns="xarray"), "returns DataArrays"),
        (gc.compile([x], Registered(x)), "a Registered, a class of yours"),
        (gc.compile([x], Model(x, object(), x)), "a dict or static field has <object"),
        (gc.compile([x], {object(): x}), "a dict or static field has <object"),
        (gc.compile([x], Odd(x)), 'a named tuple "Odd\'name"'),
    ):
        with pytest.raises(gc.GraphError, match="export: ") as error:
            f.export(tmp_path / "no.py")
        assert message in str(error.value)
        assert "cure: " in str(error.value)
        assert not (tmp_path / "no.py").exists()
