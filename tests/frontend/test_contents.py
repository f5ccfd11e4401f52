"""The lists of public names: whole, in themes, and short in help()."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import pydoc
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import graphcore as gc
from graphcore import frontend
from graphcore.frontend.core import contents
from graphcore.frontend.core.contents import SPACES
from graphcore.rewrites import pipeline

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {
    *("Compiled", "compile", "evaluate", "debug_print", "function", "Function", "check_grads"),
    *("save", "load", "Dim", "Operand", "Tree", "Mesh", "join_processes", "over_blocks"),
    *("GraphError", "GraphIndexError", "GraphTypeError", "GraphValueError"),
    "GraphWarning",
    *SPACES,
}
"""Public names that no module of the frontend has in its `__all__`."""
MODULES = {space: getattr(gc, space) for space in SPACES} | {"": gc}


def public(space: str) -> set[str]:
    """The names that the modules of the frontend have in `__all__`."""
    found: set[str] = set()
    for module in pkgutil.walk_packages(frontend.__path__, f"{frontend.__name__}."):
        layer = module.name.split(".")[2]
        if (layer if layer in SPACES else "") == space:
            found |= set(getattr(importlib.import_module(module.name), "__all__", ()))
    return found


@pytest.mark.parametrize("space", MODULES)
def test_dir_lists_every_public_name_once(space: str) -> None:
    names = contents.names(space)
    assert sorted(names) == sorted(set(names))
    assert set(names) == public(space) | (set() if space else OUTSIDE)
    assert sorted(dir(MODULES[space])) == sorted(names)


@pytest.mark.parametrize("space", MODULES)
def test_help_has_a_line_for_each_name(space: str) -> None:
    text = pydoc.render_doc(MODULES[space], renderer=pydoc.plaintext)
    assert len(text.splitlines()) < 300
    for name in contents.names(space):
        value = getattr(MODULES[space], name)
        if not isinstance(value, ModuleType):
            assert contents.summary(name, value).replace("`", "").removesuffix(".") in text
        assert name in text.replace(",", " ").split()


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert gc.__version__ == project["version"]
    assert "__version__" not in dir(gc)
    assert f"VERSION\n    {gc.__version__}" in pydoc.render_doc(gc, renderer=pydoc.plaintext)


X = gc.tensor("x", {"row": 3, "col": 3})
ROW = X.isel(col=0)
RESULTS = [
    gc.optimize.Optimizer,
    *map(type, (gc.linalg.qr(X), gc.linalg.lu(X), gc.linalg.svd(X), gc.linalg.eigh(X))),
    *map(type, (gc.linalg.slogdet(X), gc.linalg.polar(X), gc.top_k(ROW, 2, "row"))),
    *map(type, (gc.histogram(ROW, 2), gc.unique_all(ROW, 2))),
    *(pipeline.Pass, pipeline.Repeat, pipeline.Stage),
]


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_help_of_a_named_tuple_shows_its_fields(kind: type) -> None:
    text = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    assert len(text.splitlines()) < 45
    assert "inherited" not in text
    assert "ForwardRef" not in text
    assert set(vars(kind)["_fields"]) <= set(dir(kind))
    assert pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize("space", MODULES)
def test_signatures_show_types_without_quotes(space: str) -> None:
    for name in contents.names(space):
        value = getattr(MODULES[space], name)
        if inspect.isfunction(value):
            signature = inspect.signature(value)
            for x in (*signature.parameters.values(), signature):
                said = x.annotation if isinstance(x, inspect.Parameter) else x.return_annotation
                assert not isinstance(said, str) or repr(said) == str(said)
    assert str(inspect.signature(gc.sum)).startswith("(x: Operand, dim: Dim = None, *, where: Mask")
