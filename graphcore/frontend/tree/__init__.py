"""`gc.tree`: nested lists, tuples, dicts and objects, whatever they hold."""

from typing import TYPE_CHECKING

from graphcore.frontend.core import contents
from graphcore.frontend.core.instead import absent

from .functions import *

if not TYPE_CHECKING:  # type checkers would then accept any name
    __getattr__, __dir__ = absent("tree"), lambda: contents.names("tree")
    __doc__ = contents.describe(__doc__, globals(), "tree")
