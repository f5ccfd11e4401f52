"""The calculus: what each plain op's derivative is. Both modes read the same entry of an op.

PARTIALS   elementwise ops: d result / d operand
TRANSPOSE  linear ops: the tangent map is the op itself, the cotangent map is its transpose
VJP        the rest: the cotangents of the operands; the tangent map is derived by transposition
JVP        ops on matrices: the tangents of the results; the cotangent map is their transpose
CONTROL    loops and branches: both maps, as loops and branches that hold a lazy derivative
"""

from .control import LOOPS
from .custom import OWN
from .factors import JVP, TURNING
from .functions import FUNCTIONS
from .linear import TRANSPOSE
from .partials import ELEMENTARY, Select, Wins
from .rules import MIXING
from .solving import SOLVING
from .special import SPECIAL

PARTIALS = ELEMENTARY | SPECIAL
VJP = MIXING | SOLVING | FUNCTIONS | TURNING
CONTROL = LOOPS | OWN
__all__ = ["CONTROL", "JVP", "PARTIALS", "TRANSPOSE", "VJP", "Select", "Wins"]
