// What users do: search, press keys, point and click.

// ---- searching

function isHit(line) {
  if (!state.search) return false;
  if (line.sought === null) {
    const place = line.node < 0 ? "" : `  ${data.lines[nodes[line.node].line].join("  ")}`;
    line.sought = `${line.name}${line.text}${place}`.toLowerCase();
  }
  return line.sought.includes(state.search);
}

function search(text) {
  state.search = text.toLowerCase();
  state.hits = [];
  state.hit = -1;
  for (const stage of stages) {
    stage.lines.forEach((line, at) => {
      if (isHit(line)) state.hits.push([stage.at, at]);
    });
  }
  said();
  paintAll();
}

function said() {
  const count = state.hits.length.toLocaleString("en");
  const at = state.hit < 0 ? "" : `${state.hit + 1} of `;
  byId("found").textContent = state.search ? `${at}${count} lines` : "";
}

function goToHit(by) {
  const shown = state.hits.filter(([stage]) => !stages[stage].box.hidden);
  if (!shown.length) return;
  state.hits = shown;
  state.hit = (state.hit + by + shown.length) % shown.length;
  const [stage, at] = shown[state.hit];
  reveal(stages[stage], at);
  keep(stage, at);
  stages[stage].list.focus({ preventScroll: true });
  stages[stage].box.scrollIntoView({ inline: "nearest", block: "nearest" });
  said();
}

// ---- keyboard

function move(stage, by) {
  stage.cursor = Math.max(0, Math.min(stage.seen.length - 1, stage.cursor + by));
  show(stage);
  state.kept = true;
  pointAt(stage.at, stage.seen[stage.cursor]);
}

// To the stage beside, at the first line there that is related to the node pointed at.
function beside(stage, by) {
  let at = stage.at + by;
  while (stages[at] && stages[at].box.hidden) at += by;
  const other = stages[at];
  if (!other) return;
  const kinds = by < 0 ? ["self", "above", "below"] : ["self", "below", "above"];
  for (const kind of kinds) {
    const found = other.seen.findIndex((x) => mark(other, x) === kind);
    if (found >= 0) {
      other.cursor = found;
      break;
    }
  }
  other.list.focus({ preventScroll: true });
  other.box.scrollIntoView({ inline: "nearest", block: "nearest" });
  show(other);
}

function related(stage, by) {
  for (let at = stage.cursor + by; at >= 0 && at < stage.seen.length; at += by) {
    if (mark(stage, stage.seen[at])) {
      stage.cursor = at;
      show(stage);
      paintAll();
      return;
    }
  }
}

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const typing = ["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName);
  if (typing && event.target.type !== "checkbox") {
    if (event.target.id !== "search") return;
    if (event.key === "Enter") goToHit(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      event.target.value = "";
      search("");
      stages[state.stage].list.focus();
    } else return;
    event.preventDefault();
    return;
  }
  const list = event.target.closest && event.target.closest(".lines");
  const stage = list ? stages[Number(list.dataset.stage)] : null;
  const page = stage ? Math.max(1, Math.floor(stage.list.clientHeight / HEIGHT) - 1) : 0;
  const keys = {
    "/": () => byId("search").focus(),
    Escape: release,
    F: foldAll,
    n: () => goToHit(1),
    N: () => goToHit(-1),
  };
  if (stage) {
    Object.assign(keys, {
      ArrowDown: () => move(stage, 1),
      ArrowUp: () => move(stage, -1),
      PageDown: () => move(stage, page),
      PageUp: () => move(stage, -page),
      Home: () => move(stage, -stage.seen.length),
      End: () => move(stage, stage.seen.length),
      ArrowLeft: () => beside(stage, -1),
      ArrowRight: () => beside(stage, 1),
      Enter: () => keep(stage.at, stage.seen[stage.cursor]),
      " ": () => fold(stage, stage.seen[stage.cursor]),
      "[": () => related(stage, -1),
      "]": () => related(stage, 1),
    });
  }
  if (!Object.hasOwn(keys, event.key)) return;
  keys[event.key]();
  event.preventDefault();
}

// ---- events

function lineAt(event) {
  const made = event.target.closest(".line");
  if (!made || made.dataset.line === undefined) return null;
  return [Number(made.closest(".lines").dataset.stage), Number(made.dataset.line)];
}

function listen() {
  const main = byId("stages");
  let pointer = "";
  main.addEventListener("mousemove", (event) => {
    const place = `${event.clientX} ${event.clientY}`;
    if (place === pointer) return; // a line moved below the pointer
    pointer = place;
    const found = lineAt(event);
    if (!found || state.kept || (found[0] === state.stage && found[1] === state.line)) return;
    pointAt(...found);
  });
  main.addEventListener("mouseleave", () => {
    if (!state.kept) release();
  });
  main.addEventListener("click", (event) => {
    const found = lineAt(event);
    if (!found) return;
    const [stage, at] = [stages[found[0]], found[1]];
    if (event.target.className === "fold" && stage.lines[at].held) {
      fold(stage, at);
      return;
    }
    stage.cursor = stage.seen.indexOf(at);
    if (state.kept && state.stage === stage.at && state.line === at) release();
    else keep(stage.at, at);
  });
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("fold").addEventListener("click", foldAll);
  byId("cost").addEventListener("change", (event) => {
    state.cost = event.target.value;
    for (const stage of stages) stage.sum = totalOf(stage);
    paintAll();
    details();
  });
  document.addEventListener("keydown", pressed);
  window.addEventListener("resize", drawAll);
  window.addEventListener("beforeprint", () => stages.forEach((stage) => draw(stage, true)));
  window.addEventListener("afterprint", drawAll);
}

build();
listen();
drawAll();
document.documentElement.dataset.ready = "true";
