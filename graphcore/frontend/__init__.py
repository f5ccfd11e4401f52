"""What users call: tensors with named dims, and functions of them."""

from importlib import import_module
from pkgutil import walk_packages

from .calls import word_functions

for _found in walk_packages(__path__, f"{__name__}."):
    word_functions(import_module(_found.name))
