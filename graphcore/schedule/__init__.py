"""From the last graph to code: the order of steps, shared memory, and regions for kernels."""
