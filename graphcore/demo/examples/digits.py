"""A small network learns to read handwritten digits, by gradient descent in minibatches."""

import numpy as np

import graphcore as gc
from graphcore.demo import datasets

# The network, its loss and its gradient. None: a size known at the call.
image = gc.tensor("image", {"sample": None, "row": 8, "col": 8})
label = gc.tensor("label", {"sample": None}, dtype="int64")
w1 = gc.tensor("w1", {"row": 8, "col": 8, "hidden": None})
b1 = gc.tensor("b1", {"hidden": None})
w2 = gc.tensor("w2", {"hidden": None, "class": 10})
b2 = gc.tensor("b2", {"class": 10})
weights = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}

h = gc.maximum(gc.dot(image, w1, dim=("row", "col")) + b1, 0)
logits = gc.dot(h, w2, dim="hidden") + b2
logp = gc.special.log_softmax(logits, dim="class")
loss = -gc.take_along(logp, label, dim="class").mean("sample")
gradient = gc.grad(loss, weights)

# One step of training: gradient descent with momentum, compiled together with the gradient.
rate = gc.tensor("rate", {})
velocity = {name: gc.tensor(f"{name} velocity", w.sizes) for name, w in weights.items()}
new_velocity = {name: 0.9 * velocity[name] - rate * gradient[name] for name in weights}
new_weights = {name: weights[name] + new_velocity[name] for name in weights}
step = gc.compile([image, label, weights, velocity, rate], [loss, new_weights, new_velocity])

# The digit that each image shows.
read = gc.compile([image, weights], logits.argmax("class"))


def random_weights(hidden, rng):
    """Where training starts: the values of all layers then have about the same size."""
    return {
        "w1": rng.normal(scale=np.sqrt(2 / 64), size=(8, 8, hidden)),
        "b1": np.zeros(hidden),
        "w2": rng.normal(scale=np.sqrt(1 / hidden), size=(hidden, 10)),
        "b2": np.zeros(10),
    }


def train(images, labels, epochs=20, hidden=64, batch=32, rate=0.1, seed=0):
    """After each epoch: its number, the mean loss of its steps, and the weights."""
    rng = np.random.default_rng(seed)
    weights = random_weights(hidden, rng)
    velocity = {name: np.zeros_like(w) for name, w in weights.items()}
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(labels))
        losses = []
        for first in range(0, len(order), batch):
            some = order[first : first + batch]
            loss, weights, velocity = step(images[some], labels[some], weights, velocity, rate)
            losses.append(loss)
        yield epoch, np.mean(losses), weights


if __name__ == "__main__":
    training, test = datasets.digits().split()
    for epoch, loss, learned in train(*training):
        print(f"epoch {epoch:2}, loss {loss:.4f}")
    right = np.count_nonzero(read(test.image, learned) == test.label)
    print(f"test accuracy {right / len(test.label):.3f} ({right} of {len(test.label)} digits)")
