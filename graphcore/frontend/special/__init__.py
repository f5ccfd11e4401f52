"""`gc.special`: special functions under SciPy's names, and the softmax family over dims."""

from typing import TYPE_CHECKING

from graphcore.frontend.core.instead import absent

from . import formulas, functions, softmaxes
from .formulas import *
from .functions import *
from .softmaxes import *

if not TYPE_CHECKING:  # type checkers know the star imports, and would accept any name
    __all__ = [*formulas.__all__, *functions.__all__, *softmaxes.__all__]
    __getattr__, __dir__ = absent("special"), lambda: __all__
