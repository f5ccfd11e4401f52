"""Why a node is there: from what the user wrote, through every rule that fired, to the steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from sys import maxsize
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, proxy

from graphcore.ir import Node, Rule
from graphcore.ir.errors import GraphKeyError, GraphTypeError, GraphValueError
from graphcore.ir.help_text import attributes, fields
from graphcore.ir.provenance import Origin, basename, described_by
from graphcore.ops import leaf

from .ancestry import Ancestry, Link
from .printed import PrintedNode, PrintedNodes
from .rule_text import rule_text
from .text import few, one_line, show_name

LINE = re.compile(r"(.+):(\d+)")


@attributes(
    node="The node.",
    stage="The stage that prints the name.",
    name='The name that the node is printed by there, as in "%7" or "%7 body %3".',
    text="The line of the printed stage.",
    origin="The user's line.",
)
@fields
class Named(NamedTuple):
    """A node as its stage prints it."""

    node: Node
    stage: str
    name: str
    text: str
    origin: Origin

    def __str__(self) -> str:
        return self.text


def brief(node: Node) -> str:
    """An operand in a word: the name of an input, else the op."""
    return show_name(node.attrs["name"]) if node.op is leaf.input_ else node.op.name


@attributes(
    stage="The pass in which the rule fired.",
    rule="The rule; None where nodes became equal as their operands did.",
    before="The node that the rule was applied to; for a derivative, the node differentiated.",
    after="The node that it made or, if that is a node within it, the one on the way.",
    operands="For a derivative: the numbers of the operands of `before` that it is for.",
    asked="For a derivative: the line that asked for it.",
)
@fields
class Step(NamedTuple):
    """One change on the way to a node."""

    stage: str
    rule: Rule | None
    before: Node
    after: Node
    operands: tuple[int, ...] = ()
    asked: Origin | None = None

    def __str__(self) -> str:
        rule = "" if self.rule is None else f"  {rule_text(self.rule)}"
        if self.asked is None:
            return f"{self.before.op.name} → {self.after.op.name}{rule}"
        inputs = self.before.inputs
        some = [f"{i} ({brief(inputs[i])})" for i in dict.fromkeys(self.operands)]
        wrt = f" for operand {few(some, 4)}" if some else ""
        asked = f" asked by {self.asked.shown(False, 2)}"
        return f"derivative of {self.before.op.name}{wrt}{asked}{rule}"


@attributes(
    node="The node.",
    written="The user's nodes that it goes back to.",
    asked="The user's nodes that asked for it, if it is part of a derivative.",
    also="User's nodes that became equal to it later.",
    steps="Every rewrite between the user's nodes and this one, the oldest first.",
    stands="For a user's node: the nodes of the stage that stand for it; none if it vanished.",
    derivatives="For a user's node: nodes of the stage that are part of derivatives through it.",
    taken="The rule that left the node out, if it vanished; the pass, if there was nothing to need "
    "it.",
    instead="The nodes of the stage in the place of what `taken` rewrote.",
    runs='The lines of `f.source` that compute it, as "12: t3 = exp(t2, b0)".',
    threads="What is said of threads that share this; nothing if one thread computes it.",
)
@fields
class Answer(NamedTuple):
    """Why one node is there, or is not."""

    node: Named
    written: tuple[Named, ...]
    asked: tuple[Named, ...]
    also: tuple[Named, ...]
    steps: tuple[Step, ...]
    stands: tuple[Named, ...] = ()
    derivatives: tuple[Named, ...] = ()
    taken: Step | None = None
    instead: tuple[Named, ...] = ()
    runs: tuple[str, ...] = ()
    threads: str = ""

    @property
    def lines(self) -> tuple[Origin, ...]:
        """The user's lines that the node goes back to, those that asked for a derivative last."""
        return tuple(dict.fromkeys(x.origin for x in (*self.written, *self.asked)))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule on the way, that which took the node last."""
        some = [*self.steps, *([self.taken] if self.taken else [])]
        return tuple(dict.fromkeys(step.rule for step in some if step.rule is not None))

    def rows(self) -> Iterator[tuple[str, str]]:
        """The parts of the answer, each line with a word before it."""
        for word, nodes in (("written", self.written), ("asked", self.asked), ("also", self.also)):
            for x in nodes:
                yield word, f"{x.origin.shown(False, 2)}  {x.text}"
        for step in self.steps:
            yield step.stage, str(step)
        if self.taken is not None:
            yield self.taken.stage, f"left out by {self.taken}"
        for word, some in (("instead", self.instead), ("stands as", self.stands)):
            for x in some:
                yield word, x.text
        if self.derivatives:
            yield "derivative", few([x.name for x in self.derivatives])
        for line in self.runs:
            yield "runs", f"f.source:{line}"
        if self.threads:
            yield "threads", self.threads


@attributes(
    question="What was asked about, as text.",
    stage="The stage in which the answers name nodes.",
    answers="An answer for each node asked about: several for a source line.",
)
@fields
class Why(NamedTuple):
    """The answer to `f.why(x)`, as data; `print` shows it as text."""

    question: str
    stage: str
    answers: tuple[Answer, ...]

    @property
    def lines(self) -> tuple[Origin, ...]:
        """The user's lines of all answers."""
        return tuple(dict.fromkeys(line for answer in self.answers for line in answer.lines))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of all answers."""
        return tuple(dict.fromkeys(rule for answer in self.answers for rule in answer.rules))

    def text(self, limit: int | None = 40, width: int | None = 120) -> str:
        """The answers in words: at most `limit` lines of each, cut at `width`; all if None."""
        most = maxsize if width is None else width
        blocks = []
        for answer in self.answers[:limit]:
            rows = list(answer.rows())
            column = max([len(word) for word, _ in rows], default=0)
            lines = [one_line(f"  {word:<{column}}  {row}", most) for word, row in rows]
            if limit is not None and len(lines) > limit:
                more = len(lines) - limit
                lines[limit - limit // 2 : -(limit // 2) or None] = [f"  ... {more} lines more ..."]
            blocks.append("\n".join([one_line(answer.node.text, most), *lines]))
        if limit is not None and len(self.answers) > limit:
            blocks.append(f"... {len(self.answers) - limit} nodes more ...")
        return "\n\n".join([f"why {self.question}, in stage {self.stage!r}", *blocks])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()


class Explained:
    """One compilation, with what is found out once for all questions about it."""

    def __init__(self, compiled: Any) -> None:
        passes = compiled.passes
        self.names = [made.name for made in passes]
        self.graphs = [made.graph for made in passes]
        trace = passes[-1].graph.trace or passes[0].graph.trace
        assert trace is not None, "a compiled program has a trace"
        self.trace = trace
        self.ancestry = Ancestry(self.graphs, [made.records for made in passes], trace)
        self.changes = [made.change for made in passes]
        self.known: dict[int, PrintedNodes] = {}
        self.compiled = proxy(compiled)
        self._source: dict[Node, list[str]] | None = None

    def printed_nodes(self, at: int) -> PrintedNodes:
        """The printed names of a stage."""
        if at not in self.known:
            self.known[at] = PrintedNodes(self.graphs[at])
        return self.known[at]

    def printed_node(self, node: Node, at: int) -> Named:
        """A node as a stage prints it."""
        shown = self.printed_nodes(at).of[node]
        origin = self.trace.origin(node)
        return Named(node, self.names[at], shown.name, shown.line, origin)

    def all_named(self, nodes: Iterable[Node], at: int) -> tuple[Named, ...]:
        """Several, in the order of their lines."""
        order = {node: i for i, node in enumerate(self.printed_nodes(at).of)}
        some = [node for node in dict.fromkeys(nodes) if node in order]
        return tuple(self.printed_node(node, at) for node in sorted(some, key=order.__getitem__))

    def steps(self, links: Iterable[Link]) -> tuple[Step, ...]:
        """The changes that say something: rewrites, derivatives, and nodes that became equal."""
        ruled = [link for link in links if link.rule is not None]
        telling = [link for link in ruled if link.before.op is not leaf.project] or ruled
        steps = map(self.step, telling)  # but for one value of several that became that value
        return tuple({(step.stage, str(step)): step for step in steps}.values())

    def step(self, link: Link) -> Step:
        """One change in words."""
        asked = None if link.asked is None else self.trace.line_of(link.asked.by)
        name = self.names[link.at]
        return Step(name, link.rule, link.before, link.part, link.operands, asked)

    def backwards(self, node: Node, at: int) -> Answer:
        """Why a node of a stage is there."""
        found = self.ancestry.history(node)
        written, asked = (self.all_named(x, 0) for x in (found.written, found.asked))
        shown = self.printed_node(node, at)
        later = [link for link in found.later if link.at <= at]
        others = [x for link in later for x in self.ancestry.history(link.before).written]
        also = self.all_named(set(others) - {*found.written}, 0)
        steps = self.steps([*(link for link in found.links if link.at <= at), *later])
        runs, threads = self.runs([node]), self.threads([node])
        return Answer(shown, written, asked, also, steps, runs=runs, threads=threads)

    def forwards(self, node: Node, at: int) -> Answer:
        """What became of a user's node, and why."""
        images = self.ancestry.images(node, 0, at)
        links = dict.fromkeys(link for way in images.found.values() for link in way)
        asked: dict[Node, None] = {}
        for image in images.found:
            made = self.ancestry.history(image)
            if node in made.written:  # a derivative was made by more than took its place
                links.update(dict.fromkeys(made.links))
                asked.update(dict.fromkeys(made.asked))
        taken, instead = None, list[Node]()
        if not images.found:
            taken, instead = self.removal(images.last, images.at, at)
            links = dict.fromkeys(self.way(images.last, node))
        shown = self.printed_node(node, 0)
        return Answer(
            shown,
            (shown,),
            self.all_named(asked, 0),
            (),
            self.steps(sorted(links, key=lambda link: link.at)),
            self.all_named(images.found, at),
            self.all_named(self.derivatives(images.forms, at), at),
            taken,
            self.all_named(instead, at),
            self.runs(images.found),
            self.threads(images.found),
        )

    def way(self, last: Iterable[Node], node: Node) -> list[Link]:
        """The changes from a user's node to its last forms."""
        every = [self.ancestry.history(x) for x in last]
        return [link for found in every if node in found.written for link in found.links]

    def removal(self, last: Iterable[Node], at: int, end: int) -> tuple[Step, list[Node]]:
        """The rule that left out a node, whose last forms these are, and what stands instead."""
        link = self.ancestry.taker(last, at)
        if link is None:
            first = next(iter(last))
            return Step(self.names[at], self.changes[at], first, first), []
        step, after = self.step(link)._replace(stage=self.names[at]), link.after
        for _ in range(len(self.names)):
            images = self.ancestry.images(after, at - 1, end)
            above = self.ancestry.taker(images.last, images.at) if not images.found else None
            if above is None:
                break  # what took its place stands, or was left out in its turn
            after, at = above.after, images.at
        return step, list(images.found)

    def derivatives(self, forms: Iterable[Node], at: int) -> dict[Node, None]:
        """The nodes of a stage that are part of derivatives through some nodes."""
        found: dict[Node, None] = {}
        for form in forms:
            for link in self.ancestry.derived.get(form, ()):
                if link.at <= at:
                    found.update(dict.fromkeys(self.ancestry.images(link.after, link.at, at).found))
        return found

    def in_source(self, name: str) -> list[Node]:
        """The nodes that lines of the source compute under this name, such as "t7"."""
        self.runs(())
        words = rf"(for [^:]*: )?(let )?(\w+, )*{re.escape(name)}(\[[^=]*\])?(, \w+)* = "
        begins, printed = re.compile(rf"\d+: {words}"), self.printed_nodes(len(self.names) - 1).of
        lines = (self._source or {}).items()
        return [x for x, runs in lines if x in printed and any(map(begins.match, runs))]

    def runs(self, nodes: Iterable[Node]) -> tuple[str, ...]:
        """The lines of the source that compute nodes."""
        if self._source is None:
            self._source = {}
            for number, (text, made) in enumerate(self.compiled._program.lines(), 1):
                code = text.partition("  # ")[0].strip()
                for node in made:
                    self._source.setdefault(node, []).append(f"{number}: {one_line(code, 80)}")
        return tuple(line for node in nodes for line in self._source.get(node, ()))

    def threads(self, nodes: Iterable[Node]) -> str:
        """What is said of the threads that run nodes."""
        said = dict.fromkeys(map(self.compiled._program.said_of_threads, nodes))
        return "; ".join(filter(None, said))


explained: WeakKeyDictionary[Any, Explained] = WeakKeyDictionary()


def why(compiled: Any, x: Any, stage: str | None = None) -> Why:
    """The answer to `Compiled.why`."""
    if compiled not in explained:
        explained[compiled] = Explained(compiled)
    found = explained[compiled]
    if stage is not None:
        compiled.stages[stage]  # refuses a name that there is not
    last = len(found.names) - 1
    at = last if stage is None else found.names.index(stage)
    with described_by(found.trace):
        printed = by_printed_name(found, x, at) if isinstance(x, str) and at else []
        nodes = printed or nodes_of_question(found, x, at == last)
        shown = x if isinstance(x, str) else found.printed_node(nodes[0], 0).name
        answers = [
            found.forwards(node, at or last)
            if node in found.printed_nodes(0).of and node not in printed
            else found.backwards(node, at)
            for node in nodes
        ]
    question = one_line(" ".join(shown.split()))
    if stage is not None and not at:  # it names the node, and the answer those of the last stage
        question += f" of stage {stage!r}"
    return Why(question, found.names[at or last], tuple(answers))


def nodes_of_question(found: Explained, x: Any, in_source: bool) -> list[Node]:
    """The user's nodes that a question is about, or one of the source."""
    node = getattr(x, "node", x)
    if isinstance(node, Node):
        if node not in found.ancestry.written:
            reason = f"{node.said} built at {node.last_line} is not part of this program"
            cure = "ask about a tensor that the outputs need, or give a printed name as a string"
            raise GraphValueError(f"why: {reason}\n  cure: {cure}")
        return [node]
    if not isinstance(x, str):
        cure = "give a tensor, a printed name such as '%12', or a line such as 'model.py:7'"
        reason = f"{type(x).__name__} {x!r:.60} is neither a tensor nor a name"
        raise GraphTypeError(f"why: {reason}\n  cure: {cure}")
    known = by_printed_name(found, x, 0) or by_name(found, x)
    return known or (in_source and found.in_source(x)) or by_line(found, x)


def by_printed_name(found: Explained, name: str, at: int) -> list[Node]:
    """The node that a stage prints by this name; an input is always the one that was written."""
    name = " ".join(name.split())
    one: PrintedNode | None = found.printed_nodes(at).named.get(name)
    return [] if one is None or (at and not name.startswith("%")) else [one.node]


def by_name(found: Explained, name: str) -> list[Node]:
    """The output of this name, where outputs are a dict, or the input."""
    form = found.compiled._results
    at = form.get(name) if isinstance(form, dict) else None
    if isinstance(at, int):
        return [found.graphs[0].outputs[at]]
    return [x for x in found.graphs[0].params if x.attrs["name"] == name]


def by_line(found: Explained, line: str) -> list[Node]:
    """The user's nodes that were written in a line."""
    matched = LINE.fullmatch(line)
    every = list(found.printed_nodes(0).of)
    origins = {node: found.trace.origin(node) for node in every}
    if matched is not None:
        file, number = matched[1], int(matched[2])

        def is_it(place: tuple[str, int] | None) -> bool:
            if place is None or place[1] != number:
                return False
            return file in (place[0], basename(place[0]))

        nodes = [node for node in every if is_it(origins[node][:2])]
        if nodes := nodes or [node for node in every if is_it(origins[node].caller)]:
            return nodes
    lines = sorted({(basename(x.file), x.line) for x in origins.values()})
    names = few([f"{one_line(file, 24)}:{number}" for file, number in lines], 20)
    last = found.names[-1]
    cure = f"print a stage for its names (f.debug_print({last!r})); the program's lines are {names}"
    reason = f"{one_line(line)!r} is not a node of the stage, an output or a line of the program"
    raise GraphKeyError(f"why: {reason}\n  cure: {cure}")
