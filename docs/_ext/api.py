"""Directives of the API pages, which take the public names by theme from the package.

`{names} THEME` is a table with one line for each name of a theme, and `{entries} SECTION` describes
the names of one section. Themes and sections are those of `graphcore.frontend.core.contents`; a
module of `gc`, such as `linalg`, is a theme of its own name. `{methods} CLASS` is a table of the
public methods and properties of a class, and `{members} CLASS` describes them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.ext.napoleon.docstring import NumpyDocstring
from sphinx.util.docutils import SphinxDirective

import graphcore as gc
from graphcore.frontend.core import contents
from graphcore.ir.help_text import as_written

CLASSES = {"Tensor": gc.Tensor, "Compiled": gc.Compiled}


class Written(SphinxDirective):
    """A directive that stands for reStructuredText: the lines that `write` gives for its name."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The nodes of the text."""
        lines = ["```{eval-rst}", *self.write(self.arguments[0]), "```"]
        found = nodes.Element()
        self.state.nested_parse(StringList(lines, self.env.docname), self.content_offset, found)
        return found.children


class Names(Written):
    """A table of the names of a theme."""

    def write(self, name: str) -> Iterator[str]:
        """One row for each function, with its other names."""
        space, parts = theme(name)
        if space:
            yield from (f".. py:module:: graphcore.{space}", "")
        yield from table()
        for listed in parts.values():
            for group in contents.group_names(listed, vars(module(space))):
                value = getattr(module(space), group[0])
                links = ", ".join(f":py:obj:`{x} <{path(space, x)}>`" for x in group)
                yield from row(links, contents.summary(group[0], value))


class Entries(Written):
    """The descriptions of the names of one section."""

    def write(self, name: str) -> Iterator[str]:
        """One entry for each function; its other names refer to it."""
        space, listed = section(name)
        for group in contents.group_names(listed, vars(module(space))):
            main, *others = group
            value = getattr(module(space), main)
            yield from entry(path(space, main), main, value)
            for other in others:
                yield from (
                    "",
                    f".. py:function:: {path(space, other)[10:]}(...)",
                    "   :module: graphcore",
                    "",
                )
                yield f"   Another name of :py:obj:`{main} <{path(space, main)}>`."


class Result(Written):
    """The description of a class of results, by its place in the package.

    Users do not import the class, so its entry shows and indexes the bare name.
    """

    def write(self, name: str) -> Iterator[str]:
        """The entry of the class with its members."""
        place, _, kind = name.rpartition(".")
        made = getattr(import_module(f"graphcore.{place}"), kind)
        fields = getattr(made, "_fields", None)
        head = f"class:: {kind}" + (f"({', '.join(fields)})" if fields else "")
        yield from self.bare(head, made, "")
        for member, value in own_members(made):
            head = (
                f"property:: {member}"
                if is_property(value)
                else f"method:: {member}{without_first(value)}"
            )
            yield from self.bare(head, value, "   ")

    def bare(self, head: str, value: object, indent: str) -> Iterator[str]:
        """An entry without a module."""
        text = NumpyDocstring(inspect.getdoc(value) or "", self.config)
        yield from ("", f"{indent}.. py:{head}", f"{indent}   :module:", "")
        yield from (f"{indent}   {line}" for line in text.lines())


class Methods(Written):
    """A table of the public members of a class."""

    def write(self, name: str) -> Iterator[str]:
        """One row for each method and property."""
        yield from table()
        for member, value in members(CLASSES[name]):
            yield from row(f":py:obj:`{member} <graphcore.{name}.{member}>`", first_line(value))


class Members(Written):
    """The descriptions of the public members of a class."""

    def write(self, name: str) -> Iterator[str]:
        """An entry for each member; a method that is also a function of `gc` is described there."""
        for member, value in members(CLASSES[name]):
            full = f"graphcore.{name}.{member}"
            if name == "Tensor" and vars(gc).get(member) is value:
                yield from ("", f".. py:method:: Tensor.{member}{without_first(value)}")
                yield from ("   :module: graphcore", "")
                yield f"   {first_line(value)} See :py:obj:`gc.{member} <graphcore.{member}>`."
            else:
                yield from method(full, value)


def table() -> Iterator[str]:
    """The head of a table of two columns."""
    yield from (".. list-table::", "   :class: names", "   :widths: auto", "   :header-rows: 1", "")
    yield from row("name", "what it is or gives")


def row(left: str, right: str) -> Iterator[str]:
    """A row of a table."""
    yield from (f"   * - {left}", f"     - {right}")


def entry(full: str, name: str, value: Any) -> Iterator[str]:
    """The entry of a function, class or type."""
    if name in contents.ALIASES:
        yield from ("", f".. py:type:: {name}", "   :module: graphcore", "")
        yield f"   {contents.ALIASES[name]}"
    elif inspect.isclass(value):
        if issubclass(value, Exception):
            yield from ("", f".. autoexception:: {full}")
        elif value in CLASSES.values():
            yield from ("", f".. autoclass:: {full}")
        else:
            yield from with_members(full, value)
    else:
        yield from ("", f".. autofunction:: {full}{signature(inspect.signature(value))}")


def module(space: str) -> Any:
    """`gc`, or one of its modules."""
    return getattr(gc, space) if space else gc


def path(space: str, name: str) -> str:
    """The full name, by which links find it."""
    return f"graphcore.{space}.{name}" if space else f"graphcore.{name}"


def theme(name: str) -> tuple[str, dict[str, list[str]]]:
    """The module of a theme, and its sections."""
    space = name if name in contents.SPACES else ""
    return space, contents.themes(space)[name]


def section(name: str) -> tuple[str, list[str]]:
    """The module of a section, and its names."""
    for space in ("", *contents.SPACES):
        for parts in contents.themes(space).values():
            if name in parts:
                return space, parts[name]
    raise KeyError(name)


def with_members(full: str, kind: type) -> Iterator[str]:
    """The entry of a class with its members."""
    yield from ("", f".. autoclass:: {full}", "")
    for member, value in own_members(kind):
        yield from method(f"{full}.{member}", value, "   ")


def own_members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public members of a class, without fields, which its docstring describes."""
    fields = (*getattr(kind, "__match_args__", ()), *(dir(tuple) if tuple in kind.__mro__ else ()))
    for member, value in members(kind):
        if member not in fields:
            yield member, value


def method(full: str, value: Any, indent: str = "") -> Iterator[str]:
    """The entry of a method or property of a class."""
    if is_property(value):
        yield from ("", f"{indent}.. autoproperty:: {full}")
    else:
        yield from ("", f"{indent}.. automethod:: {full}{without_first(value)}")


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class."""
    for member in dir(kind):
        value = inspect.getattr_static(kind, member)
        if not member.startswith("_") and (callable(value) or is_property(value)):
            yield member, value


def is_property(value: object) -> bool:
    """Whether a member of a class is a property."""
    return isinstance(value, property)


def first_line(value: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(value) or "").partition("\n")[0]


def without_first(function: Any) -> str:
    """The signature of a function as a method."""
    _, *rest = inspect.signature(function).parameters.values()
    return signature(inspect.signature(function).replace(parameters=rest))


def signature(found: inspect.Signature) -> str:
    """A signature as text, with the names of types as they are linked to."""
    written = [
        p.replace(annotation=as_written({"": p.annotation})[""])
        for p in found.parameters.values()
        if p.name != "wrong"  # only there to refuse arguments by position
    ]
    result = as_written({"": found.return_annotation})[""]
    text = str(found.replace(parameters=written, return_annotation=result))
    return re.sub(r"\bT\b", "Tree", text.replace("npt.", ""))  # T is a tree that results mirror


def without_constructor(
    app: Sphinx,
    what: str,
    name: str,
    value: Any,
    options: Any,
    args: str | None,
    result: str | None,
) -> tuple[str, str] | None:
    """No signature for classes that users do not call: all but named tuples."""
    called = what in ("class", "exception") and not hasattr(value, "_fields")
    return ("", "") if called else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("names", Names)
    app.add_directive("entries", Entries)
    app.add_directive("result", Result)
    app.add_directive("methods", Methods)
    app.add_directive("members", Members)
    app.connect("autodoc-process-signature", without_constructor)
    return {"parallel_read_safe": True}
