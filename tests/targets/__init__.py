"""Programs in both targets: NumPy calls and machine code, judged by a higher precision."""
