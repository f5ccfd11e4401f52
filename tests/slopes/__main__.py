"""Compute the references again, all or those named: `python -m tests.slopes [NAME ...]`."""

from __future__ import annotations

import sys
from multiprocessing import Pool

import numpy as np

from .points import points
from .reference import all_slopes
from .sweeping import STORED, names


def main() -> None:
    found = dict(np.load(STORED)) if STORED.exists() else {}
    known = names()
    found = {name: table for name, table in found.items() if name in known}
    tasks = [(name, points(known[name])) for name in sys.argv[1:] or known]
    with Pool() as pool:
        for name, table in pool.imap_unordered(all_slopes, tasks):
            found[name] = table
            print(name, np.isfinite(table).sum(0), flush=True)
            np.savez_compressed(STORED, **found)


main()
