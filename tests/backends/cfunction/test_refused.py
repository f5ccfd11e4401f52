"""C functions that cannot be: the reason, the user's line, and a cure that works."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.c_declarations import parse
from tests.backends.llvm_kernels.native import needs_machine_code
from tests.refusals.cures import check, general

x = gc.tensor("x", {"row": None})
M = gc.tensor("M", {"row": 3, "col": None})
s = gc.tensor("s", {})
z = gc.tensor("z", {}, dtype="complex128")
n = gc.tensor("n", {}, dtype="int64")


def program(inputs: Any, outputs: Any, **options: Any) -> gc.Compiled:
    return gc.compile(inputs, outputs, **{"native": True, **options})


def refused(f: gc.Compiled, *args: Any, **options: Any) -> tuple[str, str]:
    """The words of a refusal, and its cure."""
    with pytest.raises(gc.GraphError) as caught:
        f.cfunc(*args, **options)
    message, _, cure = str(caught.value).partition("\n  cure: ")
    assert message.startswith("cfunc: ")
    assert "\n  asked at test_refused.py:" in message
    check(cure, general())
    return message, cure


# ---- programs

WHOLE_PROGRAMS: dict[str, Callable[[], gc.Compiled]] = {
    "fft at test_refused.py:{line} is a NumPy call": lambda: program([x], gc.fft.fft(x, "row")),
    "print at test_refused.py:{line} prints": lambda: program([x], gc.print(x, "x").sum()),
    "has a size that is found while the program runs": lambda: program([x], x[x > 0].sum()),
    "callback at test_refused.py:{line} calls a Python function": lambda: program([s], called()),
    "the program has no results": lambda: program([x], []),
}


def called() -> gc.Tensor:
    return gc.callback(np.sin, s)(s)


@needs_machine_code
@pytest.mark.parametrize("said", WHOLE_PROGRAMS)
def test_programs(said: str) -> None:
    message, _ = refused(WHOLE_PROGRAMS[said]())
    before, _, after = said.partition("{line}")
    assert before in message
    assert after in message


@needs_machine_code
def test_a_step_in_a_loop_is_named() -> None:
    f = program(
        [M], gc.scan(lambda c, m: (c + abs(gc.fft.fft(m, "col")).sum(), None), 0.0, M, dim="row")[0]
    )
    message, _ = refused(f)
    assert "fft at test_refused.py:" in message


def test_numpy_calls() -> None:
    for f in (program([x], x * 2, native=False), gc.compile([x], x[1:])):
        with pytest.raises(gc.GraphError) as caught:
            f.cfunc("any declaration")
        assert "the program cannot be a C function\n" in str(caught.value)
        assert "asked at test_refused.py:" in str(caught.value)
        assert str(caught.value).endswith("cure: compile it with native=True")


def test_labels_that_are_joined() -> None:
    f = gc.compile([x], x * 2, join="inner", native=False)
    with pytest.raises(gc.GraphError, match="C functions have no labels to join"):
        f.cfunc()


# ---- declarations

VECTOR = [x], {"value": x.sum(), "twice": x * 2}
WRONG: dict[str, tuple[Any, str, str, str]] = {
    "what": (VECTOR, "what", "'what' is no declaration of a C function", "write a type, a name"),
    "a pointer is returned": (
        VECTOR,
        "double *f(double *x)",
        "f returns 'double *'",
        "return double",
    ),
    "two of one name": (
        VECTOR,
        "int f(double *x, int x)",
        "x is two parameters of f",
        "a name of its own",
    ),
    "pointer to pointer": (
        VECTOR,
        "int f(double **x)",
        "'double **x' is no parameter",
        "single values",
    ),
    "a struct": (VECTOR, "int f(struct s *x)", "'struct s *x' is no parameter", "single values"),
    "nothing": (VECTOR, "int f(void x)", "the parameter void x is void", "write void *user"),
    "without a name": (
        VECTOR,
        "int f(double *)",
        "a parameter double * has no name",
        "give it the name",
    ),
    "a stranger": (
        VECTOR,
        "int f(int row, double *x, double *valu)",
        "the parameter double *valu is nothing of the program\n"
        "  inputs: 'x'; results: 'value', 'twice'; sizes: 'row'",
        "did you mean value?",
    ),
    "a strange value": (
        VECTOR,
        "int f(int size)",
        "the parameter int size is nothing",
        "take one of these names",
    ),
    "dtype": (
        VECTOR,
        "int f(float *x)",
        "'x' is f64[row], but the parameter float *x",
        "write double *x",
    ),
    "dtype of a value": (
        ([s], s),
        "double f(long double s)",
        "'long double s' is no parameter",
        "single",
    ),
    "wider value": (
        ([n], n * 1.0),
        "double f(size_t n)",
        "'n' is i64[], but the parameter size_t n",
        "write 'int64_t n'",
    ),
    "complex value": (
        ([z], abs(z)),
        "double f(double complex z)",
        "'z' is c128[]",
        "write 'const double complex *z'",
    ),
    "constant": (
        VECTOR,
        "int f(int row, double *x, const double *value)",
        "'value' is a result, which is written, but const double *value is constant",
        "write double *value",
    ),
    "no pointer": (
        VECTOR,
        "int f(double x)",
        "the parameter double x is no pointer",
        "write double *x",
    ),
    "float size": (
        VECTOR,
        "int f(double row)",
        "'row' is a size, but the parameter double row",
        "write size_t row",
    ),
    "no input": (
        VECTOR,
        "int f(int row, double *value, double *twice)",
        "int f(int row, double *value, double *twice); does not take the input 'x'",
        "add the parameter 'const double *x'",
    ),
    "no result": (
        VECTOR,
        "int f(int row, double *x, double *value)",
        "f has nowhere to put the result 'twice': it returns the status of the call",
        "add the parameter 'double *twice'",
    ),
    "no size": (
        VECTOR,
        "int f(double *x, double *value, double *twice)",
        "the size 'row' is not given",
        "give row=100",
    ),
    "void": (
        ([s], s),
        "void f(double s, double *y)",
        "f returns void, which cannot say that a call failed",
        "return int",
    ),
    "unsigned": (([s], s), "size_t f(double s, double *y)", "f returns size_t", "return int"),
    "integer": (
        ([n], n),
        "int64_t f(int64_t n)",
        "f has nowhere to put the result 'result'",
        "add the parameter",
    ),
    "float of two": (
        VECTOR,
        "double f(int row, double *x)",
        "f returns one double, but 'value', 'twice'",
        "all results but one",
    ),
    "float of none": (
        ([s], s),
        "double f(double s, double *y)",
        "f returns one double, but none",
        "all results but one",
    ),
    "array returned": (
        ([x], x),
        "double f(int row, double *x)",
        "the result is f64[row], but f returns double",
        "return int",
    ),
    "other float": (
        ([s], s),
        "float f(double s)",
        "the result is f64[], but f returns float",
        "return int",
    ),
}


@needs_machine_code
@pytest.mark.parametrize("name", WRONG)
def test_declarations(name: str) -> None:
    of, declaration, said, mend = WRONG[name]
    message, cure = refused(program(*of), declaration)
    assert message.startswith(f"cfunc: {said}")
    assert cure.startswith(mend) or mend in cure


@needs_machine_code
def test_cures_work() -> None:
    """What a cure adds to a declaration is taken."""
    f = program([x, s], {"a": x * s, "b": s})
    parts = ["int row"]
    for _ in range(4):
        _, cure = refused(f, f"int f({', '.join(parts)})")
        parts.append(cure.partition("'")[2].partition("'")[0])
    assert parts[1:] == ["double *a", "double *b", "const double *x", "double s"]
    assert f.cfunc(f"int f({', '.join(parts)})")


@needs_machine_code
@pytest.mark.parametrize(
    ("options", "said", "mend"),
    [
        ({"rows": 3}, "no size of the program is named 'rows'", "did you mean row=?"),
        (
            {"height": 3},
            "no size of the program is named 'height'",
            "leave it out: its sizes are 'row'",
        ),
        ({"row": -1}, "row=-1 is no size", "give an integer from 0 on"),
        ({"row": 2.0}, "row=2.0 is no size", "give an integer from 0 on"),
        ({"row": True}, "row=True is no size", "give an integer from 0 on"),
        ({"success": "yes"}, "success='yes' is no status", "give an integer"),
        (
            {"success": 1, "declaration": "double f(int row, double *x)"},
            "f returns double, and no status",
            "leave success= out",
        ),
    ],
)
def test_options(options: dict[str, Any], said: str, mend: str) -> None:
    message, cure = refused(program([x], x.sum()), **options)
    assert message.startswith(f"cfunc: {said}")
    assert cure.startswith(mend)


@needs_machine_code
def test_success_that_the_status_does_not_hold() -> None:
    f = program([s], s)
    _, cure = refused(f, "signed char f(double s, double *y)", success=300)
    assert cure.startswith("give a small number")
    assert f.cfunc("signed char f(double s, double *y)", success=100)


@needs_machine_code
def test_pickles() -> None:
    c = program([s], s).cfunc()
    with pytest.raises(gc.GraphTypeError, match="it has no pickle\n  asked at test_refused"):
        pickle.dumps(c)


@needs_machine_code
def test_sizes_that_contradict_the_program() -> None:
    f = program([M], M.sum())
    with pytest.raises(gc.GraphValueError, match="the size 'row' is 4, but must be 3\n"):
        f.cfunc(row=4)
    assert (
        f.cfunc(row=3, col=np.int64(2)).declaration
        == "int program(const double *M, double *result);"
    )


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("double f(double)", "double (double)"),
        (
            "extern int f ( unsigned  long long int n , long int m,short s ) ;",
            "int (unsigned long long, long, short)",
        ),
        ("int f(signed char a, unsigned b, signed c)", "int (signed char, unsigned int, int)"),
        (
            "int f(_Complex double *z, float _Complex z2[])",
            "int (double complex *, float complex *)",
        ),
        (
            "int f(const double *const restrict x, double const y[3]) // a comment",
            "int (double *, double *)",
        ),
        ("int f(npy_intp n, /* how many, (all) */ void *)", "int (npy_intp, void *)"),
        ("double f(void)", "double ()"),
        ("double\nf\n(double x)\n", "double (double)"),
    ],
)
def test_what_declarations_are_read(text: str, signature: str) -> None:
    assert parse(text).signature == signature
    assert parse(str(parse(text))) == parse(text)
