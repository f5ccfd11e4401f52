"""The derivative of each plain op, in one table for each way to say it; a package may add its own.

PARTIALS   elementwise ops: d result / d operand
TRANSPOSE  linear ops: the tangent map is the op itself, the cotangent map is its transpose
VJP        the rest: the cotangents of the operands; the tangent map is derived by transposition
JVP        ops on matrices: the tangents of the results; the cotangent map is their transpose
"""

from .divided_differences import FUNCTIONS
from .factors import JVP, TURNING
from .linear import TRANSPOSE
from .partials import ELEMENTARY
from .rules import MIXING
from .solving import SOLVING
from .special import SPECIAL

PARTIALS = ELEMENTARY | SPECIAL
VJP = MIXING | SOLVING | FUNCTIONS | TURNING
__all__ = ["JVP", "PARTIALS", "TRANSPOSE", "VJP"]
