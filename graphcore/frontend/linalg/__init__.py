"""`gc.linalg`: linear algebra under SciPy's names; the dims of matrices by name, the rest batch."""

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
