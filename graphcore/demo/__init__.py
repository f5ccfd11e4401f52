"""The demo that `python -m graphcore` runs: a small network learns to read handwritten digits."""
