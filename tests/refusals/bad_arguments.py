"""Calls of compiled functions that cannot be right: how each is compiled, and its calls."""

from __future__ import annotations

MATRICES = "a = gc.tensor('a', {'batch': None, 'row': 2, 'col': 2})"

FOREIGN = """\
class Foreign:
    def __init__(self, error, **attributes):
        self.error = error
        self.__dict__.update(attributes)

    def __array__(self, dtype=None, copy=None):
        raise self.error

class TracerArrayConversionError(TypeError): pass

f, g = gc.compile([t], t), gc.function(t=("time",))(lambda t: 2 * t)
"""
"""Arrays of other libraries, whose conversion fails."""

CALL: dict[str, list[tuple[str, ...]]] = {
    "f = gc.compile([x, w], gc.dot(x, w))": [
        ("f(np.ones((2, 4)))", "'w'", "cure"),
        ("f()", "'x'", "'w'"),
        ("f(np.ones((2, 4)), np.ones((4, 3)), 1)", "3 arguments"),
        ("f(np.ones((2, 4)), v=np.ones((4, 3)))", "'v'", "'x'", "'w'"),
        ("f(np.ones((2, 4)), ww=np.ones((4, 3)))", "did you mean 'w'?"),
        ("f(x=np.ones((2, 4)), w=np.ones((4, 3)), c=1)", "no input 'c'", "leave 'c' out"),
        ("f(np.ones((2, 4)), x=np.ones((2, 4)))", "'x' is given twice"),
        ("f(np.ones(4), np.ones((4, 3)))", "'x'", "('batch', 'feature')", "(4,)"),
        ("f(np.ones((2, 5)), np.ones((4, 3)))", "'feature'", "5", "4"),
        ("f(np.ones((2, 4)), np.ones((3, 4)))", "'w'", "'feature'"),
        ("f(np.ones((2, 4)) + 1j, np.ones((4, 3)))", "complex128", "float64"),
        ("f('abc', np.ones((4, 3)))", "'x'", "float64"),
        ("f(None, np.ones((4, 3)))", "'x'"),
        ("f([[1, 2, 3, 4], [5, 6]], np.ones((4, 3)))", "'x'"),
        ("f(x, np.ones((4, 3)))", "'x'"),
        ("f(np.ma.masked_less(np.eye(2, 4), 1), np.ones((4, 3)))", "'x'", "masked", "filled"),
    ],
    FOREIGN: [
        ("f(Foreign(RuntimeError('requires grad'), requires_grad=True))", "'t'", "value.detach()"),
        ("g(Foreign(RuntimeError('requires grad'), requires_grad=True))", "'t'", "value.detach()"),
        ("f(Foreign(TypeError('BFloat16'), dtype='torch.bfloat16'))", "'t'", "value.float()"),
        ("f(Foreign(TracerArrayConversionError('a traced array')))", "'t'", "outside jax.jit"),
        ("f([Foreign(TypeError('cuda:0'))])", "'t'", "cuda:0"),
        ("f(Foreign(ValueError('on a device')))", "'t'", "memory of the CPU"),
        (
            "f(Foreign(None, dims=('time',), values=Foreign(TypeError('cuda:0'))))",
            *("'t'", "memory of the CPU"),
        ),
    ],
    "f = gc.compile([t], t)": [
        ("f(np.arange('2000-01', '2000-06', dtype='M8[M]'))", "datetime64", "dates[0]"),
    ],
    "f = gc.compile([n, s], n.sum() + s)": [
        ("f(np.ones(4), 1.0)", "'n'", "int64", "float64", "astype"),
        ("f([1, 2, 3, 2**70], 1.0)", "'n'"),
        ("f(np.ones(4, int), [1.0])", "'s'", "0 dims"),
    ],
    "f = gc.compile([u, v], u + v)": [
        ("f(np.ones(3), np.ones(4))", "add", "'time'", "n_u", "n_v", "3", "4"),
    ],
    "f = gc.compile([x, b], x.sum('feature') + b)": [
        ("f(np.ones((2, 5)), np.ones(2))", "'feature'", "must have 4", "{'feature': None}"),
        ("f(np.ones((32, 4)), np.ones(31))", "'batch'", "32", "31", "'x'", "'b'"),
    ],
    "f = gc.compile({'p': x, 'q': [w]}, x.sum() + w.sum())": [
        ("f({'p': np.ones((2, 4))})", "argument", "'q'"),
        ("f({'p': np.ones((2, 4)), 'q': np.ones((4, 3))})", "list"),
    ],
    "f = gc.compile([x], x.isel(batch=2))": [
        ("f(np.ones((2, 4)))", "'batch'", "2"),
    ],
    "f = gc.compile([x, n], x.isel(feature=n))": [
        ("f(np.ones((2, 4)), [0, 1, 2, 4])", "position 4 is outside dim 'feature'"),
    ],
    "f = gc.compile([x], x.max('batch'))": [
        ("f(np.ones((0, 4)))", "max", "'batch'", "0"),
    ],
    "f = gc.compile([x], x.unstack(batch={'p': 2, 'q': None}))": [
        ("f(np.ones((3, 4)))", "unstack", "'batch'", "3", "a multiple of 2"),
    ],
    "f = gc.compile([x], x.coarsen(batch=5).mean())": [
        ("f(np.ones((3, 4)))", "mean", "'batch'", "a multiple of 5", "boundary='trim'"),
    ],
    "f = gc.compile([x], x.groupby(['a', 'b', 'a'], dim='batch').mean())": [
        ("f(np.ones((4, 4)))", "'batch'", "4 and 3", "numbers of groups, be an input too"),
    ],
    "f = gc.compile([x, n], gc.segment_sum(x, n, 2, name='month'))": [
        ("f(np.ones((2, 4)), [1, 2, 1, 2])", "segment_sum", "subtract 1 from numbers that start"),
        ("f(np.ones((2, 4)), [1, 0, -1, 1])", "segment_sum", "position -1 is outside", "0 to 1"),
    ],
    "f = gc.compile([x, n], gc.nn.cross_entropy(x, n.rename(feature='batch'), dim='feature'))": [
        ("f(np.ones((4, 4)), [1, 2, 3, 4])", "cross_entropy", "subtract 1 from numbers that start"),
        ("f(np.ones((4, 4)), [0, 0, 0, -1])", "cross_entropy", "position -1 is outside", "0 to 3"),
    ],
    "f = gc.compile([x], x.squeeze('batch'))": [
        ("f(np.ones((3, 4)))", "squeeze", "'batch'", "3"),
    ],
    f"{MATRICES}\nf = gc.compile([a], gc.linalg.inv(a))": [
        ("f(np.stack([np.eye(2), np.ones((2, 2))]))", "inv", "singular", "batch=1"),
    ],
    f"{MATRICES}\nf = gc.compile([a], gc.linalg.cholesky(a))": [
        ("f(-np.eye(2)[None])", "cholesky", "not positive definite", "batch=0"),
    ],
    "f = gc.compile([n], n ** n)": [
        ("f([1, -1, 2, 3])", "power", "negative"),
    ],
}
