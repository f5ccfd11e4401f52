"""`gc.linalg`: linear algebra under SciPy's names; the dims of matrices by name, the rest batch."""

from typing import TYPE_CHECKING

from graphcore.frontend.core.instead import absent

from . import building, factors, functions, numbers, products, solving
from .building import *
from .factors import *
from .functions import *
from .numbers import *
from .products import *
from .solving import *

if not TYPE_CHECKING:  # type checkers know the star imports, and would accept any name
    __all__ = [
        *building.__all__,
        *factors.__all__,
        *functions.__all__,
        *numbers.__all__,
        *products.__all__,
        *solving.__all__,
    ]
    __getattr__, __dir__ = absent("linalg"), lambda: __all__
