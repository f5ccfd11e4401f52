"""PyTensor's graphs as programs, its compiled functions by ours, and our programs as its ops.

`import graphcore.interop.pytensor` registers the mode "GRAPHCORE" of PyTensor.
"""

try:
    import pytensor as _
except ImportError as error:
    raise ImportError("PyTensor is not installed: pip install 'graphcore[pytensor]'") from error

from . import indices, linking, loops, matrices, reductions, scalars, shapes
from .programs import from_pytensor as from_pytensor
from .rules import UntranslatedError as UntranslatedError
from .rules import rule as rule
from .scalars import SCALARS as SCALARS

linking.register()
