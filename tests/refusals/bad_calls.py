"""Calls that cannot be right: the code, and words that its refusal must say.

Each is run after `PRELUDE`, as the line of a user's file model.py.
"""

from __future__ import annotations

import graphcore as gc
from tests.refusals.bad_arguments import CALL, NO_TENSORS
from tests.refusals.bad_names import NAMES, PROTOCOLS

PRELUDE = """\
import numpy as np
import graphcore as gc

x = gc.tensor("x", {"batch": None, "feature": 4})
y = gc.tensor("y", {"batch": None, "feature": 3})
w = gc.tensor("w", {"feature": 4, "class": 3})
n = gc.tensor("n", {"feature": 4}, dtype="int64")
m = gc.tensor("m", {"feature": 4}, dtype="bool")
z = gc.tensor("z", {"feature": 4}, dtype="complex128")
t = gc.tensor("t", {"time": 5})
b = gc.tensor("b", {"batch": None})
s = gc.tensor("s", {})
e = gc.tensor("e", {"feature": 0, "row": 2})
u = gc.tensor("u", {"time": "n_u"})
v = gc.tensor("v", {"time": "n_v"})
h = x * 2
loss = (x * x).sum()
"""

NO_OPERANDS = {
    "names that there are not",
    "where no tensor stands",
    "compiling",
    "loops and branches",
}
"""Groups in which there may be no tensor to show."""

BUILD: dict[str, list[tuple[str, ...]]] = {
    "names that there are not": NAMES,
    "a dim that is not there": [
        ("x.sum('featrue')", "sum", "did you mean 'feature'?"),
        ("x.mean(['batch', 'featrue'])", "mean", "did you mean 'feature'?"),
        ("gc.std(x, 'bach')", "std", "did you mean 'batch'?"),
        ("x.max('time')", "max", "the dims are 'batch', 'feature'"),
        ("s.min('row')", "min", "it has no dims"),
        ("x.argmax('classs')", "argmax"),
        ("x.cumsum('featrue')", "cumsum", "did you mean 'feature'?"),
        ("x.diff('featrue')", "diff", "did you mean 'feature'?"),
        ("x.median('featrue')", "median", "did you mean 'feature'?"),
        ("x.quantile(0.5, 'featrue')", "quantile", "did you mean 'feature'?"),
        ("gc.special.softmax(x, 'featrue')", "softmax", "did you mean 'feature'?"),
        ("gc.special.logsumexp(x, 'featrue')", "logsumexp", "did you mean 'feature'?"),
        ("gc.dot(x, w, dim='featrue')", "dot", "did you mean 'feature'?"),
        ("x.transpose('featrue', 'batch')", "transpose", "did you mean 'feature'?"),
        ("x.rename(featrue='f')", "rename", "did you mean 'feature'?"),
        ("x.squeeze('featrue')", "squeeze", "did you mean 'feature'?"),
        ("x.stack(z=('batch', 'featrue'))", "stack", "did you mean 'feature'?"),
        ("x.unstack(featrue={'a': 2, 'b': 2})", "unstack", "did you mean 'feature'?"),
        ("x.isel(featrue=0)", "isel", "did you mean 'feature'?"),
        ("x[{'featrue': 0}]", "did you mean 'feature'?"),
        ("gc.take(x, [0], dim='featrue')", "take", "did you mean 'feature'?"),
        ("gc.take_along(x, n, dim='featrue')", "take_along", "did you mean 'feature'?"),
        ("x.at[{'featrue': 0}].set(1.0)", "at", "did you mean 'feature'?"),
        ("x.roll(featrue=1)", "roll", "did you mean 'feature'?"),
        ("x.shift(featrue=1)", "shift", "did you mean 'feature'?"),
        ("x.pad(featrue=1)", "pad", "did you mean 'feature'?"),
        ("x.head(featrue=1)", "head", "did you mean 'feature'?"),
        ("gc.flip(x, 'featrue')", "flip", "did you mean 'feature'?"),
        ("x.sort('featrue')", "sort", "did you mean 'feature'?"),
        ("x.argsort('featrue')", "argsort", "did you mean 'feature'?"),
        ("x.top_k(2, 'featrue')", "top_k", "did you mean 'feature'?"),
        ("x.rolling(featrue=2).sum()", "rolling", "did you mean 'feature'?"),
        ("x.coarsen(featrue=2).sum()", "coarsen", "did you mean 'feature'?"),
        ("gc.windows(x, {'featrue': 2}, 'w')", "windows", "did you mean 'feature'?"),
        ("gc.trace(x, dims=('batch', 'featrue'))", "trace", "did you mean 'feature'?"),
        ("gc.gradient(x, 'featrue')", "gradient", "did you mean 'feature'?"),
        ("gc.norm(x, 'featrue')", "norm", "did you mean 'feature'?"),
        ("gc.repeat(x, 2, 'featrue')", "repeat", "did you mean 'feature'?"),
        ("gc.split(x, 2, 'featrue')", "split", "did you mean 'feature'?"),
        ("gc.unbind(x, 'featrue')", "unbind", "did you mean 'feature'?"),
        ("gc.cov(x, x, 'featrue')", "cov", "did you mean 'feature'?"),
        ("x.ffill('featrue')", "ffill", "did you mean 'feature'?"),
        ("gc.grad(loss, x, per='batch')", "grad"),
    ],
    "sizes that differ": [
        ("x + y", "add", "'feature' has sizes 4 and 3", "never stretched"),
        ("x * x.isel(feature=slice(0, 1))", "multiply", "'feature' has sizes 4 and 1"),
        ("gc.where(x > 0, x, y)", "where", "'feature' has sizes 4 and 3"),
        ("gc.dot(y, w)", "dot", "'feature' has sizes 3 and 4"),
        ("gc.concat([x, y], 'batch')", "concat", "'feature' has sizes 4 and 3"),
        ("y.broadcast_like(x)", "broadcast_like", "'feature' has sizes 4 and 3"),
        ("gc.broadcast(x, y)", "broadcast", "'feature' has sizes 4 and 3"),
        ("x.isel(feature=('batch', [0, 1])) + gc.zeros({'batch': 3})", "'batch' has sizes"),
        ("w.isel(feature=('p', [0, 1]), **{'class': ('p', [0, 1, 2])})", "'p' has sizes 2 and 3"),
        ("x.at[{'batch': 0}].set(gc.ones({'feature': 3}))", "at.set", "'feature'"),
        ("w.unstack(feature={'p': 3, 'q': 2})", "unstack", "'feature' has size 4", "3 * 2"),
        ("w.unstack(feature={'p': 3, 'q': None})", "unstack", "'feature'", "3"),
        ("x.pad(batch=1) + gc.ones({'feature': 3})", "(feature is 4, declared by x at model.py:4)"),
        ("h + y", "(feature is 4, declared by x at model.py:4)"),
        ("x.squeeze('feature')", "squeeze", "'feature' has size 4"),
        ("gc.pullback(h, x, y)", "pullback", "cotangent"),
        ("gc.cross(w, w, 'feature')", "cross", "'feature' has size 4"),
        ("w.coarsen(feature=3).sum()", "coarsen", "'feature' of size 4"),
        ("x.groupby([1, 2, 1, 2], 2, 'feature')", "groupby", "subtract 1, as yours start at 1"),
        ("gc.nn.cross_entropy(x, gc.constant([0, -1], 'batch'))", "dim is missing"),
        ("gc.nn.cross_entropy(x, gc.constant([0, -1], 'batch'), 'feature')", "-1 is outside of 4"),
    ],
    "names twice, names that clash": [
        ("x.rename(batch='feature')", "rename", "'feature'"),
        ("x.transpose('batch', 'batch')", "transpose", "twice"),
        ("x.sum(['batch', 'batch'])", "sum", "twice"),
        ("gc.dot(x, w, dim=('feature', 'feature'))", "dot", "twice"),
        ("x.expand_dims('batch')", "expand_dims", "'batch'"),
        ("x.stack(batch=('feature',))", "stack", "'batch'"),
        ("x.stack(p=('feature', 'feature'))", "stack", "twice"),
        ("x.unstack(feature={'batch': 2, 'q': 2})", "unstack", "'batch'"),
        ("x.transpose(..., 'batch', ...)", "transpose", "..."),
        ("x.transpose('batch')", "transpose", "..."),
    ],
    "axes by position": [
        ("x.sum(axis=0)", "sum", "axis", "dim='batch'"),
        ("x.sum(1)", "sum", "dim='feature'"),
        ("x.mean(-1)", "mean", "dim='feature'"),
        ("x.sum((0, 1))", "sum", "dim='batch'"),
        ("x.sum('batch', keepdims=True)", "sum", "keepdims"),
        ("x.transpose(1, 0)", "transpose", "dim='feature'"),
        ("gc.sort(x, axis=1)", "sort", "axis", "dim='feature'"),
        ("gc.flip(x, axis=(0, 1))", "flip", "axis", "dim=('batch', 'feature')"),
        ("gc.special.softmax(x, axis=-1)", "softmax", "axis", "dim='feature'"),
        ("gc.linalg.inv(x, axes=(0, 1))", "inv", "axes", "dims=('batch', 'feature')"),
        ("gc.exp(x, axis=0)", "exp", "axis", "names"),
        ("x.rolling(batch=2).sum(axis=0)", "sum", "axis", "leave it out"),
        ("gc.dot(x, w, axis=1)", "dot", "dim="),
        ("gc.concat([x, x], 0)", "concat", "dim='batch'"),
        ("x.cumsum(0)", "cumsum", "dim='batch'"),
        ("x.sort(-1)", "sort", "dim='feature'"),
        ("np.sum(x, axis=1)", "numpy.sum", "gc.sum(x, dim='feature')"),
        ("np.concatenate([x, x])", "numpy.concatenate", "gc.concat"),
        ("np.reshape(x, (2, -1))", "numpy.reshape", "x.stack"),
        ("np.pad(x, 1)", "numpy.pad", "x.pad({'batch': (1, 1)}, constant_values=0)"),
        ("gc.pad(x, 1)", "pad", "x.pad({'batch': (1, 1)}, constant_values=0)"),
        ("np.insert(x, 0, 1)", "no counterpart", "gc.callback(np.insert, result)(x)"),
        ("x.coarsen(feature=2).sum(bad=1)", "write x.coarsen(...).sum(where=None"),
        ("x.rolling(feature=2).std(dof=1)", "did you mean ddof?"),
        ("x.rolling(feature=2, centre=True)", "takes no centre", "did you mean center?"),
        ("x.coarsen({'feature': 2}, bounday='trim')", "takes no bounday", "did you mean boundary?"),
        ("x.squeeze(0)", "squeeze", "dim='batch'"),
        ("x.expand_dims(0)", "expand_dims", "0 is not the name of a dim"),
    ],
    "arrays without names": [
        ("x + np.ones(4)", "add", "has no dims", "gc.constant(array, dims)"),
        ("np.ones((2, 4)) * x", "multiply", "has no dims", "gc.constant(array, dims)"),
        ("x @ np.ones((4, 3))", "gc.constant"),
        ("gc.where(x > 0, x, np.zeros(4))", "where", "gc.constant(array, dims)"),
        ("gc.dot(x, [1, 2, 3, 4])", "dot", "gc.constant"),
        ("x + [1, 2, 3, 4]", "add", "list", "gc.constant"),
        ("x + None", "add", "None"),
        ("x + '1'", "add", "'1'"),
        ("x == 'a'", "equal", "'a'"),
        ("x.at[{'batch': 0}].set(np.ones(4))", "at.set", "gc.constant"),
    ],
    "positions": [
        ("x.isel(feature=4)", "isel", "position 4", "'feature'", "from -4 to 3"),
        ("x.isel(feature=[0, -5])", "isel", "position -5"),
        ("e.isel(feature=0)", "isel", "empty"),
        ("x.isel(feature=1.5)", "isel", "1.5"),
        ("x.isel(feature='a')", "isel", "'a'"),
        ("x.isel(feature=None)", "isel", "None"),
        ("x.isel(feature=[0.5, 1.0])", "isel", "f64"),
        ("x.isel(feature=np.zeros((2, 2), int))", "isel", "several axes"),
        ("x.isel(feature=[True, False])", "isel", "mask", "'feature'", "4"),
        ("x.isel(feature=x > 0)", "isel", "bool", "has the one dim it picks from"),
        ("x.isel(feature=w)", "isel", "f64"),
        ("x.isel(feature=('d', n))", "isel", "x.isel(feature=index.rename({'feature': 'd'}))"),
        ("x[:, None]", "getitem", "expand_dims"),
        ("x.isel(feature=slice(0, 2, 0))", "isel", "step"),
        ("x.isel(feature=slice('a', None))", "isel", "'a'"),
        ("x[0, 0, 0]", "3 indexers"),
        ("x[..., ...]", "indexers"),
        ("x[None]", "expand_dims"),
        ("t[:, None]", "None does not add a dim", "expand_dims"),
        ("x['feature']", "isel"),
        ("gc.take_along(x, w, dim='feature')", "take_along", "integers"),
        ("x.at[{'feature': 9}].add(1.0)", "position 9"),
        ("x.at[{'feature': 0}].set(1j)", "at.set", "complex"),
        ("n.at[{'feature': 0}].set(0.5)", "at.set", "int64"),
    ],
    "what a tensor is not": PROTOCOLS,
    "dtypes": [
        ("x & x", "bitwise_and", "f64"),
        ("~x", "invert", "f64"),
        ("m - m", "subtract", "bool"),
        ("-m", "negative", "bool"),
        ("z % 2", "remainder", "c128"),
        ("gc.floor(z)", "floor", "c128"),
        ("gc.special.gammaln(z)", "gammaln", "c128"),
        ("x.astype('strange')", "astype", "strange"),
        ("x.astype(object)", "astype", "object"),
        ("n.astype('int8') + 300", "add", "300", "int8"),
        ("x.sum('feature', where=x)", "sum", "not bool"),
        ("gc.gcd(x, 2)", "gcd", "f64"),
    ],
    "where no tensor stands": NO_TENSORS,
    "words and numbers that mean nothing": [
        ("x.pad(feature=1, mode='refelct')", "pad", "did you mean 'reflect'?"),
        ("x.pad(feature=-1)", "pad", "-1", "isel"),
        ("x.pad(feature=(1, 2, 3))", "pad", "pair"),
        ("x.quantile(0.5, 'feature', method='liner')", "quantile", "did you mean 'linear'?"),
        ("x.quantile(1.5, 'feature')", "quantile", "1.5"),
        ("x.isel(feature=0, missing_dims='ignor')", "isel", "did you mean 'ignore'?"),
        ("x.coarsen(feature=3, boundary='trimm').sum()", "coarsen", "did you mean 'trim'?"),
        ("x.rolling(feature=0).sum()", "rolling", "0"),
        ("x.rolling({'feature': 2}, feature=2)", "rolling", "not both"),
        ("gc.searchsorted(n, n, 'feature', side='lef')", "searchsorted", "did you mean 'left'?"),
        ("gc.grad(loss, x, disconnected='zeros')", "grad", "did you mean 'zero'?"),
        ("x.top_k(9, 'feature')", "top_k", "9"),
        ("x.diff('feature', -1)", "diff", "-1"),
        ("x.unstack(feature={'p': None, 'q': None})", "unstack", "not given"),
        ("x.unstack(feature=('p', 'q'))", "unstack", "dict"),
        ("x.rename('f')", "rename", "dict"),
        ("x.rename(feature=3)", "rename", "3"),
        ("gc.einsum('batch feature -> ', x, x)", "einsum", "operands"),
        ("gc.einsum('batch featrue -> batch', x)", "einsum", "did you mean 'feature'?"),
        ("gc.einsum('batch feature -> nothing', x)", "einsum", "nothing"),
        ("gc.select([x > 0], [x, y])", "select", "1", "2"),
        ("x.round(0.5)", "round", "0.5"),
        ("x.sum('batch', min_count=1, ddof=1)", "sum", "ddof"),
        ("x.sum(dims='batch')", "sum", "dims", "dim"),
        ("gc.conv(x, w, 'feature', padding='smae')", "conv", "did you mean 'same'?"),
        ("gc.signal.convolve(x, x, 'feature', mode='vaild')", "convolve", "did you mean 'valid'?"),
        ("e.max('feature')", "max", "empty"),
        ("e.argmin('feature')", "argmin", "empty"),
        ("x.var('feature', ddof='one')", "var", "'one'"),
    ],
    "Fourier transforms": [
        ("gc.fft.fft(x, 'featrue')", "fft", "did you mean 'feature'?"),
        ("gc.fft.fft(x, 1)", "fft", "dim='feature'"),
        ("gc.fft.fft(e, 'feature')", "fft", "'feature'", "empty", "one element"),
        ("gc.fft.rfft(z, 'feature')", "rfft", "c128", "use fft"),
        ("gc.fft.irfft(z, 'feature', n=0)", "irfft", "n"),
        ("gc.fft.fftn(x, ['batch', 'featrue'])", "fftn", "did you mean 'feature'?"),
        ("gc.fft.fftshift(x, 'featrue')", "fftshift", "did you mean 'feature'?"),
    ],
    "special functions": [
        ("gc.special.betainc(x, y, x)", "betainc", "'feature' has sizes 4 and 3"),
        ("gc.special.xlogy(x, np.ones(4))", "xlogy", "gc.constant(array, dims)"),
        ("gc.special.softmax(x, 'feature', where=x)", "softmax", "not bool"),
        ("gc.special.logcumsumexp(z, 'feature')", "logcumsumexp", "c128", "imaginary"),
    ],
    "loops and branches": [
        ("gc.scan(lambda c, r: (c + r, c), s, x, 'featrue')", "scan", "'featrue'", "dim="),
        (
            "gc.scan(lambda c, r: (x.sum('feature'), c), gc.zeros({'feature': 4}), t, 'time')",
            *("is repeated along ['batch']", "drops the dims ['feature']"),
        ),
        ("gc.scan(lambda c, r: c + r, s, x, 'feature')", "scan", "(carry, y)", "pair"),
        (
            "gc.scan(lambda c, r: (c.sum('batch'), c), x.isel(feature=0), x, 'feature')",
            "scan",
            "(*)",
            "broadcast",
        ),
        ("gc.scan(lambda c, r: (c, r), s, (x, y), 'feature')", "scan", "size 3", "4 steps"),
        ("gc.scan(lambda c, r: (c, r), s, None)", "scan", "length=10"),
        ("gc.scan(lambda c, r: (c, r), s, x, 'feature', checkpoint='lgo')", "scan", "'log'"),
        ("gc.map(lambda r: r, x, 'featrue')", "map", "'featrue'", "dim="),
        ("gc.while_loop(lambda c: c, lambda c: c + 1, s)", "while_loop", "not bool"),
        ("gc.while_loop(lambda c: c.sum() > 0, lambda c: c.sum(), x)", "while_loop", "(*)"),
        ("gc.fori_loop(0, 2.5, lambda i, c: c, s)", "fori_loop", "integers"),
        ("gc.fori_loop(0, 3, lambda i, c: c.astype('int64'), s)", "fori_loop", "(*)"),
        ("gc.cond(s, lambda: s, lambda: s)", "cond", "not bool"),
        ("gc.cond(s > 0, lambda: x, lambda: y)", "cond", "(*)"),
        ("gc.switch(s, [lambda: s])", "switch", "integer"),
        ("gc.switch(gc.constant(0), [])", "switch", "no branches"),
    ],
    "segments, updates and positions": [
        ("gc.segment_sum(x, x, 3)", "segment_sum", "name="),
        ("gc.segment_mean(x, m, 3)", "segment_mean", "integers", "bool"),
        ("gc.bincount(x, 3)", "bincount", "integers", "f64"),
        ("x.at[{'feature': 0}].add(w)", "at.add", "'feature'", "sum over it"),
        ("x.at[{'feature': [0, 1]}].max(gc.ones({'feature': 3}))", "at.max", "2 elements"),
        ("n.at[{'feature': 0}].divide(2)", "at.divide", "int64", "astype('float64')"),
        ("x.at[{'feature': n}].power(2)", "at.power", "repeat"),
        ("x.at[0, 0, 0].get()", "at", "3 indexers"),
        ("gc.take(x, [9], 'feature')", "take", "position 9", "-4 to 3"),
    ],
    "windows and filters": [
        ("gc.conv(x, w, 'featrue')", "conv", "did you mean 'feature'?"),
        ("gc.conv(x, w, 'feature', contract='clas')", "conv", "did you mean 'class'?"),
        ("gc.conv(x, w, 'feature', contract='feature')", "conv", "moves along dim 'feature'"),
        ("gc.conv(x, w, 'feature', stride=0)", "conv", "stride 0", "1 or more"),
        ("gc.conv(x, w, ())", "conv", "gc.dot"),
        ("gc.conv_transpose(x, w, 'feature', sizes={'featrue': 9})", "did you mean 'feature'?"),
        ("gc.max_pool(x, {'featrue': 2})", "max_pool", "did you mean 'feature'?"),
        ("gc.max_pool(x, {'feature': 0})", "max_pool", "size 0", "at least one element"),
        ("gc.max_pool(x, 2)", "2 is not a dict", "write gc.max_pool(x, {'batch': size})"),
        (
            "gc.windows(x, 3, 'lag')",
            "3 is not a dict",
            "write gc.windows(x, {'batch': size}, 'lag')",
        ),
        ("gc.windows(x, {'feature': 2}, 'batch')", "windows", "'batch'", "new name"),
        ("gc.overlap_add(x, {'feature': 3}, 'lag')", "overlap_add", "'lag'"),
        ("gc.conv(t, b, 'time')", "conv", "gc.conv(x, kernel, {'time': 'batch'})"),
        ("gc.conv_transpose(t, b, 'time')", "gc.conv_transpose(x, kernel, {'time': 'batch'})"),
        ("gc.signal.convolve(t, b)", "convolve", "y.rename({'batch': 'time'})"),
        ("gc.signal.correlate(t, b, 'time')", "correlate", "y.rename({'batch': 'time'})"),
        ("gc.signal.fftconvolve(t, b)", "fftconvolve", "y.rename({'batch': 'time'})"),
        ("gc.signal.convolve(w, b)", "convolve", "y.rename({'batch': 'class'})"),
        ("gc.signal.convolve(x, s)", "convolve", "moves along no dim"),
        ("gc.conv(t, y, 'time')", "such as gc.conv(x, kernel, {'time': 'batch'})"),
        ("gc.signal.fftconvolve(x, n, 'feature', mode='ful')", "did you mean 'full'?"),
        ("gc.interp(x, [0, 1], [0, 1, 2], 'p')", "interp", "'p' has sizes 3 and 2"),
    ],
    "matrices": [
        (
            "gc.linalg.det(w, ('feature', 'class'))",
            "det",
            "'feature'",
            "'class'",
            "4",
            "3",
            "square",
        ),
        ("gc.linalg.inv(w)", "inv", "no dims 'row' and 'col'", "dims=('feature', 'class')"),
        ("gc.linalg.cholesky(w, ('class', 'class'))", "cholesky", "not two dims"),
        ("gc.linalg.cholesky(w, 'class')", "cholesky", "not two dims"),
        ("gc.linalg.qr(w, ('featrue', 'class'))", "qr", "did you mean 'feature'?"),
        ("gc.linalg.qr(w, ('feature', 'class'), mode='full')", "qr", "'complete'"),
        ("gc.linalg.qr(w, ('feature', 'class'), new='class')", "qr", "'class'", "another name"),
        ("gc.linalg.svd(w, ('feature', 'class'), new=('u', 'v'))", "svd", "names 2 dims, 1"),
        ("gc.linalg.norm(w, ('feature', 'class'), 'l2')", "norm", "'fro'"),
        ("gc.linalg.matrix_power(w, 0.5, ('feature', 'class'))", "matrix_power", "integer"),
        ("gc.linalg.expm(w.astype('float16'), ('feature', 'class'))", "half", "float32"),
        ("gc.linalg.solve(gc.eye({'row': 2, 'col': 2}), w)", "solve", "no dim 'row'"),
        (
            "gc.linalg.solve(gc.eye({'row': 4, 'class': 4}), w.rename(feature='row'), "
            "('row', 'class'))",
            *("solve", "has dim 'class' already", "rename"),
        ),
        ("gc.linalg.solve(gc.eye({'row': 3, 'col': 3}), w.rename(feature='row'))", "3", "4"),
        ("gc.linalg.solve_tridiagonal(x, x, x, x, 'cell')", "solve_tridiagonal", "'cell'"),
    ],
    "derivatives": [
        ("gc.hessian(x.sum('feature'), x)", "hessian: the result has dims ('batch',)"),
        ("gc.grad(h, x)", "grad", "('batch', 'feature')", "gc.pullback(y, wrt, ct)"),
        ("gc.grad(x.sum(), w)", "grad", "does not depend", "disconnected='zero'"),
        ("gc.grad(loss, n)", "grad", "int64"),
        ("gc.grad(loss, 3.0)", "3.0", "does not depend"),
        ("gc.grad(loss, gc.ravel(x.isel(batch=0))[0])", "not computed from it", "unravel(theta)"),
        ("gc.grad(loss, x + 1)", "not computed from it", "that the result is computed from"),
        (
            "gc.grad(x.sum().astype('int64') * s, x)",
            "only through integers",
            "astype at model.py:18",
        ),
        ("gc.grad(gc.special.jv(s, s), s)", "jv", "its first operand"),
        ("gc.grad(n.sum(), n)", "grad", "int64"),
        ("gc.grad((x > 0).sum(), x)", "grad"),
        ("gc.grad(x.argmax('feature').sum(), x)", "grad"),
        ("gc.grad(gc.stop_gradient(x).sum(), x)", "grad", "only through stop_gradient"),
        ("gc.grad(loss, [x, y])", "grad", "does not depend", "y"),
        ("gc.grad(2.0, x)", "grad"),
        ("gc.pullback(h, x, s)", "pullback", "cotangent", "()"),
        ("gc.pullback([h, h], x, [h])", "pullback", "1 cotangent"),
        ("gc.pushforward(h, x, w)", "pushforward", "tangent"),
        ("gc.hvp(loss, x, s)", "hvp"),
        ("gc.jacobian(n, x)", "jacobian", "int64"),
        ("gc.vectorize(loss, {x: w})", "vectorize", "cannot stand for"),
        ("gc.callback(np.sin, x, dims='featrue')(x)", "callback", "did you mean 'feature'?"),
        ("gc.grad(gc.callback(np.sin, x)(x).sum(), x)", "callback", "pullback="),
        ("gc.check_grads(loss, h, {x: 1})", "check_grads", "is not an input"),
        ("gc.check_grads(loss, x, {w: 1})", "check_grads", "y needs no input 'w'"),
    ],
    "compiling": [
        ("gc.compile([x, x], x)", "compile", "'x'"),
        ("gc.compile([x], x + w.sum())", "compile", "'w'", "list of inputs"),
        ("gc.compile([h], h + x)", "compile", "'x'"),
        ("gc.compile([h, h], h)", "compile", "listed twice"),
        ("gc.compile([gc.ones({'row': 2})], h)", "compile", "a constant", "gc.tensor"),
        (
            "gc.compile([h, x], gc.grad((h * h).sum(), x))",
            "compile",
            "with respect to the inner tensor",
        ),
        ("gc.evaluate(x + b, {b: [1.0]})", "evaluate", "'x'", "x=array"),
        ("gc.evaluate(x, {'xx': [1.0]})", "evaluate", "'xx'", "did you mean 'x'?"),
        ("x.eval(y=[1.0])", "evaluate", "'y'", "the inputs are 'x'"),
        ("x.eval({x: [1.0]}, x=[1.0])", "eval", "not both"),
        ("gc.compile([x, gc.tensor('x', {})], x)", "compile", "two inputs are named 'x'"),
        ("gc.compile([x], None)", "outputs", "None"),
        ("gc.compile([x], [x, 'a'])", "outputs[1]"),
        ("gc.compile('x', x)", "inputs", "'x'"),
        ("gc.compile([x], x, donate=True)", "donate", "keeps its buffers"),
        ("gc.compile([x], x, donate_argnums=0)", "donate_argnums", "keeps its buffers"),
        ("gc.compile([x], x, static_argnums=0)", "static_argnums", "not declared are static"),
        ("gc.function(x=('n',), static_argnums=1)", "static_argnums", "not declared are static"),
        ("gc.function(x=('n',), static_argnames='k')", "not declared are static"),
        ("gc.function(x=('n',))(lambda x: x).trace", "f.compiled(*arguments).trace"),
        ("gc.save(gc.function(x=('n',))(lambda x: x), 'f')", "save", "f.compiled(*arguments)"),
        ("gc.compile([x], x, returns='xaray')", "compile", "did you mean 'xarray'?"),
        ("gc.compile([gc.tensor('q', {'p': x.sizes['batch'] + 1})], 1)", "compile", "batch"),
        ("gc.compile([x], x).diff('lowerd', 'named')", "did you mean 'lowered'?"),
        ("gc.compile([x], x).stages['nope']", "stage='nope'", "'expanded'"),
    ],
}

CASES = [(PRELUDE, group, code, says) for group in BUILD for code, *says in BUILD[group]] + [
    (f"{PRELUDE}{setup}\n", setup, code, says) for setup in CALL for code, *says in CALL[setup]
]


def refusal(setup: str, code: str) -> gc.GraphError:
    """The error of the last line of model.py."""
    scope: dict[str, object] = {}
    exec(compile(setup, "model.py", "exec"), scope)
    last = compile("\n" * setup.count("\n") + code, "model.py", "exec")
    try:
        exec(last, scope)
    except gc.GraphError as error:
        return error
    raise AssertionError(f"not refused: {code}")


def text() -> str:
    """All refusals, as a session would show them."""
    shown, before = [PRELUDE], ""
    for setup, group, code, _ in CASES:
        if group != before:
            shown.append(f"# {group}\n")
            before = group
        error = refusal(setup, code)
        shown.append(f">>> {code}\n{type(error).__name__}: {error}\n")
    return "\n".join(shown)
