"""`gc.special`: special functions under SciPy's names, and the softmax family over dims."""

from typing import TYPE_CHECKING

from graphcore.frontend.core import contents
from graphcore.frontend.core.instead import absent

from .formulas import *
from .functions import *
from .softmaxes import *

if not TYPE_CHECKING:  # type checkers would then accept any name
    __getattr__, __dir__ = absent("special"), lambda: contents.names("special")
    __doc__ = contents.describe(__doc__, globals(), "special")
