"""From node to node through a compilation: backwards to the user's nodes, and forwards from them.

The trace has every rewrite, every node that was rebuilt on new operands, and the source of each
node that was built. They are put together here, when the first question is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeVar

from graphcore.ir import Graph, Node, Rule, reached
from graphcore.ir.provenance import Asked
from graphcore.ir.trace import Record, Trace
from graphcore.ops import leaf


class Link(NamedTuple):
    """One change, in the pass numbered `at`: `rule` made `after` of `before`.

    Without a rule, `after` is the same as `before` but for its operands or bodies. `part` is the
    node that the rule built within `after`, or `after` itself. For a derivative, `asked` is its
    source, and `operands` are the numbers of the operands of `before` whose cotangents need `part`.
    """

    at: int
    rule: Rule | None
    before: Node
    after: Node
    part: Node
    operands: tuple[int, ...] = ()
    asked: Asked | None = None


class History(NamedTuple):
    """The changes that led to a node, the oldest first.

    It goes back to the user's nodes `written`; those `asked` asked for the derivative. Other nodes
    became equal to it `later`.
    """

    links: tuple[Link, ...]
    written: tuple[Node, ...]
    asked: tuple[Node, ...]
    later: tuple[Link, ...]


class Images(NamedTuple):
    """The nodes that stand for a node, each with the changes on the way, and all its forms.

    If there are none, it vanished in the pass numbered `at`, where `last` stood for it before.
    """

    found: Mapping[Node, tuple[Link, ...]]
    forms: tuple[Node, ...]
    at: int
    last: tuple[Node, ...]


class Ancestry:
    """The links between the nodes of all stages of one compilation.

    `stages` are the graphs after each pass, `records` the rewrites of each, `trace` is that of the
    compilation.
    """

    def __init__(
        self, stages: Sequence[Graph], records: Sequence[Iterable[Record]], trace: Trace
    ) -> None:
        self.trace = trace
        self._users: dict[int, Mapping[Node, list[Node]]] = {}
        self._rewritten: dict[int, Mapping[Node, list[Link]]] = {}
        self.present = presence(stages)
        self.written = self.present[0]
        self.born: dict[Node, int] = {}
        for at, nodes in enumerate(self.present):
            for node in nodes if at == 0 or nodes is not self.present[at - 1] else ():
                self.born.setdefault(node, at)
        self.into: dict[Node, list[Link]] = {}
        self.out: dict[Node, list[Link]] = {}
        self.derived: dict[Node, list[Link]] = {}
        self.order: dict[tuple[Node, Node], int] = {}
        for at, (some, moves) in enumerate(zip(records, trace.moves[1:], strict=True)):
            rules: dict[tuple[Node, Node], Rule | None] = dict.fromkeys(moves)
            for rule, before, after, operand, asked in some:
                if asked is None:
                    rules[before, after] = rule
                    continue
                operands = () if operand is None else (operand,)
                link = Link(at, rule, before, after, after, operands, asked)
                self.derived.setdefault(before, []).append(link)
            for (before, after), found in rules.items():
                self.order.setdefault((before, after), len(self.order))
                link = Link(at, found, before, after, after)
                self.into.setdefault(after, []).append(link)
                self.out.setdefault(before, []).append(link)

    # ---- backwards

    def parents(self, node: Node) -> list[Link]:
        """The changes that made a node, at its birth."""
        if node in self.written:
            return []
        links = self.into.get(node, [])
        born = self.born.get(node, links[0].at if links else 0)
        at_birth = [link for link in links if link.at <= born]
        alone = all(link.before.op is leaf.project is not node.op for link in at_birth)
        found = [*at_birth, *self.builders(node, alone)]
        return found or links[:1]

    def builders(self, node: Node, alone: bool) -> list[Link]:
        """The derivative that built a node or, if nothing else did, the rule that built it."""
        source = self.trace.sources.get(node)
        if isinstance(source, Asked):
            derived = self.derived.get(source.node, [])
            some = [link for link in derived if link.asked == source]
            found = [link for link in some if self.within(node, link.after, source)]
            if not found:
                return [link._replace(part=node, operands=()) for link in some[-1:]]
            operands = tuple(i for link in found for i in link.operands)
            return [found[0]._replace(part=node, operands=operands)]
        if not alone:
            return []
        links = self.out.get(source, []) if isinstance(source, Node) else []
        links = [link for link in links if link.rule is not None]
        holding = [link for link in links if self.within(node, link.after, source)]
        if not links:  # one value of several; or a node that a rule built on the way
            above: Any = node.inputs[0] if node.op is leaf.project else source
            known = isinstance(above, Node) and above is not node
            return [Link(self.born.get(node, 0), None, above, node, node)] if known else []
        return [link._replace(part=node) for link in (holding or links)[:1]]

    def within(self, node: Node, root: Node, source: Any) -> bool:
        """Whether a node is among those that a rule built."""
        return node in self.built(root, source)

    def built(self, root: Node, source: Any) -> Iterable[Node]:
        """The nodes that a rule built, which all have one source: a root, and those below it."""
        sources = self.trace.sources
        return reached([root], lambda x: [y for y in x.inputs if sources.get(y) == source])

    def history(self, node: Node) -> History:
        """Every change on the way from the user's nodes to a node."""
        links: dict[Link, None] = {}
        written: dict[Node, None] = {}
        asked: dict[Node, None] = {}
        done: set[tuple[Node, bool]] = set()
        stack: list[tuple[Node, bool, list[Link] | None]] = [(node, False, None)]
        while stack:
            x, asks, made = stack.pop()
            if made is not None:
                links.update(dict.fromkeys(made))
                continue
            if x in self.written:
                (asked if asks else written)[x] = None
            if (x, asks) in done:
                continue
            done.add((x, asks))
            found = self.parents(x)
            stack.append((x, asks, found))
            for link in reversed(found):
                stack += [(by, True, None) for by in askers_of(link.asked)]
                stack.append((link.before, asks, None))
        born = self.born.get(node, len(self.present))
        later = [link for link in self.into.get(node, ()) if link.at > born]
        ordered = sorted(links, key=lambda link: link.at)
        askers = (x for x in asked if x not in written)
        return History(tuple(ordered), tuple(written), tuple(askers), tuple(later))

    # ---- forwards

    def forms(self, node: Node, at: int, ends: Set[Node] = frozenset()) -> dict[Node, Link | None]:
        """What a node becomes in one pass, each with the last change on the way; not beyond `ends`.

        A set of rules records a rewrite in the first pass that makes it, not again in later ones.
        """
        found: dict[Node, Link | None] = {node: None}
        stack = [node]
        while stack:
            x = stack.pop()
            if x in ends and x is not node:
                continue
            known = [link for link in self.out.get(x, ()) if link.at <= at]
            latest = max((link.at for link in known), default=at)
            for link in known:
                if link.at == latest and link.after not in found:
                    found[link.after] = link
                    stack.append(link.after)
        return found

    def images(self, node: Node, start: int, end: int) -> Images:
        """The nodes that stand for a node of one stage in a later one, and the changes to them."""
        living: dict[Node, tuple[Link, ...]] = {node: ()}
        every = dict.fromkeys([node])
        for at in range(start + 1, end + 1):
            new: dict[Node, tuple[Link, ...]] = {}
            for x, way in living.items():
                if x in self.present[at]:
                    new.setdefault(x, way)
                    continue
                forms = self.forms(x, at, self.present[at])
                every.update(dict.fromkeys(forms))
                for y in forms:
                    if y in self.present[at]:
                        new.setdefault(y, (*way, *path(y, forms)))
            if not new:
                return Images({}, tuple(every), at, tuple(living))
            living = new
        return Images(living, tuple(every), end, tuple(living))

    def taker(self, nodes: Iterable[Node], at: int) -> Link | None:
        """The rule that left nodes out in a pass: it rewrote a node so that it needs them no more.

        None where no rule did that, and the pass left them out as nothing needed them.
        """
        users, rewritten = self.users(at - 1), self.rewrites_until(at)
        before = self.present[at - 1]
        seen = set(nodes)
        level = list(seen)
        known: list[Link] = []  # rewrites that an earlier pass had made, which are not made again
        while level:
            forms = {form for x in level for form in self.forms(x, at)}
            links = {link for form in forms for link in rewritten.get(form, ())}
            links = {link for link in links if link.at == at or link.before in before}
            left_out = [link for link in links if not self.uses(link, forms)]
            left_out.sort(key=lambda link: self.order[link.before, link.after])
            if now := [link for link in left_out if link.at == at]:
                return now[0]
            known += left_out
            above = {y for x in level for y in users.get(x, ())} - seen
            level = [y for y in above if y not in self.present[at]]
            seen |= above
        return known[0] if known else None

    def uses(self, link: Link, forms: Set[Node]) -> bool:
        """Whether the node that a rule made still uses one of some nodes."""
        made = self.built(link.after, link.before)
        return any(x in forms or not forms.isdisjoint(x.inputs) for x in made)

    def users(self, at: int) -> Mapping[Node, list[Node]]:
        """The nodes of a stage that use each node."""
        if at not in self._users:
            self._users[at] = invert((node, node.inputs) for node in self.present[at])
        return self._users[at]

    def rewrites_until(self, at: int) -> Mapping[Node, list[Link]]:
        """The rewrites up to a pass, by the operands of the nodes that they rewrote."""
        if at not in self._rewritten:
            links = [link for some in self.out.values() for link in some if link.at <= at]
            ruled = [link for link in links if link.rule is not None]
            self._rewritten[at] = invert((link, link.before.inputs) for link in ruled)
        return self._rewritten[at]


def presence(stages: Iterable[Graph]) -> list[set[Node]]:
    """The nodes of each stage, bodies included; one set where a pass changed nothing."""
    found: list[set[Node]] = []
    last: Graph | None = None
    for graph in stages:
        found.append(found[-1] if graph is last else set(graph.every_node()))
        last = graph
    return found


def askers_of(asked: Asked | None) -> Iterator[Node]:
    """The derivatives that asked for one, which may be asked for by another."""
    by: Any = asked and asked.by
    while isinstance(by, Asked):
        by = by.by
    if isinstance(by, Node):
        yield by


def path(node: Node, forms: Mapping[Node, Link | None]) -> list[Link]:
    """The changes on the way to one of the forms of a node."""
    found = []
    while (link := forms[node]) is not None:
        found.append(link)
        node = link.before
    return found[::-1]


User = TypeVar("User")


def invert(pairs: Iterable[tuple[User, Iterable[Node]]]) -> dict[Node, list[User]]:
    """For each node the users that have it among their own."""
    found: dict[Node, list[User]] = {}
    for user, nodes in pairs:
        for node in nodes:
            found.setdefault(node, []).append(user)
    return found
