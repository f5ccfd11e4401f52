"""The pieces of code in messages: found in text, and tried.

Code in a sentence is a name with a dot (`gc.fft.fft`, `x.rename`), or a call or index of a name
with all that follows (`x.at[mask].add(y)`, `lambda c: ...`). Prose has neither.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

import graphcore as gc

try:
    import xarray as xr
except ImportError:
    xr = None

HOLE = "hole"
"""What stands for the part of a message that is known only when it is raised."""

TENSORS = {"x", "y", "index", "mask"}
MODULES: dict[str, Any] = {"gc": gc, "np": np, "xr": xr}
START = re.compile(
    r"(?<![\w.'\"])(?!(?:bool|[iufc]\d+)\[)"  # but not a type, `f64[row=3]`
    r"(?:lambda [\w, ]*:|@?(?:gc|np|xr)\.[a-zA-Z]|\w+(?:\.\w+)*[\[(]|\.\w+\("
    r"|[a-z]\.[a-z_]{3,}|\{(?='))"
)
CLOSES = {"(": ")", "[": "]", "{": "}"}


def pieces(text: str) -> Iterator[str]:
    """The pieces of code in a text."""
    yield from re.findall(r"`([^`\n]+)`", text)
    at = 0
    while found := START.search(text, at):
        at = end_of(text, found.start())
        piece = text[found.start() : at]
        yield piece if piece.endswith("...") else piece.rstrip(".")


def end_of(text: str, at: int) -> int:
    """Where the code ends that begins at a place of a text."""
    if text.startswith("lambda", at):
        return (re.search(r"[;\n]|$", text[at:]) or [at]).start() + at  # type: ignore[union-attr]
    waiting: list[str] = []
    quote = ""
    while at < len(text):
        c = text[at]
        if quote:
            quote = "" if c == quote else quote
        elif waiting:
            if c in "'\"":
                quote = c
            elif c in CLOSES:
                waiting.append(CLOSES[c])
            elif c == waiting[-1]:
                waiting.pop()
        elif c in "([{":
            waiting.append(CLOSES[c])
        elif not (c.isalnum() or c in "_.@"):
            break
        at += 1
        if text[at - 1] == "}" and not waiting and not quote:
            break
    return at


def parsed(piece: str) -> ast.expr:
    """A piece as Python reads it; what begins with a dot is a method."""
    code = piece.removeprefix("@")
    code = re.sub(r"^(?=\.)", "x", code)
    return ast.parse(code, mode="eval").body


def faults(piece: str) -> Iterator[str]:
    """What is wrong with a piece of code, as far as it says without operands."""
    try:
        tree = parsed(piece)
    except SyntaxError as error:
        yield f"{piece}: no code: {error.msg}"
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield from absent(node, piece)
        if isinstance(node, ast.Call):
            yield from misfits(node, piece)


def absent(node: ast.Attribute, piece: str) -> Iterator[str]:
    """The fault of a name that a module or a tensor does not have."""
    if HOLE in ast.unparse(node) or not isinstance(node.ctx, ast.Load):
        return
    root = ast.unparse(node).split(".")[0]
    try:
        if MODULES.get(root.split("(")[0]) is not None and root in MODULES:
            eval(ast.unparse(node), dict(MODULES))
        elif isinstance(node.value, ast.Name) and root in TENSORS:
            getattr(gc.tensor("x", {"row": 3, "col": 3}), node.attr)
    except NameError:
        pass  # a part of what is computed from operands: see `run`
    except AttributeError as error:
        yield f"{piece}: {str(error).splitlines()[0]}"


def misfits(call: ast.Call, piece: str) -> Iterator[str]:
    """The fault of a call of one of our functions that does not fit its signature."""
    path = ast.unparse(call.func)
    if HOLE in path:
        return
    if isinstance(call.func, ast.Name) and path not in CALLABLE:
        yield f"{piece}: what is {path}?"
    if not path.startswith("gc.") or has_unknown_arguments(call):
        return
    try:
        function = eval(path, dict(MODULES))
        inspect.signature(function).bind(*call.args, **{k.arg: k for k in call.keywords if k.arg})
    except (AttributeError, NameError):
        pass  # see `absent` and `run`
    except TypeError as error:
        yield f"{piece}: {path}: {error}"


CALLABLE = {
    "f",
    "g",
    "unravel",
    "init",
    "update",
    "function",
    "df",
    "range",
    "slice",
    "abs",
    "len",
    "str",
    "list",
    "tuple",
    "dict",
    "dir",
}
"""Functions of Python and of the user that messages call."""


def has_unknown_arguments(call: ast.Call) -> bool:
    """Whether a call leaves its arguments open, by `...` or a star."""
    dots = any(isinstance(x, ast.Constant) and x.value is ... for x in call.args)
    return dots or any(isinstance(x, ast.Starred) for x in call.args)


def strings(tree: ast.AST) -> Iterator[str]:
    """All strings of a module but docstrings; `HOLE` stands for what an f-string fills in."""
    seen = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in seen:
            continue
        text = literal(node)
        if text is not None:
            seen |= {id(inner) for inner in ast.walk(node)}
            filled = re.sub(r"\{\d(!r)?\}", HOLE, text)  # a template of `str.format`
            yield text if filled == text else filled.replace("{{", "{").replace("}}", "}")


def literal(node: ast.AST) -> str | None:
    """The text of a string, an f-string or a sum of them."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(HOLE if literal(x) is None else str(literal(x)) for x in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = literal(left), literal(right)
            return None if both == (None, None) else "".join(HOLE if x is None else x for x in both)
    return None


def run(piece: str, scopes: Iterable[dict[str, Any]]) -> str:
    """Why a piece of code runs in none of the scopes that have all its names, or ""."""
    code = ast.Expression(parsed(piece))
    if any(isinstance(x, ast.Constant) and x.value is ... for x in ast.walk(code)):
        return ""
    why = ""
    given = {x.arg for x in ast.walk(code) if isinstance(x, ast.arg)}
    names = {x.id for x in ast.walk(code) if isinstance(x, ast.Name)} - given - set(dir(builtins))
    for scope in scopes:
        if names <= set(scope):
            try:
                eval(compile(code, "cure.py", "eval"), scope)
            except Exception as error:
                why = f"{piece}: {type(error).__name__}: {error}"
            else:
                return ""
    return why


GENERAL = """
import numpy as np
import graphcore as gc
x = gc.tensor("x", {"row": 4, "col": 4})
y, f = x * 2, lambda x: x.sum()
xs, dims, array = [x, y], ("row", "col"), np.ones((4, 4))
size, k, n, parts, mask, keep = 4, 2, 3, 2, y, 0.5
w, b, label = x.rename(col="out"), gc.tensor("b", {"out": 4}), gc.constant([0, 1, 2, 3], "col")
index = gc.constant([3, 2, 1, 0], "row")
"""
"""Operands for cures that show a general form."""


@cache
def general() -> list[dict[str, Any]]:
    """Those operands; then with `x` and `y` as vectors, numbers, factors, and of dims `y`, `w`."""
    scope: dict[str, Any] = {}
    exec(GENERAL, scope)
    vector, number = gc.tensor("v", {"row": 4}), gc.tensor("number", {})
    left, right, image = (
        gc.tensor(a + b, {a: 4, b: 4}) for a, b in (("row", "inner"), ("inner", "col"), "yw")
    )
    return [
        scope,
        {**scope, "x": vector, "y": vector, "mask": vector > 0, "array": np.ones(4)},
        {**scope, "x": number, "y": number * 2},
        {**scope, "x": left, "y": right},
        {**scope, "x": image},
    ]


def check(cure: str, scopes: list[dict[str, Any]]) -> None:
    """All code in a cure is code, and what can run does."""
    found = list(pieces(cure))
    assert [fault for piece in found for fault in faults(piece)] == []
    assert [why for piece in found if (why := run(piece, scopes))] == []
