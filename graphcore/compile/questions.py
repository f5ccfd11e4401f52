"""The questions that a compiled program answers: stages, code, values, times and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TextIO, overload

import numpy as np

from graphcore.backends.arguments import Arguments
from graphcore.backends.boundary import Boundary
from graphcore.backends.chunked import loaded
from graphcore.backends.printing import silence
from graphcore.backends.target import Choice, Compilation, Program, Target, Values
from graphcore.backends.targets import NATIVE
from graphcore.frontend.core.arguments import check_word
from graphcore.frontend.core.base import type_refusal
from graphcore.frontend.core.suggestions import Listing
from graphcore.frontend.core.trees import paths, picker
from graphcore.frontend.core.wrong_calls import worded_methods
from graphcore.inspection import Remarks, Shown, check_bound, debug_print
from graphcore.ir import Graph
from graphcore.ir.errors import GraphKeyError
from graphcore.ir.help_text import attributes, parameters
from graphcore.ir.provenance import described_by
from graphcore.ir.trace import Trace
from graphcore.ops.schedule import kernel
from graphcore.rewrites import pipeline

if TYPE_CHECKING:
    from graphcore.backends.messages import Messages
    from graphcore.inspection.check import Fault
    from graphcore.inspection.kinks import Faults, Kink
    from graphcore.inspection.mismatch import Mismatch
    from graphcore.inspection.profile import Profile
    from graphcore.inspection.traced_values import Tensors
    from graphcore.inspection.why import Why


PLAIN = "optimized"
"""The last stage without kernels that is the same for the targets of the library."""


def lowered(graph: Graph) -> Graph:
    """A graph of plain ops."""
    return pipeline.run(graph, pipeline.COMMON)[-1].graph


class Stages(dict[str, Graph]):
    """The graphs between the parts of a compilation, by name; after any pass, if asked for."""

    NAMES = frozenset(
        {
            *("named", "lowered", "simplified", "expanded", "optimized"),
            *("scheduled", "kernels", "sharded"),
        }
    )

    def __init__(self, passes: Iterable[pipeline.Stage]) -> None:
        self.every = {made.name: made.graph for made in passes}
        super().__init__((name, self.every[name]) for name in self.every if name in self.NAMES)

    def __missing__(self, name: str) -> Graph:
        check_word("stage", name, self.every, kind=GraphKeyError)
        return self.every[name]

    def __repr__(self) -> str:
        shown = [f"{name}: {len(graph):,} nodes" for name, graph in self.items()]
        return f"<Stages {', '.join(shown)}>"


@attributes(
    stages="The graphs between the parts of compilation, by name.",
    passes="Every pass in order, as a tuple of `name`, `graph` (after it), `records` (its "
    "rewrites), `seconds` and `change`.",
    target='What runs all calls, and why: printed, it is a sentence; `target.name` is "numpy", '
    '"native", or that of a target of another package.',
)
@worded_methods
class Questions(Listing):
    """A compiled program as it is looked into; `Compiled` makes it and calls it."""

    stages: Stages
    passes: Sequence[pipeline.Stage]
    _boundary: Boundary
    _given: Arguments
    _own: pipeline.Own
    target: Choice
    _arguments: Any
    _results: Any
    _program: Program
    _values: Values
    _for: Callable[[Target], Questions]
    to_html, _repr_html_ = Shown.to_html, Shown._repr_html_

    @property
    def native(self) -> bool:
        """Whether calls run as machine code."""
        return self.target.name == NATIVE.name

    @property
    def compilations(self) -> Sequence[Compilation]:
        """The sets of sizes that the program was compiled for, each with its seconds.

        A program of `target="jax"` is compiled for each set of unknown sizes that calls have. The
        other targets compile once, for all sizes: theirs is empty.
        """
        return self._program.compilations

    @property
    def source(self) -> str:
        """The program as text: a Python function of NumPy calls, the loops of machine code, or ops.

        A program of `target="jax"` is shown as the ops that JAX traces.
        """
        (head, _), *rest = self._program.lines()
        return "".join(f"{line}\n" for line in (f"{head}  # {self.target}", *[x for x, _ in rest]))

    @property
    def llvm(self) -> str:
        """The LLVM IR from which machine code is made, with the user's lines."""
        return self._for(NATIVE)._program.llvm

    def debug_print(
        self,
        stage: str | None = None,
        *,
        limit: int | None = 200,
        width: int | None = None,
        file: TextIO | None = None,
        color: bool | None = None,
    ) -> None:
        """Print one stage, or all of them: a line for each step; see `gc.debug_print`."""
        debug_print(self, stage, limit=limit, width=width, file=file, color=color)

    def _remarks(self, stage: str) -> Remarks:
        """What the printer adds to a stage: the buffers of results, or the places of dims."""
        check_word("stage", stage, self.stages.every)
        if stage != self.passes[-1].name:
            return Remarks()
        program = self._program
        return Remarks(program.note, program.places, program.below())

    @overload
    def check(
        self, /, *args: Any, any: Literal[False] = ..., **kwargs: Any
    ) -> Fault | Kink | Mismatch | None: ...
    @overload
    def check(self, /, *args: Any, any: Literal[True], **kwargs: Any) -> Faults: ...
    @parameters(
        any="Whether all such values are wanted, also those on which no output depends.",
    )
    def check(
        self, /, *args: Any, any: bool = False, **kwargs: Any
    ) -> Fault | Kink | Mismatch | Faults | None:
        """The first value of a call that is nan or infinite where its operands are not.

        A value counts only if a nan or infinite output depends on it, element by element. One that
        `where`, an index or a maximum leaves out does not count. If all outputs are finite and
        `any` is not set, the answer takes no longer than a call. Otherwise NumPy computes the
        program one op at a time and keeps all values.

        Without such a value, the answer is the first result with a second derivative at a kink that
        is another one close beside it. Programs with second derivatives of ops that have a kink are
        called four times more for this, with other arguments.

        Before all that, results of a program with rules or passes of your own are compared with
        those that it has without them, if any changed it.

        Returns
        -------
        Fault | Kink | Mismatch | Faults | None
            A `Mismatch` if rules of your own change a result by more than rounding. A `Fault` if an
            output is not finite: it says where the value comes from and what to do. Else a `Kink`
            if a second derivative at a kink is wrong, else None. With `any` a tuple of all of them:
            faults one for each value, the earliest first, and kinks last.

        >>> import graphcore as gc, numpy as np
        >>> x = gc.tensor("x", {"row": None})
        >>> f = gc.compile([x], gc.log(x).sum())
        >>> fault = f.check(np.array([1.0, 0.0]))
        >>> fault.op, dict(fault.place), fault.cause
        ('log', {'row': 1}, 'the log of 0')
        """
        from graphcore.inspection.check import check
        from graphcore.inspection.kinks import Faults, find_kinks

        given = loaded(self._given.arrange(args, kwargs))
        results = self._values(*given)
        arrays, known = self._boundary.bind_named(given)
        names = [path for path, _ in sorted(paths(self._results, "result"), key=itemgetter(1))]
        with silence():
            mismatches = self._mismatches(arrays, known, names)
        if mismatches and not any:
            return mismatches[0]
        faults: list[Fault] = []
        if any or not all(np.isfinite(y).all() for y in results):
            faults = check(self.passes[-1].graph, arrays, known, names, results, every=any)
            if not any:
                return faults[0]

        with silence():
            kinks = find_kinks(
                self.stages["named"],
                arrays,
                known,
                names,
                results,
                lambda moved: self._values(*moved),
                lowered,
            )
        return Faults([*mismatches, *faults, *kinks]) if any else next(iter(kinks), None)

    def _mismatches(
        self, arrays: Sequence[Any], known: Mapping[str, int], names: Sequence[str]
    ) -> list[Mismatch]:
        """The result that rules and passes of one's own change, if there is one."""
        applied = [*self._own.applied(self.passes)]
        if not applied:
            return []
        from graphcore.inspection.mismatch import Part, find_mismatch  # loaded at its first use

        graph = self.stages["named"]

        def lower(chosen: Sequence[int]) -> Graph:
            passes = pipeline.together([applied[i][0] for i in chosen]).into(pipeline.COMMON)
            again = Graph(graph.params, graph.outputs, Trace(graph.lines()))
            return pipeline.run(again, passes)[-1].graph

        with described_by(graph.trace):
            parts = [Part(record.rule, record.before.origin) for _, record in applied]
        return find_mismatch(graph, arrays, known, names, parts, lower)

    @parameters(
        step="The step of each loop whose tensors are wanted. For a `scan` it is the position "
        'along its dim, `{"time": 3}`. For other loops it is the number of the step, from 0, by '
        'the name of the function: `{"while_loop": 3}`.',
    )
    def trace(self, /, *args: Any, step: Mapping[str, int] | None = None, **kwargs: Any) -> Tensors:
        """The values of every tensor of the program in a call, as it was written.

        NumPy computes each op by itself and no rule is applied. So values may differ from those of
        a call by rounding, and `log(exp(1000))` is infinite here. A derivative is one tensor; the
        loops that compute it are not shown. All values are held in memory. The program is called
        before, so what `gc.callback` was given runs twice.

        Returns
        -------
        Tensors
            The tensors in order, each with the name of its variable, the user's line, its type,
            statistics and its array. `print` shows them as a table.

        GraphError if no loop is along a dim of `step`, or it has no such step.

        >>> import graphcore as gc, numpy as np
        >>> x = gc.tensor("x", {"row": None})
        >>> values = gc.compile([x], gc.exp(x).sum()).trace(np.zeros(3))
        >>> [value.most for value in values]
        [0.0, 1.0, 3.0]
        """
        from graphcore.inspection.traced_values import trace

        named = isinstance(step, Mapping) and all(isinstance(dim, str) for dim in step)
        if step is not None and not named:
            cure = 'give a position for each dim that loops walk along, as {"time": 3}'
            raise type_refusal(f"step={step!r:.60} names no dims", cure=cure)
        given = loaded(self._given.arrange(args, kwargs))
        with silence():
            self._values(*given)  # a call that fails says why
        arrays, known = self._boundary.bind_named(given)
        return trace(self.stages["named"], arrays, known, lowered, step or {})

    @parameters()
    def profile(self, /, *args: Any, **kwargs: Any) -> Profile:
        """Where the time of a call goes: by step, by your line, by derivative; and its memory.

        The program runs several times, for up to half a second; what it prints is shown once. Each
        NumPy call is measured. So is each loop and routine of machine code, which is compiled once
        more for it. A machine loop may compute several steps: their shares of its time are
        estimated. All parts add up to a call.

        Returns
        -------
        Profile
            Tables of `nests`, `steps`, `lines` and `derivatives`, the slowest first,
            and `memory`. They have times, calls, bytes, flops and shares of the machine's limit.
            `text(limit=None)` shows all.

        >>> import graphcore as gc, numpy as np
        >>> x = gc.tensor("x", {"row": None})
        >>> found = gc.compile([x], gc.cumsum(x, "row")).profile(np.ones(1000))
        >>> [(step.name, step.bytes, step.flops) for step in found.steps if step.calls]
        [('%0', 16000, 1000.0)]
        """
        from graphcore.backends.measuring import profile  # loaded at its first use

        given = loaded(self._given.arrange(args, kwargs))
        last = self._program.graph
        shown = self.stages[PLAIN] if kernel in last.ops() else last
        return profile(self._program, shown, self._values, given, str(self.target))

    @parameters()
    def messages(self, /, *args: Any, **kwargs: Any) -> Messages:
        """What devices of a mesh send each other in a call: the kind, the bytes, and your line.

        The call is made. XLA decides what is sent; this is read from the program that it compiled.

        Returns
        -------
        Messages
            A `Message` for each exchange; `print` shows them as a table.

        GraphError if the program runs on one device.

        Examples
        --------
        ::

            mesh = gc.Mesh({"data": 8})
            f = gc.compile([x], x.sum(), target="jax", mesh=mesh, shard={"batch": "data"})
            print(f.messages(np.ones(32)))
        """
        found: Messages = self._program.messages(loaded(self._given.arrange(args, kwargs)))
        return found

    @parameters()
    def place(self, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Arguments as arrays of JAX that lie on the mesh where the program wants them.

        A call need not send them to the devices again: `f(*f.place(x, w))`. In several processes
        each gives its own part of the dims that lie along the mesh: its rows of a batch, for
        instance. What has no such dims is the same in all of them.

        GraphError if the program runs on one device. If the devices of a process cannot divide its
        part evenly.

        Examples
        --------
        ::

            x, w = step.place(rows_of_this_process, weights)
            loss = step(x, w)
        """
        placed = self._program.place(loaded(self._given.arrange(args, kwargs)))
        return list(picker(self._arguments)(placed))

    def diff(
        self, before: str, after: str, *, limit: int | None = 400, width: int | None = None
    ) -> str:
        """The changes between two stages, as a unified diff.

        If there are more lines than `limit`, only the first and last are shown. Each is cut after
        `width` characters. None shows all.
        """
        from graphcore.inspection.diff import diff  # like the printer, loaded at its first use

        check_bound("diff", "limit", limit, "lines")
        check_bound("diff", "width", width, "characters")
        return diff(self.stages[before], self.stages[after], limit=limit, width=width)

    @parameters(
        x="What the question is about. A tensor of the program: an output, an input, or one "
        'between them. The key of an output in a dict. A name that a stage prints, such as "%12", '
        'or "%7 body %3" in the body of `%7`. A name of the source, such as "t3". A line, such as '
        '"model.py:7".',
        stage="The stage that prints the name, and in which the answer names nodes; the last one, "
        "if it is not given.",
    )
    def why(self, x: Any, stage: str | None = None) -> Why:
        """Why a node is there: the lines that wrote it, each rule that fired, the steps that run.

        Returns
        -------
        Why
            The answer as data, with `lines`, `rules` and an answer for each node; `print` shows it.

        GraphError if there is no such stage, or nothing of that name in it.

        >>> import graphcore as gc
        >>> x = gc.tensor("x", {"row": 3})
        >>> f = gc.compile([x], gc.log(1 + gc.exp(x)))
        >>> print(f.why("%0", stage="named").answers[0].taken)
        log1p → softplus  stabilise.py:...  log1p(exp(x)) = softplus(x)
        """
        from graphcore.inspection.why import why

        return why(self, x, stage)
