"""Values of elements as text: `exp(x[row, col]) * w[col]`.

A `Phrase` is the text of a value at a place, with the phrases in it. A value that is read twice
gets a line of its own, in the outermost loop that knows its indices. No name of a user's can be
taken for another part of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from keyword import iskeyword
from typing import NamedTuple, TypeAlias

from graphcore.inspection.view import View
from graphcore.ir import Hidden, Node, Size
from graphcore.ir.name_text import show_dim
from graphcore.ir.names import apart
from graphcore.ir.size_text import text
from graphcore.ir.sizes import unknown, unknowns

LONGEST_LINE = 88
"""How long a line may be that has its loops in front."""
LONG_PART = 60
"""How long a part of a line may be that has no line of its own."""
LOOSE, CHOICE, OR, AND, NOT, COMPARED, SUM, PRODUCT, MINUS, ATOM = range(10)
"""How tightly the outermost operator of a text binds its operands."""

OURS = re.compile(r"[tvc]\d+|sum|product|over|of|len|check|leave|repeat|let|by")
"""Names and words that the text uses itself."""


def name_of(given: str) -> str:
    """A user's name on its line, in quotes where it could be taken for a part of the text."""
    shown = show_dim(given)
    plain = given.isidentifier() and not iskeyword(given) and not OURS.fullmatch(given)
    return shown if plain else f"'{shown}'"


class Stored(NamedTuple):
    """How a value in memory or in a register is called, and the index in front of that of a place.

    `skipped` axes in front are left out: of them one place is stored at a time.
    """

    name: str
    before: tuple[Size, ...] = ()
    skipped: int = 0


@dataclass(eq=False)
class Phrase:
    """The text of a value at a place.

    `level` is the number of reductions whose index it needs, `uses` how often it is read. A
    reduction `binds` an index: its last part stands within it.
    """

    node: Node
    parts: list[Part]
    binding: int = ATOM
    binds: bool = False
    level: int = -1
    uses: int = 0
    name: str = ""


class Operand(NamedTuple):
    """A phrase in another one, in parentheses if it does not bind as tightly as this."""

    phrase: Phrase
    least: int = LOOSE


class Place(NamedTuple):
    """The number of a place along an axis."""

    size: Size


Part: TypeAlias = str | Operand | Place
At: TypeAlias = tuple[Size, ...]
Rule: TypeAlias = "Callable[[Words, Node, At], Phrase]"
"""The phrase of an op at a place."""


class Line(NamedTuple):
    """A line of the text, its indentation, and the nodes whose lines of the user end it.

    `said` is written after these. `is_result` is for lines whose value is stored, and false for
    lines that name a part of one.
    """

    indent: int
    text: str
    nodes: tuple[Node, ...] = ()
    said: str = ""
    is_result: bool = False


@dataclass
class Index:
    """An index: its name, the reductions around it, and the value that it is, if it is one."""

    name: str
    level: int
    value: Phrase | None = None


class Names:
    """The names of a program: of values, and of the indices of its loops.

    `around` are the names of the inputs, and of the indices of the loops that are being written.
    """

    def __init__(self, around: Iterable[str]) -> None:
        self.around = [*around]
        self.numbers: dict[str, int] = {}
        self.indices: dict[str, Index] = {}
        self.carries: set[str] = set()

    def new(self, prefix: str) -> str:
        """`t0`, `t1`, ..."""
        number = self.numbers[prefix] = self.numbers.get(prefix, -1) + 1
        return f"{prefix}{number}"

    def index(self, label: str | None, level: int = 0, within: Iterable[Size] = ()) -> Size:
        """An index named after an axis, with primes where something around has the same name."""
        taken = {
            *self.around,
            *self.carries,
            *[index.name for x in within for index in self.indices_in(x)],
        }
        free = (name for name in "ijklmnpq" if name not in taken)
        name = next(free, "i") if label is None else name_of(label)
        return self.place(Index(apart(name, taken), level))

    def place(self, index: Index) -> Size:
        """An index as a number that is not known yet."""
        key = Hidden(f"index {len(self.indices)}")
        self.indices[key] = index
        return unknown(key)

    @contextmanager
    def inside(self, indices: Iterable[Size]) -> Iterator[None]:
        """In this block, these are the indices of loops around."""
        before = [*self.around]
        self.around += [index.name for x in indices for index in self.indices_in(x)]
        yield
        self.around = before

    def carry(self, given: str) -> str:
        """The name of a value that a loop carries, which nothing else has."""
        found = apart(name_of(re.sub(r"\W+", "_", given).strip("_")), (*self.around, *self.carries))
        self.carries.add(found)
        return found

    def indices_in(self, size: Size) -> list[Index]:
        """The indices in the number of a place."""
        return [self.indices[key] for key in unknowns(size) if key in self.indices]

    def level(self, size: Size) -> int:
        """How many reductions are around the indices in the number of a place."""
        return max([index.level for index in self.indices_in(size)], default=0)

    def axis(self, index: Size, size: Size) -> str:
        """`row`, or `class=3`: an index and its range."""
        name, said = self.indices_in(index)[0].name, text(size, name_of)
        return name if said == name.rstrip(PRIME) else f"{name}={said}"


PRIME = "'"


def length(name: str) -> str:
    """An unknown size."""
    return f"len({name_of(name)})"


class Words:
    """The phrases of one step; `stored` has the names of values that are computed before."""

    def __init__(self, names: Names, view: View, stored: Mapping[Node, Stored], rule: Rule) -> None:
        self.names, self.view, self.stored, self.rule = names, view, stored, rule
        self.known: dict[tuple[Node, At, bool], Phrase] = {}

    def at(self, node: Node, index: At, stored: bool = True) -> Phrase:
        """The phrase of a node at a place; `stored` says whether it may be called by its name."""
        key = (node, index, stored)
        if key not in self.known:
            self.known[key] = self.counted(self.phrase(node, index, stored))
        return self.known[key]

    def phrase(self, node: Node, index: At, stored: bool) -> Phrase:
        """A phrase that is not known yet."""
        if stored and (found := self.stored.get(node)) is not None:
            whole = (*found.before, *index[found.skipped :])
            return Phrase(node, [found.name, *between("[", [[Place(i)] for i in whole], "]")])
        return self.rule(self, node, index)

    def counted(self, x: Phrase) -> Phrase:
        """A phrase with its level; those in it are read once more."""
        if x.level < 0:
            x.level = 0
            for part in x.parts:
                for y in self.phrases_in(part):
                    y.uses += 1
                    x.level = max(x.level, y.level - x.binds)
                if isinstance(part, Place):
                    x.level = max(x.level, self.names.level(part.size))
        return x

    def phrases_in(self, part: Part) -> list[Phrase]:
        """The phrases in a part."""
        if isinstance(part, Place):
            return [x.value for x in self.names.indices_in(part.size) if x.value is not None]
        return [part.phrase] if isinstance(part, Operand) else []

    def bound(self, labels: Sequence[str | None], index: At) -> list[Size]:
        """The indices of a reduction at a place."""
        level = 1 + max(map(self.names.level, index), default=0)
        new: list[Size] = []
        for label in labels:
            new.append(self.names.index(label, level, (*index, *new)))
        return new

    # ---- text

    def line(self, start: str, root: Phrase, indent: int) -> list[Line]:
        """The lines of `start` = root, after those of values that it reads twice."""
        blocks: list[list[Line]] = [[]]
        said, below = self.said(root, blocks, indent)
        line = Line(indent, f"{start} = {said}", tuple(nodes_of(root)), is_result=True)
        return [*blocks[0], line, *below]

    def said(self, x: Phrase, blocks: list[list[Line]], indent: int) -> tuple[str, list[Line]]:
        """The text of a phrase, and the lines that stand below it if it is a long reduction."""
        words: list[str] = []
        below: list[Line] = []
        for part in x.parts:
            if isinstance(part, str):
                words.append(part)
            elif isinstance(part, Place):
                words.append(self.number(part.size, blocks, indent))
            elif x.binds:
                own = [*blocks[: x.level + 1], list[Line]()]
                text, rest = self.said(part.phrase, own, indent)
                if own[-1] or rest:
                    line = Line(indent + x.level + 1, text, tuple(nodes_of(part.phrase)))
                    below = [*own[-1], line, *rest]
                else:
                    words.append(text)
            else:
                words.append(self.operand(part, blocks, indent))
        return "".join(words).rstrip(), below

    def number(self, size: Size, blocks: list[list[Line]], indent: int) -> str:
        """The number of a place, which may have values in it."""

        def spell(key: str) -> str:
            index = self.names.indices.get(key)
            if index is None or index.value is None:
                return length(key) if index is None else index.name
            alone = size is unknown(key)
            return self.operand(Operand(index.value, LOOSE if alone else ATOM), blocks, indent)

        return text(size, spell)

    def operand(self, part: Operand, blocks: list[list[Line]], indent: int) -> str:
        """A phrase inside another one: by its name, if it has a line of its own."""
        x = part.phrase
        if x.name:
            return x.name
        text, below = self.said(x, blocks, indent)
        again = x.uses > 1 and any(self.phrases_in(inner) for inner in x.parts)
        if not (below or again or len(text) > LONG_PART):
            return text if x.binding >= part.least else f"({text})"
        x.name = self.names.new("v")
        line = Line(indent + x.level, f"{x.name} = {text}", tuple(nodes_of(x)))
        blocks[x.level] += [line, *below]
        return x.name


def nodes_of(x: Phrase) -> Iterable[Node]:
    """The nodes of a phrase that are computed on its own line."""
    yield x.node
    for part in x.parts:
        if isinstance(part, Operand) and not part.phrase.name:
            yield from nodes_of(part.phrase)


def between(start: str, items: Sequence[Sequence[Part]], end: str) -> list[Part]:
    """Items with commas between them, in brackets if there are any."""
    found: list[Part] = [start]
    for n, item in enumerate(items):
        found += [", ", *item] if n else item
    return [*found, end] if items else []
