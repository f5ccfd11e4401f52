"""BLAS and LAPACK as SciPy offers them to compiled code: addresses whose signatures are checked."""

from __future__ import annotations

import ctypes
import re
import sys
from functools import cache
from importlib import import_module, machinery, util
from pathlib import Path
from types import ModuleType

LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
"""How the names of routines begin for values of each kind."""

# `x` stands for the values, `int *` are 32 bits. All arguments are pointers.
BLAS = {
    "gemm": "char, char, int, int, int, x, x, int, x, int, x, x, int",
    "syrk": "char, char, int, int, x, x, int, x, x, int",
    "trsm": "char, char, char, char, int, int, x, x, int, x, int",
}
LAPACK = {
    "potrf": "char, int, x, int, int",
    "getrf": "int, int, x, int, int, int",
    "getrs": "char, int, int, x, int, int, x, int, int",
    "gtsv": "int, int, x, x, x, x, int, int",
}
VALUES = re.compile(
    r"__pyx_t_(5scipy_6linalg_\d+cython_(blas|lapack)_[sdcz]|(double|float)_complex)"
)


@cache
def module(name: str) -> ModuleType:
    """`scipy.linalg.cython_blas` or `cython_lapack`, without `scipy.linalg`.

    That takes a fifth of a second to import; what is loaded here becomes a part of it later.
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
    """Where `gemm`, ... for a kind of values is; None if it is not there, or has changed."""
    try:
        found = module("cython_blas" if routine in BLAS else "cython_lapack")
        capsule = found.__pyx_capi__[LETTERS[kind] + routine]
    except (ImportError, AttributeError, KeyError):
        return None
    api = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    signature = get_name(capsule)
    types = (BLAS | LAPACK)[routine].split(", ")
    expected = f"void ({', '.join([f'{type} *' for type in types])})"
    if VALUES.sub("x", signature.decode()) != expected:
        return None
    pointer: int | None = get_pointer(capsule, signature)
    return pointer
