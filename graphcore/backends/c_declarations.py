"""C declarations of functions, such as `int logp(size_t n, const double *x, double *value)`.

They are read from text and written as text. No library for C is needed: types are single values,
and pointers to them.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from graphcore.ir.errors import GraphError, GraphTypeError
from graphcore.ir.name_text import escape
from graphcore.ir.provenance import user_line

DTYPES = {
    **{"double": "float64", "float": "float32", "_Float16": "float16"},
    **{"double complex": "complex128", "float complex": "complex64"},
    **{"bool": "bool", "_Bool": "bool"},
    **{f"{sign}int{n}_t": f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)},
    **{"signed char": "int8", "short": "int16", "int": "int32", "long": "int64"},
    **{"unsigned char": "uint8", "unsigned short": "uint16", "unsigned int": "uint32"},
    **{"unsigned long": "uint64", "long long": "int64", "unsigned long long": "uint64"},
    **{"size_t": "uint64", "uintptr_t": "uint64"},
    **dict.fromkeys(("ssize_t", "ptrdiff_t", "intptr_t", "npy_intp", "Py_ssize_t"), "int64"),
}
"""The dtype of each type of C that a declaration may name."""
WRITTEN = {
    **{dtype: f"{dtype}_t" for dtype in DTYPES.values() if "int" in dtype},
    **{"float64": "double", "float32": "float", "float16": "_Float16", "bool": "bool"},
    **{"complex128": "double complex", "complex64": "float complex"},
}
"""The type of C that we write for each dtype."""
QUALIFIERS = {"const", "restrict", "__restrict", "__restrict__", "volatile", "register", "extern"}
KEYWORDS = {
    *("auto", "break", "case", "char", "complex", "const", "continue", "default", "do", "else"),
    *("enum", "extern", "for", "goto", "if", "inline", "register", "restrict", "return", "signed"),
    *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile"),
    *("while", "true", "false", "class", "new", "this", "template", "operator", "private"),
}
"""Words that no parameter of C may have for its name."""
EXAMPLE = "'int logp(size_t n, const double *x, double *value)'"


class CType(NamedTuple):
    """A type as it is written, without qualifiers: `double`, or a pointer to it."""

    name: str
    pointer: bool = False

    @property
    def dtype(self) -> str:
        """The dtype of one value; "" of void."""
        return DTYPES.get(self.name, "")

    @property
    def ctypes(self) -> Any:
        """The same type for ctypes; a pointer to values that ctypes does not know is `void *`."""
        if self.dtype in ("", "float16", "complex64", "complex128"):
            return ctypes.c_void_p if self.pointer else None
        one: Any = np.ctypeslib.as_ctypes_type(np.dtype(self.dtype))
        return ctypes.POINTER(one) if self.pointer else one

    def __str__(self) -> str:
        return f"{self.name} *" if self.pointer else self.name


class CParameter(NamedTuple):
    """A parameter of a C function; `constant` if the values that it points to are only read."""

    type: CType
    name: str
    constant: bool = False

    def __str__(self) -> str:
        gap = "" if self.type.pointer or not self.name else " "
        return f"{'const ' * self.constant}{self.type}{gap}{self.name}"


class Declaration(NamedTuple):
    """The declaration of a C function."""

    returns: CType
    name: str
    parameters: tuple[CParameter, ...]

    @property
    def signature(self) -> str:
        """The types alone, as SciPy compares them: `double (double, void *)`."""
        return f"{self.returns} ({', '.join([str(x.type) for x in self.parameters])})"

    def text(self, name: str) -> str:
        """The declaration of a function with another name."""
        return f"{self.returns} {name}({', '.join(map(str, self.parameters)) or 'void'})"

    def __str__(self) -> str:
        return f"{self.text(self.name)};"


def parse(text: str) -> Declaration:
    """The declaration that a text is."""
    plain = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    found = re.fullmatch(r"\s*([\w\s*]*[\s*])(\w+)\s*\(([^()]*)\)\s*;?\s*", plain)
    if found is None:
        cure = "write a type, a name, and parameters with types and names in parentheses"
        reason = f"{shown(text)} is no declaration of a C function"
        raise refuse(reason, f"one is {EXAMPLE}", cure=cure)
    head, name, inside = found.groups()
    returns = parameter(head, text)
    if returns.name or returns.type.pointer:
        reason = f"{name} returns {shown(head)}"
        raise refuse(reason, cure="return double, float, or int, which says whether a call failed")
    parts = [] if inside.strip() in ("", "void") else inside.split(",")
    parameters = tuple([parameter(part, text) for part in parts])
    names = [x.name for x in parameters if x.name]
    if twice := [x for x in dict.fromkeys(names) if names.count(x) > 1]:
        raise refuse(f"{twice[0]} is two parameters of {name}", cure="give each a name of its own")
    return Declaration(returns.type, name, parameters)


def parameter(part: str, text: str) -> CParameter:
    """The parameter that a part of a declaration is; its name is "" where it has none."""
    tokens = re.findall(r"\w+|\*|\[[^\]]*\]|\S", part)
    words = [x for x in tokens if x.isidentifier() and x not in QUALIFIERS]
    stars = [x for x in tokens if x[0] in "*["]
    odd = [x for x in tokens if not x.isidentifier() and x not in stars]
    for of, name in ((words, []), (words[:-1], words[-1:])):
        kind = type_name(of)
        if kind and not odd and len(stars) < 2:
            type = CType(kind, bool(stars))
            return CParameter(type, "".join(name), "const" in tokens and bool(stars))
    cure = "write single values and pointers to them, of double, float, int, int64_t, size_t, ..."
    raise refuse(f"{shown(part)} is no parameter that is known", f"in {shown(text)}", cure=cure)


def type_name(words: Iterable[str]) -> str:
    """The name in `DTYPES`, or void, of a type that is spelled by some words; "" if there is none.

    >>> type_name(["int", "unsigned"]), type_name(["long", "int"]), type_name(["x"])
    ('unsigned int', 'long', '')
    """
    left = [{"_Complex": "complex"}.get(x, x) for x in words]
    if left == ["void"]:
        return "void"
    if "char" not in left and "signed" in left:
        left.remove("signed")
        left = left or ["int"]
    if {"long", "short"} & {*left} and "int" in left:
        left.remove("int")
    if left == ["unsigned"]:
        left.append("int")
    wanted = sorted(left)
    return next((name for name in DTYPES if sorted(name.split()) == wanted), "")


def c_name(path: str, taken: Iterable[str] = (), otherwise: str = "x") -> str:
    """A name of C for a path such as "params['w'][0]", other than those that are taken.

    >>> c_name("params['w'][0]"), c_name("double"), c_name("2", otherwise="result")
    ('params_w_0', 'double_', 'result2')
    """
    found = "_".join(re.findall(r"\w+", path))
    if not found.isidentifier():
        found = otherwise + found
    while found in taken or found in KEYWORDS or found in DTYPES:
        found += "_"
    return found


def shown(text: str) -> str:
    """A text of the user's, on one line."""
    return f"'{escape(' '.join(text.split())):.120}'"


def refuse(reason: str, *details: str, cure: str) -> GraphError:
    """The error for a C function that cannot be made."""
    lines = [f"cfunc: {reason}", *[f"  {x}" for x in details], f"  asked at {user_line()}"]
    return GraphTypeError("\n".join([*lines, f"  cure: {cure}"]))
