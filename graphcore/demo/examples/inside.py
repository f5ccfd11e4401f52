"""What happens between a formula and the code that runs: one program, stage by stage."""

import numpy as np

import graphcore as gc
from graphcore.demo import datasets

# Logistic regression: does an image show a 1 (y = 1) or a 0 (y = -1)?
x = gc.tensor("x", {"sample": None, "row": 8, "col": 8})
y = gc.tensor("y", {"sample": None})
w = gc.tensor("w", {"row": 8, "col": 8})
margin = y * gc.dot(x, w, dim=("row", "col"))
odds = gc.exp(-margin)
loss = gc.log(1 + odds).mean("sample")
f = gc.compile([x, y, w], [loss, gc.grad(loss, w)], native=False)

print("The program as it was written. Axes have names, and the gradient is one pullback:\n")
f.debug_print("named")

print("\nLarge values of exp overflow. A rule replaces the formula by one that does not:\n")
print(f.diff("lowered", "simplified"))

print("\nAny tensor tells what became of it. This is the exp:\n")
print(f.why(odds))

print("\nThe pullback is replaced by the derivative of each op. These are simplified again:\n")
f.debug_print("expanded")

print("\nThe Python function that runs. Each call names the line that it is from:\n")
print(f.source)

# The program at work: 100 steps downhill.
images, labels = datasets.digits()
chosen = labels < 2
images, signs = images[chosen], 2.0 * labels[chosen] - 1
weights = np.zeros((8, 8))
for _ in range(100):
    value, gradient = f(images, signs, weights)
    weights = weights - 0.5 * gradient
print(f"The loss of {len(signs)} digits after 100 steps downhill: {value:.4f}")
