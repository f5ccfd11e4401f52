"""How Sphinx builds the site: `python -m sphinx -W --keep-going -b html docs build/docs`.

Pages are MyST Markdown. What they load is in the site itself: no fonts, scripts or mathematics from
elsewhere, so that it reads the same without a network. `tests/docs` runs every snippet of a page.
"""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "graphcore"
author = "The graphcore developers"
copyright = "The graphcore developers"
version = release = installed("graphcore")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.doctest",
    "api",
]
exclude_patterns = ["_build", "_static", "_templates"]
default_role = "code"
add_module_names = False
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the directives of `api` write them
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"graphcore {release}"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = ["custom.js"]
templates_path = ["_templates"]
html_copy_source = html_show_sourcelink = False
html_domain_indices = False  # the API is listed by theme
html_permalinks_icon = "#"
pygments_style = "a11y-high-contrast-light"  # of accessible-pygments, which the theme needs
pygments_dark_style = "a11y-high-contrast-dark"
