"""`gc.fft`: discrete Fourier transforms along dims, under NumPy's names."""

from .transforms import *
