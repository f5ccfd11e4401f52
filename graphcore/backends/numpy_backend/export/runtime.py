"""The modules whose definitions exported programs have in their file, whole.

They import NumPy, SciPy, Python's own modules and one another, and no two of them give one name to
different things. So their texts, one after the other, are one module.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

MODULES = (
    *("graphcore.ir.errors", "graphcore.ir.name_text", "graphcore.ir.structures"),
    *("graphcore.backends.rounding", "graphcore.backends.error_function"),
    "graphcore.backends.argument_checks",
    *("graphcore.backends.arguments", "graphcore.backends.label_checks"),
    *("graphcore.backends.failing", "graphcore.backends.numpy_backend.memory"),
    *("graphcore.backends.printing", "graphcore.backends.numpy_backend.of_scalars"),
    *("graphcore.backends.numpy_backend.sums", "graphcore.backends.numpy_backend.routines"),
    *("graphcore.backends.numpy_backend.fourier", "graphcore.backends.numpy_backend.linalg"),
    *("graphcore.ops.incomplete", "graphcore.backends.numpy_backend.special"),
    "graphcore.backends.numpy_backend.export.standalone",
)
"""Each after those that it imports."""


class Part(NamedTuple):
    """The text of a module below its imports, these as statements, and those of `MODULES`."""

    text: str
    imports: frozenset[str]
    needs: frozenset[str]


@cache
def part(name: str) -> Part:
    """The text of a module without its imports, and which of `MODULES` it imports."""
    source = inspect.getsource(import_module(name))
    last, imports, needs = 0, set(), set()
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        last = statement.end_lineno or last
        within = name.rpartition(".")[0] if getattr(statement, "level", 0) else ""
        module = f"{within}.{getattr(statement, 'module', '')}".strip(".")
        if module != "__future__" and not module.startswith("graphcore."):
            imports.add(ast.unparse(statement))
        elif module in MODULES:
            needs.add(module)
    text = "\n".join(source.splitlines()[last:]).strip("\n")
    return Part(text, frozenset(imports), frozenset(needs))


def with_needed(names: Iterable[str]) -> list[str]:
    """Some of the modules with all that they need, in order."""
    found = set(names)
    for name in reversed(MODULES):
        if name in found:
            found |= part(name).needs
    return [name for name in MODULES if name in found]


def library_names(names: Iterable[str]) -> set[str]:
    """All names that a file has from some of the modules."""
    return {name for module in with_needed(names) for name in vars(sys.modules[module])}


def place_of(value: Any) -> tuple[str, str] | None:
    """The module that defines a value, and how it is called there: by its name, or from a table."""
    loaded = [(name, vars(sys.modules[name])) for name in MODULES if name in sys.modules]
    for module, scope in loaded:
        for name, held in scope.items():
            if held is value:
                return module, name
    for module, scope in loaded:
        for name, held in scope.items():
            for key, entry in held.items() if isinstance(held, dict) and name.isupper() else ():
                if entry is value:
                    return module, f"{name}[{key!r}]"
    return None
