// What is shown: the lines of the stages, and details of a node. Lines are drawn only where they are
// seen: a stage may have tens of thousands. All text of the program is put in place by textContent.

const HEIGHT = 20; // of a line, as in the style
const MORE = 10; // lines drawn above and below those seen
const PRINTED = 2000; // lines of a stage on paper
const passes = new Map(data.passes.map((name, at) => [name, at]));

function element(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

// ---- drawing

function build() {
  byId("title").textContent = data.title;
  for (const stage of stages) {
    stage.box = element("section", "stage");
    stage.heading = element("h2", "", stage.name);
    stage.said = element("span", "", `${stage.count.toLocaleString("en")} nodes`);
    stage.heading.append(stage.said);
    stage.list = element("div", "lines");
    stage.list.tabIndex = 0;
    stage.list.dataset.stage = stage.at;
    stage.list.setAttribute("role", "listbox");
    stage.list.setAttribute("aria-label", `Stage ${stage.name}`);
    stage.space = element("div", "space");
    stage.window = element("div", "window");
    stage.list.append(stage.space, stage.window);
    stage.box.append(stage.heading, stage.list);
    byId("stages").append(stage.box);
    stage.list.addEventListener("scroll", () => draw(stage));

    const label = element("label");
    const box = element("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      stage.box.hidden = !box.checked;
      drawAll();
    });
    label.append(box, ` ${stage.name}`);
    byId("shown").append(label);
    unfolded(stage);
    stage.sum = totalOf(stage);
  }
  byId("fold").disabled = !stages.some((stage) => stage.lines.some((line) => line.held));
}

// Find out which lines no folded loop hides.
function unfolded(stage) {
  stage.seen = [];
  for (let at = 0; at < stage.lines.length; at += 1) {
    stage.seen.push(at);
    if (stage.lines[at].folded) at += stage.lines[at].held;
  }
  stage.space.style.height = `${stage.seen.length * HEIGHT}px`;
}

function drawn(stage, at) {
  const line = stage.lines[at];
  const made = element("div", "line");
  made.id = `line-${stage.at}-${at}`;
  made.dataset.line = at;
  made.setAttribute("role", "option");
  made.style.paddingLeft = `${4 + 16 * line.depth}px`;
  const fold = element("span", "fold", line.held ? (line.folded ? "▸" : "▾") : "");
  made.append(fold, element("span", "name", line.name), element("span", "text", line.text));
  if (line.folded) made.append(element("span", "origin", `  … ${line.held} lines`));
  if (line.node >= 0) {
    made.append(element("span", "origin", `  ${data.lines[nodes[line.node].line][0]}`));
  }
  paint(stage, at, made);
  return made;
}

// The classes and the state of a line that is drawn.
function paint(stage, at, made) {
  const line = stage.lines[at];
  let related = mark(stage, at);
  if (line.folded && !related) { // what is folded shows whether something related is in it
    for (let below = at + 1; below <= at + line.held && !related; below += 1) {
      related = mark(stage, below);
    }
    if (related === "self") related = "below";
  }
  const classes = ["line"];
  const heat = level(share(stage, line));
  if (heat) classes.push(`cost${heat}`);
  if (line.node < 0) classes.push("aside");
  if (related) classes.push(related);
  if (isHit(line)) classes.push("hit");
  if (stage.seen[stage.cursor] === at) classes.push("cursor");
  made.className = classes.join(" ");
  made.setAttribute("aria-selected", String(related === "self"));
  if (line.held) made.setAttribute("aria-expanded", String(!line.folded));
}

function draw(stage, whole = false) {
  if (stage.box.hidden) return;
  const top = stage.list.scrollTop;
  const height = stage.list.clientHeight;
  const end = stage.seen.length;
  stage.first = whole ? 0 : Math.max(0, Math.floor(top / HEIGHT) - MORE);
  stage.last = whole ? Math.min(end, PRINTED) : Math.min(end, Math.ceil((top + height) / HEIGHT) + MORE);
  stage.window.style.top = `${stage.first * HEIGHT}px`;
  const lines = stage.seen.slice(stage.first, stage.last).map((at) => drawn(stage, at));
  if (whole && stage.last < end) {
    lines.push(element("div", "line aside", `… ${(end - stage.last).toLocaleString("en")} lines more …`));
  }
  stage.window.replaceChildren(...lines);
  const cursor = stage.seen[stage.cursor];
  stage.list.setAttribute("aria-activedescendant", `line-${stage.at}-${cursor}`);
}

function drawAll() {
  stages.forEach((stage) => draw(stage));
}

// Paint the drawn lines anew, without making them again.
function paintAll() {
  for (const stage of stages) {
    for (const made of stage.window.children) {
      if (made.dataset.line !== undefined) paint(stage, Number(made.dataset.line), made);
    }
    const related = state.related;
    let above = 0;
    let below = 0;
    if (related && state.line >= 0) {
      stage.lines.forEach((line, at) => {
        const found = mark(stage, at);
        above += found === "above";
        below += found === "below";
      });
    }
    const counts = above || below ? ` · ${above} before, ${below} after` : "";
    stage.said.textContent = `${stage.count.toLocaleString("en")} nodes${counts}`;
  }
}

// ---- pointing

function pointAt(stage, at) {
  const node = at < 0 ? -1 : stages[stage].lines[at].node;
  state.stage = stage;
  state.line = node < 0 ? -1 : at;
  const known = state.related && state.related.node === node;
  state.related = node < 0 ? null : known ? state.related : relatives(node);
  paintAll();
  details();
}

function release() {
  state.kept = false;
  pointAt(state.stage, -1);
}

// Keep a node, and show in all other stages the first line related to it.
function keep(stage, at) {
  pointAt(stage, at);
  state.kept = state.line >= 0;
  if (!state.kept) return;
  for (const other of stages) {
    if (other.at === stage) continue;
    const first = other.seen.findIndex((x) => ["self", "above", "below"].includes(mark(other, x)));
    if (first >= 0) {
      other.cursor = first;
      show(other);
    }
  }
  paintAll();
}

// Scroll to the line under the cursor.
function show(stage) {
  const top = stage.cursor * HEIGHT;
  const height = stage.list.clientHeight;
  if (top < stage.list.scrollTop || top + HEIGHT > stage.list.scrollTop + height) {
    stage.list.scrollTop = Math.max(0, top - height / 2);
  }
  draw(stage);
}

function row(list, name, text) {
  if (text) list.append(element("dt", "", name), element("dd", "", text));
}

function named(stage, found) {
  const names = [];
  for (const node of found) {
    const at = (stage.of.get(node) || [])[0];
    names.push(at === undefined ? nodes[node].op : stage.lines[at].path);
  }
  return few([...new Set(names)], 30);
}

function few(names, most) {
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? `, … ${more.toLocaleString("en")} more` : "");
}

function number(x) {
  return x.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function details() {
  const panel = byId("details");
  panel.replaceChildren();
  if (state.line < 0) return;
  const stage = stages[state.stage];
  const line = stage.lines[state.line];
  const node = nodes[line.node];
  const related = state.related;
  const list = element("dl");
  row(list, stage.name, line.path + line.text);
  const [place, code] = data.lines[node.line];
  row(list, "line", code ? `${place}  ${code}` : place);
  const times = line.times > 1 ? `, ${number(line.times)} times` : "";
  const part = share(stage, line).toLocaleString("en", { style: "percent", maximumFractionDigits: 1 });
  row(list, "cost", `${number(node.flops)} operations, ${number(node.bytes)} bytes${times}: ${part} of the stage, by estimate`);
  row(list, "operands", named(stage, node.operands));
  row(list, "used by", named(stage, node.users.filter((x) => stage.of.has(x))));
  const steps = new Set([...related.ancestors].flatMap((x) => nodes[x].steps));
  node.steps.forEach((step) => steps.add(step));
  const order = [...steps].sort((a, b) => passes.get(data.steps[a][0]) - passes.get(data.steps[b][0]));
  for (const step of order.slice(0, 60)) row(list, data.steps[step][0], data.steps[step][1]);
  row(list, "", order.length > 60 ? `… ${order.length - 60} rules more …` : "");
  for (const step of node.gone) row(list, data.steps[step][0], data.steps[step][1]);
  for (const other of stages) {
    const shown = (some) => named(other, [...some].filter((x) => other.of.has(x)));
    if (other !== stage) row(list, `in ${other.name}`, shown([line.node, ...related.ancestors, ...related.descendants]));
  }
  panel.append(list);
}

// ---- folding

function fold(stage, at, folded = !stage.lines[at].folded) {
  const cursor = stage.seen[stage.cursor];
  stage.lines[at].folded = folded && stage.lines[at].held > 0;
  unfolded(stage);
  const next = stage.seen.findIndex((x) => x >= cursor);
  stage.cursor = stage.seen[next] === cursor ? next : Math.max(0, stage.seen.indexOf(at));
  draw(stage);
}

function foldAll() {
  const button = byId("fold");
  const folded = button.textContent.startsWith("Fold");
  for (const stage of stages) {
    for (const line of stage.lines) line.folded = folded && line.held > 0;
    unfolded(stage);
    stage.cursor = Math.min(stage.cursor, stage.seen.length - 1);
    draw(stage);
  }
  button.textContent = folded ? "Unfold loops" : "Fold loops";
}

// Unfold whatever hides a line.
function reveal(stage, at) {
  stage.lines.forEach((line, above) => {
    if (line.folded && above < at && at <= above + line.held) line.folded = false;
  });
  unfolded(stage);
  stage.cursor = stage.seen.indexOf(at);
  show(stage);
}
