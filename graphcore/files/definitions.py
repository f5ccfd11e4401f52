"""Definitions of this package as text, with all that they need, for files that stand alone.

A definition is a statement at the top of a module: a function, a class, or a value. It needs those
that it names, in its module or in the module that these are imported from. What it names of other
packages becomes an import.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

OURS = "graphcore."
FUTURE = "from __future__ import annotations"
VALUES = ast.Assign, ast.AnnAssign


class Name(NamedTuple):
    """A name at the top of a module."""

    module: str
    name: str


class Module:
    """The statements at the top of a module, by the names that they define or import."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.text = module, inspect.getsource(module)
        self.defined: dict[str, tuple[int, int]] = {}
        self.trees: dict[str, ast.stmt] = {}
        self.imported: dict[str, tuple[str, Name | None]] = {}
        body = ast.parse(self.text).body
        for statement, following in zip(body, [*body[1:], None], strict=True):
            first = min([statement.lineno, *[x.lineno for x in decorators(statement)]])
            last = statement.end_lineno or first
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self.imported |= imports(statement, module.__name__)
            elif isinstance(following, ast.Expr) and isinstance(statement, VALUES):
                last = following.end_lineno or last  # the docstring of a value
            for name in defined_names(statement):
                self.defined[name], self.trees[name] = (first, last), statement

    def source(self, name: str) -> str:
        """The text of the statement that defines a name."""
        first, last = self.defined[name]
        return "\n".join(self.text.splitlines()[first - 1 : last])


@cache
def module_statements(module: str) -> Module:
    """The statements of a module of this package."""
    return Module(import_module(module))


def decorators(statement: ast.AST) -> list[ast.expr]:
    """The decorators of a function or class."""
    found: list[ast.expr] = getattr(statement, "decorator_list", [])
    return found


def defined_names(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top of a module defines."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def imports(
    statement: ast.Import | ast.ImportFrom, module: str
) -> dict[str, tuple[str, Name | None]]:
    """For each name that is imported the statement that imports it alone, and where it is ours."""
    found: dict[str, tuple[str, Name | None]] = {}
    for alias in statement.names:
        known = alias.asname or alias.name
        renamed = f" as {alias.asname}" if alias.asname else ""
        if isinstance(statement, ast.Import):
            found[known.partition(".")[0]] = f"import {alias.name}{renamed}", None
            continue
        above = module.split(".")[: -statement.level] if statement.level else []
        source = ".".join([*above, *filter(None, [statement.module])])
        own = Name(source, alias.name) if source.startswith(OURS) else None
        found[known] = f"from {source} import {alias.name}{renamed}", own
    return found


def free_names(tree: ast.AST) -> list[ast.Name]:
    """The names in a statement that are no names of its own functions."""
    found: list[ast.Name] = []

    def walk(node: ast.AST, local: frozenset[str]) -> None:
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for part in (*decorators(node), *defaults(node), *annotations_of(node)):
                walk(part, local)
            for inner in body_of(node):
                walk(inner, local | bound_names(node))
            return
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            local |= {
                part.id
                for each in node.generators
                for part in ast.walk(each.target)
                if isinstance(part, ast.Name)
            }
        if isinstance(node, ast.Name) and node.id not in local:
            found.append(node)
        for child in ast.iter_child_nodes(node):
            walk(child, local)

    walk(tree, frozenset())
    return found


def body_of(node: ast.FunctionDef | ast.Lambda) -> list[ast.AST]:
    """The statements of a function, or the expression of a lambda."""
    return [*node.body] if isinstance(node, ast.FunctionDef) else [node.body]


def defaults(node: ast.FunctionDef | ast.Lambda) -> list[ast.expr]:
    """The default values of parameters."""
    return [x for x in (*node.args.defaults, *node.args.kw_defaults) if x is not None]


def annotations_of(node: ast.FunctionDef | ast.Lambda) -> list[ast.expr]:
    """The annotations of parameters and of the result."""
    found = [x.annotation for x in parameters(node) if x.annotation is not None]
    result = getattr(node, "returns", None)
    return found if result is None else [*found, result]


def parameters(node: ast.FunctionDef | ast.Lambda) -> list[ast.arg]:
    """The parameters of a function."""
    a = node.args
    several = (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg)
    return [x for x in several if x is not None]


def bound_names(node: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that are a function's own: parameters, and names that it assigns or imports."""
    found = {x.arg for x in parameters(node)}
    stack = body_of(node)
    while stack:
        part = stack.pop()
        match part:
            case ast.FunctionDef(name=name):
                found.add(name)
                continue  # its names are its own
            case (
                ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp()
            ):
                stack += [x for x in ast.walk(part) if isinstance(x, ast.NamedExpr)]
                continue
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found.update((x.asname or x.name).partition(".")[0] for x in names)
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
        stack += ast.iter_child_nodes(part)
    return found


class Definitions:
    """The definitions that a file needs, each once, under names that differ.

    Parameters
    ----------
    taken
        Names that the file uses for other values.
    imported
        Names by which the file knows what these statements import.
    instead
        Definitions that replace others.
    """

    def __init__(
        self,
        taken: Collection[str],
        imported: Mapping[str, str],
        instead: Mapping[Name, Name],
    ) -> None:
        self.taken, self.instead = {*taken, *imported.values(), *dir(builtins)}, instead
        self.imported = dict(imported)
        self.names: dict[Name, str] = {}
        self.imports: set[str] = set()
        self.texts: list[str] = []
        self.written: set[tuple[str, int]] = set()

    def name(self, of: Name) -> str:
        """The name of a definition in the file, which has it and all that it needs from now on."""
        of = self.instead.get(of, of)
        if of in self.names:
            return self.names[of]
        module = module_statements(of.module)
        if of.name not in module.defined:
            statement, own = module.imported[of.name]
            if own is not None:
                return self.name(own)
            return self.import_of(statement, of)
        if (same := self.equal(of)) is not None:
            return self.names.setdefault(of, same)
        new = of.name
        if new in self.taken:
            new = f"{of.module.rpartition('.')[2]}_{new}"
        assert new not in self.taken, f"two definitions are named {new}"
        self.taken.add(new)
        self.names[of] = new
        self.write(module, of)
        return new

    def import_of(self, statement: str, of: Name) -> str:
        """The name of an import, another one where the file has that for something else."""
        if statement not in self.imported:
            name, line = of.name, statement
            if name in self.taken:
                name = f"{of.module.rpartition('.')[2]}_{name}"
                line = f"{statement.partition(' as ')[0]} as {name}"
            self.taken.add(name)
            self.imported |= {statement: name, line: name}
            self.imports.add(line)
        elif statement.endswith(f" {self.imported[statement]}"):
            self.imports.add(statement)
        return self.imported[statement]

    def equal(self, of: Name) -> str | None:
        """The name of an equal value, as a type that several modules define alike."""
        value = getattr(sys.modules[of.module], of.name)
        for known, name in self.names.items():
            other = getattr(sys.modules[known.module], known.name)
            same = known.name == of.name and not inspect.isroutine(value)
            if same and (other == value) is True:
                return name
        return None

    def write(self, module: Module, of: Name) -> None:
        """The text of a definition, after those that it needs."""
        first, _ = module.defined[of.name]
        if (of.module, first) in self.written:
            return
        self.written.add((of.module, first))
        source, tree = module.source(of.name), module.trees[of.name]
        changes: list[tuple[int, int, str, str]] = []
        for node in free_names(tree):
            if node.id in module.defined or node.id in module.imported:
                found = self.name(Name(of.module, node.id))
                if found != node.id:
                    changes.append((node.lineno - first, node.col_offset, node.id, found))
        lines = source.split("\n")
        if self.names[of] != of.name and not isinstance(tree, VALUES):
            at = tree.lineno - first
            changes.append((at, lines[at].index(of.name), of.name, self.names[of]))
        for line, column, old, new in sorted(set(changes), reverse=True):
            raw = lines[line].encode()
            assert raw[column : column + len(old)] == old.encode()
            lines[line] = (raw[:column] + new.encode() + raw[column + len(old) :]).decode()
        self.texts.append("\n".join(lines))
