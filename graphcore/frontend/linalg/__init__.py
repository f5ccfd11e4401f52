"""`gc.linalg`: linear algebra under SciPy's names; the dims of matrices by name, the rest batch."""

from typing import TYPE_CHECKING

from graphcore.frontend.core.instead import absent

from . import building, factors, functions, numbers, solving
from .building import *
from .factors import *
from .functions import *
from .numbers import *
from .solving import *

__all__: list[str] = []
__all__ += building.__all__
__all__ += factors.__all__
__all__ += functions.__all__
__all__ += numbers.__all__
__all__ += solving.__all__

if not TYPE_CHECKING:  # for which any name would be known
    __getattr__, __dir__ = absent("linalg"), lambda: __all__
