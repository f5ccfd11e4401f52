"""`gc.nn`: activations and losses of neural networks, under the names of JAX and PyTorch."""

from .functions import *
