"""LLVM IR as text, in nested levels: each value is emitted in the outermost level that knows it.

A level is a loop or a branch. An instruction goes to the deepest level among its operands, before
the loop that is being written there, and is remembered by its text. So invariants leave loops and
common subexpressions are computed once, by construction, and no LLVM pass is needed for either.
Nothing leaves a branch or a `while` loop, whose instructions may never run.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, lru_cache
from typing import Any, NamedTuple

from graphcore.ir.provenance import setting

from .entrance import FUEL
from .loop_text import Part, carries, counted, in_blocks, phis, repeated
from .signals import CALL, Signals

WIDTH = 8
"""Values of eight bytes side by side (smaller ones may be more), so that all machines sum alike."""

BITS = {
    **{"f64": "double", "f32": "float", "f16": "half", "i1": "i1", "ptr": "ptr"},
    **{f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)},
}
"""The LLVM type of each kind; i1 is bool, and u64 is i64 whose operations are unsigned."""
PARTS = {"c128": "f64", "c64": "f32"}
"""The kind of both parts of a complex kind."""


class Value(NamedTuple):
    """A name or constant of the IR, its kind, its lanes, and the level that knows it.

    `wide` is the number of lanes of a vector, 0 of a single value. A complex value is a pair of its
    parts.
    """

    text: str
    kind: str
    wide: int = 0
    level: int = 0

    @property
    def type(self) -> str:
        """The LLVM type."""
        return type_of(self.kind, self.wide)

    @property
    def typed(self) -> str:
        """The value after its type, as an operand."""
        return f"{self.type} {self.text}"

    @property
    def is_constant(self) -> bool:
        """Whether the text is the value itself and not a name."""
        return self.text[0] != "%"

    @property
    def number(self) -> int | None:
        """The value of a constant integer, else None."""
        return number_in(self.text)


@lru_cache(maxsize=4096)
def number_in(text: str) -> int | None:
    """The integer that a text spells, else None."""
    return int(text) if text[0] != "%" and text.lstrip("-").isdigit() else None


@cache
def type_of(kind: str, wide: int = 0) -> str:
    """The LLVM type of a kind, with so many lanes if it is a vector."""
    if part := PARTS.get(kind):
        return f"{{ {type_of(part, wide)}, {type_of(part, wide)} }}"
    return f"<{wide} x {BITS[kind]}>" if wide else BITS[kind]


def spelled(kind: str) -> str:
    """A kind in the name of an intrinsic: integers have no sign there."""
    return f"i{kind[1:]}" if kind[0] in "iu" else kind


@lru_cache(maxsize=4096)
def integer(x: int, kind: str = "i64") -> Value:
    """A constant of a kind of integers; those above the largest signed one are written negative."""
    bits = int(kind[1:])
    return Value(str((x + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)), kind)


def real(x: float, kind: str = "f64") -> Value:
    """A constant of a kind of floats, rounded to it."""
    if kind == "f16":
        (bits,) = struct.unpack("<H", struct.pack("<e", x))
        return Value(f"0xH{bits:04X}", kind)
    if kind == "f32":
        (x,) = struct.unpack("<f", struct.pack("<f", x))
    return Value("0x" + struct.pack(">d", x).hex().upper(), kind)


def lanes(*numbers: int, kind: str = "i64") -> Value:
    """A constant vector of integers or bools."""
    return Value(f"<{', '.join(f'{BITS[kind]} {n}' for n in numbers)}>", kind, len(numbers))


TRUE, FALSE = Value("true", "i1"), Value("false", "i1")


class Builder:
    """The body of one function.

    `declared` has the declarations of the external functions that it calls, `used_functions` the
    names of our own, such as `exp.f64x8`. Vectors have `width` lanes. `note` ends each line.
    Steps of the loop `part` are shared by threads.
    """

    note = ""
    note_of: Callable[[Any], str] | None = None

    def __init__(self, width: int = WIDTH) -> None:
        self.width = width
        self.lines: list[list[str]] = [[]]
        self.known: list[dict[object, Value]] = [{}]
        self.floors = [0]  # an instruction does not leave the branch it is in
        self.names = 0
        self.declared: dict[str, str] = {}
        self.used_functions: dict[str, None] = {}
        self.pairs: dict[str, tuple[Value, Value]] = {}
        self.products: dict[str, tuple[Value, ...]] = {}
        self.signals = Signals()
        self.part: Part | None = None
        self.outlined: list[str] = []
        self.shared_loop: Callable[..., bool] | None = None

    @property
    def level(self) -> int:
        """The number of loops and branches around the code that is being written."""
        return len(self.lines) - 1

    def name(self, prefix: str = "v") -> str:
        """A name not used before."""
        self.names += 1
        return f"{prefix}{self.names}"

    # ---- values

    def emit(self, kind: str, wide: int, text: str, *operands: Value, least: int = 0) -> Value:
        """The value of an instruction without side effects, not outside the level `least`."""
        if (found := self.find(text)) is not None:
            return found if found.kind == kind else found._replace(kind=kind)
        level = max(self.floors[-1], least, *[x.level for x in operands], 0)
        if self.part is not None:
            self.part.read(level, operands)
        value = Value(f"%{self.name()}", kind, wide, level)
        self.lines[level].append(f"  {value.text} = {text}{self.note}")
        self.known[level][text] = value
        return value

    def find(self, key: object) -> Value | None:
        """The value of an instruction that was written, or of a size."""
        for known in reversed(self.known):  # in a branch it may be known deeper than it could be
            if (found := known.get(key)) is not None:
                return found
        return None

    def do(self, text: str, *operands: Value) -> None:
        """An instruction with side effects, here."""
        self.read(*operands)
        self.lines[-1].append(f"  {text}{self.note}")

    def read(self, *operands: Value) -> None:
        """Note that lines that are written here read some values."""
        if self.part is not None:
            self.part.read(self.level, operands)

    def label(self, name: str) -> None:
        """The start of a block."""
        self.lines[-1].append(f"{name}:")

    def now(self, kind: str, text: str, wide: int = 0, *operands: Value) -> Value:
        """The value of an instruction that is not to be moved or shared."""
        self.read(*operands)
        value = Value(f"%{self.name()}", kind, wide, self.level)
        self.lines[-1].append(f"  {value.text} = {text}{self.note}")
        return value

    def widen(self, x: Value, width: int = 0) -> Value:
        """The same value in every lane."""
        if x.wide:
            return x
        width = width or self.width
        if x.kind in PARTS:
            return self.complex(*[self.widen(part, width) for part in self.parts(x)])
        if x.is_constant:
            return Value(f"splat ({x.typed})", x.kind, width)
        wide = type_of(x.kind, width)
        one = self.emit(x.kind, width, f"insertelement {wide} poison, {x.typed}, i32 0", x)
        mask = f"<{width} x i32> zeroinitializer"
        return self.emit(x.kind, width, f"shufflevector {one.typed}, {wide} poison, {mask}", one)

    def alike(self, *xs: Value) -> tuple[Value, ...]:
        """Operands as vectors if one of them is."""
        for x in xs:
            if x.wide:
                return tuple([self.widen(y, x.wide) for y in xs])
        return xs

    def side_by_side(self, width: int) -> AbstractContextManager[None]:
        """A context in which vectors have so many lanes."""
        return setting(self, width=width)

    @property
    def numbers(self) -> Value:
        """The number of each lane."""
        return lanes(*range(self.width))

    def op(self, text: str, *operands: Value, kind: str = "") -> Value:
        """`fadd`, `icmp slt`, ... of operands of one kind."""
        xs = self.alike(*operands)
        kind = kind or ("i1" if "cmp" in text else xs[0].kind)
        names = ", ".join([x.text for x in xs])
        return self.emit(kind, xs[0].wide, f"{text} {xs[0].type} {names}", *xs)

    def convert(self, text: str, x: Value, kind: str) -> Value:
        """`bitcast`, `sitofp`, ... to a kind; nothing where the LLVM type stays."""
        if BITS[x.kind] == BITS[kind]:
            return x._replace(kind=kind)
        return self.emit(kind, x.wide, f"{text} {x.typed} to {type_of(kind, x.wide)}", x)

    def select(self, c: Value, x: Value, y: Value) -> Value:
        """`x` where `c` holds, else `y`."""
        if c.text == "true" or x.text == y.text:
            return x
        if c.text == "false":
            return y
        if x.kind in PARTS:
            pairs = zip(self.parts(x), self.parts(y), strict=True)
            return self.complex(*[self.select(c, a, b) for a, b in pairs])
        c, x, y = self.alike(c, x, y)
        return self.emit(x.kind, x.wide, f"select {c.typed}, {x.typed}, {y.typed}", c, x, y)

    def call(self, intrinsic: str, *operands: Value, kind: str = "", flags: str = "") -> Value:
        """An intrinsic that is overloaded by the type of its operands; `flags` follow these."""
        xs = self.alike(*operands)
        kind = kind or xs[0].kind
        result, first = type_of(kind, xs[0].wide), xs[0].kind
        suffix = (f"v{xs[0].wide}" if xs[0].wide else "") + (
            first if first[0] == "f" else BITS[first]
        )
        name = f"@llvm.{intrinsic}.{suffix}"
        types = [*[x.type for x in xs], *(["i1"] if flags else [])]
        self.declared[name] = f"declare {result} {name}({', '.join(types)})"
        given = ", ".join([*[x.typed for x in xs], *([flags] if flags else [])])
        return self.emit(kind, xs[0].wide, f"call {result} {name}({given})", *xs)

    def function(self, name: str, *operands: Value) -> Value:
        """One of our own functions of floats; they are functions of vectors throughout."""
        wide = max(x.wide for x in operands)
        xs = [self.widen(x, wide or WIDTH) for x in operands]
        full = f"{name}.{xs[0].kind}x{xs[0].wide}"
        self.used_functions[full] = None
        self.signals.work += CALL
        given = ", ".join([x.typed for x in xs])
        y = self.emit(xs[0].kind, xs[0].wide, f"call {xs[0].type} @{full}({given})", *xs)
        return y if wide else self.lane(y, 0)

    def lane(self, x: Value, i: int) -> Value:
        """The value in one lane of a vector."""
        if x.kind in PARTS:
            return self.complex(*[self.lane(part, i) for part in self.parts(x)])
        return self.emit(x.kind, 0, f"extractelement {x.typed}, i32 {i}", x)

    def shuffle(self, x: Value, places: Sequence[int], more: Value | None = None) -> Value:
        """The lanes of a vector, and of another behind it; below 0 the lane may be anything."""
        if x.kind in PARTS:
            return self.complex(*[self.shuffle(part, places) for part in self.parts(x)])
        mask = ", ".join([f"i32 {i}" if i >= 0 else "i32 poison" for i in places])
        y = more or Value("poison", x.kind, x.wide)
        text = f"shufflevector {x.typed}, {y.typed}, <{len(places)} x i32> <{mask}>"
        return self.emit(x.kind, len(places), text, x, y)

    def any_lane(self, x: Value) -> Value:
        """Whether a bool holds in some lane."""
        if not x.wide:
            return x
        name = f"@llvm.vector.reduce.or.v{x.wide}i1"
        self.declared[name] = f"declare i1 {name}({x.type})"
        return self.emit("i1", 0, f"call i1 {name}({x.typed})", x)

    def both(self, a: Value, b: Value) -> Value:
        """Whether both of two bools hold."""
        if "false" in (a.text, b.text):
            return FALSE
        if a.text == "true":
            return b
        return a if b.text == "true" else self.op("and", a, b)

    def neither(self, a: Value) -> Value:
        """Whether a bool does not hold."""
        if a.text in ("true", "false"):
            return FALSE if a.text == "true" else TRUE
        return self.op("xor", a, TRUE)

    # ---- floats

    def negative(self, x: Value) -> Value:
        """-x."""
        return self.emit(x.kind, x.wide, f"fneg {x.typed}", x)

    def multiply(self, x: Value, y: Value) -> Value:
        """x * y."""
        product = self.op("fmul", x, y)
        if x.kind != "f16":  # to round once would need a function that is not there
            self.products[product.text] = self.alike(x, y)
        return product

    def plus(self, x: Value, y: Value) -> Value:
        """x + y, rounded once where one of them is a product.

        LLVM would choose by the other instructions of the block, which differ between machines. A
        product that is known before the other operand is not merged: it is computed just once.
        """
        x, y = self.alike(x, y)
        for p, other in ((x, y), (y, x)):
            if (factors := self.products.get(p.text)) and p.level >= other.level:
                return self.call("fma", *factors, other)
        return self.op("fadd", x, y)

    # ---- complex values

    def complex(self, real_part: Value, imaginary: Value) -> Value:
        """The complex value of two parts."""
        a, b = self.alike(real_part, imaginary)
        kind = next(kind for kind, part in PARTS.items() if part == a.kind)
        if a.is_constant and b.is_constant:
            z = Value(f"{{ {a.typed}, {b.typed} }}", kind, a.wide)
        else:
            pair = type_of(kind, a.wide)
            half = self.emit(kind, a.wide, f"insertvalue {pair} poison, {a.typed}, 0", a)
            z = self.emit(kind, a.wide, f"insertvalue {half.typed}, {b.typed}, 1", half, b)
        self.pairs[z.text] = a, b
        return z

    def parts(self, z: Value) -> tuple[Value, Value]:
        """The real and the imaginary part."""
        if (found := self.pairs.get(z.text)) is not None:
            return found
        kind = PARTS[z.kind]
        a, b = [self.emit(kind, z.wide, f"extractvalue {z.typed}, {i}", z) for i in (0, 1)]
        return a, b

    # ---- integers, which never overflow; known numbers are computed here

    def add(self, a: Value, b: Value) -> Value:
        """The sum."""
        if a.number is not None and b.number is not None:
            return integer(a.number + b.number, a.kind)
        if a.number == 0:
            return b
        return a if b.number == 0 else self.op("add nsw", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        """The difference."""
        if a.number is not None and b.number is not None:
            return integer(a.number - b.number, a.kind)
        if a.text == b.text:
            return integer(0, a.kind)
        return a if b.number == 0 else self.op("sub nsw", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """The product."""
        if a.number is not None and b.number is not None:
            return integer(a.number * b.number, a.kind)
        if 0 in (a.number, b.number):
            return integer(0, a.kind)
        if a.number == 1:
            return b
        return a if b.number == 1 else self.op("mul nsw", a, b)

    # ---- control

    @contextmanager
    def deeper(self, floor: bool = False) -> Iterator[list[str]]:
        """One level more; its lines are in the list afterwards."""
        self.lines.append([])
        self.known.append({})
        self.floors.append(self.level if floor else self.floors[-1])
        lines: list[str] = []
        yield lines
        lines += self.lines.pop()
        self.known.pop()
        self.floors.pop()

    def carried(self, k: str, start: Sequence[Value]) -> list[Value]:
        """The values that a loop carries, as its body reads them."""
        return [Value(f"%a{k}.{n}", x.kind, x.wide, self.level) for n, x in enumerate(start)]

    def loop(
        self,
        start: Value,
        stop: Value,
        step: int,
        carried: Sequence[Value],
        body: Callable[..., Sequence[Value]],
        most: int | None = None,
        looks: bool = False,
    ) -> list[Value]:
        """for i in range(start, stop, step): carried = body(i, *carried); the last `carried`.

        There are at most `most` numbers between start and stop, if that is known. A loop that may
        be long looks for signals after each block of its steps, unless its body `looks` for them.
        """
        if start.number is not None and stop.number is not None:
            most = max(stop.number - start.number, 0)
        k, steps = self.name(""), None if most is None else -(-most // step)
        if not carried and self.shared_loop and self.shared_loop(start, stop, step, body, steps):
            return []
        with self.signals.step(looks) as one, self.deeper() as lines:
            i = Value(f"%i{k}", start.kind, 0, self.level)
            now = self.carried(k, carried)
            new = body(i, *now)
            self.read(start, stop, *carried, *new)
        block = one.block(len(lines), steps)
        of, ends = carries(carried, now, new), (start.text, stop.text)
        if block is None:
            self.lines[-1] += counted(k, *ends, step, of, lines)
        else:
            look = self.signals.look(k)
            self.lines[-1] += in_blocks(k, *ends, step, block, of, lines, look)
            if self.signals.inside:
                work = self.mul(self.sub(stop, start), integer(max(1, one.work // step)))
                self.spend(work)
        return [a._replace(level=self.level) for a in now]

    def spend(self, work: Value) -> None:
        """Count work of loops, and look for signals once it is enough."""
        text = f"getelementptr i64, ptr %record, i64 {FUEL}"
        tank = self.emit("ptr", 0, text) if self.part is None else self.now("ptr", text)
        self.read(work)
        self.lines[-1] += self.signals.spend(self.name(""), tank.text, work.text)

    def repeat(
        self,
        carried: Sequence[Value],
        test: Callable[..., Value],
        body: Callable[..., Sequence[Value]],
    ) -> list[Value]:
        """while test(*carried): carried = body(*carried); the last `carried`."""
        k = self.name("")
        with self.deeper(floor=True) as lines:
            now = self.carried(k, carried)
            go = test(*now)
            self.do(f"br i1 {go.text}, label %body{k}, label %exit{k}", go)
            self.label(f"body{k}")
            new = body(*now)
            self.read(*carried, *new)
        self.lines[-1] += repeated(k, carries(carried, now, new), lines)
        return [a._replace(level=self.level) for a in now]

    def branch(
        self,
        c: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]] = tuple,
    ) -> list[Value]:
        """The values of `then` where the condition holds, else those of `otherwise`."""
        if c.is_constant:
            return [*(then if c.text == "true" else otherwise)()]
        return self.choose(c, otherwise, then)

    def choose(self, number: Value, *ways: Callable[[], Sequence[Value]]) -> list[Value]:
        """The values of the branch with a number; those of the last one if none has that number."""
        k, texts, results = self.name(""), [], []
        for way in ways:
            with self.deeper(floor=True) as lines:
                results.append(way())
                self.read(*results[-1])
            texts.append(lines)
        out = [Value(f"%{self.name()}", x.kind, x.wide, self.level) for x in results[0]]
        last = len(ways) - 1
        if number.kind == "i1":
            self.do(f"br {number.typed}, label %way{k}.1, label %way{k}.0", number)
        else:
            cases = " ".join([f"{number.type} {n}, label %way{k}.{n}" for n in range(last)])
            self.do(f"switch {number.typed}, label %way{k}.{last} [ {cases} ]", number)
        for n, lines in enumerate(texts):
            self.lines[-1] += [
                f"way{k}.{n}:",
                *lines,
                f"  br label %end{k}.{n}",
                f"end{k}.{n}:",
                f"  br label %join{k}",
            ]
        self.label(f"join{k}")
        self.lines[-1] += phis(out, *[(r, f"end{k}.{n}") for n, r in enumerate(results)])
        return out
