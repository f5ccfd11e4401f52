"""`gc.linalg`: linear algebra under SciPy's names; the dims of matrices by name, the rest batch."""

from typing import TYPE_CHECKING

from graphcore.frontend.core import contents
from graphcore.frontend.core.instead import absent

from .building import *
from .factors import *
from .functions import *
from .numbers import *
from .products import *
from .solving import *

if not TYPE_CHECKING:  # type checkers would then accept any name
    __getattr__, __dir__ = absent("linalg"), lambda: contents.names("linalg")
    __doc__ = contents.describe(__doc__, globals(), "linalg")
