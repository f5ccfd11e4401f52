"""The programs of the demo, written as a user would: expressions over named axes."""

from __future__ import annotations

import graphcore as gc
from graphcore.compiled import Compiled

MOMENTUM = 0.9


class Network:
    """A network of one hidden layer that reads digits, its loss and the loss's gradient.

    Attributes
    ----------
    weights
        By name, the tensors to be learned.
    gradient
        By name, the gradient of `loss` by each of `weights`: projections of one lazy pullback.
    """

    def __init__(self, hidden: int) -> None:
        image = gc.tensor("image", {"sample": None, "row": 8, "col": 8})
        label = gc.tensor("label", {"sample": None}, dtype="int64")
        w1 = gc.tensor("w1", {"row": 8, "col": 8, "hidden": hidden})
        b1 = gc.tensor("b1", {"hidden": hidden})
        w2 = gc.tensor("w2", {"hidden": hidden, "class": 10})
        b2 = gc.tensor("b2", {"class": 10})

        h = gc.maximum(gc.dot(image, w1, dim=("row", "col")) + b1, 0)
        logits = gc.dot(h, w2, dim="hidden") + b2
        logp = gc.special.log_softmax(logits, dim="class")
        loss = -gc.take_along(logp, label, dim="class").mean("sample")

        self.image, self.label, self.logits, self.loss = image, label, logits, loss
        self.weights = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
        self.gradient = gc.grad(loss, self.weights)

    def training_step(self) -> Compiled:
        """(image, label, weights, velocity, rate) -> [loss, new weights, new velocity].

        Gradient descent with momentum. The update is part of the graph.
        """
        rate = gc.tensor("rate", {})
        velocity, faster, better = {}, {}, {}
        for name, w in self.weights.items():
            velocity[name] = gc.tensor(f"{name} velocity", w.sizes)
            faster[name] = MOMENTUM * velocity[name] - rate * self.gradient[name]
            better[name] = w + faster[name]
        inputs = [self.image, self.label, self.weights, velocity, rate]
        return gc.compile(inputs, [self.loss, better, faster])

    def reader(self) -> Compiled:
        """(image, weights) -> the digit that each image seems to show."""
        return gc.compile([self.image, self.weights], self.logits.argmax("class"))


def logistic_regression() -> Compiled:
    """(x, y, w) -> [loss, its gradient by w], each y 1 or -1: a graph short enough to read."""
    x = gc.tensor("x", {"batch": None, "feature": 3})
    y = gc.tensor("y", {"batch": None})
    w = gc.tensor("w", {"feature": 3})
    loss = gc.log(1 + gc.exp(-y * gc.dot(x, w, dim="feature"))).mean("batch")
    return gc.compile([x, y, w], [loss, gc.grad(loss, w)])
