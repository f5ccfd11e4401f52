"""Calls of compiled functions that cannot be right, and calls where no tensor stands."""

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

NO_TENSORS: list[tuple[str, ...]] = [
    ("gc.grad(lambda w: (w * w).sum(), w)", "not function <lambda>", "gc.grad(f(x), x)"),
    ("x.groupby('time.month')", "'time.month' is text", "x.groupby(da.time.dt.month)"),
    ("x.groupby('time.season')", "'time.season' is text", "x.groupby(da.time.dt.season)"),
    ("gc.ravel([w])[1](np.zeros(3))", "takes vectors of 12 numbers", "called at"),
    ("gc.Tensor(x)", "takes a node", "gc.constant(array, dims)"),
    (
        "gc.Tensor(gc.compile([x], x).stages['lowered'].params[0])",
        "after 'named'",
        "stage 'named' of",
    ),
    ("gc.compile(gc.compile([x], x).stages['named'])", "gc.Tensor(node), those of its params"),
    ("gc.compile([x.node], x)", "is not a tensor", "gc.Tensor(node)"),
    ("gc.Compiled(gc.compile([x], x).stages['lowered'], [0], 0)", "stage 'named'", "gc.compile("),
    ("gc.Compiled(gc.compile([x], x).stages['named'], (x.node,), 0)", "forms", "gc.compile("),
    ("gc.constant(np.array(['2000-01-01'], 'M8[D]'), 'row')", "np.timedelta64(1, 'D')"),
    ("x.groupby('month', 12)", "'month' is text", "give the labels themselves"),
    ("x.groupby([1.0, float('nan')], dim='row')", "1 labels of groups are missing", "fillna"),
    ("x.groupby(x.astype('int64'))", "the number of groups is not known", "(ids, size"),
    ("gc.scan(dict, s, x, 'feature')", "carry, x", "lambda carry, x: ..."),
    ("gc.Tensor()", "Tensor", "gc.tensor(name, dims)", "gc.constant(array, dims)"),
    ("gc.tensor(np.ones(3))", "dims is missing", "gc.constant(array, dims)"),
    ("gc.tensor(np.ones(3), 'row')", "is not a name", "gc.constant(array, dims)"),
    ("gc.stack([x, x])", "to join", "gc.concat(xs, 'new')"),
    ("gc.stack([x, x], 'feature')", "there is a dim 'feature' already", "choose a new name"),
    ("gc.one_hot(n, {'class': 3})", "not a size", "give the size alone, 3"),
    ("gc.tensor('q', {'row': 'n +'})", "'n +' is not an expression of sizes: invalid syntax"),
    ("gc.tensor('q', {}, dtype='flaot32')", "did you mean 'float32'?"),
    ("gc.ravel([s])[1](b)", "no dim 'parameter'", "gc.tensor('theta', {'parameter': 1})"),
    ("gc.grad(np.sum)", "grad: wrt is missing", "call it first", "@gc.function"),
    ("gc.value_and_grad(np.sum)", "wrt is missing", "gc.value_and_grad(f(x), x)"),
    ("gc.value_and_grad(x, x)", "value_and_grad", "has dims"),
    ("gc.compile([x], lambda x: x)", "compile: outputs: function <lambda>", "call it first"),
    ("gc.sin(np.sum)", "sin: function sum", "call it first"),
    ("gc.stack([x, x])", "stack: list", "to join", "gc.concat(xs, 'new')"),
    ("[x, x] * w", "to join", "gc.concat(xs, 'new')"),
    ("gc.zeros((2, 3))", "zeros: (2, 3) has sizes", "{'row': 2, 'col': 3}"),
    ("gc.eye(3)", "eye: (3, 3) has sizes", "{'row': 3, 'col': 3}"),
    ("gc.tri((2, 3))", "tri: (2, 3) has sizes", "{'row': 2, 'col': 3}"),
    ("gc.tensor('q', 3)", "tensor: 3 has sizes", "{'row': 3}"),
    ("range(x.sizes['batch'])", "index", "gc.fori_loop(0, batch, body, init)"),
    ("min(x.sizes['batch'], 3)", "greater", "gc.minimum"),
    ("gc.constant(np.ma.masked_equal([1.0, 2.0], 2.0), 'row')", "constant", "masked", "filled"),
    ("gc.grad(loss, np.ones(3))", "wrt", "gc.constant"),
    ("gc.grad(loss, 'x')", "grad", "wrt"),
    ("gc.concat([], 'row')", "concat", "no tensors"),
    ("gc.tensor('q', {}, dtype='datetime64[s]')", "tensor", "datetime64"),
    ("gc.constant(np.ones((2, 2)), ('row', 'row'))", "constant", "repeat 'row'"),
    ("gc.tensor('q', ('row', 'row'))", "tensor", "repeat 'row'"),
    ("gc.tensor(3, {'row': 2})", "tensor", "3 is not a name"),
    ("gc.tensor('q', {'row': -1})", "tensor", "'row' has size -1"),
    ("gc.tensor('q', {'row': 2.5})", "tensor", "2.5", "'row'"),
    ("gc.tensor('q', ('row', 'col'), shape=(2,))", "tensor", "('row', 'col')"),
    ("gc.tensor('q', {0: 2})", "tensor", "0 is not the name"),
    ("gc.tensor('q', {'row': 2}, (2,))", "tensor", "give sizes once"),
    ("gc.constant(np.ones((2, 3)))", "constant", "gc.constant(array, ('row', 'col'))"),
    ("gc.constant(np.ones((2, 3)), 'row')", "constant", "2 axes"),
    ("gc.constant([[1, 2], [3]], ('row', 'col'))", "constant", "length"),
    ("gc.constant(['a'], 'row')", "constant", "<U"),
    ("gc.full({'row': 2}, 300, dtype='int8')", "full", "300"),
    ("gc.arange(0, 5, 0, dim='row')", "arange", "step"),
    ("gc.linspace(0, 1, -1, dim='row')", "linspace", "-1"),
    ("gc.one_hot(x, 3)", "one_hot", "integer"),
    ("gc.eye(('row',), 3)", "eye", "two"),
    ("gc.signal.hann(-2, dim='row')", "hann", "-2"),
    ("gc.fft.fft(x, 'feature', n=-1)", "fft", "'feature' has size -1"),
    ("gc.fft.fft(x, 'feature', norm='orto')", "fft", "did you mean 'ortho'?"),
    ("gc.special.polygamma(-1, x)", "polygamma", "n is -1"),
    ("gc.special.multigammaln(x, 0)", "multigammaln", "d is 0"),
    ("gc.segment_max(x, [0, 1], 3)", "segment_max", "gc.constant"),
    ("gc.segment_sum(n, n, -1)", "segment_sum", "size -1"),
    ("gc.conv(x, w, 'feature', padding=-1)", "conv", "padding -1", "'same'"),
    ("gc.mean_pool(x, {'feature': 2}, stride='a')", "mean_pool", "'a'"),
]
