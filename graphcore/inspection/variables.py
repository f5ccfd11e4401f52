"""The variables of the user's program: which name a line gives to a node."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from graphcore.ir import Node, unwrap
from graphcore.ir.provenance import Origin, source_lines
from graphcore.ops import leaf


class Statement(NamedTuple):
    """The first line of a statement, the names it assigns, and the function whose result they are.

    There are no names if it is not an assignment, and no function if it assigns an expression.
    """

    line: int
    names: tuple[str, ...]
    function: str


def variables(nodes: Iterable[Node]) -> dict[Node, str]:
    """The names of nodes: those of inputs, and of the variables that a statement assigns.

    A statement assigns the nodes that it builds and that no other node it builds reads. There must
    be as many as names, or they are the results of one op in their order.
    """
    found: dict[Node, str] = {}
    groups: dict[tuple[str, tuple[str, int] | None, Statement], list[Node]] = {}
    key_of = {}
    for node in nodes:
        line = node.origin
        if node.op is leaf.input_:
            found[node] = node.attrs["name"]
        elif line.via is None and (statement := statement_at(line)) is not None:
            key_of[node] = line.file, line.caller, statement
            groups.setdefault(key_of[node], []).append(node)
    read = {x for node, key in key_of.items() for x in node.inputs if key_of.get(x) == key}
    for (_, _, statement), group in groups.items():
        last = [node for node in group if node not in read and node.op not in NUMBERS]
        if statement.function and any(node.said != statement.function for node in last):
            continue  # what it assigns is made of these, but is no tensor, such as a program
        several = {unwrap(node, leaf.project) for node in last}
        if (
            len(several) == 1
            and last[0] not in several
            and len(several.pop().type.items) == len(statement.names)
        ):
            found |= {node: statement.names[node.attrs["index"]] for node in last}
        elif len(last) == len(statement.names):
            found |= zip(last, statement.names, strict=True)
    return found


def statement_at(line: Origin) -> Statement | None:
    """The innermost assignment that a line belongs to, if its source is known."""
    found = statements(line.file, tuple(source_lines(line.file))).get(line.line)
    return found if found and found.names else None


@lru_cache(maxsize=64)
def statements(file: str, lines: tuple[str, ...]) -> dict[int, Statement]:
    """The innermost statement of each line of a file."""
    try:
        tree = ast.parse("".join(lines), file)
    except (SyntaxError, ValueError):  # a cell of a notebook may hold commands
        return {}
    found: dict[int, Statement] = {}
    for node in ast.walk(tree):  # outer statements come before inner ones
        if isinstance(node, ast.stmt):
            statement = Statement(node.lineno, names_of(node), function_of(node))
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found[number] = statement
    return found


NUMBERS = frozenset({leaf.full, leaf.constant, leaf.extent})


def function_of(statement: ast.stmt) -> str:
    """The name of the function whose result a statement assigns."""
    match getattr(statement, "value", None):
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return str(name)
    return ""


def names_of(statement: ast.stmt) -> tuple[str, ...]:
    """The names that a statement assigns."""
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        (target,) = statement.targets
    else:
        return ()
    several = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = [name.id for name in several if isinstance(name, ast.Name)]
    return tuple(names) if len(names) == len(several) else ()
