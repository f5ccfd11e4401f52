"""The passes of a compilation as one list: their order, and the contracts of their results."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache, partial, wraps
from inspect import unwrap
from itertools import count
from typing import Any, NamedTuple, TypeVar

from graphcore.analysis.cost import TargetCosts
from graphcore.ir import Graph, Op
from graphcore.ir.contracts import Contract
from graphcore.ir.errors import GraphValueError
from graphcore.ir.help_text import fields
from graphcore.ir.trace import Record, Trace, current_trace, rule_name, tracing
from graphcore.ir.transform import unsettled_error
from graphcore.ir.types import fits
from graphcore.ops import autodiff, control, leaf, tensor
from graphcore.ops.control import LOOPS

from .accumulate import add_scattered
from .axis_order import align_axes, as_they_lie
from .commuted import share_commuted
from .contraction import contraction
from .decompose import DECOMPOSE, decomposition_without
from .engine import Rules, RuleSet, own_refusal, simplify
from .expand import expand_derivatives, mark_sources
from .log_products import log_products
from .logarithms import logarithms
from .loops import (
    hoist,
    merge_loops,
    prune_loops,
    record_parts,
    save_for_pullbacks,
    tidy_bodies,
)
from .lower import lower_names
from .matrix_functions import functions_of_matrices
from .orders import join_contractions
from .scales import scale_less
from .shared_factors import factor_before_loops, share_factors
from .shields import drop_shields
from .stabilise import stabilise
from .structure import structure
from .tidy import tidy

Change = Callable[[Graph], Graph]
C = TypeVar("C")


@fields
class Pass(NamedTuple):
    """One step of a compilation, named by what it has done, and the contract of its result."""

    name: str
    change: Change
    contract: Contract

    def __repr__(self) -> str:
        change = unwrap(self.change)
        rules = change.keywords["rules"] if isinstance(change, partial) else None
        return f"<Pass {self.name!r}: {rule_name(change) if rules is None else rules}>"


@fields
class Repeat(NamedTuple):
    """Passes run in turn until a round changes nothing; `at_most` so many rounds."""

    passes: Sequence[Pass]
    at_most: int

    def __repr__(self) -> str:
        return f"<Repeat {', '.join(step.name for step in self.passes)}: until nothing changes>"


@fields
class Stage(NamedTuple):
    """The result of a pass: its graph, its rewrites, the seconds it took, and what it does.

    `contract` is what the graph obeys.
    """

    name: str
    graph: Graph
    records: Sequence[Record]
    seconds: float
    change: Change
    contract: Contract

    def __repr__(self) -> str:
        made = f"{len(self.graph):,} nodes, {len(self.records):,} rewrites"
        return f"<Stage {self.name!r}: {made}, {1000 * self.seconds:.2f} ms>"


def rewrite_by(*sets: RuleSet) -> Change:
    """The change that applies these rules, the first sets first, until none applies."""
    rules, *more = sets
    for some in more:
        rules |= some
    return partial(simplify, rules=rules)


def in_turn(first: Change, second: Change) -> Change:
    """Both changes, one after the other."""

    @wraps(second)
    def change_twice(graph: Graph) -> Graph:
        return second(first(graph))

    return change_twice


def simplify_by(*own: RuleSet) -> Change:
    """The simplification before derivatives are expanded, by rules of one's own first."""
    rules = rewrite_by(*own, stabilise, logarithms, structure, tidy)
    return in_turn(share_commuted, rules)


def refused_by_rule(own: RuleSet) -> Change:
    """The same simplification, which names the rule of one's own that breaks the contract."""
    simplified = simplify_by(own)

    @wraps(simplified)
    def change(graph: Graph) -> Graph:
        records = len(current_trace().records)
        made = simplified(graph)
        for record in current_trace().records[records:] if PLAIN.breach(made) else ():
            found = PLAIN.breach(Graph((), (record.after,)))
            if found and record.rule in own.rules():
                said, reason = f"the rule {rule_name(record.rule)}", f"{found} in 'simplified'"
                cure = "let it return ops of graphcore.ops.elementwise, tensor or linalg"
                raise own_refusal(said, reason, cure)
        return made

    return change


def by_costs(change: Callable[[Graph, C], Graph], costs: C) -> Change:
    """The change as a target with these costs makes it."""

    @wraps(change)
    def change_by_costs(graph: Graph) -> Graph:
        return change(graph, costs)

    return change_by_costs


def only_with(ops: Collection[Op], change: Change) -> Change:
    """The change, made only to graphs in which one of these ops stands."""

    @wraps(change)
    def change_some(graph: Graph) -> Graph:
        return graph if graph.ops().isdisjoint(ops) else change(graph)

    return change_some


NAMED = Contract(
    *("leaf", "elementwise", "named", "control"), *autodiff.WRITTEN, but=[leaf.tuple_], named=True
)
EXPANDED = Contract(
    *("leaf", "elementwise", "tensor", "linalg", "control"), but=[leaf.tuple_, control.custom]
)
PLAIN = Contract(*EXPANDED.allowed, *autodiff.WRITTEN, *autodiff.FUNCTIONS, but=[leaf.tuple_])
DECOMPOSED = Contract(*EXPANDED.allowed, but=EXPANDED.but | DECOMPOSE.keys())
"""What a target is given."""

simplified = Pass("simplified", simplify_by(), PLAIN)
tidied = Pass("tidied", rewrite_by(tidy), EXPANDED)
loops_pruned = Pass("loops pruned", prune_loops, EXPANDED)
gathered = Pass("contractions gathered", rewrite_by(tidy, contraction), EXPANDED)

Passes = list[Pass | Repeat]


@cache
def shared_passes(costs: TargetCosts, whole: frozenset[Op] = frozenset()) -> Passes:
    """The passes that targets share, before those of their own, for a target with these costs.

    Ops in `whole` are not decomposed, as the target computes them at once.
    """
    given = Contract(*EXPANDED.allowed, but=DECOMPOSED.but - whole) if whole else DECOMPOSED
    decomposed = Pass("decomposed", rewrite_by(decomposition_without(whole), tidy), given)
    moved_out = Pass("moved out of loops", by_costs(hoist, costs), EXPANDED)
    # Contractions take in their views, then become matrix products; views meet views again. That
    # may show further contractions; programs need up to 4 rounds.
    ordered = Pass("contractions ordered", by_costs(join_contractions, costs), EXPANDED)
    rounds = [gathered, Pass("scaled less", scale_less, EXPANDED), ordered, decomposed]
    products = Repeat(rounds, at_most=100)
    lying = in_turn(rewrite_by(as_they_lie, tidy), align_axes)
    return [
        Pass("named", lambda graph: graph, NAMED),
        Pass("sources marked", only_with({autodiff.barrier}, mark_sources), NAMED),
        Pass("lowered", lower_names, PLAIN),
        simplified,
        # The derivative of a function of a matrix is not that of its eigenvectors.
        Pass("functions of matrices found", functions_of_matrices, PLAIN),
        Pass("logarithms of products found", by_costs(log_products, costs), PLAIN),
        Pass("expanded", expand_derivatives, EXPANDED),
        Pass("shields dropped", drop_shields, EXPANDED),
        loops_pruned,
        Pass("loops merged", only_with(LOOPS, merge_loops), EXPANDED),
        Pass("steps recorded", only_with(LOOPS, save_for_pullbacks), EXPANDED),
        Pass("bodies tidied", only_with(LOOPS, tidy_bodies), EXPANDED),
        Pass("factored before loops", by_costs(factor_before_loops, costs), EXPANDED),
        moved_out,
        products,
        # Matrix products make views of captured values, which are moved out of loops again.
        moved_out,
        Pass("parts recorded", only_with(LOOPS, record_parts), EXPANDED),
        loops_pruned,
        products,
        Pass("factors shared", by_costs(share_factors, costs), given),
        # An element is added at its place: a loop whose carry is updated walks no zeros.
        Pass("scattered added", add_scattered, given),
        Pass("axes aligned", align_axes, given),
        Pass(
            "rows as they lie",
            only_with({tensor.matvec, tensor.scatter, tensor.scatter_prod}, lying),
            given,
        ),
        Pass("optimized", in_turn(share_commuted, tidied.change), given),
    ]


COMMON = shared_passes(TargetCosts())
"""Those of the targets of the library: which of these runs is decided after them."""


REGISTERED: dict[str, tuple[str, Pass]] = {}
"""The passes of one's own by name, each with the name of the pass that it follows."""


def register(own: Pass, after: str) -> None:
    """Have all later compilations, for every target, run a pass of one's own.

    It runs after each pass of the name `after`, as often as that; `unregister` takes it back. Its
    result must obey the contract of that pass too.

    Raises
    ------
    GraphError
        If a pass has this name already, or no pass for every target the name `after`. The last one
        is not followed: it tidies what the others leave.

    Examples
    --------
    >>> from graphcore.rewrites.pipeline import EXPANDED, Pass, register, unregister
    >>> def show(graph):
    ...     print(len(graph), "nodes")
    ...     return graph
    >>> register(Pass("shown", show, EXPANDED), after="expanded")
    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 3})
    >>> f = gc.compile([x], gc.exp(x))
    2 nodes
    >>> unregister("shown")
    """
    if not isinstance(own, Pass):
        cure = "write register(Pass(name, function of a graph, EXPANDED), after=name)"
        raise own_refusal("register", f"{own!r:.60} is not a Pass", cure)
    *places, last = dict.fromkeys(step.name for step in every_pass(COMMON))
    if after not in places:
        near = get_close_matches(str(after), places, 1)
        cure = f"did you mean {near[0]!r}?" if near else f"name one of {', '.join(places)}"
        raise own_refusal(
            "register", f"no pass of one's own can follow {after!r}", cure, GraphValueError
        )
    if own.name in (*places, last, *REGISTERED):
        cure = "give it another name, or take the other back first: unregister(name)"
        raise own_refusal(
            "register", f"there is a pass {own.name!r} already", cure, GraphValueError
        )
    REGISTERED[own.name] = after, own


def unregister(name: str) -> None:
    """Take back a pass of one's own: later compilations do not run it."""
    if REGISTERED.pop(name, None) is None:
        cure = f"registered are: {', '.join(REGISTERED) or 'none'}"
        raise own_refusal("unregister", f"no pass {name!r} is registered", cure, GraphValueError)


def own_rules(rules: Rules, asked: str) -> RuleSet:
    """The rules that a user gives to a compilation by a call of the function `asked`."""
    if not isinstance(rules, RuleSet | list | tuple):
        cure = "give a list of equations and functions, or a RuleSet"
        raise own_refusal(asked, f"rules={rules!r:.60} is not a list of rules", cure)
    found = rules if isinstance(rules, RuleSet) else RuleSet(rules, asked)
    for entry in found.entries:
        for op in entry.ops | entry.under:
            if isinstance(op, Op) and not PLAIN.allows(op):
                reason = f"{rule_name(entry.rule)} asks for {op}, which is another op by then"
                cure = "name the op that the stage shows: f.debug_print('lowered')"
                raise own_refusal(asked, reason, cure)
    return found


class Own(NamedTuple):
    """What users add to a compilation: rules, and passes with the names of those they follow."""

    rules: RuleSet
    passes: Sequence[tuple[str, Pass]]

    @staticmethod
    def of(rules: Rules, asked: str, shared: Passes) -> Own:
        """These rules, and the passes that are registered now; `shared` must have their places."""
        own = Own(own_rules(rules, asked), tuple(REGISTERED.values()))
        wanted = [
            (f"the pass {step.name!r} runs after", after, f"unregister({step.name!r}) before")
            for after, step in own.passes
        ]
        if own.rules.entries:
            wanted.append(("rules run in", "simplified", "leave rules= out"))
        places = {step.name for step in every_pass(shared)} if wanted else set()
        for runs, place, cure in wanted:
            if place not in places:
                reason = f"{runs} {place!r}, a pass that the target does not have"
                cure += ", or compile for another target"
                raise own_refusal(asked, reason, cure, GraphValueError)
        return own

    def into(self, passes: Passes) -> Passes:
        """The passes of a target with rules and passes of one's own."""
        if not self.rules.entries and not self.passes:
            return passes
        taken = {step.name for step in every_pass(passes)}
        if clash := [own.name for _, own in self.passes if own.name in taken]:
            cure = f"unregister({clash[0]!r}), and register it by another name"
            raise own_refusal(
                "register", f"the target has a pass {clash[0]!r}", cure, GraphValueError
            )
        return [new for step in passes for new in self.at(step)]

    def applied(self, stages: Sequence[Stage]) -> Iterator[tuple[Own, Record]]:
        """Each rule and pass that changed a graph of these stages, with its first record."""
        rules = [(Own(RuleSet([entry]), ()), entry.rule) for entry in self.rules.entries]
        passes = [(Own(RuleSet(), [each]), each[1].change) for each in self.passes]
        for part, by in rules + passes:
            made = (
                record
                for stage in stages
                for record in stage.records
                if record.rule is by or unwrap(stage.change) is unwrap(by)
            )
            if (first := next(made, None)) is not None:
                yield part, first

    def at(self, step: Pass | Repeat) -> list[Any]:
        """What stands in the place of a pass: the pass, and those of one's own that follow it."""
        if isinstance(step, Repeat):
            return [step._replace(passes=[new for each in step.passes for new in self.at(each)])]
        if step.name == "simplified" and self.rules.entries:
            step = step._replace(change=refused_by_rule(self.rules))
        return [step, *(held_to(step, own) for after, own in self.passes if after == step.name)]


def together(some: Iterable[Own]) -> Own:
    """The rules and passes of several."""
    rules = [entry for own in some for entry in own.rules.entries]
    return Own(RuleSet(rules), [each for own in some for each in own.passes])


def held_to(followed: Pass, own: Pass) -> Pass:
    """The pass, held to types and contracts, and recorded where it does not record itself."""

    @wraps(own.change)
    def change(graph: Graph) -> Graph:
        trace = current_trace()
        records = len(trace.records)
        made = own.change(graph)
        if made is graph:
            return graph
        given = isinstance(made, Graph) and made.params == graph.params
        if not given or len(made.outputs) != len(graph.outputs):
            cure = "let it return Graph(graph.params, outputs), with as many outputs"
            raise own_refusal(said, f"it returns {made!r:.60}, with other params or outputs", cure)
        by_hand, known = len(trace.records) == records, set(graph.every_node())
        for x, y in zip(graph.outputs, made.outputs, strict=True):
            if not fits(x.type, y.type):
                reason = f"{x.type} became {y.type}, a result built at {x.origin}"
                raise own_refusal(said, reason, "let it keep the dtypes and shapes of results")
            if y is not x and by_hand:
                trace.records.append(Record(own.change, x, y))
                trace.moves[-1].append((x, y))
                for node in Graph((), (y,)).every_node():
                    if node not in known and trace.sources.get(node) is None:
                        trace.sources[node] = x
        if found := followed.contract.breach(made):
            cure = "let it build other ops, or register it after an earlier pass"
            raise own_refusal(said, f"{found} after {followed.name!r}", cure)
        if found := own.contract.breach(made):
            cure = f"give it the contract of the pass {followed.name!r}"
            raise own_refusal(said, f"{found} by its own contract", cure)
        return made

    said = f"the pass {own.name!r}, {rule_name(unwrap(own.change))}"
    return Pass(own.name, change, followed.contract)


def every_pass(passes: Iterable[Pass | Repeat]) -> Iterator[Pass]:
    """Every pass, also those that are repeated."""
    for step in passes:
        yield from step.passes if isinstance(step, Repeat) else [step]


def run(graph: Graph, passes: Passes, before: Sequence[Stage] = ()) -> list[Stage]:
    """The stages of a compilation, those `before` and one for each pass that is applied now."""
    found = {stage.name: stage for stage in before}
    trace = graph.trace or Trace(graph.lines())
    with tracing(trace):
        follow(graph, passes, trace, found)
    trace.forget()
    return [*found.values()]


def follow(
    graph: Graph, passes: Iterable[Pass | Repeat], trace: Trace, found: dict[str, Stage]
) -> Graph:
    """The graph after passes in turn; each enters its stage in `found`, by its name."""
    for step in passes:
        if isinstance(step, Repeat):
            graph = repeat_passes(graph, step, trace, found)
            continue
        start, records, before = time.perf_counter(), len(trace.records), graph
        trace.moves.append([])
        graph = step.change(graph)
        if graph is not before:
            graph.trace = trace
        last = next(reversed(found.values()), None)
        if graph is not before or last is None or last.contract is not step.contract:
            step.contract.check(graph, step.name)
        seconds = time.perf_counter() - start
        name = stage_name(step.name, found)
        new = trace.records[records:]
        found[name] = Stage(name, graph, new, seconds, step.change, step.contract)
    return graph


def stage_name(name: str, found: Container[str]) -> str:
    """The name of a stage: that of its pass, numbered from the second time on."""
    if name not in found:
        return name
    return next(new for i in count(2) if (new := f"{name} {i}") not in found)


def repeat_passes(graph: Graph, repeat: Repeat, trace: Trace, found: dict[str, Stage]) -> Graph:
    """The graph after the passes, which are repeated until it stays the same."""
    for _ in range(repeat.at_most):
        before, records = graph, len(trace.records)
        graph = follow(graph, repeat.passes, trace, found)
        if graph == before:
            return graph
    restless = next(y for y in graph.outputs if y not in before.outputs)
    raise unsettled_error(restless, trace.records[records:])


@contextmanager
def without_collection() -> Iterator[None]:
    """No cyclic garbage collection in this block: graphs have no cycles, but it would walk them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
