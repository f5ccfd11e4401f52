"""A compiled program as one Python file that needs NumPy alone, and SciPy where it uses that.

The file has the modules of the library that the program uses, the function of NumPy calls as
`source` shows it, and what errors say of its lines. Names and other strings of users are string
literals or comments in it, never code.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from graphcore.backends.boundary import Boundary
from graphcore.backends.errors import axis_of, failing_op, indexed_tensor
from graphcore.backends.numpy_backend.function import Function
from graphcore.backends.numpy_backend.source import Line, unpacking_line
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.name_text import show_dim
from graphcore.ir.op import may_raise
from graphcore.ir.provenance import described_by, user_line
from graphcore.ir.sizes import code
from graphcore.ir.structures import level_of
from graphcore.ops.outside import Function as Outside

from .expressions import Written, spell
from .runtime import library_names, part, place_of, with_needed
from .standalone import Step

Tree = Any

HEAD = '''"""A program of arrays, made by graphcore. It needs {needs}, and nothing else.

`program` takes the arrays, by position or by name, and returns the results. `run` computes them, on
arrays that have been checked, with sizes and memory that it is given.
"""

from __future__ import annotations
'''
IMPORTS = (
    *("import base64", "import math", "import operator", "import numpy as np"),
    *("from collections import namedtuple", "from functools import partial"),
)
"""What the program itself, its arguments and its results may need."""
ALWAYS = ("graphcore.backends.arguments", "graphcore.backends.numpy_backend.export.standalone")
"""The modules of the library that every program uses."""
MATRICES = "graphcore.backends.numpy_backend.linalg"
"""The module that loads SciPy where NumPy lacks a function."""
PLACES = {
    "np": "numpy",
    "np.linalg": "numpy.linalg",
    "np.fft": "numpy.fft",
    "math": "math",
    "operator": "operator",
    "scipy.special": "scipy.special",
}
"""Modules whose functions a program may call, by their names in a file."""


def refusal(reason: str, cure: str) -> GraphTypeError:
    """The error for a program that no file can hold."""
    return GraphTypeError(f"export: {reason}\n  asked at {user_line()}\n  cure: {cure}")


def file_text(
    function: Function, boundary: Boundary, arguments: Sequence[Tree], results: Tree
) -> str:
    """The text of the file."""
    return File(function, boundary).text(arguments, results)


class File:
    """The file being written."""

    def __init__(self, function: Function, boundary: Boundary) -> None:
        self.function, self.boundary = function, boundary
        with described_by(function.code.graph.trace):
            self.run, self.lines = function.code.source()
        self.tree = ast.parse(self.run)
        self.modules, self.imports = {*ALWAYS}, {*IMPORTS}
        self.classes: dict[Any, str] = {}

    def text(self, arguments: Sequence[Tree], results: Tree) -> str:
        """The whole file."""
        outputs, names = self.outputs(results), self.assignments()
        program = [
            self.memory(),
            self.steps(),
            f"# ---- its arguments and results\n\n{self.entrance(arguments)}",
            outputs,
        ]
        parts = []
        for module in with_needed(self.modules):
            text, imports, _ = part(module)
            self.imports |= imports
            parts.append(f"# ---- {module}\n\n{text}")
        parts.append("\n".join(["# ---- the program", "", *names, *self.classes.values()]))
        body = "\n\n\n".join([*parts, self.run.rstrip(), *program])
        needs = "NumPy, and SciPy for some matrices" if MATRICES in self.modules else "NumPy"
        needs = "NumPy and SciPy" if "scipy" in str(self.imports) else needs
        imported = "\n".join(sorted(self.imports, key=lambda line: (line[0] != "i", line)))
        return f"{HEAD.format(needs=needs)}\n{imported}\n\n{body}\n"

    # The program

    def assignments(self) -> list[str]:
        """A line for each global name of the program that the library does not define."""
        scope = self.function.code.scope
        used = {x.id for x in ast.walk(self.tree) if isinstance(x, ast.Name)} & scope.keys()
        spelled = [(name, self.spell(scope[name])) for name in sorted(used, key=natural)]
        new = [(name, value) for name, value in spelled if name != value]
        clash = library_names(self.modules) & {name for name, _ in new}
        assert not clash, f"the file has other things of the names {clash}"
        return [f"{name} = {value}" for name, value in new]

    def spell(self, value: Any) -> str:
        """A value as an expression."""
        return spell(value, self.name_of)

    def name_of(self, value: Any) -> str:
        """How the file calls a function or class: of NumPy, SciPy, Python, or the library."""
        owner, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
        if isinstance(owner, np.ufunc):
            return f"{self.name_of(owner)}.{name}"
        if getattr(builtins, name, None) is value:
            return str(name)
        for short, module in PLACES.items():
            if getattr(sys.modules.get(module), name, None) is value:
                self.imports |= {f"import {module}"} if module.startswith("scipy") else set()
                return f"{short}.{name}"
        if (place := place_of(value)) is not None:
            self.modules.add(place[0])
            return place[1]
        found = getattr(value, "function", value)
        what = "a callback" if isinstance(found, Outside) else "an op of another package"
        name = f"{getattr(found, '__qualname__', found)!r:.60}"
        raise refusal(
            f"the program runs {name}, the function of {what}, which cannot be written as text",
            "export a program without it, or pickle this one",
        )

    def memory(self) -> str:
        """The function that makes the arrays that a call writes into."""
        sizes, lines, made = self.function.code.known_sizes(), list[str](), list[str]()
        slots = dict[Any, str]()
        for buffer in self.function.code.buffers:
            shape = [code(size, self.function.code.sizes) for size in buffer.type.shape]
            if buffer.slot not in slots:
                slots[buffer.slot] = f"m{len(slots)}"
                count = " * ".join(s if s.isalnum() else f"({s})" for s in shape) or "1"
                if all(isinstance(size, int) for size in buffer.type.shape):
                    count = str(prod(int(size) for size in shape))
                dtype = self.spell(buffer.type.dtype)
                self.modules.add("graphcore.backends.numpy_backend.memory")
                lines.append(f"    {slots[buffer.slot]} = on_line({count}, {dtype})")
            made.append(f"{slots[buffer.slot]}.reshape(({''.join(f'{s}, ' for s in shape)}))")
        listed = ",\n        ".join(made)
        returned = f"[\n        {listed},\n    ]" if made else "[]"
        head = ["def buffers(sizes):", *unpacking_line(sizes, "sizes")]
        return "\n".join([*head, *lines, f"    return {returned}"])

    def steps(self) -> str:
        """The lines that may fail, with the words in which errors speak of them."""
        first = next(x.lineno for x in self.tree.body if isinstance(x, ast.FunctionDef))
        with described_by(self.function.code.graph.trace):
            rows = [
                f"    {at - first}: {self.spell(self.step(line))},\n"
                for at, line in sorted(self.lines.items())
                if may_raise(line.computes)
            ]
        return f"STEPS = {{\n{''.join(rows)}}}" if rows else "STEPS = {}"

    def step(self, line: Line) -> Step:
        """The words of one line."""
        node = line.computes
        loops = tuple((name, f"{loop.said} at {loop.origin}") for name, loop in line.steps.items())
        if not line.operands:
            return Step(failing_op(node), loops)
        axes = node.attrs["axes"]
        names = {size: f"values[{name!r}]" for size, name in self.function.code.sizes.items()}
        shape = indexed_tensor(node).type.shape
        sizes: Any = Written(
            f"lambda values: ({''.join(f'{code(shape[x], names)}, ' for x in axes)})"
        )
        said = tuple([axis_of(node, axis) for axis in axes])
        return Step(failing_op(node), loops, said, sizes, tuple(line.operands[-len(axes) :]))

    # Its arguments and results

    def entrance(self, arguments: Sequence[Tree]) -> str:
        """The checks of arguments, and the function that binds them to the program's."""
        params = self.boundary.params
        known = [(x.number, x.name, x.dims, x.dtype, x.fixed, x.declared) for x in params]
        checks = self.boundary.checks
        lines = [
            block("PARAMETERS", [f"Parameter{self.spell(of)}" for of in known]),
            block("UNKNOWNS", map(self.spell, checks.unknowns)),
            block("SIZES", map(self.spell, checks.sizes)),
            "CHECKS = Checks(PARAMETERS, UNKNOWNS, SIZES)",
            f"ARGUMENTS = Arguments([{', '.join(map(self.form, arguments))}], PARAMETERS)",
            "ndarray, refuse = np.ndarray, CHECKS.refuse",
            *self.labels(),
        ]
        for i in range(len(params)):
            lines += [f"d{i}, s{i} = PARAMETERS[{i}].dtype, PARAMETERS[{i}].fixed"]
            lines += [f"convert{i} = PARAMETERS[{i}].convert"]
        return "\n".join(lines) + f"\n\n\n{self.boundary.source}"

    def labels(self) -> list[str]:
        """The checks of labels, where there are some; labels of constants as text."""
        if self.boundary.labels is None:
            return []
        self.modules.add("graphcore.backends.label_checks")
        dims = [
            along._replace(
                constants=tuple(
                    (
                        Written(f"KnownLabels({self.spell([*map(str, index.to_pandas_index())])})"),
                        words,
                    )
                    for index, words in along.constants
                )
            )
            for along in self.boundary.labels.dims
        ]
        return [
            block("LABELS", map(self.spell, dims)),
            "agree = LabelChecks(PARAMETERS, LABELS).agree",
        ]

    def outputs(self, results: Tree) -> str:
        """The function that users call."""
        inputs = [
            f"    # {show_dim(param.name)}: {type}"
            for param, type in zip(self.boundary.params, self.boundary.types, strict=True)
        ]
        lines = [
            "def program(*args, **kwargs):",
            '    """The results for arrays in the order of the inputs, or by their names."""',
            *[line if line.isprintable() else ascii(line)[1:-1] for line in inputs],
            "    arrays, sizes = bind(ARGUMENTS.arrange(args, kwargs))",
            "    try:",
            '        with np.errstate(all="ignore"):',
            "            results = run(arrays, sizes, buffers(sizes))",
            "    except (ArithmeticError, IndexError, MemoryError, ValueError) as error:",
            "        raise explain(error, run, STEPS) from error",
            f"    return {self.form(results, 'results')}",
        ]
        return "\n".join(lines)

    def form(self, form: Tree, results: str = "") -> str:
        """A structure of the inputs' numbers, or of the outputs of this name."""
        level = level_of(form)
        if level is None:
            return f"{results}[{form}]" if results else str(form)
        kind: Any = level.kind
        parts = [Written(self.form(x, results)) for x in level.parts]
        if kind is list or kind is tuple:
            return self.spell(kind(parts))
        if kind is dict:
            pairs = zip(map(self.key, level.keys), parts, strict=True)
            return f"{{{', '.join(f'{key}: {x}' for key, x in pairs)}}}"
        if hasattr(kind, "_fields"):
            return (
                f"{self.named_tuple(kind)}({', '.join(parts)})"
                if results
                else self.spell(tuple(parts))
            )
        if not level.has_fields:
            reason = f"inputs or outputs are a {kind.__name__}, a class of yours"
            raise refusal(reason, CURE_FORM)
        static = {name: Written(self.key(value)) for name, value in level.rest}
        new = self.spell((kind.__name__, level.keys, tuple(static)))
        name = self.class_named(kind, f"stand_in{new}")
        if results:
            return f"{name}({', '.join([*parts, *static.values()])})"
        return f"Branch{self.spell((Written(name), level.keys, tuple(parts), (*static.items(),)))}"

    def named_tuple(self, kind: Any) -> str:
        """The name of a class like that of a named tuple."""
        names = kind.__name__, *map(str, kind._fields)
        if not all(map(str.isidentifier, names)):
            reason = f"a named tuple {names[0]!r:.60} has names that are none of Python's"
            raise refusal(reason, CURE_FORM)
        return self.class_named(kind, f"namedtuple{self.spell((names[0], names[1:]))}")

    def class_named(self, kind: Any, made: str) -> str:
        """The name of a class in the file, which makes one like it."""
        number = [*self.classes, kind].index(kind)
        self.classes[kind] = f"Class{number} = {made}"
        return f"Class{number}"

    def key(self, key: Any) -> str:
        """A key of a dict, or the value of a static field."""

        def refuse(part: Any) -> str:
            reason = f"a dict or static field has {key!r:.60}, which no file has"
            raise refusal(reason, CURE_FORM)

        return spell(key, refuse)


CURE_FORM = "compile it with lists, tuples, dataclasses and dicts by strings or numbers"


def natural(name: str) -> tuple[str, int]:
    """The order of names: c2 before c10."""
    letters = name.rstrip("0123456789_")
    digits = name[len(letters) :].strip("_")
    return letters, int(digits) if digits.isdigit() else -1


def block(name: str, rows: Iterable[str]) -> str:
    """A list with a row on each line."""
    inside = "".join(f"    {row},\n" for row in rows)
    return f"{name} = [\n{inside}]" if inside else f"{name} = []"
