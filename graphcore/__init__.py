"""A symbolic named-axis differentiable array compiler.

>>> import graphcore as gc
>>> x, w = gc.tensor("x", {"batch": None, "feature": 8}), gc.tensor("w", {"feature": 8})
>>> gc.dot(x, w, dim="feature")
<Tensor: f64[batch]>
"""

from typing import TYPE_CHECKING

from . import frontend
from .compile import Compiled, compile
from .frontend import fft, linalg, signal, special
from .frontend.branches import *
from .frontend.calculus import *
from .frontend.calls import worded
from .frontend.choices import *
from .frontend.complex import *
from .frontend.contraction import *
from .frontend.convolution import *
from .frontend.copies import *
from .frontend.counting import *
from .frontend.creation import *
from .frontend.cumulative import *
from .frontend.derivatives import *
from .frontend.diagonals import *
from .frontend.elementwise import *
from .frontend.formulas import *
from .frontend.functions import *
from .frontend.indexing import *
from .frontend.interpolation import *
from .frontend.jacobians import *
from .frontend.loops import *
from .frontend.masking import *
from .frontend.missing import *
from .frontend.moves import *
from .frontend.norms import *
from .frontend.padding import *
from .frontend.quantiles import *
from .frontend.ranges import *
from .frontend.reductions import *
from .frontend.rolling import *
from .frontend.searching import *
from .frontend.segments import *
from .frontend.shape import *
from .frontend.sorting import *
from .frontend.statistics import *
from .frontend.tensor import *
from .frontend.vectorize import *
from .frontend.windows import *
from .inspection import debug_print
from .ir.errors import GraphError, GraphIndexError, GraphTypeError, GraphValueError

__all__ = [
    "Compiled",
    "GraphError",
    "GraphIndexError",
    "GraphTypeError",
    "GraphValueError",
    "compile",
    "debug_print",
    "fft",
    "linalg",
    "signal",
    "special",
]
__all__ += frontend.calculus.__all__
__all__ += frontend.choices.__all__
__all__ += frontend.branches.__all__
__all__ += frontend.complex.__all__
__all__ += frontend.contraction.__all__
__all__ += frontend.counting.__all__
__all__ += frontend.copies.__all__
__all__ += frontend.convolution.__all__
__all__ += frontend.creation.__all__
__all__ += frontend.cumulative.__all__
__all__ += frontend.derivatives.__all__
__all__ += frontend.diagonals.__all__
__all__ += frontend.elementwise.__all__
__all__ += frontend.formulas.__all__
__all__ += frontend.functions.__all__
__all__ += frontend.indexing.__all__
__all__ += frontend.interpolation.__all__
__all__ += frontend.masking.__all__
__all__ += frontend.moves.__all__
__all__ += frontend.padding.__all__
__all__ += frontend.quantiles.__all__
__all__ += frontend.jacobians.__all__
__all__ += frontend.loops.__all__
__all__ += frontend.missing.__all__
__all__ += frontend.norms.__all__
__all__ += frontend.statistics.__all__
__all__ += frontend.ranges.__all__
__all__ += frontend.reductions.__all__
__all__ += frontend.searching.__all__
__all__ += frontend.rolling.__all__
__all__ += frontend.segments.__all__
__all__ += frontend.shape.__all__
__all__ += frontend.sorting.__all__
__all__ += frontend.tensor.__all__
__all__ += frontend.vectorize.__all__
__all__ += frontend.windows.__all__

debug_print = worded(debug_print)  # which stands where the frontend is not known

if not TYPE_CHECKING:  # for which any name would be known
    __getattr__, __dir__ = frontend.instead.absent(), lambda: __all__
