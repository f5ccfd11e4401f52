"""Programs of NumPy calls as Python files of their own."""
