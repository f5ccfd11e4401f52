"""`gc.nn`: activations and losses of neural networks, under the names of JAX and PyTorch."""

from typing import TYPE_CHECKING

from graphcore.frontend.core import contents
from graphcore.frontend.core.instead import absent

from .functions import *

if not TYPE_CHECKING:  # type checkers would then accept any name
    __getattr__, __dir__ = absent("nn"), lambda: contents.names("nn")
    __doc__ = contents.describe(__doc__, globals(), "nn")
