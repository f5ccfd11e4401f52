"""A graph that runs as machine code, as readable pseudo-code: its steps, in dims and users' lines.

The steps are those that the writer turns into IR: nests of loops over named axes, loops, branches
and routines. It is made of the same plan, so that it shows which values are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from graphcore.inspection.op_text import call
from graphcore.inspection.printer import file_name
from graphcore.inspection.text import show_literal
from graphcore.inspection.view import View
from graphcore.ir import Graph, Node, Op, Shape, Size, TensorType, TupleType
from graphcore.ir.provenance import NOWHERE, Origin, called_often, described_by, thread_state
from graphcore.ir.size_text import text
from graphcore.ir.types import show_dtype
from graphcore.ops import control, leaf, linalg
from graphcore.ops import tensor as t
from graphcore.ops.control import LOOPS, Loop
from graphcore.schedule.regions import without_kernels

from .chains import ROWS
from .lapack import may_be_in_panels
from .loop_axes import long_axes
from .loops import carried
from .nests import Check, Nest, Shares, Step, values_of, walked
from .phrases import phrase
from .places import counts_through
from .planning import best_plan
from .pointwise_loops import is_pointwise
from .products import is_own_product
from .routines import routines
from .rows import Chain, Pair, Rows
from .small_matrices import MOST_PULLED_BACK
from .wording import LONGEST_LINE, At, Line, Names, Stored, Words, length, name_of
from .writer import Order

COLUMN = 64
"""Where the user's lines stand, if the text before is not longer."""
INDENT = "    "
SHARED = "shared by threads where long", "shared by threads"
IN_REGISTERS = "all steps of an element in registers"
"""What the line of a step says that threads share in some calls, or in all."""
MOST_LINES = 3
"""The most lines of the user that are named at the end of a line."""


def pseudo_code(graph: Graph, name: str = "kernel") -> str:
    """The pseudo-code of a closed graph in its final form."""
    return "".join(f"{line}\n" for line, _ in pseudo_lines(graph, name))


def pseudo_lines(
    graph: Graph, name: str = "kernel", shares: Shares = MappingProxyType({})
) -> list[tuple[str, Sequence[Node]]]:
    """The lines of the pseudo-code of a graph, each with the node whose value it gives, if any.

    Those of steps that have `shares` say so.
    """
    graph = without_kernels(graph)
    with described_by(graph.trace or thread_state.trace):
        return Text(graph, shares).program(name)


class Text:
    """The lines of one program."""

    def __init__(self, graph: Graph, shares: Shares) -> None:
        self.graph, self.shares = graph, shares
        given = [name_of(x.attrs["name"]) for x in graph.params]
        self.names = Names(given)
        self.params = dict(zip(graph.params, given, strict=True))
        self.lines: list[Line] = []
        self.constants: list[str] = []
        self.constant: dict[object, str] = {}
        self.shared = called_often(node.origin for node in graph.every_node())

    def program(self, name: str) -> list[tuple[str, Sequence[Node]]]:
        """The lines of the whole program."""
        view = self.view(self.graph)
        known = {x: Stored(said) for x, said in self.params.items()}
        Body(self, view, known, 1).graph(self.graph)
        params = [f"{said}: {view.type(x)}" for x, said in self.params.items()]
        results = ", ".join([known[y].name for y in self.graph.outputs])
        return [
            *[(text, ()) for text in (*heading(name, params), *self.constants)],
            *[(self.shown(line), line.nodes[:1]) for line in self.lines],
            (f"{INDENT}return {results}".rstrip(), ()),
        ]

    def view(self, graph: Graph) -> View:
        """The labels of the axes of a graph."""
        return View(graph.nodes(), dict.fromkeys(leaf.inputs_among(graph.nodes()), ""), (), {})

    def shown(self, line: Line) -> str:
        """A line with the dtype of its value, and the user's lines."""
        text = INDENT * line.indent + line.text
        if not line.nodes:
            return f"{text:<{COLUMN}}  # {line.said}" if line.said else text
        first, *others = line.nodes
        type = first.type
        dtype = f"{show_dtype(type.dtype)}  " if isinstance(type, TensorType) else ""
        origin = first.origin
        said = origin.shown(origin[:2] in self.shared, 2, file_name)
        rest = [x.origin for x in others if x.inputs and x.origin != NOWHERE]
        also = dict.fromkeys([short(x, origin) for x in rest if x[:2] != origin[:2]])
        if also:
            said += (
                f"; also {', '.join([*also][:MOST_LINES])}{', …' if len(also) > MOST_LINES else ''}"
            )
        threads = f"; {line.said}" if line.said else ""
        return f"{text:<{COLUMN}}  # {dtype}{said}{threads}"

    def constant_name(self, node: Node, view: View) -> str:
        """How a constant array is called."""
        value = node.attrs["value"]
        if (found := self.constant.get(value)) is None:
            found = self.constant[value] = self.names.new("c")
            self.constants.append(f"{INDENT}{found} = {view.type(node)} {show_literal(value)}")
        return found


def short(origin: Origin, near: Origin) -> str:
    """A line, without its file if that is the one said before."""
    if origin.file == near.file:
        return str(origin.line)
    return Origin(origin.file, origin.line).shown(name=file_name)


def heading(name: str, params: Sequence[str]) -> list[str]:
    """The first line, or several if there are many inputs."""
    line = f"def {name}({', '.join(params)}):"
    if len(line) <= 100:
        return [line]
    return [f"def {name}(", *[f"{INDENT}{param}," for param in params], "):"]


def comment(node: Node) -> str:
    """The user's line of a node as a comment of IR, in printable ASCII so that it ends there."""
    if node.origin == NOWHERE:
        return ""
    said = node.origin.shown(False, 2, file_name).replace("←", "<-").replace("…", "...")
    return f"  ; {ascii(said)[1:-1]}"


class Body:
    """The lines of a program, or of the body of a loop or branch; `known` are named values."""

    def __init__(self, text: Text, view: View, known: dict[Node, Stored], indent: int) -> None:
        self.text, self.view, self.known, self.indent = text, view, known, indent
        self.names = text.names

    def write(self, text: str, *nodes: Node) -> None:
        """A line here."""
        self.text.lines.append(Line(self.indent, text, nodes))

    def words(self) -> Words:
        """Words for one step."""
        return Words(self.names, self.view, self.known, phrase)

    def name(self, node: Node) -> str:
        """How a value that is stored is called."""
        return self.spelled(self.known[node])

    def said(self, size: Size) -> str:
        """The number of a place."""
        return self.words().number(size, [], 0)

    def graph(self, graph: Graph, order: Order | None = None) -> None:
        """The steps of a graph whose params are known."""
        for x in graph.nodes():
            if x.op is leaf.constant and x.type.shape and x not in self.known:
                self.known[x] = Stored(self.text.constant_name(x, self.view))
        numbers = [x for x in graph.nodes() if x.op is leaf.constant and not x.type.shape]
        for x in numbers:
            self.known.setdefault(x, Stored(show_literal(x.attrs["value"])))
        for step in best_plan(graph, self.known.keys(), order).steps:
            before = len(self.text.lines)
            self.step(step, order)
            self.say_how(step, before)

    # ---- steps

    def step(self, step: Step, order: Order | None) -> None:
        """The lines of one step."""
        if isinstance(step, Check):
            self.check(step.node)
        elif isinstance(step, Nest):
            self.nest(step.roots)
        elif isinstance(step, Pair):
            for roots in step.nests:
                self.nest(roots)
        elif isinstance(step, Rows):
            self.rows(step)
        elif isinstance(step, Chain):
            self.chain(step)
        elif step.op in CONTROL:
            CONTROL[step.op](self, step)
        else:
            self.alone(step, order is not None and step in order.updates)

    def say_how(self, step: Step, begin: int) -> None:
        """Let the lines of a step, which begin at one, say how its loops are computed."""
        shares, lines = self.text.shares, self.text.lines
        always = [shares[x] for x in values_of(step) if x in shares]
        how = [SHARED[all(always)]] if always else []
        if isinstance(step, Node) and step.op in LOOPS and is_pointwise(Loop.of(step)):
            how = [IN_REGISTERS, *how]
        if how:
            alone = step.node if isinstance(step, Check) else step
            for at, line in enumerate(lines[begin:], begin):
                if isinstance(alone, Node):  # lines before it may have loops of their own
                    says = line.nodes[:1] == (alone,)
                else:
                    says = line.is_result or not line.nodes
                if says and line.indent == self.indent:
                    lines[at] = line._replace(said="; ".join(how))

    def check(self, node: Node) -> None:
        """The positions of a gather are checked."""
        for axis, x in zip(node.attrs["axes"], node.inputs[1:], strict=True):
            words = self.words()
            new, axes = self.loops(self.view.labels[x], x.type.shape)
            lines = words.line("", words.at(x, tuple(new)), self.indent)
            last = lines.pop().text.removeprefix(" = ")
            self.text.lines += lines
            size = text(node.inputs[0].type.shape[axis], length)
            self.write(f"check {last} in range({size}){axes and f' for {axes}'}", node)

    def loops(
        self, labels: Sequence[str | None], shape: Shape, at: At = ()
    ) -> tuple[list[Size], str]:
        """Indices for axes, and these with their sizes."""
        new: list[Size] = []
        for label in labels:
            new.append(self.names.index(label, 0, (*at, *new)))
        return new, ", ".join(map(self.names.axis, new, shape))

    def nest(self, roots: Sequence[Node], at: At = (), own: frozenset[Node] = frozenset()) -> None:
        """Values of equal long axes at each place; `at` are those of the rows around."""
        words, k = self.words(), len(at)
        first, *others = [walked(root) for root in roots]
        shape, labels = first.type.shape[k:], self.view.labels[first][k:]
        together = all(x.type.shape[k:] == shape for x in others)
        outer = [*range(len(shape))] if together else [*long_axes(shape)]
        index, axes = self.loops([labels[i] for i in outer], tuple(shape[i] for i in outer), at)
        lines: list[Line] = []
        indent = self.indent + bool(axes)
        with self.names.inside((*at, *index)):
            for root in roots:
                below = walked(root)
                rest, whole = iter(index), [*range(below.type.ndim - k)]
                long = whole if together else long_axes(below.type.shape[k:])
                short = [i for i in whole if i not in long]
                named, of = self.view.labels[below][k:], below.type.shape[k:]
                new, inner = self.loops([named[i] for i in short], tuple(of[i] for i in short), at)
                places = dict(zip(short, new, strict=True))
                full = tuple([places[i] if i in places else next(rest) for i in whole])
                skipped = k if root in own and root.type.ndim > k else 0
                made = self.statement(words, root, (*at, *full), skipped, indent + bool(inner))
                lines += looped(inner, made, indent)
        self.text.lines += looped(axes, lines, self.indent)

    def statement(
        self, words: Words, root: Node, index: At, skipped: int, indent: int
    ) -> list[Line]:
        """The lines of one root at a place."""
        below, name = walked(root), self.names.new("t")
        value = words.at(below, index, stored=below is not root)
        if counts_through(root):
            target = indexed(f"reshape({name})", map(self.said, index))
        else:
            at = index if below is root else tuple([index[i] for i in root.attrs["perm"]])
            target = indexed(name, map(self.said, at[skipped:]))
        lines = words.line(target, value, indent)
        self.known[root] = Stored(name, skipped=skipped)
        return lines

    def rows(self, step: Rows, by: str = "") -> None:
        """Nests that are computed row by row."""
        first, k = next(iter(step.made)), len(step.axes)
        index, axes = self.loops(self.view.labels[first][:k], step.axes)
        self.write(f"for {axes}{by}:")
        self.indent += 1
        for roots in step.nests:
            self.nest(roots, tuple(index), step.own)
        self.indent -= 1

    def chain(self, step: Chain) -> None:
        """Products and nests that are computed some rows at a time."""
        self.write(f"for every {ROWS} rows:")
        self.indent += 1
        for part in step.steps:
            if isinstance(part, Rows):
                self.rows(part, " of these")
            else:
                self.alone(part, False)
        self.indent -= 1

    def given(self, node: Node) -> Stored:
        """An operand in memory; one that is not stored is computed where it is read."""
        if node in self.known:
            return self.known[node]
        if node.op is t.transpose and node.inputs[0] in self.known:
            return Stored(f"transpose({self.name(node.inputs[0])})")
        words, name = self.words(), self.names.new("v")
        new, axes = self.loops(self.view.labels[node], node.type.shape)
        start = f"let {indexed(name, map(self.said, new))}"
        lines = words.line(start, words.at(node, tuple(new)), self.indent + bool(axes))
        self.text.lines += looped(axes, lines, self.indent)
        return Stored(name)

    def results(self, node: Node) -> str:
        """The names of the new values of a node."""
        several = leaf.values(node) if isinstance(node.type, TupleType) else [node]
        for y in several:
            self.known[y] = Stored(self.names.new("t"))
        return ", ".join([self.name(y) for y in several])

    def alone(self, node: Node, over: bool) -> None:
        """A routine, or an update at positions."""
        named = Operands(self.view, {x: self.spelled(self.given(x)) for x in node.inputs})
        said = call(node, named)
        by = routine_of(node)
        self.write(f"{self.results(node)} = {said}{by}{' in place' if over else ''}", node)

    def spelled(self, stored: Stored) -> str:
        """A stored value as a whole."""
        return indexed(stored.name, map(self.said, stored.before))

    # ---- loops and branches

    def body(self, graph: Graph, known: dict[Node, Stored]) -> Body:
        """The body of a loop or branch; `known` has the values of its params."""
        return Body(self.text, self.text.view(graph), known, self.indent + 1)

    def carries(self, node: Node, params: Sequence[Node]) -> dict[Node, Stored]:
        """Names for the values that a loop carries, and the line that assigns the first values."""
        starts = [self.spelled(self.given(x)) for x in node.inputs[: len(params)]]
        found = {x: Stored(self.names.carry(x.attrs["name"])) for x in params}
        if params:
            self.write(f"{listed(found.values())} = {', '.join(starts)}")
        for i, param in enumerate(params):
            self.known[node[i]] = found[param]
        return found

    def close(self, inner: Body, body: Graph, n: int, stacked: Sequence[str]) -> None:
        """The last lines of a step: they store its results, and assign the next carries."""
        for target, y in zip(stacked, body.outputs[n:], strict=True):
            inner.write(f"{target} = {inner.name(y)}")
        pairs = zip(body.params[:n], body.outputs[:n], strict=True)
        new = [(inner.known[x], inner.name(y)) for x, y in pairs if y is not x]
        if new:
            inner.write(f"{listed(x for x, _ in new)} = {', '.join([y for _, y in new])}")

    def scan(self, node: Node) -> None:
        """A loop over the first axes of sequences."""
        attrs, body = node.attrs, node.attrs["body"]
        n, m, length = attrs["carries"], attrs["sequences"], attrs["length"]
        counts = [k < m and control.is_counter(x) for k, x in enumerate(node.inputs[n:])]
        given = [
            Stored("") if count else self.given(x) for count, x in zip(counts, node.inputs[n:])
        ]
        known = self.carries(node, body.params[:n])
        labels = [*[self.view.labels[x][0] for x in node.inputs[n : n + m]], None]
        step = self.names.index(next(filter(None, labels), "step"))
        for number, (param, x) in enumerate(zip(body.params[n:], given, strict=True)):
            one = (
                Stored(self.said(step)) if counts[number] else x._replace(before=(*x.before, step))
            )
            known[param] = one if number < m else x
        stacked = []
        for y in leaf.values(node)[n:]:
            self.known[y] = Stored(self.names.new("t"))
            stacked.append(indexed(self.name(y), [self.said(step)]))
        way = " reversed" if attrs["reverse"] else ""
        self.write(f"for {self.names.axis(step, length)}{way}:", node)
        inner = self.body(body, known)
        with self.names.inside([step]):
            inner.graph(body, carried(body, n)[0])
        self.close(inner, body, n, stacked)

    def while_loop(self, node: Node) -> None:
        """A loop that ends where its predicate does not hold."""
        attrs, body, predicate = node.attrs, node.attrs["body"], node.attrs["predicate"]
        n, trips = attrs["carries"], attrs["trips"]
        given = [self.given(x) for x in node.inputs[n:]]
        known = self.carries(node, body.params[:n])
        known |= zip(body.params[n:], given, strict=True)
        step = self.names.index("step")
        self.write("repeat:" if trips is None else f"for {self.said(step)} from 0 on:", node)
        asked = zip(predicate.params, body.params, strict=True)
        test = self.body(predicate, {x: known[y] for x, y in asked})
        inner = self.body(body, known)
        with self.names.inside([step]):
            test.graph(predicate)
            test.write(f"leave unless {test.name(predicate.outputs[0])}")
            inner.graph(body, carried(body, n)[0])
        stacked = []
        if trips is not None:
            for y in leaf.values(node)[n:]:
                self.known[y] = Stored(self.names.new("t"))
                stacked.append(indexed(self.name(y), [self.said(step)]))
        self.close(inner, body, n, stacked)

    def switch(self, node: Node) -> None:
        """Branches: the index says which one is computed."""
        index, *operands = [self.given(x) for x in node.inputs]
        results = self.results(node)
        branches = node.attrs["branches"]
        for number, branch in enumerate(branches):
            word = "else:" if number else f"if {self.spelled(index)} == {number}:"
            if 0 < number < len(branches) - 1:
                word = f"else if {self.spelled(index)} == {number}:"
            self.write(word, *([] if number else [node]))
            inner = self.body(branch, dict(zip(branch.params, operands, strict=True)))
            inner.graph(branch)
            inner.write(f"{results} = {', '.join(map(inner.name, branch.outputs))}")

    def block(self, node: Node) -> None:
        """A body that is computed once."""
        body = node.attrs["body"]
        known = dict(zip(body.params, map(self.given, node.inputs), strict=True))
        inner = self.body(body, known)
        inner.indent = self.indent
        inner.graph(body)
        self.known |= zip(leaf.values(node), [inner.known[y] for y in body.outputs], strict=True)


CONTROL: dict[Op, Callable[[Body, Node], None]] = {
    control.scan: Body.scan,
    control.while_loop: Body.while_loop,
    control.switch: Body.switch,
    **dict.fromkeys((control.call, control.custom, control.linear), Body.block),
}
"""How loops and branches are shown."""


class Operands(View):
    """Names for the operands of an op, with the labels of another view."""

    def __init__(self, view: View, names: Mapping[Node, str]) -> None:
        self.names_of, self.labels, self.sizes = names, view.labels, view.sizes

    def name(self, node: Node) -> str:
        """How an operand is called."""
        return self.names_of[node]


def indexed(name: str, index: Iterable[str]) -> str:
    """`t3[row, col]`."""
    return f"{name}[{', '.join(index)}]".removesuffix("[]")


def listed(values: Iterable[Stored]) -> str:
    """Names with commas."""
    return ", ".join([x.name for x in values])


def looped(axes: str, lines: list[Line], indent: int) -> list[Line]:
    """Lines under the head of their loops, or behind it."""
    if not axes:
        return lines
    if len(lines) == 1:
        (line,) = lines
        joined = f"for {axes}: {line.text}"
        if len(joined) <= LONGEST_LINE:
            return [line._replace(indent=indent, text=joined)]
    return [Line(indent, f"for {axes}:"), *lines]


def routine_of(node: Node) -> str:
    """By which routine a node is computed, if it has one."""
    names = routines(node)
    by = f" by {', '.join(names)}" if names else ""
    if node.op is t.matmul and not names:
        return " by dense, one triangle" if is_own_product(node) else " by dense"
    if node.op in (linalg.solve_triangular, linalg.lu_solve):
        return " in blocks"
    if node.op is linalg.cholesky_cotangent and may_be_in_panels(node, MOST_PULLED_BACK):
        return " in blocks"
    if {*names} & {"potrf", "getrf"} and may_be_in_panels(node):
        is_known = isinstance(node.inputs[0].type.shape[-1], int)
        return " in blocks" if is_known else f"{by} or in blocks"
    return by
