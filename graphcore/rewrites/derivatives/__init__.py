"""The calculus: the derivative of each op. Both modes read the same entry of an op.

`tables` has the derivatives of plain ops. CONTROL has both modes of loops and branches: loops and
branches that hold a lazy derivative.
"""

from .control import LOOPS
from .custom import OWN
from .partials import Select, Wins
from .tables import JVP, PARTIALS, TRANSPOSE, VJP

CONTROL = LOOPS | OWN
__all__ = ["CONTROL", "JVP", "PARTIALS", "TRANSPOSE", "VJP", "Select", "Wins"]
