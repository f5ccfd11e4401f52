"""What targets promise of the rounding of sums."""

BOUND = 32
"""The error of a sum in eps times the sum of magnitudes, for any dtype, length, order in memory."""
