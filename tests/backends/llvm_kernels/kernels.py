"""Kernels of one elementwise op or function, made and called for tests."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from graphcore.backends.llvm_kernels import elementary
from graphcore.backends.llvm_kernels.arithmetic import SCALAR, kind_of_dtype
from graphcore.backends.llvm_kernels.builder import (
    BITS,
    PARTS,
    WIDTH,
    Builder,
    Value,
    integer,
    type_of,
)
from graphcore.backends.llvm_kernels.machine import WITH_CARE
from graphcore.ir.node import Node

Array = np.ndarray


def element(b: Builder, pointer: str, kind: str, i: Value) -> Value:
    """Where the values from place i on are."""
    return b.now("ptr", f"getelementptr {kind}, ptr {pointer}, i64 {i.text}")


def load(b: Builder, pointer: str, kind: str, i: Value, wide: int) -> Value:
    """Values as NumPy has them in memory; complex ones as an array of reals, one of imaginaries."""
    if part := PARTS.get(kind):
        return b.complex(*[load(b, f"{pointer}.{n}", part, i, wide) for n in (0, 1)])
    stored = "i8" if kind == "i1" else kind
    place = element(b, pointer, BITS[stored], i)
    x = b.now(stored, f"load {type_of(stored, wide)}, ptr {place.text}, align 1", wide)
    return b.convert("trunc", x, "i1") if kind == "i1" else x


def store(b: Builder, pointer: str, i: Value, x: Value) -> None:
    if x.kind in PARTS:
        for n, part in enumerate(b.parts(x)):
            store(b, f"{pointer}.{n}", i, part)
        return
    if x.kind == "i1":
        x = b.convert("zext", x, "i8")
    place = element(b, pointer, BITS[x.kind], i)
    b.do(f"store {x.typed}, ptr {place.text}, align 1")


def pointers(name: str, kind: str) -> list[str]:
    return [f"%{name}.0", f"%{name}.1"] if kind in PARTS else [f"%{name}"]


def run(
    write: Callable[[Builder, list[Value]], Value],
    kinds: Sequence[str],
    dtype: np.dtype,
    *arrays: Array,
    level: str | None = None,
    wide: bool = True,
    width: int = WIDTH,
    effort: int = WITH_CARE,
) -> Array:
    """What `write` makes of arrays of one axis, `width` values side by side or one by one."""
    b = Builder(width)
    names = [f"x{i}" for i in range(len(arrays))]
    result = kind_of_dtype(dtype)

    def body(i: Value) -> list[Value]:
        xs = [
            load(b, f"%{n}", kind, i, width if wide else 0)
            for n, kind in zip(names, kinds, strict=True)
        ]
        y = write(b, xs)
        store(b, "%out", i, b.widen(y) if wide else y)
        return []

    b.loop(integer(0), Value("%n", "i64"), width if wide else 1, [], body)
    b.do("ret void")
    given = [p for n, kind in zip(names, kinds, strict=True) for p in pointers(n, kind)]
    params = ", ".join(f"ptr {p}" for p in [*pointers("out", result), *given])
    text = elementary.module(f"define void @kernel({params}, i64 %n)", b)
    code = elementary.compiled(text, "kernel", level=level, effort=effort)
    size = arrays[0].size
    padded = [np.concatenate([x, np.ones(-size % width, x.dtype)]) for x in arrays]
    out = np.empty(len(padded[0]), dtype)
    outs = parts(np.zeros_like(out))
    buffers = [*outs, *[part for x in padded for part in parts(x)]]
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(buffers), ctypes.c_int64)
    kernel(code["kernel"])(*[x.ctypes.data for x in buffers], len(out))
    if len(outs) == 1:
        return outs[0][:size]
    out.real, out.imag = outs
    return out[:size]


def parts(x: Array) -> list[Array]:
    return [np.ascontiguousarray(v) for v in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))]


def run_node(node: Node, *arrays: Array, **how: object) -> Array:
    """The values of an elementwise node whose operands are arrays."""
    kinds = [kind_of_dtype(x.type.dtype) for x in node.inputs]
    write = lambda b, xs: SCALAR[node.op](b, node, xs)
    return run(write, kinds, node.type.dtype, *arrays, **how)


def run_function(name: str, *arrays: Array, **how: object) -> Array:
    """An elementary function of arrays."""
    kind = kind_of_dtype(arrays[0].dtype)
    kinds = [kind] * len(arrays)
    return run(lambda b, xs: b.function(name, *xs), kinds, arrays[0].dtype, *arrays, **how)
