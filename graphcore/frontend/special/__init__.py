"""`gc.special`: special functions under SciPy's names, and the softmax family over dims."""

from .elementwise import *
from .formulas import *
from .softmaxes import *
