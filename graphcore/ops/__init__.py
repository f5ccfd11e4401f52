"""Op declarations, a module for each dialect: what may be said, and of what type it is."""

from . import special as special  # declares elementwise ops, so it comes before all who list them
