"""The functions that users call, and their tensors with named dims."""

from importlib import import_module
from pkgutil import walk_packages

from .core.calls import word_functions
from .core.paths import SPACES

public_names: list[str] = []
"""The public names of `gc` itself, without those of its modules, such as `gc.linalg`."""

for _found in walk_packages(__path__, f"{__name__}."):
    _module = import_module(_found.name)
    word_functions(_module)
    if _found.name.split(".")[2] not in SPACES:
        public_names += getattr(_module, "__all__", ())
