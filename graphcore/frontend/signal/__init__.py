"""`gc.signal`: convolution, correlation and window functions, under SciPy's names."""

from typing import TYPE_CHECKING

from graphcore.frontend.core import contents
from graphcore.frontend.core.instead import absent

from .filters import *
from .recursive import *

if not TYPE_CHECKING:  # type checkers would then accept any name
    __getattr__, __dir__ = absent("signal"), lambda: contents.names("signal")
    __doc__ = contents.describe(__doc__, globals(), "signal")
