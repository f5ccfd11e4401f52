"""Archives of programs: a zip file with the graph as JSON, and the arrays of constants as .npy.

The members are `program.json` and `arrays/0.npy`, `arrays/1.npy`, ..., none of them compressed. The
JSON is an object with

``format``, ``version``
    "graphcore program" and 1.
``arguments``, ``results``
    The forms of the arguments of a call and of its results. A form is the number of an input or of
    an output, or {"list": forms}, {"tuple": forms}, {"dict": [[key, form], ...]}, {"named": [name,
    names of fields, forms]} for a named tuple, or {"fields": [name, names of fields, forms, [[name,
    value], ...]]} for a dataclass, with its static fields last.
``returns``, ``native``, ``join``
    The options of `compile`; ``native`` is the target by name, true, false, or null for the rule.
``arrays``
    The number of arrays.
``graph``
    The program as it was written, in the form of `graph.to_json`, but for arrays of more than a few
    numbers, which are {"array": number}.

Nothing in an archive is run or imported: what is read is built by the type rules, and compiled.
"""

from __future__ import annotations

import io
import json
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from graphcore.inspection.json_form import Reading, Writing
from graphcore.inspection.json_parts import (
    Damaged,
    check,
    document_of,
    dtype_of,
    items,
    literal_from,
    number,
    refuse_constant,
    string,
)
from graphcore.ir import Graph, Literal, TensorType
from graphcore.ir.errors import GraphError, GraphFileNotFoundError, GraphTypeError, GraphValueError
from graphcore.ir.interrupts import is_interrupt
from graphcore.ir.provenance import user_line
from graphcore.ir.structures import Branch, level_of, stand_in
from graphcore.ops.outside import CALLBACKS

Form = Any
FORMAT, VERSION = "graphcore program", 1
PROGRAM = "program.json"
NAMES = "arguments", "results", "returns", "native", "join", "arrays", "graph"


class Program(NamedTuple):
    """A program in an archive: all that `Compiled` is made of."""

    graph: Graph
    arguments: list[Form]
    results: Form
    returns: Any
    native: Any
    join: Any


def refusal(function: str, reason: str, cure: str) -> GraphTypeError:
    """The error for a program that no archive can hold."""
    lines = f"{function}: {reason}\n  asked at {user_line()}\n  cure: {cure}"
    return GraphTypeError(lines)


# ---- writing


def write(program: Program, file: Path) -> None:
    """Write an archive."""
    arrays: list[np.ndarray[Any, Any]] = []
    writing = Writing(arrays)
    graph, arguments, results, returns, native, join = program
    for node in graph.every_node():
        if node.op in CALLBACKS:
            name = f"{node.attrs['function']!r:.60}"
            reason = f"a file cannot hold {name}, a Python function of gc.callback"
            raise refusal("save", reason, "save a program without it, or pickle this one")
    if not (native is None or isinstance(native, bool | str)):
        reason = f"a file cannot hold the target {native.name!r}, which is an object"
        raise refusal("save", reason, "save a program for another target, or pickle this one")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "arguments": [form_data(form, writing) for form in arguments],
        "results": form_data(results, writing),
        "returns": returns,
        "native": native,
        "join": join,
        "graph": writing.document(graph),
        "arrays": len(arrays),
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    with ZipFile(file, "w", ZIP_STORED) as archive:
        archive.writestr(PROGRAM, text)
        for at, array in enumerate(arrays):
            data = io.BytesIO()
            np.lib.format.write_array(data, array, version=(1, 0), allow_pickle=False)
            archive.writestr(member(at), data.getvalue())


def member(at: int) -> str:
    """The name of an array in an archive."""
    return f"arrays/{at}.npy"


def form_data(form: Form, writing: Writing) -> Any:
    """A form."""
    level = level_of(form)
    if level is None:
        return form
    kind: Any = level.kind
    parts = [form_data(x, writing) for x in level.parts]
    if kind is list or kind is tuple:
        return {kind.__name__: parts}
    if kind is dict:
        keys = [simple(key, f"a dict has the key {key!r:.60}", writing) for key in level.keys]
        return {"dict": [[key, x] for key, x in zip(keys, parts, strict=True)]}
    if hasattr(kind, "_fields"):
        return {"named": [kind.__name__, list(kind._fields), parts]}
    if level.has_fields:
        static = [
            [name, simple(x, f"a static field is {x!r:.60}", writing)] for name, x in level.rest
        ]
        return {"fields": [kind.__name__, list(level.keys), parts, static]}
    cure = "compile it with lists, tuples, dicts and dataclasses, or pickle it"
    raise refusal("save", f"inputs or outputs are a {kind.__name__}, a class of yours", cure)


def simple(value: Any, reason: str, writing: Writing) -> Any:
    """A string, a number or a tuple of them."""
    try:
        check(value is None or isinstance(value, str | int | float | tuple), "")
        return writing.value(value, False)
    except (Damaged, TypeError):
        cure = "use strings, numbers or tuples of them"
        raise refusal("save", reason, cure) from None


# ---- reading


def read(file: Path) -> Program:
    """The program in an archive, refused if anything in it is not as it should be."""
    try:
        with ZipFile(file) as archive:
            return of_members(members(archive, file.stat().st_size))
    except Damaged as error:
        refuse(file, str(error))
    except FileNotFoundError as error:
        lines = f"load: there is no file {str(file)!r:.200}\n  asked at {user_line()}"
        cure = f"give its whole path, or that from the working directory, {str(Path.cwd())!r:.200}"
        raise GraphFileNotFoundError(f"{lines}\n  cure: {cure}") from error
    except OSError as error:
        refuse(file, error.strerror or str(error), "cannot be read", error)
    except GraphError as error:
        refuse(file, str(error).splitlines()[0])
    except Exception as error:  # of zipfile, json and NumPy, on data that no one has written
        if is_interrupt(error):
            raise
        refuse(file, f"{type(error).__name__}: {error}")


def refuse(
    file: Path, reason: str, how: str = "holds no program", cause: Exception | None = None
) -> NoReturn:
    """The error for a file that holds no program, or that cannot be read."""
    said = " ".join(reason.split())[:300]
    raise GraphValueError(
        f"load: {file.name!r:.80} {how}: {said}\n  asked at {user_line()}\n"
        "  cure: give a file that gc.save of this version wrote, unchanged"
    ) from cause


def members(archive: ZipFile, size: int) -> dict[str, bytes]:
    """The data of all members, which are not compressed: together no more than the file."""
    found: dict[str, bytes] = {}
    left = size
    for info in archive.infolist():
        name = f"member {info.filename!r:.40}"
        plain = info.compress_type == ZIP_STORED and not info.flag_bits & 1
        check(plain and info.file_size == info.compress_size, f"{name} is compressed")
        check(info.filename not in found, f"{name} occurs twice")
        left -= info.file_size
        check(left >= 0, "the members are larger than the file")
        found[info.filename] = archive.read(info)
    return found


def of_members(data: dict[str, bytes]) -> Program:
    """The program of an archive's members."""
    check(PROGRAM in data, f"there is no {PROGRAM}")
    document = json.loads(data[PROGRAM].decode("utf-8"), parse_constant=refuse_constant)
    parts = document_of(document, FORMAT, VERSION, *NAMES)
    arguments, results, returns, native, join, count, graph = parts
    check(0 <= number(count, "arrays") < len(data), "arrays are missing")
    names = [member(at) for at in range(count)]
    check(data.keys() == {PROGRAM, *names}, "the members are not those that the text lists")
    literals = [literal(data[name], name) for name in names]
    reading = Reading(graph, literals)
    check(returns in ("numpy", "xarray"), "returns is not an option of gc.compile")
    known = native is None or isinstance(native, bool | str)
    check(known, "native is not an option of gc.compile")
    check(join in ("exact", "override", "inner"), "join is not an option of gc.compile")
    program = reading.graphs[-1]
    tensors = all(isinstance(x.type, TensorType) for x in (*program.params, *program.outputs))
    check(tensors, "an input or a result is several tensors")
    given, made = Forms(reading), Forms(reading)
    forms = [given.form(x, 0) for x in items(arguments, "arguments")]
    result = made.form(results, 0)
    for name, some, nodes in (
        ("arguments", given.numbers, program.params),
        ("results", made.numbers, program.outputs),
    ):
        check(
            some == list(range(len(nodes))), f"{name} do not list the tensors of the graph in order"
        )
    return Program(program, forms, result, returns, native, join)


def literal(data: bytes, name: str) -> Literal:
    """An array in NumPy's format, which holds numbers."""
    file = io.BytesIO(data)
    check(np.lib.format.read_magic(file) == (1, 0), f"{name} has an unknown version")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    check(not by_columns, f"{name} is not row-major")
    check(all(size >= 0 for size in shape), f"{name} has an impossible shape")
    return literal_from(file.read(), dtype_of(dtype.str, name), shape, name)


DEPTH = 100
"""How deeply forms are nested at most."""


class Forms:
    """Reads forms, and notes the numbers in them in order."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.numbers: list[int] = []

    def form(self, value: Any, depth: int) -> Form:
        """One form."""
        check(depth < DEPTH, "a form is nested too deeply")
        if not isinstance(value, dict):
            self.numbers.append(number(value, "a form"))
            return value
        check(len(value) == 1, "a form does not have exactly one kind")
        ((kind, parts),) = value.items()
        parts = items(parts, "a form")
        if kind == "dict":
            pairs = [items(x, "an entry of a dict", 2) for x in parts]
            keys = [self.simple(key, "a key") for key, _ in pairs]
            check(len(set(keys)) == len(keys), "a dict has the same key twice")
            return {key: self.form(x, depth + 1) for key, (_, x) in zip(keys, pairs, strict=True)}
        if kind == "named":
            name, names, inner = items(parts, "a named tuple", 3)
            build: Any = namedtuple
            fields = [string(x, "a field") for x in items(names, "names")]
            made = build(string(name, "a name"), fields)
            return made._make([self.form(x, depth + 1) for x in items(inner, "a form")])
        if kind == "fields":
            name, names, inner, others = items(parts, "a dataclass", 4)
            moving = [string(x, "a field") for x in items(names, "names")]
            inner = [self.form(x, depth + 1) for x in items(inner, "a form")]
            check(len(inner) == len(moving), "a dataclass does not have one form for each field")
            pairs = [items(x, "a static field", 2) for x in items(others, "static fields")]
            rest = [(string(x, "a field"), self.simple(value, "a value")) for x, value in pairs]
            static, name = [x for x, _ in rest], string(name, "a name")
            plain = all(x.isidentifier() and x[:2] != "__" for x in (name, *moving, *static))
            check(plain, "the names of a dataclass are not names of Python")
            made = stand_in(name, moving, static)
            return Branch(made, tuple(moving), tuple(inner), tuple(rest))
        check(kind in ("list", "tuple"), f"a form is of the unknown kind {kind!r:.20}")
        inner = [self.form(x, depth + 1) for x in parts]
        return inner if kind == "list" else tuple(inner)

    def simple(self, value: Any, name: str) -> Any:
        """A string, a number or a tuple of them."""
        found = self.reading.value(value, name)
        plain = found is None or isinstance(found, str | int | float | tuple)
        check(plain, f"{name} is not a string, a number or a tuple")
        return found
