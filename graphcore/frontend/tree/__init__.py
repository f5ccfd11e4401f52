"""`gc.tree`: nested lists, tuples, dicts and objects, whatever they hold."""

from .functions import *
