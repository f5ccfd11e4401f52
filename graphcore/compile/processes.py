"""Several processes that run one program together: JAX's own, told to notice soon if one dies."""

from __future__ import annotations

from graphcore.frontend.core.base import refusal, type_refusal
from graphcore.frontend.core.wrong_calls import reword_errors
from graphcore.ir.help_text import parameters


@reword_errors
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
    """Let processes run programs together.

    Meshes then have the devices of all. Call it first of all, in each process. On clusters that JAX
    knows, such as Slurm, it finds the first three arguments itself. Each process then makes the
    same calls in the same order.

    GraphError if JAX has been used before, or if not all of the first three are given.

    >>> import graphcore as gc
    >>> gc.join_processes("127.0.0.1:12321", count=1, number=0)  # doctest: +SKIP
    >>> mesh = gc.Mesh({"data": 16})
    """
    given = [value is not None for value in (address, count, number)]
    if any(given) and not all(given):
        cure = "give address, count and number, or none of them on a cluster that JAX knows"
        raise refusal("some of the processes are not said", cure=cure)
    if type(heartbeat) is not int or heartbeat < 1:
        reason = f"heartbeat={heartbeat!r:.60} is no number of seconds"
        raise type_refusal(reason, cure="give whole seconds, from 1 on")
    import jax

    try:
        jax.distributed.initialize(address, count, number, heartbeat_timeout_seconds=heartbeat)
    except RuntimeError as error:
        cure = "call it first, once, before arrays of JAX are made and programs compiled"
        raise refusal(f"JAX cannot join: {error}", cure=cure) from error
