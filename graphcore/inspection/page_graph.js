"use strict";
// The program: its nodes, the stages with their lines, and the node that is pointed at. The parts of
// the script follow each other in one page: page_graph.js, page_view.js, page_input.js.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// ---- the graph

const nodes = data.nodes.map(([op, operands, ancestors, steps, gone, line, flops, bytes]) => ({
  op, operands, ancestors, steps, gone, line, flops, bytes, users: [], descendants: [],
}));
nodes.forEach((node, at) => {
  for (const x of node.operands) nodes[x].users.push(at);
  for (const x of node.ancestors) nodes[x].descendants.push(at);
});

const stages = data.stages.map((stage, at) => ({
  at,
  name: stage.name,
  count: stage.nodes,
  total: stage.total,
  lines: stage.lines.map(([name, text, node, depth, held, times]) => ({
    name, text, node, depth, held, times, folded: false, sought: null,
  })),
  seen: [], // the numbers of the lines that no folded loop hides
  first: 0, last: 0, // those of `seen` that are drawn
  cursor: 0,
  of: new Map(), // the lines of each node
}));
for (const stage of stages) {
  const above = []; // the loops around a line: their ends, and the way to what is in them
  stage.lines.forEach((line, at) => {
    while (above.length && at > above.at(-1).end) above.pop();
    const around = above.at(-1);
    const headed = around && line.node < 0 && line.depth === above.length && line.text.endsWith(":");
    if (headed) around.way = `${around.name} ${line.text.slice(0, -1).split(",")[0]} `;
    line.path = (around ? around.way : "") + line.name;
    if (line.held) above.push({ end: at + line.held, name: line.path, way: "" });
    if (line.node < 0) return;
    if (!stage.of.has(line.node)) stage.of.set(line.node, []);
    stage.of.get(line.node).push(at);
  });
}

// All nodes that can be reached along one kind of edge.
function reached(start, edges) {
  const found = new Set();
  const stack = [start];
  while (stack.length) {
    for (const x of nodes[stack.pop()][edges]) {
      if (!found.has(x)) {
        found.add(x);
        stack.push(x);
      }
    }
  }
  found.delete(start);
  return found;
}

// What a node comes from and what comes of it: within its stage by operands, and through the rules.
function relatives(node) {
  return {
    node,
    operands: reached(node, "operands"),
    users: reached(node, "users"),
    ancestors: reached(node, "ancestors"),
    descendants: reached(node, "descendants"),
  };
}

// ---- state

const state = {
  stage: 0, // that of the node pointed at
  line: -1, // its line; -1 if there is none
  kept: false, // whether it stays when the pointer leaves it
  related: null,
  cost: "both",
  search: "",
  hits: [], // pairs of a stage and a line
  hit: -1,
};

function mark(stage, at) {
  const line = stage.lines[at];
  const related = state.related;
  if (!related || line.node < 0) return "";
  if (line.node === related.node) return "self";
  const own = stage.at === state.stage;
  if (related.ancestors.has(line.node) || (own && related.operands.has(line.node))) return "above";
  if (related.descendants.has(line.node) || (own && related.users.has(line.node))) return "below";
  return "";
}

function costOf(node) {
  if (state.cost === "none") return 0;
  if (state.cost === "both") return nodes[node].flops + nodes[node].bytes;
  return nodes[node][state.cost];
}

function totalOf(stage) {
  if (state.cost === "both") return stage.total;
  let sum = 0;
  for (const line of stage.lines) {
    if (line.node >= 0 && line.depth === 0) sum += costOf(line.node);
  }
  return sum;
}

function share(stage, line) {
  return stage.sum > 0 && line.node >= 0 ? (costOf(line.node) * line.times) / stage.sum : 0;
}

function level(part) {
  return part >= 0.2 ? 4 : part >= 0.05 ? 3 : part >= 0.01 ? 2 : part >= 0.001 ? 1 : 0;
}
