"""Programs as files: as Python that needs NumPy alone, and as archives that are loaded again."""
