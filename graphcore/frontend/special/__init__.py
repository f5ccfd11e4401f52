"""`gc.special`: special functions under SciPy's names, and the softmax family over dims."""

from typing import TYPE_CHECKING

from graphcore.frontend.core.instead import absent

from . import formulas, functions, softmaxes
from .formulas import *
from .functions import *
from .softmaxes import *

__all__: list[str] = []
__all__ += formulas.__all__
__all__ += functions.__all__
__all__ += softmaxes.__all__

if not TYPE_CHECKING:  # for which any name would be known
    __getattr__, __dir__ = absent("special"), lambda: __all__
