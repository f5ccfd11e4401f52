"""The functions that users call, and their tensors with named dims."""

from importlib import import_module
from pkgutil import walk_packages

from .core.calls import word_functions
from .core.contents import SPACES, names

for _found in walk_packages(__path__, f"{__name__}."):
    _module = import_module(_found.name)
    word_functions(_module, getattr(_module, "__all__", ()))
for _space in SPACES:
    word_functions(import_module(f"{__name__}.{_space}"), names(_space))
