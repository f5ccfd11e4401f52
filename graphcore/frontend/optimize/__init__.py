"""`gc.optimize`: gradient methods as pure functions of trees.

An optimizer is a pair of functions. `init(params)` is the state before the first step.
`update(params, grads, state)` is the pair of params and state after one. Nothing is changed in
place, so that a step runs in a program, in a loop, under `vectorize`, and has derivatives itself.
"""

from .gradients import *
from .methods import *
from .rates import *
