"""PyMC's models, and log densities of ours, as what `nutpie.sample` takes."""

from importlib.util import find_spec

if find_spec("nutpie") is None:
    raise ImportError("nutpie is not installed: pip install 'graphcore[nutpie]'")

from .entrance import to_nutpie as to_nutpie
