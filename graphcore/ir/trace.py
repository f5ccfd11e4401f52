"""What one compilation did: every rewrite of every pass, with the rule that made it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .node import Node
from .provenance import basename

Rule = Callable[..., Any]


class Record(NamedTuple):
    """One rewrite: `rule` put `after` in the place of `before`."""

    rule: Rule
    before: Node
    after: Node

    def __repr__(self) -> str:
        return f"<Record of {described(self.rule)}: {self.before!r} -> {self.after!r}>"


def described(rule: Rule) -> str:
    """The name of a rule, or the equation, and where it stands: `sum_of_view (motion.py:372)`."""
    code = rule.__code__
    name = getattr(rule, "__name__", None) or repr(rule)
    return f"{name} ({basename(code.co_filename)}:{code.co_firstlineno})"


class Trace:
    """The records of one compilation in the order in which they were made.

    It also remembers normal forms while the passes run. A rule sees nothing but its node, so that a
    node has one normal form for a set of rules in all passes that apply these.
    """

    __slots__ = ("normal", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.normal: dict[object, dict[Node, Node]] = {}

    def normal_forms(self, rules: object) -> dict[Node, Node]:
        """What the nodes met so far become under `rules`."""
        return self.normal.setdefault(rules, {})


class _Current(threading.local):
    trace: Trace | None = None


_current = _Current()


def current() -> Trace:
    """The trace that this thread is writing; outside of a compilation a new one."""
    return _current.trace or Trace()


@contextmanager
def tracing() -> Iterator[Trace]:
    """A trace of all rewrites that this thread makes in this block."""
    before, _current.trace = _current.trace, Trace()
    try:
        yield _current.trace
    finally:
        _current.trace = before
