"""PyTensor's graphs as programs, its compiled functions by ours, and our programs as its ops.

`import graphcore.interop.pytensor` registers the mode "GRAPHCORE" of PyTensor.
"""

from importlib.metadata import version
from importlib.util import find_spec

if find_spec("pytensor") is None:
    raise ImportError("PyTensor is not installed: pip install 'graphcore[pytensor]'")
if int(version("pytensor").split(".")[0]) < 3:
    raise ImportError(
        f"PyTensor {version('pytensor')} is too old, as 3.0.7 is the first that is tested: "
        "pip install 'graphcore[pytensor]'"
    )

from . import (  # noqa: F401  # the rules
    indices,
    loops,
    matrices,
    named_tensors,
    reductions,
    scalars,
    shapes,
    tridiagonal,
)
from .linking import register
from .programs import from_pytensor as from_pytensor
from .programs_as_ops import to_pytensor as to_pytensor
from .rules import UntranslatedError as UntranslatedError
from .rules import rule as rule
from .scalars import SCALARS as SCALARS

register()
