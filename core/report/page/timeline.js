// The timeline: a canvas with a row for each worker and host, and a block for each attempt and each phase of a start.
// Attempts narrower than kNarrow pixels
// are added up: the colour of a column of pixels shows how much of it the worker was busy, and marks of failures stay.
const kKinds = ["ok", "failed", "cancelled", "retried", "phase"];  // how attempts end; a phase of a start
const kPhase = 4;
const kNarrow = 2;
const kAxis = 24;

/** Blocks as they look in the timeline and its legend; the kinds differ by pattern and sign, not by colour alone. */
class Blocks {
  constructor(context) {
    this.context = context;
    this.colours = colours();
    this.patterns = {};
    for (const kind of ["failed", "retried", "phase"]) this.patterns[kind] = this.pattern(kind);
  }

  pattern(kind) {
    const tile = element("canvas", {width: 6, height: 6});
    const context = tile.getContext("2d");
    context.fillStyle = this.colours[kind];
    context.fillRect(0, 0, 6, 6);
    context.fillStyle = context.strokeStyle = this.colours["on-" + kind];
    context.globalAlpha = 0.45;
    if (kind === "failed") {  // diagonals
      for (const x of [-6, 0, 6]) {
        context.moveTo(x, 6);
        context.lineTo(x + 6, 0);
      }
      context.stroke();
    } else if (kind === "retried") {  // upright bars
      context.fillRect(0, 0, 2, 6);
    } else {  // level lines
      context.fillRect(0, 0, 6, 1);
    }
    return this.context.createPattern(tile, "repeat");
  }

  block(number, x, y, width, height) {
    const context = this.context;
    const kind = kKinds[number];
    if (kind === "cancelled") {
      context.strokeStyle = this.colours.cancelled;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), height - 1);
      return;
    }
    context.fillStyle = this.patterns[kind] || this.colours.ok;
    context.fillRect(x, y, width, height);
  }

  /** For blocks that may be a pixel wide: a cross for a failure, a ring for an attempt that was tried again. */
  sign(outcome, x, y, height) {
    const context = this.context;
    const kind = kKinds[outcome];
    const size = Math.max(3, Math.min(9, height - 4)) / 2;
    const middle = y + height / 2;
    const lines = () => {
      context.beginPath();
      if (kind === "failed") {
        context.moveTo(x - size, middle - size);
        context.lineTo(x + size, middle + size);
        context.moveTo(x - size, middle + size);
        context.lineTo(x + size, middle - size);
      } else {
        context.arc(x, middle, size, 0, 2 * Math.PI);
      }
      context.stroke();
    };
    context.strokeStyle = this.colours.panel;
    context.lineWidth = 5;
    lines();
    context.strokeStyle = this.colours[kind];
    context.lineWidth = 2;
    lines();
  }
}

class Timeline {
  /** `failures`: messages by "task/attempt". `onMove`: called with the new [begin, end] in seconds. */
  constructor(attempts, span, failures, onMove) {
    Object.assign(this, {attempts, span: span || 1e-6, failures, onMove});
    this.box = document.getElementById("chart");
    this.canvas = document.getElementById("tasks");
    this.tip = document.getElementById("tip");
    this.context = this.canvas.getContext("2d");
    this.marked = -1;
    const rows = Math.max(1, attempts.rows.length);
    this.rowHeight = Math.max(3, Math.min(26, Math.floor(440 / rows)));
    this.height = kAxis + rows * this.rowHeight;
    this.bad = this.findBad();
    this.zoom = d3.zoom().on("zoom", () => this.draw());
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    new ResizeObserver(() => this.resize()).observe(this.box);
    this.restyle();
    this.resize();
    this.listen();
  }

  findBad() {
    const {attempts} = this;
    const found = [];
    for (let i = 0; i < attempts.count; ++i) if (attempts.outcome[i] % 2) found.push(i);
    return found.sort((a, b) => attempts.begin[a] - attempts.begin[b]);
  }

  /** Adopts the current colours and pixel density. */
  restyle() {
    this.blocks = new Blocks(this.context);
    if (this.width) this.draw();
  }

  resize() {
    const width = this.box.clientWidth;
    if (!width || width === this.width) return;
    const [begin, end] = this.width ? this.range() : [0, this.span];
    this.width = width;
    this.left = width < 560 ? 34 : 76;
    this.base = d3.scaleLinear([0, this.span], [this.left, width]);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    this.ratio = ratio;
    const corners = [[this.left, 0], [width, this.height]];
    this.zoom.extent(corners).translateExtent(corners).scaleExtent([1, Math.max(1, this.span / 20e-6)]);
    this.show(begin, end);
  }

  scale() { return d3.zoomTransform(this.canvas).rescaleX(this.base); }
  range() { return this.scale().domain(); }

  /** Shows that time, or as much of it as exists. */
  show(begin, end) {
    const k = Math.max(1, Math.min(this.span / (end - begin), this.zoom.scaleExtent()[1]));
    const length = this.span / k;
    const from = Math.max(0, Math.min((begin + end - length) / 2, this.span - length));
    const transform = d3.zoomIdentity.translate(this.left - this.base(from) * k, 0).scale(k);
    d3.select(this.canvas).call(this.zoom.transform, transform);
  }

  zoomBy(factor) {
    const [begin, end] = this.range();
    let middle = (begin + end) / 2;
    if (this.marked >= 0) {
      const {begin: b, end: e} = this.attempts;
      const place = (b[this.marked] + e[this.marked]) / 2;
      if (place > begin && place < end) middle = place;
    }
    const length = (end - begin) / factor;
    this.show(middle - length / 2, middle + length / 2);
  }

  panBy(part) {
    const [begin, end] = this.range();
    const by = Math.max(-begin, Math.min((end - begin) * part, this.span - end));
    this.show(begin + by, end + by);
  }

  /** Marks an attempt and brings it into view, at least a few pixels wide. */
  mark(index) {
    const {begin, end} = this.attempts;
    this.marked = index;
    const [from, to] = this.range();
    const length = end[index] - begin[index];
    const middle = (begin[index] + end[index]) / 2;
    const wide = length / (to - from) * (this.width - this.left) >= 6;
    const inside = begin[index] >= from && end[index] <= to;
    if (wide && inside) this.draw();
    else {
      const span = wide ? to - from : Math.max(30 * length, 1e-4);
      this.show(middle - span / 2, middle + span / 2);
    }
    const found = document.getElementById("found");
    found.textContent = this.describe(index);
    found.dataset.middle = middle;
    found.dataset.row = this.attempts.row[index];
  }

  /** The attempts of a task, the first one first. */
  find(task) {
    const found = [];
    for (let i = 0; i < this.attempts.count; ++i) if (this.attempts.task[i] === task) found.push(i);
    return found.sort((a, b) => this.attempts.attempt[a] - this.attempts.attempt[b]);
  }

  nextBad() {
    if (!this.bad.length) return;
    this.badAt = this.bad.indexOf(this.marked) >= 0 ? this.bad.indexOf(this.marked) + 1 : this.badAt || 0;
    this.mark(this.bad[this.badAt % this.bad.length]);
  }

  describe(index, lines = false) {
    const {attempts} = this;
    const task = attempts.task[index];
    const attempt = attempts.attempt[index];
    const how = ["ok", "failed", "cancelled", "failed and tried again"][attempts.outcome[index]];
    const why = this.failures.get(`${task}/${attempt}`);
    const head = `Task ${task}, attempt ${attempt}: ${how}`;
    const row = attempts.rows[attempts.row[index]];
    const when = this.when(row, attempts.begin[index], attempts.end[index]);
    return (lines ? [head, when] : [`${head}; ${when}`]).concat(why ? [why] : []).join(lines ? "\n" : ". ");
  }

  describePhase(row, phase) { return `${phase.text}\n${this.when(row, phase.begin, phase.end)}`; }

  when({worker}, begin, end) {
    return `${workerText(worker)}, begun at ${timeText(begin)}, took ${timeText(end - begin)}`;
  }

  // --- drawing ---

  draw() {
    if (!this.width) return;
    const {context, width, left} = this;
    const x = this.scale();
    const [begin, end] = x.domain();
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, width, this.height);
    this.drawAxis(x);
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left, this.height);
    context.clip();
    this.attempts.rows.forEach((row, number) => this.drawRow(row, kAxis + number * this.rowHeight, x, begin, end));
    if (this.marked >= 0) this.drawMark(x);
    context.restore();
    const range = document.getElementById("range");
    const step = 10 ** Math.floor(Math.log10((end - begin) / 100));
    range.textContent = `${clockText(begin, step)} – ${clockText(end, step)} of ${timeText(this.span)}`;
    range.dataset.begin = begin;
    range.dataset.end = end;
    this.onMove([begin, end]);
  }

  drawAxis(x) {
    const {context, width, left, rowHeight} = this;
    const {row, panel, muted, line, text} = this.blocks.colours;
    const ticks = x.ticks(Math.max(2, Math.floor((width - left) / 110)));
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const bar = rowHeight > 8 ? rowHeight - 2 : rowHeight > 4 ? rowHeight - 1 : rowHeight;
    const apart = Math.ceil(14 / rowHeight);
    this.attempts.rows.forEach(({worker}, number) => {
      const y = kAxis + number * rowHeight;
      context.fillStyle = row;
      context.fillRect(left, y, width - left, bar);
      if (number % apart) return;
      context.fillStyle = text;
      context.textAlign = "right";
      context.fillText(left < 50 && worker >= 0 ? worker : workerText(worker), left - 8, y + Math.max(bar / 2, 5));
    });
    context.textAlign = "center";
    for (const tick of ticks) {
      const place = Math.round(x(tick)) + 0.5;
      context.fillStyle = line;
      context.fillRect(place - 0.5, kAxis - 5, 1, this.height - kAxis + 5);
      const label = clockText(tick, ticks[1] - ticks[0] || 1);
      const half = context.measureText(label).width / 2;
      context.fillStyle = muted;
      context.fillText(label, Math.max(left + half, Math.min(width - half, place)), 9);
    }
    if (left < 50) return;
    context.fillStyle = panel;
    context.fillRect(0, 0, left - 2, kAxis - 6);
  }

  drawRow(row, y, x, begin, end) {
    const {attempts, context, blocks, left, width} = this;
    const height = this.rowHeight > 8 ? this.rowHeight - 2 : this.rowHeight > 4 ? this.rowHeight - 1 : this.rowHeight;
    const factor = (width - left) / (end - begin);
    this.drawPhases(row, y, height, (time) => left + (time - begin) * factor);
    const busy = new Float32Array(width + 1);
    const signs = [];
    const labels = [];
    let i = firstAfter(attempts.begin, begin, row.from, row.to);
    while (i > row.from && attempts.end[i - 1] > begin) --i;
    if (i > row.from) --i;
    for (; i < row.to && attempts.begin[i] < end; ++i) {
      const x0 = left + (attempts.begin[i] - begin) * factor;
      const x1 = left + (attempts.end[i] - begin) * factor;
      const outcome = attempts.outcome[i];
      if (x1 < left - 8) continue;
      if (x1 - x0 >= kNarrow) {
        const from = Math.max(x0, left - 2);
        const wide = Math.min(x1, width + 2) - from;
        blocks.block(outcome, from, y, wide > 3 ? wide - 1 : wide, height);
        if (wide > 36 && height >= 12) {
          // The previous sign must not look as if it belonged to this block.
          const before = signs.length ? signs[signs.length - 1][1] + 8 : 0;
          labels.push([attempts.task[i], outcome, Math.max(from, before), from + wide - 6]);
        }
      } else {
        const from = Math.max(0, Math.floor(x0));
        const to = Math.min(width, Math.floor(x1));
        for (let pixel = from; pixel <= to; ++pixel) {
          busy[pixel] += Math.max(1e-6, Math.min(x1, pixel + 1) - Math.max(x0, pixel));
        }
      }
      if (outcome % 2 && x1 - x0 < 14) signs.push([outcome, (x0 + x1) / 2]);
    }
    this.drawBusy(busy, y, height);
    for (const [task, outcome, from, to] of labels) this.label(task, outcome, from, to, y, height);
    const last = [-Infinity, -Infinity, -Infinity, -Infinity];
    for (const [outcome, place] of signs) {
      if (place - last[outcome] < 5) continue;
      last[outcome] = place;
      blocks.sign(outcome, place, y, height);
    }
  }

  drawPhases(row, y, height, x) {
    for (const {begin, end, text} of row.phases) {
      const from = Math.max(x(begin), this.left - 2);
      const wide = Math.min(x(end), this.width + 2) - from;
      if (x(end) < this.left || from > this.width) continue;
      this.blocks.block(kPhase, from, y, wide > 3 ? wide - 1 : Math.max(1, wide), height);
      if (height >= 12) this.label(text, kPhase, from, from + wide - 6, y, height);
    }
  }

  /** Columns of pixels in which the worker was partly busy, in eight steps of colour. */
  drawBusy(busy, y, height) {
    const {context} = this;
    context.fillStyle = this.blocks.colours.ok;
    const level = (pixel) => (busy[pixel] ? 1 + Math.min(7, Math.floor(busy[pixel] * 8)) : 0);
    for (let pixel = 0; pixel < busy.length; ) {
      const from = pixel;
      const shade = level(from);
      while (pixel < busy.length && level(pixel) === shade) ++pixel;
      if (!shade) continue;
      context.globalAlpha = 0.2 + 0.1 * shade;
      context.fillRect(from, y, pixel - from, height);
    }
    context.globalAlpha = 1;
  }

  label(name, number, x, end, y, height) {
    const {context} = this;
    const kind = kKinds[number];
    const text = `${{failed: "✗ ", retried: "↻ "}[kind] || ""}${name}`;
    const needed = context.measureText(text).width + 8;
    if (needed > end - x) return;
    if (this.blocks.patterns[kind]) {  // a plain ground: patterns are hard to read on
      context.fillStyle = this.blocks.colours[kind];
      context.fillRect(x, y, needed, height);
    }
    context.textAlign = "left";
    context.fillStyle = this.blocks.colours[kind === "cancelled" ? "text" : "on-" + kind];
    context.fillText(text, x + 4, y + height / 2 + 0.5);
  }

  drawMark(x) {
    const {context, attempts, marked} = this;
    const from = x(attempts.begin[marked]);
    const wide = Math.max(4, x(attempts.end[marked]) - from);
    const y = kAxis + attempts.row[marked] * this.rowHeight;
    const middle = from + wide / 2;
    context.strokeStyle = context.fillStyle = this.blocks.colours.mark;
    context.lineWidth = 2;
    context.strokeRect(from - 2, y - 1, wide + 3, this.rowHeight);
    context.globalAlpha = 0.5;
    context.fillRect(middle - 0.5, kAxis, 1, y - kAxis);
    context.globalAlpha = 1;
    context.beginPath();
    context.moveTo(middle - 6, y - 12);
    context.lineTo(middle + 6, y - 12);
    context.lineTo(middle, y - 3);
    context.fill();
  }

  // --- user input ---

  /** The attempt at a place of the canvas, or one within three pixels; -1: none. */
  at(px, py) {
    const row = this.attempts.rows[Math.floor((py - kAxis) / this.rowHeight)];
    if (!row || py < kAxis || px < this.left) return -1;
    const x = this.scale();
    const {begin, end} = this.attempts;
    const near = firstAfter(begin, x.invert(px), row.from, row.to);
    let best = -1;
    let away = 3;
    for (let i = Math.max(row.from, near - 2); i < Math.min(row.to, near + 2); ++i) {
      const distance = Math.max(0, x(begin[i]) - px, px - x(end[i]));
      if (distance < away) [best, away] = [i, distance];
    }
    return best;
  }

  /** The text of what is at a place of the canvas; "": nothing. */
  textAt(px, py) {
    const index = this.at(px, py);
    if (index >= 0) return this.describe(index, true);
    const row = this.attempts.rows[Math.floor((py - kAxis) / this.rowHeight)];
    if (!row || py < kAxis || px < this.left) return "";
    const time = this.scale().invert(px);
    const phase = row.phases.find(({begin, end}) => begin <= time && time < end);
    return phase ? this.describePhase(row, phase) : "";
  }

  listen() {
    const place = (event) => {
      const corner = this.canvas.getBoundingClientRect();
      return [event.clientX - corner.left, event.clientY - corner.top];
    };
    this.canvas.addEventListener("click", (event) => {
      const index = this.at(...place(event));
      if (index >= 0) this.mark(index);
    });
    this.canvas.addEventListener("mousemove", (event) => {
      const [px, py] = place(event);
      const text = event.buttons ? "" : this.textAt(px, py);
      this.tip.hidden = !text;
      if (!text) return;
      this.tip.textContent = text;
      this.tip.style.left = `${Math.max(0, Math.min(px + 14, this.width - this.tip.offsetWidth))}px`;
      this.tip.style.top = `${py + 18}px`;
    });
    this.canvas.addEventListener("mouseleave", () => { this.tip.hidden = true; });
    const keys = {
      "+": () => this.zoomBy(2), "=": () => this.zoomBy(2), "-": () => this.zoomBy(0.5), "_": () => this.zoomBy(0.5),
      "ArrowLeft": () => this.panBy(-0.25), "ArrowRight": () => this.panBy(0.25),
      "0": () => this.show(0, this.span), "Home": () => this.show(0, this.span), "n": () => this.nextBad(),
    };
    this.box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}
