// Which process waits for which in a hang: processes as boxes, in columns, and an arrow for each wait.
const kBox = {width: 250, height: 74, across: 170, down: 22};
const kMostBoxes = 40;

/** The processes of a report, and dead ones that a process waits for, by pid: {pid, lines, kind}. */
function boxesOf(report) {
  const processes = Array.isArray(report.processes) ? report.processes : [];
  const boxes = new Map();
  for (const process of processes) {
    const threads = Array.isArray(process.threads) ? process.threads : [];
    const thread = threads.find((one) => one.state === "blocked for ever") || threads[0] || {};
    const stuck = thread.state === "blocked for ever";
    const wait = thread.wait ? `waits for ${thread.wait.object || thread.wait.kind}` : thread.state || "";
    const frame = (thread.python || [])[0];
    boxes.set(process.pid, {
      pid: process.pid,
      kind: stuck ? "stuck" : "other",
      title: [process.command, wait].filter(Boolean).join("\n"),
      lines: [
        ["who", `pid ${process.pid}${process.origin === "fork" ? ", forked" : ""}`],
        ["mono", plainCommand(process.command || "")],
        ["state", stuck ? "stuck: " + wait : wait],
        ["mono", frame ? `${String(frame.file).split("/").pop()}:${frame.line} in ${frame.function}` : ""],
      ],
    });
  }
  const edges = Array.isArray(report.edges) ? report.edges : [];
  for (const death of deathsOf(report)) {
    const touched = edges.some((edge) => edge.from === death.pid || edge.to === death.pid);
    if (boxes.has(death.pid) || !touched) continue;
    boxes.set(death.pid, {pid: death.pid, kind: "dead", title: `dead: ${howItDied(death)}`,
      lines: [["who", `pid ${death.pid}`], ["state", `dead: ${howItDied(death)}`], ["state", `at ${death.at}`]]});
  }
  return boxes;
}

const deathsOf = (report) => (Array.isArray(report.deaths) ? report.deaths : []);

function howItDied(death) {
  if (death.signal) return `signal ${death.signal}`;
  return death.exit_code === undefined ? "cause of death unknown" : `exit code ${death.exit_code}`;
}

/** A command line without the folders of its words. */
const plainCommand = (command) => command.split(" ").map((word) => word.replace(/^\/.*\/(?=[^/]+$)/, "")).join(" ");

/** Why an edge exists; if a process waits for the end of the one it points to, numbers are not needed. */
const plainReason = (why) => (/^process \d/.test(why) ? "its end" : why);

/** Cuts the text of an SVG element until it is no wider. */
function fit(text, width) {
  let words = text.text();
  while (words.length > 3 && text.node().getComputedTextLength() > width) {
    const fitting = Math.floor(words.length * width / text.node().getComputedTextLength());
    words = words.slice(0, Math.min(words.length - 2, fitting));
    text.text(`${words.trimEnd()}…`);
  }
}

/** Edges between boxes that are drawn, one for each pair: [{from, to, why}]. */
function edgesOf(report, boxes) {
  const pairs = new Map();
  for (const {from, to, why} of Array.isArray(report.edges) ? report.edges : []) {
    if (!boxes.has(from) || !boxes.has(to)) continue;
    const pair = pairs.get(`${from} ${to}`) || {from, to, whys: new Set()};
    pairs.set(`${from} ${to}`, pair);
    pair.whys.add(why);
  }
  return [...pairs.values()].map(({from, to, whys}) => ({from, to, why: [...whys].join(", ")}));
}

/** Gives each box its column and row: after those that wait for it; in a circle the join that was reported is first. */
function arrange(report, boxes, edges) {
  const waited = new Set(edges.filter((edge) => edge.from !== edge.to).map((edge) => edge.to));
  const first = report.join ? [report.join.pid] : [];
  const roots = [...boxes.keys()].filter((pid) => !waited.has(pid));
  const heights = [];
  const place = (pid, column) => {
    heights[column] = heights[column] || 0;
    Object.assign(boxes.get(pid), {column, row: heights[column]++});
  };
  for (const root of [...roots, ...first, ...boxes.keys()]) {
    if (!boxes.has(root) || boxes.get(root).column !== undefined) continue;
    let pending = [root];
    place(root, 0);
    for (let column = 1; pending.length; ++column) {
      const next = [];
      for (const {from, to} of edges) {
        if (!pending.includes(from) || boxes.get(to).column !== undefined) continue;
        place(to, column);
        next.push(to);
      }
      pending = next;
    }
  }
  return heights;
}

/** The path of an edge and the place of its text. */
function route(from, to) {
  const {width, height} = kBox;
  const y = (box, part) => box.y + height * part;
  if (from === to) {
    const right = from.x + width;
    return {d: `M${right},${y(from, 0.3)} c50,-14 50,44 2,34`, x: right + 46, y: y(from, 0.55), anchor: "start"};
  }
  if (to.column > from.column) {
    const [x0, y0, x1, y1] = [from.x + width, y(from, 0.42), to.x, y(to, 0.42)];
    const middle = (x0 + x1) / 2;
    const d = `M${x0},${y0} C${middle},${y0} ${middle},${y1} ${x1 - 2},${y1}`;
    return {d, x: middle, y: (y0 + y1) / 2 - 7, anchor: "middle"};
  }
  if (to.column === from.column) {
    const [x0, y0, y1] = [from.x + width, y(from, 0.7), y(to, 0.7)];
    const d = `M${x0},${y0} C${x0 + 70},${y0} ${x0 + 70},${y1} ${x0 + 2},${y1}`;
    return {d, x: x0 + 56, y: (y0 + y1) / 2, anchor: "start"};
  }
  const [x0, y0, x1, y1] = [from.x, y(from, 0.78), to.x + width, y(to, 0.78)];
  const low = Math.max(y0, y1) + 30;
  const d = `M${x0},${y0} C${x0 - 70},${low} ${x1 + 70},${low} ${x1 + 2},${y1}`;
  return {d, x: (x0 + x1) / 2, y: low + 8, anchor: "middle"};
}

function drawHang(figure, report, number) {
  let boxes = boxesOf(report);
  const hidden = Math.max(0, boxes.size - kMostBoxes);
  boxes = new Map([...boxes].sort((a, b) => (b[1].kind === "stuck") - (a[1].kind === "stuck")).slice(0, kMostBoxes));
  if (!boxes.size) return;
  const edges = edgesOf(report, boxes);
  const heights = arrange(report, boxes, edges);
  const columns = heights.length;
  const rows = Math.max(...heights);
  for (const box of boxes.values()) {
    const above = (rows - heights[box.column]) / 2;
    box.x = 3 + box.column * (kBox.width + kBox.across);
    box.y = 3 + (box.row + above) * (kBox.height + kBox.down);
  }
  const width = columns * (kBox.width + kBox.across) + 6;
  const height = rows * (kBox.height + kBox.down) + 24;
  const said = edges.map((edge) => `${edge.from} waits for ${edge.to}: ${edge.why}`).join("; ");
  figure.hidden = false;
  const svg = d3.select(figure).append("svg").attr("width", width).attr("height", height).attr("role", "img")
    .attr("aria-label", `Wait-for graph of hang ${number + 1}: ${said || "no process waits for another"}`);
  const arrow = `arrow-${number}`;
  svg.append("defs").append("marker").attr("id", arrow).attr("viewBox", "0 0 8 8").attr("refX", 7).attr("refY", 4)
    .attr("markerWidth", 7).attr("markerHeight", 7).attr("orient", "auto-start-reverse")
    .append("path").attr("d", "M0,0 L8,4 L0,8 z");
  for (const box of boxes.values()) {
    const group = svg.append("g").attr("class", `box ${box.kind}`).attr("data-pid", box.pid)
      .attr("transform", `translate(${box.x},${box.y})`);
    group.append("title").text(box.title);
    group.append("rect").attr("width", kBox.width).attr("height", kBox.height).attr("rx", 6);
    box.lines.filter((line) => line[1]).forEach(([kind, text], i) => {
      fit(group.append("text").attr("class", kind).attr("x", 10).attr("y", 17 + i * 16.5).text(text), kBox.width - 20);
    });
  }
  for (const edge of edges) {
    const way = route(boxes.get(edge.from), boxes.get(edge.to));
    const group = svg.append("g").attr("class", "edge").attr("data-from", edge.from).attr("data-to", edge.to);
    group.append("title").text(`${edge.from} waits for ${edge.to}: ${edge.why}`);
    group.append("path").attr("d", way.d).attr("marker-end", `url(#${arrow})`);
    fit(group.append("text").attr("class", "why").attr("x", way.x).attr("y", way.y).attr("text-anchor", way.anchor)
      .text(plainReason(edge.why)), kBox.across - 16);
  }
  const others = deathsOf(report).filter((death) => !boxes.has(death.pid));
  const dead = others.map((death) => `${death.pid} (${howItDied(death)})`);
  const caption = ["An arrow: waits for. A thick border: stuck for ever; a dashed one: dead."];
  if (dead.length) caption.push(`Ended before, and waited for by nobody: ${shortened(dead.join(", "), 300)}.`);
  if (hidden) caption.push(`${hidden} more processes are in the report.`);
  figure.append(element("figcaption", {class: "caption"}, caption.join(" ")));
}
