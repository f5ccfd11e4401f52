"""A compiled program as one Python file that needs NumPy alone, and SciPy where it uses that.

The file has the checks of arguments, the function of NumPy calls as `source` shows it, those of the
library's routines that it calls, as they are written here, and what errors say of its lines. Names
and other strings of users are string literals or comments in it, never code.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from graphcore.backends.boundary import Boundary
from graphcore.backends.numpy_backend.errors import Failing, axis_of, failing_op, indexed_tensor
from graphcore.backends.numpy_backend.function import Function, on_line
from graphcore.backends.numpy_backend.source import Line, unpacking_line
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.op import may_raise
from graphcore.ir.provenance import described_by, user_line
from graphcore.ir.size_text import show_dim
from graphcore.ir.sizes import Size, code
from graphcore.ir.structures import Branch, stand_in
from graphcore.ops.outside import Function as Outside

from . import standalone, values
from .definitions import FUTURE, OURS, Definitions, Name, module_statements

Tree = Any

HEAD = '''"""A program of arrays, made by graphcore. It needs {needs}, and nothing else.

`program` takes the arrays, by position or by name, and returns the results. `run` computes them, on
arrays that have been checked, with sizes and memory that it is given.
"""'''
RUNTIME = "graphcore.backends.numpy_backend."
RESERVED = (
    *("program", "run", "bind", "buffers", "ndarray", "refuse", "scipy"),
    *(
        "agree",
        "labelled",
        "PARAMETERS",
        "UNKNOWNS",
        "SIZED",
        "NEEDED",
        "CHECKS",
        "ARGUMENTS",
        "STEPS",
    ),
)
"""Names that a file has for parts of its own."""
FLOATING = 'with np.errstate(all="ignore"):'
STEP, EXPLAIN = (Name(standalone.__name__, name) for name in ("Step", "explain"))
FAILING = Name(Failing.__module__, Failing.__name__)
INSTEAD = {Name(user_line.__module__, "user_line"): Name(standalone.__name__, "user_line")}


class Written(str):
    """Text of code, as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


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
        tree = ast.parse(self.run)
        parts = [x for x in tree.body if isinstance(x, ast.FunctionDef)]
        self.first, functions = parts[0], {x.name for x in parts}
        used = {x.id for x in ast.walk(tree) if isinstance(x, ast.Name)} - functions
        scope = function.code.scope
        self.used = {name: scope[name] for name in sorted(used & scope.keys(), key=natural)}
        taken = {*RESERVED, *functions, *self.used} - self.own_names()
        self.definitions = Definitions(taken, IMPORTED, INSTEAD)
        self.classes: dict[Any, str] = {}

    def own_names(self) -> set[str]:
        """The names under which the program knows definitions by these names."""
        return {
            name
            for name, value in self.used.items()
            if (of := definition_of(value)) is not None and of.name == name
        }

    def text(self, arguments: Sequence[Tree], results: Tree) -> str:
        """The whole file."""
        names = self.assignments()
        entrance = self.entrance(arguments)
        memory = self.memory()
        steps = self.steps()
        outputs = self.outputs(results)
        body = "\n\n\n".join(
            [
                *self.definitions.texts,
                "\n".join(["# ---- the program", "", names, *self.classes.values()]),
                self.run.rstrip(),
                memory,
                steps,
                f"# ---- its arguments and results\n\n{entrance}",
                outputs,
            ]
        )
        needs = "NumPy and SciPy" if "scipy" in f"{body}{[*self.definitions.imports]}" else "NumPy"
        parts = [HEAD.format(needs=needs), FUTURE, self.imports(body)]
        return "\n\n".join([*parts, f"# ---- routines of graphcore\n\n{body}\n"])

    def imports(self, body: str) -> str:
        """The statements that import all that the file needs."""
        found = {*self.definitions.imports, "import numpy as np"}
        found.update(f"import {module}" for module in MODULES if f"{module}." in body)
        found.update(line for name, line in USED.items() if name in body)
        plain = sorted(line for line in found if line.startswith("import "))
        return "\n".join([*plain, *sorted(found.difference(plain))])

    # The program

    def assignments(self) -> str:
        """A line for each global name of the program, of those that are no definitions."""
        lines = []
        for name, value in self.used.items():
            spelled = self.spell(value)
            if spelled != name:
                lines.append(f"{name} = {spelled}")
        return "\n".join(lines)

    def spell(self, value: Any) -> str:
        """A value as an expression."""
        match value:
            case bool() | int() | float() | complex() if not isinstance(value, np.generic):
                return values.number(value)
            case np.generic():
                return f"np.dtype({value.dtype.str!r}).type({values.number(value.item())})"
            case np.ndarray():
                return values.array(value)
            case np.dtype():
                return f"np.dtype({value.name!r})"
            case str():
                return values.text(value)
            case slice():
                return repr(slice(*map(whole, (value.start, value.stop, value.step))))
            case tuple():
                return f"({''.join(f'{self.spell(x)}, ' for x in value)})"
            case list():
                return f"[{', '.join(map(self.spell, value))}]"
            case partial():
                parts = [value.func, *value.args]
                return f"partial({', '.join(map(self.spell, parts))})"
        if (path := public_path(value)) is not None:
            return path
        if (of := definition_of(value)) is not None:
            return self.definitions.name(of)
        return self.spell_function(value)

    def spell_function(self, value: Any) -> str:
        """A function that one of ours has made, or that a table of ours holds."""
        module = getattr(value, "__module__", "") or ""
        if module.startswith(RUNTIME):
            for table, held in vars(module_statements(module).module).items():
                for key, entry in held.items() if isinstance(held, dict) else ():
                    if entry is value and key in module_statements(module).defined:
                        entered = self.definitions.name(Name(module, key))  # under this name
                        return f"{self.definitions.name(Name(module, table))}[{entered!r}]"
            maker, _, inner = getattr(value, "__qualname__", "").partition(".<locals>.")
            if inner and maker in module_statements(module).defined:
                function = getattr(module_statements(module).module, maker)
                cells = inspect.getclosurevars(value).nonlocals
                given = [cells.get(name, self) for name in inspect.signature(function).parameters]
                if self not in given:
                    called = self.definitions.name(Name(module, maker))
                    return f"{called}({', '.join(map(self.spell, given))})"
        found = getattr(value, "function", value)
        what = "a callback" if isinstance(found, Outside) else "an op of another package"
        name = f"{getattr(found, '__qualname__', found)!r:.60}"
        cure = "export a program without it, or pickle this one"
        raise refusal(
            f"the program runs {name}, the function of {what}, which cannot be written as text",
            cure,
        )

    def memory(self) -> str:
        """The function that makes the arrays that a call writes into."""
        sizes = self.function.code.known_sizes()
        lines, slots, made = [], dict[Any, str](), []
        for buffer in self.function.code.buffers:
            shape = [code(size, self.function.code.sizes) for size in buffer.type.shape]
            if buffer.slot not in slots:
                slots[buffer.slot] = f"m{len(slots)}"
                count = " * ".join(s if s.isalnum() else f"({s})" for s in shape) or "1"
                if all(isinstance(size, int) for size in buffer.type.shape):
                    count = str(prod(int(size) for size in shape))
                new = self.definitions.name(Name(on_line.__module__, "on_line"))
                dtype = f"np.dtype({buffer.type.dtype.name!r})"
                lines.append(f"    {slots[buffer.slot]} = {new}({count}, {dtype})")
            made.append(f"{slots[buffer.slot]}.reshape(({''.join(f'{s}, ' for s in shape)}))")
        listed = ",\n        ".join(made)
        returned = f"[\n        {listed},\n    ]" if made else "[]"
        return "\n".join(
            [
                "def buffers(sizes):",
                *unpacking_line(sizes, "sizes"),
                *lines,
                f"    return {returned}",
            ]
        )

    def steps(self) -> str:
        """The lines that may fail, with the words in which errors speak of them."""
        rows = []
        with described_by(self.function.code.graph.trace):
            for at, line in sorted(self.lines.items()):
                if may_raise(line.computes):
                    rows.append(f"    {at - self.first.lineno}: {self.step(line)},\n")
        return f"STEPS = {{\n{''.join(rows)}}}" if rows else "STEPS = {}"

    def step(self, line: Line) -> str:
        """The words of one line."""
        node = line.computes
        said = failing_op(node)
        says, step = self.definitions.name(FAILING), self.definitions.name(STEP)
        words = [*map(values.text, said[:3]), values.strings(said.dims)]
        of = [f"{says}({', '.join(words)})"]
        if line.steps or line.operands:
            loops = [(name, f"{loop.said} at {loop.origin}") for name, loop in line.steps.items()]
            of.append(values.strings(loops))
        if line.operands:
            axes = node.attrs["axes"]
            names = {size: f"values[{name!r}]" for size, name in self.function.code.sizes.items()}
            sizes = [code(indexed_tensor(node).type.shape[axis], names) for axis in axes]
            of.append(values.strings(axis_of(node, axis) for axis in axes))
            of.append(f"lambda values: ({', '.join(sizes)},)")
            of.append(values.strings(line.operands[-len(axes) :]))
        return f"{step}({', '.join(of)})"

    # Its arguments and results

    def entrance(self, arguments: Sequence[Tree]) -> str:
        """The checks of arguments, and the function that binds them to the program's."""
        define = partial(self.check_definition, "graphcore.backends.argument_checks")
        made = []
        for param in self.boundary.params:
            of = [param.number, values.text(param.name), values.strings(param.dims)]
            of += [f"np.dtype({param.dtype.name!r})", param.fixed, values.text(param.declared)]
            made.append(f"{define('Parameter')}({', '.join(map(str, of))}),")
        names = {name: f"n{i}" for i, name in enumerate(self.boundary.unknowns)}

        def size_function(size: Size) -> Any:
            return Written(f"lambda {', '.join(names.values())}: {code(size, names)}")

        checks = self.boundary.checks(size_function)
        unknown = [row(define("Unknown"), x._asdict()) for x in checks.unknowns]
        sized = [self.size_check(x) for x in checks.sized]
        needed = [
            row(
                define("Needed"),
                {
                    **x._asdict(),
                    "left": Written(self.size_check(x.left)),
                    "right": Written(self.size_check(x.right)),
                    "kind": Written(self.check_definition(x.kind.__module__, x.kind.__name__)),
                },
            )
            for x in checks.needed
        ]
        lists = {"UNKNOWNS": unknown, "SIZED": sized, "NEEDED": needed}
        forms = f"[{', '.join(self.form(form) for form in arguments)}]"
        finder = self.check_definition("graphcore.backends.arguments", "Arguments")
        lines = [
            block("PARAMETERS", [line.rstrip(",") for line in made]),
            *[block(name, rows) for name, rows in lists.items()],
            f"CHECKS = {define('Checks')}(PARAMETERS, UNKNOWNS, SIZED, NEEDED)",
            f"ARGUMENTS = {finder}({forms}, PARAMETERS)",
            "ndarray, refuse = np.ndarray, CHECKS.refuse",
        ]
        if self.boundary.labels is not None:
            checks_of = partial(self.check_definition, "graphcore.backends.label_checks")
            along = []
            for dim, numbers, constants in self.boundary.labels.dims:
                known = "".join(
                    f"({checks_of('Known')}({values.strings(map(str, index.to_pandas_index()))}), "
                    f"{values.text(words)}), "
                    for index, words in constants
                )
                along.append(f"{checks_of('Along')}({values.text(dim)}, {numbers}, ({known}))")
            made_of = f"PARAMETERS, [{', '.join(along)}]"
            lines.append(f"agree = {checks_of('LabelChecks')}({made_of}).agree")
        for param in self.boundary.params:
            i = param.number
            lines += [f"d{i}, s{i} = PARAMETERS[{i}].dtype, PARAMETERS[{i}].fixed"]
            lines += [f"convert{i} = PARAMETERS[{i}].convert"]
        return "\n".join(lines) + f"\n\n\n{self.boundary.source}"

    def check_definition(self, module: str, name: str) -> str:
        """A definition of the checks of arguments."""
        return self.definitions.name(Name(module, name))

    def size_check(self, size: Any) -> str:
        """One check of a size."""
        return row(
            self.check_definition("graphcore.backends.argument_checks", "Sized"), size._asdict()
        )

    def outputs(self, results: Tree) -> str:
        """The function that users call."""
        explain = self.definitions.name(EXPLAIN)
        returned = self.form(results, "results")
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
            f"        {FLOATING}",
            "            results = run(arrays, sizes, buffers(sizes))",
            "    except (ArithmeticError, IndexError, MemoryError, ValueError) as error:",
            f"        raise {explain}(error, {self.first.name}, STEPS) from error",
            f"    return {returned}",
        ]
        return "\n".join(lines)

    def form(self, form: Tree, results: str = "") -> str:
        """A structure of the inputs' numbers, or of the outputs of this name."""
        match form:
            case int():
                return f"{results}[{form}]" if results else str(form)
            case list() if type(form) is list:
                return f"[{', '.join(self.form(x, results) for x in form)}]"
            case dict() if type(form) is dict:
                pairs = [(self.key(key), self.form(x, results)) for key, x in form.items()]
                return f"{{{', '.join(f'{key}: {x}' for key, x in pairs)}}}"
            case tuple() if type(form) is tuple or hasattr(form, "_fields"):
                parts = "".join(f"{self.form(x, results)}, " for x in form)
                if type(form) is tuple or not results:
                    return f"({parts})"
                kind: Any = type(form)
                names = kind.__name__, *map(str, kind._fields)
                if not all(map(str.isidentifier, names)):
                    reason = f"a named tuple {names[0]!r:.60} has names that are none of Python's"
                    raise refusal(reason, CURE_FORM)
                made = f"namedtuple({values.text(names[0])}, {values.strings(names[1:])})"
                return f"{self.name_of(kind, made)}({parts})"
            case Branch(has_fields=True):
                return self.fields(form, results)
        of = form.kind if isinstance(form, Branch) else type(form)
        raise refusal(f"inputs or outputs are a {of.__name__}, a class of yours", CURE_FORM)

    def fields(self, form: Branch, results: str) -> str:
        """A dataclass: an object of one with the same fields, or a description of it."""
        static = {name: self.key(value) for name, value in form.rest}
        parts = [self.form(x, results) for x in form.parts]
        keys, fixed = values.strings(form.keys), values.strings(static)
        new = self.definitions.name(Name(stand_in.__module__, stand_in.__name__))
        name = self.name_of(form.kind, f"{new}({values.text(form.kind.__name__)}, {keys}, {fixed})")
        if results:
            return f"{name}({', '.join([*parts, *static.values()])})"
        level = self.definitions.name(Name(Branch.__module__, Branch.__name__))
        rest = "".join(f"({values.text(field)}, {value}), " for field, value in static.items())
        return f"{level}({name}, {keys}, ({''.join(f'{x}, ' for x in parts)}), ({rest}))"

    def name_of(self, kind: Any, made: str) -> str:
        """The name of a class in the file, which makes one like it."""
        number = [*self.classes, kind].index(kind)
        self.classes[kind] = f"Class{number} = {made}"
        return f"Class{number}"

    def key(self, key: Any) -> str:
        """A key of a dict, or the value of a static field."""
        match key:
            case str():
                return values.text(key)
            case None | bool() | int() | float():
                return "None" if key is None else values.number(key)
            case tuple():
                return f"({''.join(f'{self.key(x)}, ' for x in key)})"
        raise refusal(f"a dict or static field has {key!r:.60}, which no file has", CURE_FORM)


CURE_FORM = "compile it with lists, tuples, dataclasses and dicts by strings or numbers"
MODULES = ("base64", "math", "operator", "scipy.special")
"""Modules whose functions a program may call."""
USED = {
    "= namedtuple(": "from collections import namedtuple",
    "= partial(": "from functools import partial",
}
"""Imports of what a program calls."""
IMPORTED = {
    "import numpy as np": "np",
    **{f"import {module}": module for module in MODULES if "." not in module},
    **{line: line.split()[-1] for line in USED.values()},
}
"""The names that files have for what they import."""


def natural(name: str) -> tuple[str, int]:
    """The order of names: c2 before c10."""
    letters = name.rstrip("0123456789_")
    digits = name[len(letters) :].strip("_")
    return letters, int(digits) if digits.isdigit() else -1


def whole(value: Any) -> int | None:
    """A bound of a slice."""
    return None if value is None else int(value)


def row(kind: str, fields: Mapping[str, Any]) -> str:
    """A named tuple as a call, its strings as literals."""

    def spell(value: Any) -> str:
        text = isinstance(value, str) and not isinstance(value, Written)
        return values.text(value) if text else repr(value)

    given = ", ".join(f"{name}={spell(value)}" for name, value in fields.items())
    return f"{kind}({given})"


def block(name: str, rows: Sequence[str]) -> str:
    """A list with a row on each line."""
    inside = "".join(f"    {row},\n" for row in rows)
    return f"{name} = [\n{inside}]" if rows else f"{name} = []"


def definition_of(value: Any) -> Name | None:
    """The name at the top of a module of ours that a value has."""
    module = getattr(value, "__module__", None) or ""
    modules = [module] if module.startswith(OURS) else RUNTIME_MODULES if callable(value) else []
    for known in modules:
        for name in module_statements(known).defined:
            if getattr(module_statements(known).module, name, None) is value:
                return Name(known, name)
    return None


RUNTIME_MODULES = [f"{RUNTIME}{name}" for name in ("routines", "sums", "linalg", "scalars")]


def public_path(value: Any) -> str | None:
    """How NumPy, SciPy, `math` or Python call a function: "np.add", "np.add.reduce", "float"."""
    owner, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
    if isinstance(owner, np.ufunc):
        return f"{public_path(owner)}.{name}"
    if getattr(builtins, name, None) is value:
        return str(name)
    for short, module in PLACES.items():
        if getattr(importlib.import_module(module), name, None) is value:
            return f"{short}.{name}"
    return None


PLACES: Mapping[str, str] = {
    "np": "numpy",
    "np.linalg": "numpy.linalg",
    "np.fft": "numpy.fft",
    "math": "math",
    "operator": "operator",
    "scipy.special": "scipy.special",
}
