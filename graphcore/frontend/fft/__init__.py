"""`gc.fft`: discrete Fourier transforms along dims, under NumPy's names."""

from typing import TYPE_CHECKING

from graphcore.frontend.core import contents
from graphcore.frontend.core.instead import absent

from .transforms import *

if not TYPE_CHECKING:  # type checkers would then accept any name
    __getattr__, __dir__ = absent("fft"), lambda: contents.names("fft")
    __doc__ = contents.describe(__doc__, globals(), "fft")
