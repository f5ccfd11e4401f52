"""`gc.signal`: convolution, correlation and window functions, under SciPy's names."""

from .filters import *
from .recursive import *
