"""`gc.special`: special functions under SciPy's names, and the softmax family over dims."""

from .formulas import *
from .functions import *
from .softmaxes import *
