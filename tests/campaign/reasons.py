"""Why a call with a value that looks wrong is accepted: by the kind of argument and of value."""

from __future__ import annotations

import re
from typing import NamedTuple

from .calls import Place
from .values import VALUES

INTEGERS = {"0", "1", "-1", "2**40", "10**30", "-(2**63)", "np.int64"}
REALS = {*INTEGERS, "1.5", "nan", "inf", "Fraction", "np.float32"}
NUMBERS = {*REALS, "True", "1j", "an array of no dims"}
SIZES = {"a size", "a size made of sizes", "a formula of a size"}
TENSORS = {
    *("a float tensor", "an int tensor", "a bool tensor", "a complex tensor", "a half tensor"),
    *("a tensor of no dims", "a tensor of other dims", "a tensor of many dims"),
    *("an empty tensor", "a DataArray"),
}
NAMES = {"a word", "no word", "a dim"}
LISTS = {"a tuple of numbers", "range", "an array", "nested lists", "a list of tensors"}
NOTHING = {"()", "[]", "{}", "set()", "a generator", "an empty array"}
FUNCTIONS = {"a function", "a builtin", "a class", "a compiled function"}
DICTS = {"a dict of None", "a dict of words", "a dict of numbers", "a dict by numbers"}

OPERAND = r"Operand|Tensor|Tree|^[TX]$|Mask|Row|Labelled|complex|Any|Real"
SIZE = r"Size|int\b|Whole|Steps|Gaps|Padding|Expression"
NAME = r"str\b|Dim|Pair|Contracted|Iterable"


class Reason(NamedTuple):
    """Values that arguments take whose annotation has a word of `kinds`, and why."""

    values: set[str]
    kinds: str
    why: str


REASONS = (
    Reason(NUMBERS | SIZES | TENSORS, OPERAND, "an operand: a number, size, tensor or DataArray"),
    Reason(REALS, r"float", "a real number"),
    Reason(REALS | SIZES | TENSORS | {"True", "an array of no dims"}, r"Rates", "a rate"),
    Reason(LISTS | DICTS | FUNCTIONS, r"Rates", "rates of groups, or a schedule"),
    Reason({"True"}, r"bool|Any", "a flag"),
    Reason(INTEGERS | SIZES | {"None"}, SIZE, "an integer, a size, or None for an unknown one"),
    Reason(NAMES, SIZE, "the name of an unknown size"),
    Reason({"a dict of None", "a dict of words", "a dict of numbers"}, r"Size", "sizes by dim"),
    Reason(NAMES, NAME, "a dim that there is, or the name of a new one"),
    Reason({"a list of words", "an array of words", "a set of dims"}, NAME + "|Size", "names"),
    Reason({"a list of words", "a dim and a number", "an array of words"}, r"Size", "sizes"),
    Reason({"a dim twice"}, r"Iterable|Contracted|Dim", "dims in no order"),
    Reason(
        {"None", "..."},
        r"None|Dim|Ellipsis|Iterable|Mask|Contracted|Any",
        "the default, or all dims",
    ),
    Reason(NOTHING, r"", "no dims, items or changes"),
    Reason(LISTS, OPERAND + "|" + SIZE, "a list of operands, positions or sizes"),
    Reason(DICTS, r"Tree|^[TX]$|Any", "values by name or by dim"),
    Reason({"slice"}, r"Any", "an indexer"),
    Reason(set(VALUES), r"Anything", "a leaf of a tree may be anything"),
    Reason({"None"}, r"Structure", "the structure of one leaf"),
    Reason(FUNCTIONS, r"Schedule|^Mask$", "a function of the step, or of the params"),
    Reason({"None", "a class", "np.dtype"}, r"DTypeLike", "a dtype, as NumPy has it"),
    Reason(FUNCTIONS, r"Callable|Any|Compiled", "a function, or a program to print"),
    Reason({"None", "a set of dims", "a dim"}, r"Any", "passed on to the function of the user"),
)


def reason(place: Place, wrong: str) -> str:
    """Why the call is accepted; "" if nothing says it."""
    for values, kinds, why in REASONS:
        if wrong in values and re.search(kinds, place.annotation):
            return why
    return ""
