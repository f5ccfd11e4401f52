"""The language of the numeric cases in graphcore: every name that `fn` of a case may use.

`NAMED` binds it for inputs with dims, `POSITIONAL` for inputs without, whose axes are called d0,
d1, ... in order.
"""

from .arrays import Positional, axes
from .named import NAMED
from .positions import POSITIONAL
from .words import total

__all__ = ["NAMED", "POSITIONAL", "Positional", "axes", "total"]
