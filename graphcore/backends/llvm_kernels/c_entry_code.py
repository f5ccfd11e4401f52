"""The IR of a C function: it checks sizes, takes a workspace, fills the table, calls the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphcore.backends.c_declarations import CType
from graphcore.backends.c_interface import FAILED, MEMORY, NAN, OVERLAP, SIZES, Interface
from graphcore.ir.sizes import count, evaluate, unknowns

from .addressing import BYTES
from .arena import LINE
from .builder import BITS, FALSE, PARTS, TRUE, Builder, Value, integer, real
from .c_layout import Layout
from .conversions import KINDS, kind_of_dtype
from .elementary import module
from .entrance import FULL, HEAD, Kernel
from .size_code import magnitude, size_code

LARGEST_WORKSPACE = 2.0**60
"""The bytes that no workspace has."""
CALLED = {
    "take": "ptr @take(ptr, ptr)",
    "give": "void @give(ptr, ptr, ptr)",
    "ready": "ptr @ready(ptr, ptr, i64, ptr)",
    "line_up": "i64 @line_up(ptr, i64, i64, i64)",
    "overlap": "i64 @overlap(ptr, ptr, i64, i64)",
    "note_failure": "void @note_failure(ptr, i64, i64, ptr, ptr)",
    **{f"first_nan_{x}": f"i64 @first_nan_{x}(ptr, i64)" for x in ("double", "float", "half")},
}
"""The routines of c_entry.ll and c_nan.ll that C functions call."""
FEW = 32
"""So many floats are compared in place, without a call: two at once, as in c_nan.ll."""
RELATIONS = {"==": "eq", "<": "slt", "<=": "sle"}


class Given(NamedTuple):
    """Addresses: of the pool, of the code of the kernel, and of two arrays.

    These are the sizes, and where buffers begin, if they are the same in all calls.
    """

    pool: str
    kernel: str
    known: str
    starts: str

    @classmethod
    def of(cls, *addresses: int) -> Given:
        """Addresses as constants of IR."""
        return cls(*[f"inttoptr (i64 {address} to ptr)" for address in addresses])


class Floats(NamedTuple):
    """A result that is searched for nan: its number, where it is, and its floats."""

    result: int
    array: str
    type: str
    many: Value


class EntryCode:
    """Writes one C function. `names` are its sizes, those of the kernel first."""

    def __init__(
        self,
        kernel: Kernel,
        interface: Interface,
        layout: Layout,
        names: Sequence[str],
        given: Given,
    ) -> None:
        self.kernel, self.made, self.layout, self.given = kernel, interface, layout, given
        self.b, self.names = Builder(), names
        self.b.declared.update((name, f"declare {text}") for name, text in CALLED.items())
        self.types = (*kernel.params, *kernel.results)
        self.parameters = interface.declaration.parameters
        self.own = own_values(interface, kernel)
        self.sizes = f"ptr {given.known}"
        self.pool = f"ptr {given.pool}"

    def text(self) -> str:
        """The module of the function."""
        b, returns = self.b, self.made.declaration.returns
        given = [f"{llvm_type(x.type)} %c{n}" for n, x in enumerate(self.parameters)]
        narrow = "signext " if returns.dtype in ("int8", "int16") else ""
        head = f"define {narrow}{llvm_type(returns)} @entry({', '.join(given)})"
        known = self.find_sizes()
        self.check_sizes(known)
        self.take(known)
        self.fill()
        arguments = f"ptr %table, {self.sizes}, ptr %record"
        status = b.now("i64", f"call i64 {self.given.kernel}({arguments})")
        b.do(f"%sound = icmp eq {status.typed}, 0")
        b.do("br i1 %sound, label %written, label %failed")
        b.label("written")
        self.find_nan()
        self.end()
        return module(head, b)

    # ---- sizes

    def find_sizes(self) -> dict[str, Value]:
        """All sizes as values, which are in memory too where they vary."""
        b, made = self.b, self.made
        known = {name: integer(size) for name, size in made.known.items()}
        for name, at in made.sizes.items():
            known[name] = self.parameter(at, "i64")
        for name, number in made.values.items():
            at = made.inputs[number]
            if self.parameters[at].type.pointer:
                kind = kind_of_dtype(self.types[number].dtype)
                x = b.now(kind, f"load {BITS[kind]}, ptr %c{at}")
                known[name] = b.convert("sext" if kind[0] == "i" else "zext", x, "i64")
            else:
                known[name] = self.parameter(at, "i64")
        if any(known[name].number is None for name in self.names):
            b.do(f"%sizes = alloca i64, i64 {len(self.names)}")
            for at, name in enumerate(self.names):
                b.do(f"store {known[name].typed}, {self.word('ptr %sizes', at)}")
            self.sizes = "ptr %sizes"
        return known

    def parameter(self, at: int, kind: str) -> Value:
        """A parameter given by value, as a value of another kind."""
        own = KINDS[self.parameters[at].type.dtype]
        if own == "i1":
            own = "u8"
        x = Value(f"%c{at}", own)
        if BITS[own] == BITS[kind]:
            return x._replace(kind=kind)
        if kind[0] == "f":
            convert = {"f": "fpext", "i": "sitofp", "u": "uitofp"}[own[0]]
        else:
            convert = "sext" if own[0] == "i" else "zext"
        return self.b.convert(convert, x, kind)

    def check_sizes(self, known: Mapping[str, Value]) -> None:
        """Leave where sizes are not related as they have to be."""
        b, fit = self.b, TRUE
        for check in self.made.checks:
            left, right = [size_code(b, x, known) for x in (check.left, check.right)]
            fit = b.both(fit, b.op(f"icmp {RELATIONS[check.relation]}", left, right))
        if self.made.checks:
            b.do(f"br {fit.typed}, label %fit, label %unfit")
            b.label("fit")

    # ---- the workspace

    def take(self, known: Mapping[str, Value]) -> None:
        """A workspace for these sizes."""
        b, pool, layout = self.b, self.pool, self.layout
        b.do("%own = alloca i64, i64 2")
        b.do(f"%starts = alloca i64, i64 {layout.chunks + len(self.own) + 1}")
        b.do(f"%slot = call ptr @take({pool}, ptr %own)")
        b.do("%words.at = getelementptr i64, ptr %slot, i64 1")
        b.do("%words.there = load ptr, ptr %words.at")
        b.do("%none = icmp eq ptr %words.there, null")
        b.do(f"br i1 %none, label %make, label %{'compare' if layout.varies else 'go'}")
        if layout.varies:
            b.label("compare")
            same = TRUE
            for at, name in enumerate(self.kernel.unknowns):
                if known[name].number is None:
                    where = self.word("ptr %words.there", layout.sizes + at)
                    before = b.now("i64", f"load i64, {where}")
                    same = b.both(same, b.op("icmp eq", before, known[name]))
            b.do(f"br {same.typed}, label %go, label %make")
        b.label("make")
        bytes = self.lay_out(known) if layout.varies else integer(layout.total)
        starts = "%starts" if layout.varies else self.given.starts
        b.do(f"%words.made = call ptr @ready({pool}, ptr %slot, {bytes.typed}, ptr {starts})")
        b.do("%lost = icmp eq ptr %words.made, null")
        b.do("br i1 %lost, label %full, label %made")
        b.label("made")
        if layout.varies:
            self.keep_sizes(known)
        b.do("br label %go")
        b.label("go")
        came_from = "compare" if layout.varies else "fit" if self.made.checks else "entry"
        b.do(f"%words = phi ptr [%words.there, %{came_from}], [%words.made, %made]")

    def lay_out(self, known: Mapping[str, Value]) -> Value:
        """How many bytes a workspace takes; where its buffers begin is written."""
        b, layout, total, most = self.b, self.layout, integer(self.layout.head), real(0.0)
        at = 0
        for size, alike in layout.alike.items():
            most = b.op("fadd", most, magnitude(b, size * len(alike), known))
            padded = b.op("add", size_code(b, size, known), integer(LINE - 1))
            step = b.op("and", padded, integer(-LINE))
            to = self.word("ptr %starts", at)
            call = f"call i64 @line_up({to}, {total.typed}, {step.typed}, i64 {len(alike)})"
            total, at = b.now("i64", call), at + len(alike)
        for n, place in enumerate(self.own, at):
            b.do(f"store i64 {layout.number(place)}, {self.word('ptr %starts', n)}")
        for type in self.types:
            bytes = count(type.shape) * BYTES[kind_of_dtype(type.dtype)]
            most = b.op("fadd", most, magnitude(b, bytes, known))
        small = b.op("fcmp olt", most, real(LARGEST_WORKSPACE))
        b.do(f"br {small.typed}, label %fits, label %full")
        b.label("fits")
        return b.op("add", total, integer(LINE))

    def keep_sizes(self, known: Mapping[str, Value]) -> None:
        """Sizes, and those of arrays, in the workspace that has been made for them."""
        b, layout, words = self.b, self.layout, "ptr %words.made"
        for at, name in enumerate(self.kernel.unknowns):
            b.do(f"store {known[name].typed}, {self.word(words, layout.sizes + at)}")
        for at, type in enumerate(self.types):
            many = size_code(b, count(type.shape), known)
            bytes = b.mul(many, integer(BYTES[kind_of_dtype(type.dtype)]))
            b.do(f"store {bytes.typed}, {self.word(words, layout.bytes + at)}")

    def fill(self) -> None:
        """The arrays and values of the call, into the table."""
        b, layout = self.b, self.layout
        b.do(f"%table = getelementptr i64, ptr %words, i64 {layout.table}")
        b.do(f"%record = getelementptr i64, ptr %words, i64 {HEAD}")
        places = pointers(self.made, self.kernel)
        for at, number in places.items():
            b.do(f"store ptr %c{number}, {self.word('ptr %table', at)}")
        for at, number in self.made.inputs.items():
            if at not in places:
                kind = kind_of_dtype(self.types[at].dtype)
                x = self.parameter(number, "u8" if kind == "i1" else kind)
                b.do(f"store {x.typed}, {self.word('ptr %words', layout.numbers + at)}")
        inputs = len(self.kernel.params)
        if self.writes_arrays:
            b.do(f"%bytes = getelementptr i64, ptr %words, i64 {layout.bytes}")
            given = f"ptr %table, ptr %bytes, i64 {inputs}, i64 {layout.args}"
            b.do(f"%pair = call i64 @overlap({given})")
            b.do("%apart = icmp eq i64 %pair, -1")
            b.do("br i1 %apart, label %run, label %shared")
            b.label("run")

    @property
    def writes_arrays(self) -> bool:
        """Whether some result is an array of the caller's."""
        return bool(self.made.results)

    def word(self, words: str, at: int) -> str:
        """The address of a word of some, used here alone."""
        return self.b.now("ptr", f"getelementptr i64, {words}, i64 {at}").typed

    # ---- nan

    def find_nan(self) -> None:
        """Leave where a result has nan."""
        b, some = self.b, FALSE
        self.searched = self.floats() if self.made.finds_nan else []
        for x in self.searched:
            some = b.op("or", some, self.has_nan(x))
        b.do(f"br {some.typed}, label %{'nan' if self.searched else 'done'}, label %done")
        if not self.searched:
            return
        b.label("nan")
        found = integer(-1)
        for x in reversed(self.searched):
            at = self.first_nan(x)
            own = b.op("add", b.mul(at, integer(len(self.kernel.results))), integer(x.result))
            found = b.select(b.op("icmp sge", at, integer(0)), own, found)
        b.do(f"%nan.at = add {found.typed}, 0")
        b.do("br label %rejected")

    def floats(self) -> list[Floats]:
        """The results that may be nan; a complex number is two floats."""
        b, layout, found = self.b, self.layout, []
        for n, at in sorted(self.made.results.items()):
            type, place = self.kernel.results[n], layout.bytes + len(self.kernel.params) + n
            kind = kind_of_dtype(type.dtype)
            if (part := PARTS.get(kind, kind))[0] != "f":
                continue
            size = count(type.shape) * BYTES[kind] // BYTES[part]
            if unknowns(size) <= self.made.known.keys():
                many = integer(evaluate(size, self.made.known))
            else:
                bytes = b.now("i64", f"load i64, {self.word('ptr %words', place)}")
                many = b.op("lshr", bytes, integer(BYTES[part].bit_length() - 1))
            found.append(Floats(n, f"ptr %c{at}", BITS[part], many))
        return found

    def has_nan(self, x: Floats) -> Value:
        """Whether a result has nan."""
        if x.many.number is None or x.many.number > FEW:
            return self.b.op("icmp sge", self.first_nan(x), integer(0))
        some, ys = FALSE, []
        for k in range(x.many.number):
            at = self.b.now("ptr", f"getelementptr {x.type}, {x.array}, i64 {k}")
            ys.append(self.b.now("f64", f"load {x.type}, {at.typed}").text)
        for y, z in zip(ys[::2], [*ys[1::2], *ys[-1:]], strict=False):
            nan = self.b.now("i1", f"fcmp uno {x.type} {y}, {z}")
            some = self.b.op("or", some, nan)
        return some

    def first_nan(self, x: Floats) -> Value:
        """The position of the first float of a result that is nan; -1 if none is."""
        return self.b.now("i64", f"call i64 @first_nan_{x.type}({x.array}, {x.many.typed})")

    # ---- how a call ends

    def end(self) -> None:
        """The ways in which a call ends, each noted but the first."""
        b, pool = self.b, self.pool
        back = f"call void @give({pool}, ptr %slot, ptr %own)"
        b.label("done")
        if (at := self.made.returned) is not None:
            kind = kind_of_dtype(self.kernel.results[at].dtype)
            where = self.word("ptr %words", self.layout.numbers + len(self.kernel.params) + at)
            y = b.now(kind, f"load {BITS[kind]}, {where}")
            b.do(back)
            b.do(f"ret {y.typed}")
        else:
            b.do(back)
            b.do(self.returning(self.made.success))
        b.label("failed")
        first = b.now("i64", "load i64, ptr %record")
        b.do(f"%empty = icmp eq {first.typed}, {FULL}")
        b.do("br i1 %empty, label %full, label %broken")
        ways = [("broken", FAILED, "0", "ptr %record"), ("full", MEMORY, "0", "ptr null")]
        if self.writes_arrays:
            ways.append(("shared", OVERLAP, "%pair", "ptr null"))
        if self.made.checks:
            ways.append(("unfit", SIZES, "0", "ptr null"))
        if self.searched:
            ways.append(("rejected", NAN, "%nan.at", "ptr null"))
        for label, status, pair, record in ways:
            b.label(label)
            said = f"i64 {status}, i64 {pair}, {self.sizes}, {record}"
            b.do(f"call void @note_failure({pool}, {said})")
            if label != "unfit":
                b.do(back)
            b.do(self.returning(0 if self.made.success else status))

    def returning(self, status: int) -> str:
        """The end of a call with a status, or with nan."""
        returns = self.made.declaration.returns
        kind = KINDS[returns.dtype]
        if self.made.returned is None:
            return f"ret {integer(status, kind).typed}"
        return f"ret {real(float('nan'), kind).typed}"


def pointers(made: Interface, kernel: Kernel) -> dict[int, int]:
    """The parameter of each array of the table that the caller has, by its place there."""
    found = {**made.inputs, **{len(kernel.params) + i: at for i, at in made.results.items()}}
    parameters = made.declaration.parameters
    return {i: at for i, at in found.items() if parameters[at].type.pointer}


def own_values(made: Interface, kernel: Kernel) -> list[int]:
    """The places of the table whose values lie in the workspace."""
    places = pointers(made, kernel)
    return [at for at in range(len(kernel.params) + len(kernel.results)) if at not in places]


def llvm_type(type: CType) -> str:
    """A type of C in IR: bool is a byte."""
    if type.pointer:
        return "ptr"
    return "i8" if type.dtype == "bool" else BITS[KINDS[type.dtype]]
