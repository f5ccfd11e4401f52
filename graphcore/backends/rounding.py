"""What targets promise of the rounding of sums, and how many additions that allows."""

BOUND = 32
"""The error of a sum in eps times the sum of magnitudes, for any dtype, length, order in memory."""
ADDITIONS = 2 * BOUND
"""How many additions a value may take part in: each rounds by at most half an eps."""
GROUP = ADDITIONS // 2
"""How many values or products are added one after the other, before their sum joins other sums."""
PRODUCTS_OF_BLAS = 48
"""How many products BLAS adds up for an element of a matrix, before their sum joins other sums."""
