"""The campaign of wrong arguments: good calls, wrong values, and what becomes of the calls."""
