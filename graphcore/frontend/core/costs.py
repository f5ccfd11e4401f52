"""Costs of backends, for functions that have several ways to compute the same.

Nothing else in the frontend knows about time.
"""

from graphcore.ir import Size

MOST_JOINED = 8
"""The most copies that are joined one by one: as a short axis of their own they would be slower."""

MOST_WRITTEN_OUT = 16
"""The most repeated steps that are written out; more become a loop, which is faster to compile."""


CHECKPOINT_LEVELS = (32**3, 32**2, 32)
"""Lengths of chunks in logarithmic checkpoints: a million steps save 30 + 3 * 32 carries."""


def fast_transform_size(size: Size) -> Size:
    """The next size from this one on whose Fourier transform is fast; `size` itself if symbolic."""
    if not isinstance(size, int) or size < 1:
        return size
    from scipy.fft import next_fast_len

    return int(next_fast_len(size, real=True))
