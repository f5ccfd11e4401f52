"""Elements rearranged along dims: moved, copied, split, and taken from diagonals."""
