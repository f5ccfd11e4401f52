"""The record of one compilation: every rewrite of every pass, with the rule that made it."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from .help_text import attributes, fields
from .node import Node
from .provenance import NOWHERE, Asked, Origin, basename, is_ours, thread_state

Rule = Callable[..., Any]
Given = frozenset[tuple[str | None, Node, Any]]
"""What is known of params: the subject, the param and the fact."""
Facts = dict[object, dict[Any, Any]]
"""Facts by subject, mostly about nodes."""
Body = TypeVar("Body")
Labels = tuple[str | None, ...]


@fields
class Record(NamedTuple):
    """One rewrite: `rule` put `after` in the place of `before`.

    A derivative takes no node's place: `after` is the cotangent of the operand numbered `operand`
    that flows from the node `before`, or without a number the tangent of `before`. `asked` is then
    the source of what the rule built.
    """

    rule: Rule
    before: Node
    after: Node
    operand: int | None = None
    asked: Asked | None = None

    def __repr__(self) -> str:
        return f"<Record of {rule_name(self.rule)}: {self.before!r} -> {self.after!r}>"


def rule_name(rule: Rule) -> str:
    """The name of a rule, its equation or its line, and where it stands: `pick (plain.py:147)`."""
    name = getattr(rule, "__name__", None) or repr(rule)
    code = getattr(rule, "__code__", None)
    if name == "<lambda>" and code:
        name = linecache.getline(code.co_filename, code.co_firstlineno).strip() or name
    return f"{name} ({basename(code.co_filename)}:{code.co_firstlineno})" if code else name


def without_modules(text: str, file: str) -> str:
    """The source of a rule; ops stand without their modules, `e.exp(x)`, if it is the library's."""
    return re.sub(r"\b[est]\.(?=[a-z])", "", text) if is_ours(file) else text


@attributes(
    lines="The user's line for each node that the compilation began with, and for those asked "
    "about.",
    sources="The source of each node that it built: the node that it replaces, alone or with "
    "others; for a derivative, that node and the source that asked for it; or a line.",
    asked="The line for each part of a derivative that was asked about.",
    labels="The dims that the axes of a plain node had before lowering, None where that is not "
    "known.",
    records="Every rewrite, in order.",
    moves="For each pass (and first for what came before) each change of a node as (node, new "
    "node), in order: those by rules, and nodes that are the same but for other operands or "
    "bodies.",
    known="Facts that rules and analyses have found, mostly about nodes, by subject, while the "
    "passes run. For a set of rules these are normal forms: a rule sees nothing but its node, so "
    "that a node has one normal form in all passes that apply these rules. A body has facts of its "
    "own where more is known of its params.",
)
class Trace:
    """Where each node of one compilation came from, for that compilation alone.

    Equal programs share their nodes, so lines and labels cannot be kept on nodes.
    """

    __slots__ = ("_place", "_tables", "asked", "labels", "lines", "moves", "records", "sources")
    inside: ClassVar[Callable[[Trace, Node, Any], Given]]
    """The function that says what is known of the params of a body; `analysis`
    sets it, as `ir` imports no other part."""

    def __init__(self, lines: Mapping[Node, Origin] = {}) -> None:
        self.lines: dict[Node, Origin] = dict(lines)
        self.sources: dict[Node, Any] = {}
        self.labels: dict[Node, Labels] = {}
        self.asked: dict[Asked, Origin] = {}
        self.records: list[Record] = []
        self.moves: list[list[tuple[Node, Node]]] = [[]]
        self._place: Any = {}  # the facts there, or (where its node stands, that node, the body)
        self._tables: dict[Given, Facts] = {frozenset(): self._place}

    def origin(self, node: Node) -> Origin:
        """The user's line that a node goes back to."""
        if (found := self.lines.get(node)) is None:
            found = self.lines[node] = self.line_of(self.sources.get(node)) or node.last_line
        return found

    @property
    def known(self) -> Facts:
        """The facts where nodes are rebuilt; those about params of a body are found when asked."""
        if isinstance(self._place, tuple):
            self._place, node, body = self._place
            self._place = self.tables(Trace.inside(self, node, body))
        found: Facts = self._place
        return found

    def tables(self, given: Given) -> Facts:
        """The facts found where this is known of params."""
        if (found := self._tables.get(given)) is None:
            found = self._tables[given] = {}
            for subject, param, fact in given:
                found.setdefault(subject, {})[param] = fact
        return found

    def enter(self, node: Node, change: Callable[[Body], Body]) -> Callable[[Body], Body]:
        """The change of the bodies of a node, made while facts about its operands are known."""

        def change_inside(body: Body) -> Body:
            before = self._place
            self._place = before, node, body
            try:  # by hand, as each pass enters each body
                return change(body)
            finally:
                self._place = before

        return change_inside

    def forget(self) -> None:
        """Forget the facts, which serve the passes alone."""
        self._tables.clear()
        self.known.clear()

    def line_of(self, source: Any) -> Origin | None:
        """The user's line that a source goes back to, if it is known."""
        for _ in range(1 + len(self.sources)):
            if not isinstance(source, Node) or source in self.lines:
                break
            source = self.sources.get(source) or source.last_line
        if isinstance(source, Asked):
            if (found := self.asked.get(source)) is None:
                line = self.line_of(source.node) or NOWHERE
                found = self.asked[source] = line._replace(via=self.line_of(source.by))
            return found
        known: Origin | None = self.lines.get(source) if isinstance(source, Node) else source
        return known


def current_trace() -> Trace:
    """The trace that this thread is writing; outside of a compilation a new one."""
    trace: Trace = Trace() if thread_state.sources is None else thread_state.trace
    return trace


_outside: dict[object, WeakKeyDictionary[Node, Any]] = {}


def known_facts(subject: object) -> MutableMapping[Node, Any]:
    """The facts found about nodes: in this compilation, or outside while they are used."""
    if thread_state.sources is None:
        return _outside.setdefault(subject, WeakKeyDictionary())
    known: dict[Node, Any] = thread_state.trace.known.setdefault(subject, {})
    return known


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Enter in a trace all nodes and rewrites that this thread makes in this block."""
    before = thread_state.trace, thread_state.sources, thread_state.source
    thread_state.trace, thread_state.sources, thread_state.source = trace, trace.sources, None
    try:
        yield trace
    finally:
        thread_state.trace, thread_state.sources, thread_state.source = before
