"""The docstrings that the pages of the API show."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import graphcore as gc
from graphcore.frontend.core import contents
from tests.docs import pages

RESULT = re.compile(r"^```\{result\} (.+)\n```$", re.MULTILINE)


def shown() -> dict[str, str]:
    """Each docstring that a page of the API shows, by the first name that has it."""
    found: dict[str, str] = {}
    for name, value in named():
        text = inspect.getdoc(value)
        if text and text not in found.values():
            found[name] = text
    return found


def named() -> Iterator[tuple[str, object]]:
    """Public functions and classes with their members, and classes of results."""
    for space in ("", *contents.SPACES):
        module = getattr(gc, space) if space else gc
        for name in contents.names(space):
            if name not in contents.ALIASES:
                value = getattr(module, name)
                full = f"{space}.{name}".lstrip(".")
                if isinstance(value, type):
                    yield from of_class(full, value)
                elif not isinstance(value, ModuleType):
                    yield full, value
    for page in sorted((pages.ROOT / "docs" / "api").glob("*.md")):
        for place in RESULT.findall(page.read_text(encoding="utf-8")):
            module, _, kind = place.rpartition(".")
            made = getattr(importlib.import_module(f"graphcore.{module}"), kind)
            yield from of_class(kind, made)


def of_class(name: str, kind: type) -> Iterator[tuple[str, object]]:
    """A class and its public members."""
    yield name, kind
    for member in dir(kind):
        if not member.startswith("_"):
            value = inspect.getattr_static(kind, member)
            if callable(value) or isinstance(value, property):
                yield f"{name}.{member}", value
