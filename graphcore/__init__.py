"""A differentiable array compiler for named axes.

`tensor` makes an input with named dims, and functions of tensors build a program. `grad` builds its
derivative. `compile` makes a function of arrays that computes it. help(gc.sum) is about one name.

>>> import graphcore as gc
>>> x = gc.tensor("x", {"row": None})
>>> y = gc.sum(x**2)
>>> gc.compile([x], [y, gc.grad(y, x)])([1.0, 2.0, 3.0])
[array(14.), array([2., 4., 6.])]
"""

from typing import TYPE_CHECKING

from .backends.mesh import Mesh as Mesh
from .compile.blocks import over_blocks as over_blocks
from .compile.compiled import Compiled as Compiled
from .compile.compiled import compile as compile
from .compile.evaluation import evaluate as evaluate
from .compile.functions import Function as Function
from .compile.functions import function as function
from .compile.gradients import check_grads as check_grads
from .compile.processes import join_processes as join_processes
from .compile.saving import load as load
from .compile.saving import save as save
from .frontend import fft as fft
from .frontend import linalg as linalg
from .frontend import nn as nn
from .frontend import optimize as optimize
from .frontend import signal as signal
from .frontend import special as special
from .frontend import tree as tree
from .frontend.arrange.copies import *
from .frontend.arrange.diagonals import *
from .frontend.arrange.moves import *
from .frontend.arrange.raveling import *
from .frontend.control.branches import *
from .frontend.control.loops import *
from .frontend.control.printing import *
from .frontend.core import contents
from .frontend.core.arguments import Dim as Dim
from .frontend.core.defaults import default_dtype as default_dtype
from .frontend.core.lift import Operand as Operand
from .frontend.core.suggestions import absent
from .frontend.core.threads import threads as threads
from .frontend.core.trees import Tree as Tree
from .frontend.core.wrong_calls import reword_errors
from .frontend.create.arrays import *
from .frontend.create.inputs import *
from .frontend.create.ranges import *
from .frontend.derive.callback import *
from .frontend.derive.custom import *
from .frontend.derive.derivatives import *
from .frontend.derive.jacobians import *
from .frontend.derive.vectorize import *
from .frontend.index.dropping import *
from .frontend.index.indexing import *
from .frontend.index.slices import *
from .frontend.order.counting import *
from .frontend.order.groups import *
from .frontend.order.interpolation import *
from .frontend.order.quantiles import *
from .frontend.order.searching import *
from .frontend.order.sorting import *
from .frontend.pointwise.casting import *
from .frontend.pointwise.choices import *
from .frontend.pointwise.complex import *
from .frontend.pointwise.elementwise import *
from .frontend.pointwise.formulas import *
from .frontend.pointwise.missing import *
from .frontend.reduce.contraction import *
from .frontend.reduce.norms import *
from .frontend.reduce.reductions import *
from .frontend.reduce.running import *
from .frontend.reduce.segments import *
from .frontend.shape.dims import *
from .frontend.shape.patterns import *
from .frontend.statistics import *
from .frontend.tensor import *
from .frontend.window.convolution import *
from .frontend.window.differences import *
from .frontend.window.padding import *
from .frontend.window.rolling import *
from .frontend.window.windows import *
from .inspection import debug_print as debug_print
from .ir.errors import GraphError as GraphError
from .ir.errors import GraphIndexError as GraphIndexError
from .ir.errors import GraphTypeError as GraphTypeError
from .ir.errors import GraphValueError as GraphValueError
from .ir.errors import GraphWarning as GraphWarning

__version__: str
"""The version that is installed, as pyproject.toml has it."""

debug_print = reword_errors(debug_print)  # which stands where the frontend is not known

if not TYPE_CHECKING:  # type checkers know the star imports, and would accept any name

    def __getattr__(name):
        """The version, read when it is asked for; other names are refused."""
        if name == "__version__":
            from importlib.metadata import PackageNotFoundError, version

            try:
                return version("graphcore")
            except PackageNotFoundError as error:
                raise AttributeError("__version__: graphcore is not installed") from error
        return absent()(name)

    __dir__ = contents.names
    __doc__ = contents.describe(__doc__, globals())
