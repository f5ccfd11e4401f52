"""`gc.linalg`: linear algebra under SciPy's names; the dims of matrices by name, the rest batch."""

from .building import *
from .factors import *
from .matrix_functions import *
from .numbers import *
from .products import *
from .solving import *
