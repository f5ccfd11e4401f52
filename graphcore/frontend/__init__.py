"""The functions that users call, and their tensors with named dims."""

from functools import partial
from importlib import import_module
from pkgutil import walk_packages

from .core.contents import SPACES, describe, names
from .core.suggestions import absent
from .core.wrong_calls import word_functions

for _found in walk_packages(__path__, f"{__name__}."):
    _module = import_module(_found.name)
    word_functions(_module, getattr(_module, "__all__", ()))
for _space in SPACES:
    _module = import_module(f"{__name__}.{_space}")
    word_functions(_module, names(_space))
    _doc = describe(_module.__doc__, vars(_module), _space)
    # Not in the modules themselves: type checkers accept any name of one that has `__getattr__`.
    vars(_module).update(__doc__=_doc, __getattr__=absent(_space), __dir__=partial(names, _space))
