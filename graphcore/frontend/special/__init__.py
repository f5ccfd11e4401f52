"""`gc.special`: special functions under SciPy's names, and the softmax family over dims."""

from . import formulas, functions, softmaxes
from .formulas import *
from .functions import *
from .softmaxes import *

__all__: list[str] = []
__all__ += formulas.__all__
__all__ += functions.__all__
__all__ += softmaxes.__all__
