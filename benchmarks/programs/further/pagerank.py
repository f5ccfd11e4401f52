"""The importance of pages by the links between them.

Page, Brin, Motwani and Winograd, "The PageRank citation ranking" (1999): the power method, where
a page without links links to all.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

import graphcore as gc

SIZES = {"tiny": {"page": 5, "link": 9}, "small": {"page": 2000, "link": 12000}}
DAMPING, STEPS = 0.85, 40


def inputs(size: str) -> dict[str, np.ndarray]:
    pages, links = SIZES[size].values()
    rng = np.random.default_rng(54)
    popular = (pages * rng.uniform(size=links) ** 2).astype(np.int64)
    return {
        "source": rng.integers(0, pages * 9 // 10, links),
        "target": np.sort(popular),
        "jump": rng.dirichlet(np.ones(pages)),
    }


def program() -> gc.Compiled:
    source, target = (
        gc.tensor(name, {"link": None}, dtype="int64") for name in ("source", "target")
    )
    jump = gc.tensor("jump", {"page": None})
    pages = jump.sizes["page"]

    links = gc.segment_sum(gc.ones_like(source, dtype="float64"), source, pages, name="page")
    share = gc.where(links > 0, 1 / gc.maximum(links, 1), 0.0)

    def step(_: gc.Tensor, rank: gc.Tensor) -> gc.Tensor:
        given = rank * share
        arrived = gc.segment_sum(given[{"page": source}], target, pages, name="page")
        lost = rank.sum(where=gc.equal(links, 0))
        return DAMPING * (arrived + lost / pages) + (1 - DAMPING) * jump

    rank = gc.fori_loop(0, STEPS, step, jump)
    return gc.compile([source, target, jump], {"rank": rank, "best": rank.argmax("page")})


def reference(source: np.ndarray, target: np.ndarray, jump: np.ndarray) -> dict[str, np.ndarray]:
    pages = len(jump)
    links = np.bincount(source, minlength=pages)
    share = np.divide(1.0, links, out=np.zeros(pages), where=links > 0)
    spread = csr_array((share[source], (target, source)), shape=(pages, pages))
    stuck = links == 0
    rank = jump
    for _ in range(STEPS):
        rank = DAMPING * (spread @ rank + rank[stuck].sum() / pages) + (1 - DAMPING) * jump
    return {"rank": rank, "best": rank.argmax()}
