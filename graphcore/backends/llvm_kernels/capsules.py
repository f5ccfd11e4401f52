"""The addresses of SciPy's BLAS, LAPACK and special functions, whose signatures are checked.

And those of NumPy's sorts, which are where the headers of its version of the interface say.
"""

from __future__ import annotations

import ctypes
import re
import sys
from functools import cache
from importlib import import_module, machinery, util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
"""How the names of routines begin for values of each kind."""

# `x` stands for the values, `int *` are 32 bits. All arguments are pointers.
BLAS = {
    "gemm": "char, char, int, int, int, x, x, int, x, int, x, x, int",
}
LAPACK = {
    "potrf": "char, int, x, int, int",
    "getrf": "int, int, x, int, int, int",
    "gtsv": "int, int, x, x, x, x, int, int",
}
VALUES = re.compile(
    r"__pyx_t_(5scipy_6linalg_\d+cython_(blas|lapack)_[sdcz]|(double|float)_complex)"
)


@cache
def module(name: str) -> ModuleType:
    """`scipy.linalg.cython_blas` or `cython_lapack`, without `scipy.linalg`.

    Importing the whole package takes a fifth of a second. The module loaded here becomes a part of
    it if the package is imported later.
    """
    full = f"scipy.linalg.{name}"
    if full in sys.modules or (home := util.find_spec("scipy")) is None:
        return import_module(full)
    for folder in home.submodule_search_locations or ():
        for suffix in machinery.EXTENSION_SUFFIXES:
            file = Path(folder, "linalg", name + suffix)
            if file.exists() and (spec := util.spec_from_file_location(full, file)) and spec.loader:
                found = util.module_from_spec(spec)
                spec.loader.exec_module(found)
                return found
    return import_module(full)


@cache
def address(routine: str, kind: str) -> int | None:
    """The address of `gemm`, ... for a kind of values; None if it is missing, or has changed."""
    try:
        found = module("cython_blas" if routine in BLAS else "cython_lapack")
        capsule = found.__pyx_capi__[LETTERS[kind] + routine]
    except (ImportError, AttributeError, KeyError):
        return None
    types = (BLAS | LAPACK)[routine].split(", ")
    expected = f"void ({', '.join([f'{type} *' for type in types])})"
    return pointer(capsule) if VALUES.sub("x", capsule_name(capsule)) == expected else None


@cache
def special(name: str, arity: int) -> int | None:
    """The address of SciPy's function of so many float64; None if it is missing, or has changed."""
    try:
        found = import_module("scipy.special.cython_special").__pyx_capi__
    except (ImportError, AttributeError):
        return None
    expected = f"double ({'double, ' * arity}int __pyx_skip_dispatch)"
    for full in (name, *[f"__pyx_fuse_{n}{name}" for n in (0, 1)]):
        if full in found and capsule_name(found[full]) == expected:
            return pointer(found[full])
    return None


@cache
def sort(bits: int) -> int | None:
    """The address of NumPy's vectorised sort of unsigned words: int (void *, intp, void *unused).

    None if NumPy's interface has changed, or the function that it names does not sort.
    """
    core = import_module("numpy._core._multiarray_umath")
    table = (ctypes.c_void_p * (GETTER + 1)).from_address(pointer(core._ARRAY_API))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0] or 0)
    if version() >> 24 != 2:
        return None
    of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[GETTER] or 0)
    sample = np.array([3, 2**bits - 1, 0, 5, 4], f"uint{bits}")
    found = (ctypes.c_void_p * (SORT + 1)).from_address(of(sample.dtype))[SORT]
    if not found:
        return None
    called = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)
    expected = sorted(sample.tolist())
    failed = called(found)(sample.ctypes.data, sample.size, None)
    return None if failed or sample.tolist() != expected else int(found)


GETTER, SORT = 365, 33
"""Of NumPy's interface, version 2: where the getter of a dtype's functions is, and their sort."""


def capsule_name(capsule: object) -> str:
    """The signature that a capsule has for its name."""
    return (name_of(capsule) or b"").decode()


def name_of(capsule: object) -> bytes | None:
    get = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    found: bytes | None = get(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    return found


def pointer(capsule: object) -> int:
    """The address in a capsule."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    found: int = get(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, name_of(capsule))
    return found


class Owner:
    """The object that a capsule keeps alive, and the memory of its name, after our address."""

    def __init__(self, kept: object, name: str) -> None:
        self.kept = kept
        text = name.encode() + b"\0"
        self.memory = np.zeros(8 + len(text), np.uint8)
        self.memory[:8].view(np.int64)[0] = id(self)
        self.memory[8:] = np.frombuffer(text, np.uint8)


def keeping(kept: object, address: int, name: str, release: int) -> Any:
    """A capsule of an address that keeps an object until `release` is called for it.

    That is a C function that lets go of the owner in front of the name.
    """
    owner = Owner(kept, name)
    given = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *given)(("PyCapsule_New", ctypes.pythonapi))
    made = new(address, owner.memory.ctypes.data + 8, release)
    ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))(owner)
    return made
