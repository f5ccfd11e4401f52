"""What to write for names of NumPy, SciPy, JAX, PyTorch, xarray and others."""

from __future__ import annotations

INSTEAD = {
    **dict.fromkeys(("concatenate", "append", "cat", "horzcat"), "gc.concat(xs, dim={0!r})"),
    **dict.fromkeys(("hstack", "vstack", "vertcat"), "gc.concat(xs, dim={0!r})"),
    **dict.fromkeys(("append_row", "append_col"), "gc.concat(xs, dim={0!r})"),
    **dict.fromkeys(("stack", "dstack", "column_stack", "block"), "gc.stack(xs, 'new')"),
    **dict.fromkeys(("moveaxis", "swapaxes", "rollaxis"), "x.transpose({0!r}, ...)"),
    **dict.fromkeys(
        ("transpose", "permute_dims", "permute", "swapdims"), "x.transpose({0!r}, ...)"
    ),
    **dict.fromkeys(
        ("reshape", "ravel", "flatten", "view"),
        "x.stack(new=({0!r}, ...)), and x.unstack to split",
    ),
    **dict.fromkeys(("dot", "matmul", "matvec", "vecmat", "vecdot"), "gc.dot(x, y, dim={0!r})"),
    **dict.fromkeys(("mm", "bmm", "mv", "dot_product"), "gc.dot(x, y, dim={0!r})"),
    "dot_self": "(x**2).sum({0!r})",
    **dict.fromkeys(("inner", "tensordot", "vdot", "multi_dot"), "gc.dot(x, y, dim={0!r})"),
    "outer": "gc.linalg.outer(x, y, dims), or x * y, where dims of other names multiply out",
    "kron": "gc.linalg.kron(x, y, dims)",
    **dict.fromkeys(("broadcast_to", "broadcast_arrays", "meshgrid"), "gc.broadcast(x, y)"),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), "x.expand_dims('new')"),
    **dict.fromkeys(("newaxis", "unsqueeze"), "x.expand_dims('new')"),
    "expand_dims": "gc.expand_dims(x, 'new')",
    **dict.fromkeys(("array_split", "hsplit", "vsplit", "dsplit"), "gc.split(x, 2, dim={0!r})"),
    **dict.fromkeys(("fliplr", "flipud", "rot90"), "gc.flip(x, dim={0!r})"),
    **dict.fromkeys(("compress", "extract", "delete"), "x.isel({{{0!r}: positions}})"),
    **dict.fromkeys(("put", "place", "putmask", "copyto"), "x.at[{{{0!r}: positions}}].set(y)"),
    **dict.fromkeys(("array_equal", "array_equiv"), "(x == y).all()"),
    **dict.fromkeys(("partition", "argpartition"), "gc.top_k(x, k, dim={0!r})"),
    **dict.fromkeys(("argwhere", "flatnonzero"), "gc.nonzero(x, dim={0!r})"),
    "allclose": "gc.isclose(x, y).all()",
    **dict.fromkeys(("copy", "clone", "contiguous"), "x itself: tensors never change"),
    "corrcoef": "gc.corr(x, y, dim={0!r})",
    "count_nonzero": "(x != 0).sum({0!r})",
    "einsum": "gc.einsum('row col, col -> row', x, y)",
    "iscomplexobj": "x.dtype.kind == 'c'",
    "isrealobj": "x.dtype.kind != 'c'",
    "ndim": "x.ndim",
    "percentile": "gc.quantile(x, percent / 100, dim={0!r})",
    "put_along_axis": "x.at[{{{0!r}: index}}].set(y)",
    "pad": "x.pad({{{0!r}: (1, 1)}}, constant_values=0); without it new elements are nan",
    "polyfit": "gc.linalg.polyfit(x, y, 1, dim={0!r}), a slope and an offset",
    "polyval": "gc.dot(gc.vander(x, k), c, dim='power'), the coefficients c from the highest power",
    "unwrap": (
        "x - 2 * np.pi * gc.rint((x - x.shift({{{0!r}: 1}})) / (2 * np.pi)).fillna(0).cumsum({0!r})"
    ),
    "result_type": "np.result_type(x.dtype, y.dtype)",
    "shape": "x.sizes",
    **dict.fromkeys(("rows", "cols"), "x.sizes[{0!r}]"),
    "size": "x.size",
    "take_along_axis": "gc.take_along(x, index, dim={0!r})",
    "unstack": "gc.unbind(x, dim={0!r})",
    "resample": "x.groupby(ids, size, dim={0!r}).mean(), or x.coarsen({0}=2).mean()",
    **dict.fromkeys(("asarray", "as_tensor"), "gc.constant(array, ({0!r}, ...))"),
    **dict.fromkeys(
        ("placeholder", "Variable", "Parameter", "shared", "scalar", "vector", "matrix"),
        "an input, gc.tensor(name, dims): calls take arrays for it, parameters included",
    ),
    **dict.fromkeys(("pi", "e", "inf", "nan", "euler_gamma", "finfo", "iinfo"), "NumPy's: np.{1}"),
    **dict.fromkeys(
        (
            *("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("float16", "float32", "float64", "complex64", "complex128"),
        ),
        "dtype='{1}', or x.astype('{1}')",
    ),
    "random": "an input, and draw its values with NumPy: np.random.default_rng(0).normal(size=3)",
    **dict.fromkeys(("jit", "njit"), "gc.function(x=dims) above def f(x), or gc.compile(xs, ys)"),
    **dict.fromkeys(("tree_map", "tree_util"), "gc.tree.map(function, tree)"),
    **dict.fromkeys(("ravel_pytree", "flatten_util"), "gc.ravel(tree)"),
    **dict.fromkeys(("optim", "optax", "optimizers"), "gc.optimize.adam(0.001)"),
    "eval": "gc.evaluate(y, {{x: array}})",
    "vmap": "gc.vectorize(outputs, {{x: x_with_more_dims}})",
    "vjp": "gc.pullback(y, x, ct)",
    "jvp": "gc.pushforward(y, x, tangent)",
    "jacfwd": "gc.jacobian(y, x, mode='forward')",
    "jacrev": "gc.jacobian(y, x, mode='reverse')",
    **dict.fromkeys(("backward", "gradients"), "gc.grad(y, wrt)"),
    **dict.fromkeys(
        ("custom", "custom_vjp", "custom_jvp", "custom_gradient"),
        "gc.custom_pullback(function, rule)",
    ),
    **dict.fromkeys(("detach", "no_grad"), "gc.stop_gradient(x)"),
    "ifelse": "gc.where(c, x, y), or gc.cond(c, f, g) to compute one alone",
    "leaky_relu": "gc.where(x > 0, x, 0.01 * x)",
    "elu": "gc.where(x > 0, x, gc.expm1(gc.minimum(x, 0)))",
    "relu6": "gc.clip(x, 0, 6)",
    "hardtanh": "gc.clip(x, -1, 1)",
    "hardsigmoid": "gc.clip(x / 6 + 0.5, 0, 1)",
    "mish": "x * gc.tanh(gc.special.softplus(x))",
    **dict.fromkeys(("sigmoid", "inv_logit", "invlogit"), "gc.special.expit(x)"),
    **dict.fromkeys(("logsigmoid", "log_inv_logit"), "gc.special.log_expit(x)"),
    "log1m_inv_logit": "gc.special.log_expit(-x)",
    **dict.fromkeys(("log1p_exp", "log1pexp"), "gc.special.softplus(x)"),
    "log1m": "gc.log1p(-x)",
    **dict.fromkeys(("log_diff_exp", "logdiffexp"), "x + gc.special.log1mexp(y - x)"),
    "log_mix": "gc.logaddexp(gc.log(p) + x, gc.log1p(-p) + y)",
    **dict.fromkeys(("lmultiply", "multiply_log"), "gc.special.xlogy(x, y)"),
    **dict.fromkeys(("Phi", "std_normal_cdf", "invprobit"), "gc.special.ndtr(x)"),
    "std_normal_lcdf": "gc.special.log_ndtr(x)",
    "probit": "gc.special.ndtri(x)",
    "inv_cloglog": "-gc.expm1(-gc.exp(x))",
    "swish": "gc.nn.silu(x)",
    "ReLU": "gc.nn.relu(x)",
    "GELU": "gc.nn.gelu(x)",
    "SiLU": "gc.nn.silu(x)",
    "CrossEntropyLoss": "gc.nn.cross_entropy(logits, labels, dim={0!r}).mean()",
    "lgamma": "gc.special.gammaln(x)",
    "tgamma": "gc.special.gamma(x)",
    "trigamma": "gc.special.polygamma(1, x)",
    "lbeta": "gc.special.betaln(x, y)",
    "lchoose": "-gc.log(x + 1) - gc.special.betaln(x - y + 1, y + 1)",
    **dict.fromkeys(("mvlgamma", "lmgamma"), "gc.special.multigammaln(x, k)"),
    "igamma": "gc.special.gammainc(x, y)",
    "igammac": "gc.special.gammaincc(x, y)",
    "erf_inv": "gc.special.erfinv(x)",
    "expint": "gc.special.exp1(x)",
    "ellipke": "gc.special.ellipk(x) and gc.special.ellipe(x)",
    "bessel_i0e": "gc.special.i0e(x)",
    "bessel_i1e": "gc.special.i1e(x)",
    "factorial": "gc.special.gamma(x + 1)",
    **dict.fromkeys(("comb", "nchoosek"), "gc.special.binom(x, y)"),
    "cumlogsumexp": "gc.special.logcumsumexp(x, dim={0!r})",
    "exp10": "10.0 ** x",
    **dict.fromkeys(("rsqrt", "inv_sqrt"), "1 / gc.sqrt(x)"),
    **dict.fromkeys(("logdet", "log_determinant"), "gc.linalg.slogdet(x, dims)[1]"),
    **dict.fromkeys(("mldivide", "linsolve", "mdivide_left"), "gc.linalg.solve(a, b, dims)"),
    "mdivide_left_tri_low": "gc.linalg.solve_triangular(a, b, dims, lower=True)",
    "cholesky_decompose": "gc.linalg.cholesky(x, dims)",
    "matrix_norm": "gc.linalg.norm(x, dims, 'fro')",
    "vector_norm": "gc.norm(x, {0!r})",
    **dict.fromkeys(("amax", "aminmax"), "gc.max(x, dim={0!r})"),
    "amin": "gc.min(x, dim={0!r})",
    "topk": "gc.top_k(x, k, dim={0!r})",
    "nlargest": "gc.top_k(x, k, dim={0!r})",
    "nsmallest": "gc.top_k(-x, k, dim={0!r}), and change the sign of the values",
    "find": "gc.nonzero(x, dim={0!r})",
    "iqr": "gc.quantile(x, 0.75, {0!r}) - gc.quantile(x, 0.25, {0!r})",
    "gmean": "gc.exp(gc.log(x).mean({0!r}))",
    "trapz": "gc.trapezoid(x, dim={0!r})",
    **dict.fromkeys(("cumtrapz", "cumulative_integrate"), "gc.cumulative_trapezoid(x, dim={0!r})"),
    "fft2": "gc.fft.fftn(x, dims)",
    "ifft2": "gc.fft.ifftn(x, dims)",
    "rfft2": "gc.fft.rfftn(x, dims)",
    "irfft2": "gc.fft.irfftn(x, dims)",
    "repmat": "gc.tile(x, {{{0!r}: 2}})",
    "circshift": "x.roll({{{0!r}: 1}})",
    "accumarray": "gc.segment_sum(x, ids, size)",
    **dict.fromkeys(("hist", "histc", "histcounts"), "gc.histogram"),
    **dict.fromkeys(("movmean", "movavg"), "x.rolling({{{0!r}: 3}}).mean()"),
    "movmedian": "x.rolling({{{0!r}: 3}}).median()",
    **dict.fromkeys(("ewm", "rolling_exp"), "gc.scan, with the mean so far as its carry"),
    "clip_by_value": "gc.tree.map(lambda g: gc.clip(g, -1.0, 1.0), xs)",
    "clip_grad_value_": "gc.tree.map(lambda g: gc.clip(g, -1.0, 1.0), xs)",
    **dict.fromkeys(
        ("clip_grad_norm_", "clip_grad_norm"), "gc.optimize.clip_by_global_norm(xs, 1.0)"
    ),
    "float": "x.astype('float32')",
    "double": "x.astype('float64')",
    "half": "x.astype('float16')",
    "short": "x.astype('int16')",
    "int": "x.astype('int32')",
    "long": "x.astype('int64')",
    "bool": "x.astype('bool')",
    **dict.fromkeys(("complex", "cfloat", "cdouble"), "x.astype('complex128')"),
    "empty": "x.size == 0",
    "hmean": "1 / (1 / x).mean({0!r})",
    **dict.fromkeys(("type", "type_as"), "x.astype(y.dtype)"),
    **dict.fromkeys(("mul", "div", "sub", "neg"), "the operators: x * y, x / y, x - y, -x"),
    "fma": "the operators: x * y + z",
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), "the operators: x == y, x < y, x >= y"),
    "dim": "x.ndim",
    **dict.fromkeys(("numel", "nelement", "length"), "x.size"),
    "t": "x.T",
    **dict.fromkeys(("H", "mH"), "x.T.conj()"),
    "mT": "x.transpose(..., *dims)",
    **dict.fromkeys(("expand", "expand_as"), "gc.broadcast_like(x, y)"),
    "repeat_interleave": "gc.repeat(x, 2, {0!r})",
    "narrow": "x.isel({{{0!r}: slice(0, 2)}})",
    "index_select": "gc.take(x, index, dim={0!r})",
    **dict.fromkeys(("masked_fill", "mask"), "gc.where(c, 0.0, x)"),
    **dict.fromkeys(("clamp", "clamp_"), "x.clip(0, 1)"),
    "between": "(x >= 0) & (x <= 1)",
    "isna": "x.isnull()",
    "notna": "x.notnull()",
    **dict.fromkeys(("iloc", "iat"), "x.isel({{{0!r}: 0}})"),
    "pct_change": "x / x.shift({{{0!r}: 1}}) - 1",
    "replace": "gc.where(x == 0, 1.0, x)",
    "combine_first": "gc.where(x.isnull(), y, x)",
    **dict.fromkeys(("equals", "identical", "broadcast_equals"), "(x == y).all()"),
    "differentiate": "gc.gradient(x, {0!r}, points), whose points are a coordinate or a distance",
    "cumulative": "x.cumsum({0!r})",
    "groupby_bins": "x.groupby(gc.digitize(x, edges), size, {0!r})",
}
"""Replacements of functions of NumPy, JAX and others; {0!r} is a dim, {1} the name."""

GPU = "there is no GPU here: programs run on the CPU; leave it out"
SCIPY = (
    "SciPy has it: compile gc.value_and_grad(y, x) to a function f and call "
    "scipy.optimize.minimize(f, start, jac=True); gc.ravel makes one vector of a tree"
)
COORDINATES = (
    "tensors have names of dims, but no coordinates: compile with returns='xarray' and results "
    "have those of the arguments"
)
STATE = (
    "layers are functions of tensors, and parameters are inputs: "
    "h = gc.maximum(gc.dot(x, w, dim={0!r}) + b, 0)"
)
DENSITIES = (
    "write the log density, -0.5 * ((x - loc) / scale) ** 2 - gc.log(scale) - 0.5 * np.log(2 * "
    "np.pi) of a normal one, and draw with NumPy; distribution functions are in gc.special"
)
OPTIMIZER = (
    "gc.optimize.sgd, adam, adamw, rmsprop and lion are there; another method is two functions: "
    "gc.optimize.Optimizer(init, update)"
)
UPDATE = (
    "nothing changes in place: write params, state = optimizer.update(params, grads, state), "
    "which gives new parameters and a new state"
)
ELSEWHERE = {
    **dict.fromkeys(("to", "cuda", "cpu", "device", "devices", "device_put", "gpu", "mps"), GPU),
    **dict.fromkeys(("minimize", "fmin", "basinhopping", "fminunc"), SCIPY),
    **dict.fromkeys(
        ("root", "fsolve", "algebra_solver"),
        "SciPy has it: scipy.optimize.root(f, start, jac=True), where f is compiled from "
        "[y, gc.jacobian(y, x)]",
    ),
    **dict.fromkeys(
        ("least_squares", "leastsq"),
        "SciPy has it: scipy.optimize.least_squares(f, start, jac=df), where df is compiled from "
        "gc.jacobian(y, x)",
    ),
    "curve_fit": "SciPy has it: scipy.optimize.curve_fit(f, x, y, jac=df) takes compiled programs",
    **dict.fromkeys(
        ("solve_ivp", "odeint", "ode", "ode_rk45", "ode_bdf"),
        "SciPy has it: scipy.integrate.solve_ivp(f, span, start) takes a compiled f; to "
        "differentiate a solution write its steps with gc.scan or gc.while_loop",
    ),
    **dict.fromkeys(("quad", "integrate", "simpson"), "for samples: gc.trapezoid(y, x, dim={0!r})"),
    **dict.fromkeys(("coords", "attrs", "assign_coords", "indexes", "drop_vars"), COORDINATES),
    **dict.fromkeys(("set_index", "reset_index", "reset_coords", "xindexes"), COORDINATES),
    **dict.fromkeys(("stats", "distributions", "dist", "logp", "log_prob"), DENSITIES),
    **dict.fromkeys(("Normal", "HalfNormal", "Beta", "Gamma", "Poisson", "Bernoulli"), DENSITIES),
    "bijectors": (
        "write the transform, and add the log of its slope to the log density: gc.exp(x), whose is "
        "x, makes a positive parameter"
    ),
    **dict.fromkeys(
        ("ndimage", "gaussian_filter", "gaussian_filter1d", "uniform_filter", "convolve1d"),
        "write gc.conv(x, kernel, ...), or x.rolling({{{0!r}: 3}}, center=True).mean()",
    ),
    **dict.fromkeys(
        ("median_filter", "maximum_filter", "minimum_filter", "percentile_filter"),
        "write x.rolling({{{0!r}: 3}}, center=True).median(), and max and min in the same way",
    ),
    **dict.fromkeys(
        ("map_coordinates", "RegularGridInterpolator", "interpn", "griddata", "zoom"),
        "write gc.interp(points, xp, fp, dim={0!r}) along one dim after the other",
    ),
    **dict.fromkeys(
        (
            "interp1d",
            "CubicSpline",
            "make_interp_spline",
            "PchipInterpolator",
            "Akima1DInterpolator",
        ),
        "write gc.interp(points, xp, fp, dim={0!r}), which is linear; make a matrix of splines "
        "with SciPy, and multiply by it with gc.dot",
    ),
    **dict.fromkeys(("sobel", "prewitt"), "write gc.gradient(x, {0!r})"),
    "laplace": "write gc.gradient(gc.gradient(x, {0!r}), {0!r})",
    "zscore": "write (x - x.mean({0!r})) / x.std({0!r})",
    "pearsonr": "write gc.corr(x, y, dim={0!r})",
    "spearmanr": "write gc.corr(x.rank({0!r}), y.rank({0!r}), dim={0!r})",
    "linregress": "write gc.cov(x, y, dim={0!r}) / x.var({0!r}, ddof=1), the slope",
    "entropy": "write gc.special.entr(x).sum({0!r})",
    **dict.fromkeys(
        ("ttest_ind", "ttest_1samp", "ks_2samp", "chi2_contingency", "mannwhitneyu"),
        "SciPy has it, for results of programs: scipy.stats.{1}(f(a), f(b))",
    ),
    "binned_statistic": "write x.groupby(gc.digitize(y, edges), size, {0!r}).mean()",
    "label": "SciPy has it, for results of programs: scipy.ndimage.label(f(a))",
    "romb": "write gc.trapezoid(y, x, dim={0!r})",
    "curvefit": "SciPy has it: scipy.optimize.curve_fit(f, x, y, jac=df) takes compiled programs",
    **dict.fromkeys(
        ("assign", "to_dataset", "merge"),
        "results are dicts: gc.compile([x], {{'name': x}}) gives them by their names",
    ),
    "stdtr": "write gc.special.betainc(df / 2, 0.5, df / (df + t**2)) / 2, for t below 0",
    "dt": ("dates are no numbers: pass their parts as an integer input, such as da.time.dt.month"),
    **dict.fromkeys(
        ("sortby", "sort_index", "sort_values"),
        "x.sort({0!r}) sorts values; sort by a coordinate before the call: f(da.sortby({0!r}))",
    ),
    "idxmax": "x.argmax({0!r}) gives positions: index the coordinate of the result by them",
    "idxmin": "x.argmin({0!r}) gives positions: index the coordinate of the result by them",
    "interpolate": "use gc.interpolate_na(x, {0!r}); at other points gc.interp",
    "interp_like": "write gc.interp(points, xp, fp, dim={0!r}) for new points, coordinates and x",
    **dict.fromkeys(
        ("reindex", "reindex_like", "drop_sel", "drop_isel", "drop_duplicates", "query"),
        "do it before the call, or index by positions: x.isel({{{0!r}: positions}})",
    ),
    **dict.fromkeys(
        ("skew", "kurtosis", "kurt"),
        "write ((x - x.mean({0!r})) ** 3).mean({0!r}) / x.std({0!r}) ** 3, with ** 4 for kurtosis",
    ),
    **dict.fromkeys(("chunk", "persist", "map_blocks"), "leave it out: arrays come at the call"),
    **dict.fromkeys(("RMSprop", "adagrad", "adadelta", "adamax", "nadam"), OPTIMIZER),
    **dict.fromkeys(("radam", "lamb", "lars", "adafactor", "lbfgs"), OPTIMIZER),
    **dict.fromkeys(("zero_grad", "apply_updates", "state_dict"), UPDATE),
    **dict.fromkeys(
        ("dropout", "Dropout"),
        "multiply by a mask that is an input and that NumPy draws: "
        "x * mask / keep, where keep is the share of ones",
    ),
    **dict.fromkeys(
        (
            *("nll_loss", "softmax_cross_entropy", "softmax_cross_entropy_with_logits"),
            "softmax_cross_entropy_with_integer_labels",
        ),
        "write gc.nn.cross_entropy(logits, labels, dim={0!r}).mean()",
    ),
    **dict.fromkeys(
        ("binary_cross_entropy", "bce_loss", "binary_cross_entropy_with_logits"),
        "write (gc.special.softplus(x) - y * x).mean(), where x is the logit",
    ),
    **dict.fromkeys(("mse_loss", "mse", "mean_squared_error"), "write ((x - y) ** 2).mean()"),
    **dict.fromkeys(("Linear", "Dense", "Module", "layers", "Sequential", "linear"), STATE),
    **dict.fromkeys(
        ("layer_norm", "LayerNorm", "normalize", "batch_norm"),
        "write (x - x.mean({0!r})) / gc.sqrt(x.var({0!r}) + 1e-5)",
    ),
    **dict.fromkeys(("embedding", "Embedding", "gather"), "write gc.take(x, index, dim={0!r})"),
    **dict.fromkeys(("scatter", "scatter_add", "index_add"), "write x.at[{{{0!r}: index}}].add(y)"),
    **dict.fromkeys(("rnn", "RNN", "lstm", "LSTM", "GRU"), "write its step as the body of gc.scan"),
    **dict.fromkeys(("lax", "numpy", "np", "jnp", "math", "ops"), "its functions are in gc itself"),
    **dict.fromkeys(
        ("manual_seed", "seed", "PRNGKey", "rand", "randn", "normal", "uniform", "bernoulli"),
        "draw with NumPy, np.random.default_rng(0).normal(size=3), and pass it as an input",
    ),
    **dict.fromkeys(
        ("from_numpy", "from_xarray", "from_array", "DataArray", "array", "ndarray"),
        "write gc.constant(array, dims), or pass the array to a compiled program",
    ),
    **dict.fromkeys(("Dataset", "DataLoader"), "pass its arrays: f(**dataset)"),
    "requires_grad": "leave it out: gc.grad(y, x) names what to differentiate by",
    "plot": "compute it first, y.eval(x=value), and draw the array with matplotlib",
    "apply_ufunc": "write gc.callback(function, result)(x) for a function of arrays",
    "pure_callback": "write gc.callback(function, result)(x) for a function of arrays",
    "compiled": "write gc.compile(inputs, outputs)",
    "shard_map": GPU,
    "pmap": "write gc.vectorize(outputs, {{x: x_with_more_dims}}): one CPU runs it",
}
"""Cures for names that have no single replacement here; {0!r} is a dim, {1} the name."""

VALUES = ("values", "data", "item", "tolist", "numpy", "to_numpy", "compute", "load")
"""The names that other libraries have for the values of a tensor."""
