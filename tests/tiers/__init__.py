"""Programs in both tiers: NumPy calls and machine code, judged by a higher precision."""
