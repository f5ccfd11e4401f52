"""PyTensor's graphs as programs, its compiled functions by ours, and our programs as its ops."""

from . import indices, loops, matrices, reductions, scalars, shapes
from .programs import from_pytensor as from_pytensor
from .rules import UntranslatedError as UntranslatedError
from .rules import rule as rule
from .scalars import SCALARS as SCALARS
