"""What a compiled program sends between devices, read back from the text of XLA's program.

Each operation is traced in a scope of its name and the user's line, and XLA keeps the scopes of
what it compiles. So every message can be told with the line that it serves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphcore.inspection.text import align
from graphcore.ir import Array
from graphcore.ir.help_text import attributes

Shape: TypeAlias = Mapping[str, int]
"""The axes of a mesh and how many devices are along each."""


@attributes(
    kind='How devices talk: "all-reduce" adds up parts, "all-gather" brings all parts to every '
    'device, "reduce-scatter", "all-to-all" and "collective-permute" move parts.',
    bytes="The size of what each device then has, in bytes.",
    serves="The operations of the program that it serves, each with the user's line; none if XLA "
    "does not say.",
    along="The axes of the mesh along which it is sent.",
    in_loop="Whether it is sent in each step of a loop.",
)
class Message(NamedTuple):
    """An exchange of values between devices in one call."""

    kind: str
    bytes: int
    serves: tuple[str, ...]
    along: tuple[str, ...]
    in_loop: bool


class Messages(tuple[Message, ...]):
    """The exchanges between devices in one call, printed as a table."""

    __slots__ = ()

    @property
    def bytes(self) -> int:
        """The size of all of them; those in loops are counted once."""
        return sum(message.bytes for message in self)

    def __repr__(self) -> str:
        if not self:
            return "no messages"
        return "\n".join(align([HEAD, *map(row, self)], range(1, 2)))


HEAD = ("message", "bytes", "along", "for")


def row(message: Message) -> tuple[str, ...]:
    """The columns of one message."""
    each = " each step" if message.in_loop else ""
    along = ", ".join(message.along)
    return message.kind, f"{message.bytes:,}{each}", along, served(message)


def served(message: Message) -> str:
    """What a message serves, in words."""
    first, *more = message.serves or ("results",)
    return f"{first}, and {len(more)} more" if more else first


# ---- the text of a program

KINDS = (
    *("all-reduce", "all-gather", "reduce-scatter", "collective-permute", "collective-broadcast"),
    *("ragged-all-to-all", "all-to-all"),
)
COLLECTIVE = re.compile(rf" = (.*?) ({'|'.join(KINDS)})(-start)?\(")
ITEM = re.compile(r"\b(pred|bf16|[sufc]\d+\w*)\[([\d,]*)\]")
NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
HEADING = re.compile(r"(?:ENTRY )?%?([\w.-]+) \(.*\{$")
STEP = re.compile(r"(?:body|condition)=%?([\w.-]+)")
CALL = re.compile(r"=\{?(%[\w.%, -]+)")
TWICE = ("all-gather", "collective-permute")
"""The kinds whose start has the operands as well as the results."""


def messages(text: str, mesh: Shape) -> Messages:
    """The exchanges in the text of a program that XLA compiled for a mesh."""
    parts = parts_of(text.splitlines())
    repeated = inside_loops(parts)
    return Messages(
        message
        for name, lines in parts.items()
        for line in lines
        if (message := message_of(line, mesh, name in repeated)) is not None
    )


def parts_of(lines: Iterable[str]) -> dict[str, list[str]]:
    """The lines of each function of a program, by its name."""
    parts: dict[str, list[str]] = {"": []}
    name = ""
    for line in lines:
        if match := HEADING.match(line):
            name = match[1]
        parts.setdefault(name, []).append(line)
    return parts


def inside_loops(parts: Mapping[str, Sequence[str]]) -> set[str]:
    """The names of the functions that run in each step of a loop."""
    found: set[str] = set()
    new = {name for lines in parts.values() for line in lines for name in STEP.findall(line)}
    while new:
        found |= new
        called = [x for at in new for line in parts.get(at, ()) for x in CALL.findall(line)]
        new = {*re.findall(r"[\w.-]+", " ".join(called))} & parts.keys() - found
    return found


def message_of(line: str, mesh: Shape, in_loop: bool) -> Message | None:
    """The exchange in a line of a program, if there is one."""
    match = COLLECTIVE.search(line)
    if match is None:
        return None
    kind, starts = match[2], match[3] is not None
    size = bytes_of(match[1], starts and kind in TWICE)
    return Message(kind, size, scopes_of(match_of(NAME, line)), along(line, mesh), in_loop)


def match_of(pattern: re.Pattern[str], line: str) -> str:
    """What a pattern finds in a line, or ""."""
    match = pattern.search(line)
    return match[1] if match else ""


def bytes_of(shown: str, twice: bool) -> int:
    """The bytes of a result, or of several, as XLA writes their types."""
    items = [
        width(kind) * prod(int(n) for n in shape.split(",") if n)
        for kind, shape in ITEM.findall(shown)
        if not (twice and kind == "u32")
    ]
    return sum(items[len(items) // 2 :] if twice else items)


def width(kind: str) -> int:
    """The bytes of one element: `f64`, `pred`."""
    bits = re.search(r"\d+", kind)
    return max(int(bits[0]) // 8, 1) if bits else 1


def scopes_of(name: str) -> tuple[str, ...]:
    """The innermost scopes in a name that XLA gives.

    Where it has joined several messages, it joins their names: `outer/(one:another)`.
    """
    joined = re.fullmatch(r"(.*?)/\((.*)\)", name)
    outer, parts = (joined[1], re.split(r":(?!\d)", joined[2])) if joined else ("", [name])
    found = [innermost(part) or innermost(outer) for part in parts]
    return tuple(dict.fromkeys(filter(None, found)))


def innermost(path: str) -> str:
    """The innermost scope of a path, "" if there is none."""
    scopes = [part for part in path.split("/") if " at " in part]
    return readable(scopes[-1]) if scopes else ""


def readable(scope: str) -> str:
    """A scope as it was given: XLA writes what is not ASCII in octal digits."""
    octal = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), scope.replace("|", "/"))
    return octal.encode("latin-1", "replace").decode("utf-8", "replace")


# ---- who talks to whom

OF_MESH = re.compile(r"mesh\[([^\]]*)\](?:, device_ids=\((.*?)\))? \{([^}]*)\}")
OF_IOTA = re.compile(r"replica_groups=(\[.*?\](?:T\([\d,]*\))?)[,\s]")
OF_LIST = re.compile(r"(?:replica_groups|source_target_pairs)=\{(\{.*?\})\}")
IOTA = re.compile(r"\[([\d,]+)\](?:<=\[([\d,]+)\])?(?:T\(([\d,]+)\))?")


def along(line: str, mesh: Shape) -> tuple[str, ...]:
    """The axes of a mesh along which devices that talk to each other lie."""
    groups = np.array(groups_of(line, mesh))
    places = np.unravel_index(groups, tuple(mesh.values()))
    pairs = zip(mesh, places, strict=True)
    return tuple(axis for axis, place in pairs if (place != place[:, :1]).any())


def groups_of(line: str, mesh: Shape) -> Sequence[Any]:
    """The numbers of the devices that talk to each other, one group a row."""
    count = prod(mesh.values())
    if match := OF_MESH.search(line):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", match[1])}
        numbers = counted(match[2]) if match[2] else np.arange(count)
        inner = [name for name in sizes if f"'{name}'" in match[3]]
        outer = [name for name in sizes if name not in inner]
        order = [list(sizes).index(name) for name in (*outer, *inner)]
        several = prod(sizes[name] for name in inner)
        whole = numbers.reshape([*sizes.values()]).transpose(order)
        return list(whole.reshape(-1, several))
    if match := OF_LIST.search(line):
        rows = re.findall(r"\{([\d,]*)\}", match[1])
        return [[*map(int, row.split(","))] for row in rows if row]
    if match := OF_IOTA.search(line):
        return list(counted(match[1]))
    return [range(count)]


def counted(text: str) -> Array:
    """Numbers from 0 on as XLA writes their order: `[4,2]T(1,0)` and `[2,4]<=[4,2]T(1,0)`."""
    match = IOTA.match(text)
    assert match, text
    shape, source, order = ([*map(int, part.split(","))] if part else [] for part in match.groups())
    numbers = np.arange(prod(shape)).reshape(source or shape)
    return numbers.transpose(order or range(numbers.ndim)).reshape(shape if source else -1)
