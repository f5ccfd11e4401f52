"""Several processes that run one program together: JAX's own, told to notice soon if one dies."""

from __future__ import annotations

from graphcore.ir.errors import GraphTypeError
from graphcore.ir.help_text import parameters

from .mesh import refused


@parameters(
    address='Where process 0 listens: "127.0.0.1:12321", the same in all processes.',
    count="How many processes there are.",
    number="Which of them this is, from 0 on.",
    heartbeat="After how many seconds without a sign of life a process counts as dead. The others "
    "are then ended by JAX, without an exception.",
)
def join_processes(
    address: str | None = None,
    count: int | None = None,
    number: int | None = None,
    *,
    heartbeat: int = 30,
) -> None:
    """Let this process and others run programs together; meshes then have the devices of all.

    Call it first of all, in each process. On clusters that JAX knows, such as Slurm, it finds the
    first three arguments itself. Each process then makes the same calls in the same order.

    GraphError if JAX has been used before, or if not all of the first three are given.

    Examples
    --------
    ::

        gc.join_processes("10.0.0.1:12321", count=2, number=0)  # and number=1 in the other one
        mesh = gc.Mesh({"data": 16})
    """
    given = [value is not None for value in (address, count, number)]
    if any(given) and not all(given):
        cure = "give address, count and number, or none of them on a cluster that JAX knows"
        raise refused("some of the processes are not said", cure)
    if type(heartbeat) is not int or heartbeat < 1:
        reason = f"heartbeat={heartbeat!r:.60} is no number of seconds"
        raise refused(reason, "give whole seconds, from 1 on", kind=GraphTypeError)
    import jax

    try:
        jax.distributed.initialize(address, count, number, heartbeat_timeout_seconds=heartbeat)
    except RuntimeError as error:
        cure = "call it first, once, before arrays of JAX are made and programs compiled"
        raise refused(f"JAX cannot join: {error}", cure) from error
