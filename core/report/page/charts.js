// Histograms, and CPU and memory over time: small graphs in SVG.
const kChart = {height: 190, top: 30, right: 14, bottom: 34, left: 52};

/** An empty graph of the available width; returns [d3 selection, width]. */
function freshChart(svg, height = kChart.height) {
  const width = Math.max(240, svg.parentElement.clientWidth);
  const chart = d3.select(svg).attr("viewBox", `0 0 ${width} ${height}`).attr("height", height);
  chart.selectAll("*").remove();
  return [chart, width];
}

/** Puts values into bins of equal width, or of equal ratio if they differ by much: [[from, to, count]]. */
function binned(values) {
  let least = Infinity;
  let most = 0;
  for (const value of values) {
    const known = Math.max(value, 1e-6);  // mprun counts microseconds
    if (known < least) least = known;
    if (known > most) most = known;
  }
  const ratio = most / least > 30;
  const number = Math.max(1, Math.min(40, Math.ceil(Math.sqrt(values.length) * 1.5)));
  const place = ratio ? Math.log : (value) => value;
  const back = ratio ? Math.exp : (value) => value;
  const from = ratio ? Math.log(least) : 0;
  const step = (place(most) - from) / number || 1e-6;
  const counts = new Array(number).fill(0);
  for (const value of values) {
    ++counts[Math.max(0, Math.min(number - 1, Math.floor((place(Math.max(value, 1e-6)) - from) / step)))];
  }
  return {ratio, bins: counts.map((count, i) => [back(from + i * step), back(from + (i + 1) * step), count])};
}

/** Powers of ten, with 2 and 5 between them where these are few. */
function roundTicks(from, to) {
  const found = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); ++power) {
    for (const digit of to / from < 300 ? [1, 2, 5] : [1]) {
      const tick = digit * 10 ** power;
      if (tick > from * 0.999 && tick < to * 1.001) found.push(tick);
    }
  }
  return found;
}

function drawHistogram(svg, values, name) {
  const [chart, width] = freshChart(svg);
  const sorted = Float64Array.from(values).sort();
  const part = (share) => sorted[Math.floor(share * (sorted.length - 1))];
  const {ratio, bins} = binned(values);
  const {height, top, right, bottom, left} = kChart;
  const ends = [bins[0][0], bins[bins.length - 1][1]];
  const x = (ratio ? d3.scaleLog() : d3.scaleLinear()).domain(ends).range([left, width - right]);
  const y = d3.scaleLinear().domain([0, d3.max(bins, (bin) => bin[2])]).nice().range([height - bottom, top]);
  const ticks = ratio ? roundTicks(...ends) : x.ticks(5);
  const across = d3.axisBottom(x).tickValues(ticks).tickFormat((tick) => (tick ? timeText(tick) : "0")).tickSizeOuter(0);
  chart.append("g").attr("transform", `translate(0,${height - bottom})`).call(across);
  chart.append("g").attr("transform", `translate(${left},0)`)
    .call(d3.axisLeft(y).tickValues(y.ticks(4).filter(Number.isInteger)).tickSize(-(width - left - right))
      .tickFormat(d3.format(",")))
    .call((axis) => axis.select(".domain").remove());
  const height0 = (count) => Math.max(count ? 1.5 : 0, y(0) - y(count));  // one task is visible next to a million
  chart.append("g").selectAll("rect").data(bins).enter().append("rect").attr("class", "bar")
    .attr("x", (bin) => x(bin[0]) + 0.5).attr("width", (bin) => Math.max(1, x(bin[1]) - x(bin[0]) - 1))
    .attr("y", (bin) => y(0) - height0(bin[2])).attr("height", (bin) => height0(bin[2]))
    .append("title")
    .text(([from, to, count]) => `${timeText(from)} to ${timeText(to)}: ${countText(count, "attempt", "attempts")}`);
  const middle = part(0.5);
  const late = part(0.95);
  const places = [middle, late].map((value) => Math.max(left, Math.min(width - right, x(Math.max(value, ends[0])))));
  const together = places[1] - places[0] < 58;
  places.forEach((place, number) => {
    chart.append("line").attr("class", "rule").attr("x1", place).attr("x2", place).attr("y1", top - 22).attr("y2", y(0));
    if (together && number === 0) return;
    const end = place > width - 80;
    chart.append("text").attr("x", place + (end ? -4 : 4)).attr("y", top - 14).attr("text-anchor", end ? "end" : "start")
      .text(together ? "median, 95 %" : ["median", "95 %"][number]);
  });
  chart.append("text").attr("x", width - right).attr("y", height - 3).attr("text-anchor", "end")
    .text(ratio ? "time, logarithmic" : "time");
  chart.append("text").attr("x", 2).attr("y", top - 14).text("attempts");
  const numbers = `shortest ${timeText(sorted[0])}, median ${timeText(middle)}, 95 % below ${timeText(late)}, ` +
    `longest ${timeText(sorted[sorted.length - 1])}`;
  svg.parentElement.querySelector(".numbers").textContent = numbers;
  svg.setAttribute("aria-label", `Histogram of ${countText(values.length, "attempt", "attempts")}, ${name}: ${numbers}`);
  svg.dataset.counted = d3.sum(bins, (bin) => bin[2]);
}

/** CPU and memory, of all workers and of each; moves with the timeline. */
class UsageCharts {
  constructor(usage, body) {
    this.usage = usage;
    this.picked = null;
    const pick = element("label", {class: "pick"}, "Mark worker ");
    this.select = element("select");
    this.select.append(element("option", {value: ""}, "none"));
    for (const [worker] of usage.workers) this.select.append(element("option", {value: worker}, worker));
    this.select.addEventListener("change", () => this.draw());
    pick.append(this.select);
    body.append(pick);
    const pair = element("div", {class: "pair"});
    body.append(pair);
    this.cores = usage.steps.map((_, i) => usage.workers.reduce((sum, worker) => sum + (worker[1][i] || 0), 0));
    this.charts = [
      ["cpu-total", "CPU of all workers", "CPUs in use"], ["memory-total", "Memory of all workers", "PSS"],
      ["cpu-each", "CPU of each worker", "CPUs in use"], ["memory-each", "Memory of each worker", "PSS"],
    ].map(([id, name, unit]) => {
      const figure = element("figure");
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("role", "img");
      svg.id = id;
      figure.append(element("h3", {}, `${name} (${unit})`), svg);
      pair.append(figure);
      return {id, name, svg};
    });
    body.append(element("p", {class: "caption"}, "As mprun looked at the workers' processes and what is below them; " +
      "CPU is the mean between two looks, memory (PSS) what a look found; in a long run some looks are put together. " +
      "The part of time is that of the timeline above."));
  }

  show(range) {
    this.range = range;
    this.draw();
  }

  /** [seconds, value] of the shown time, one for each of `most` parts of it: the greatest; null: a gap. */
  points(values, most, isMean) {
    const {steps} = this.usage;
    const [begin, end] = this.range;
    const found = [];
    let last = null;
    steps.forEach(([from, to], i) => {
      const value = values[i];
      const ahead = i + 1 < steps.length ? steps[i + 1][1] : to;  // a line comes from outside
      if (ahead < begin || from > end) return;
      if (i > 0 && from > steps[i - 1][1]) found.push(last = null);  // another session
      if (value === null || value === undefined) {
        if (last) found.push(last = null);
        return;
      }
      const part = Math.floor((to - begin) / (end - begin) * most);
      if (last && last.part === part && value <= last[1]) return;
      if (last && last.part === part) found.pop();
      if (isMean && !last) found.push([from, value]);
      last = Object.assign([to, value], {part});
      found.push(last);
    });
    return found;
  }

  draw() {
    const wanted = this.select.value === "" ? null : Number(this.select.value);
    for (const {id, name, svg} of this.charts) {
      const column = id.startsWith("cpu") ? 1 : 2;
      const total = column === 1 ? this.cores : this.usage.steps.map((step) => step[2]);
      const lines = id.endsWith("total") ? [[null, total]] : this.usage.workers.map((worker) => [worker[0], worker[column]]);
      this.drawOne(svg, name, column, lines, id.endsWith("total"), wanted);
    }
  }

  drawOne(svg, name, column, lines, isTotal, wanted) {
    const [chart, width] = freshChart(svg, 150);
    const {right, left} = kChart;
    const top = 8;
    const low = 150 - 24;
    const text = column === 1 ? (value) => `${Number(value.toPrecision(3))}` : bytesText;
    const x = d3.scaleLinear(this.range, [left + 8, width - right]);
    const drawn = lines.map(([worker, values]) => [worker, this.points(values, (width - left - right) / 2, column === 1)]);
    const most = d3.max(drawn, (line) => d3.max(line[1], (point) => point && point[1])) || 1;
    const y = d3.scaleLinear([0, most], [low, top]);
    const ticks = x.ticks(Math.max(2, Math.floor(width / 110)));
    const values = column === 1 ? y.ticks(4) : this.memoryTicks(most);
    chart.append("g").attr("transform", `translate(0,${low})`)
      .call(d3.axisBottom(x).tickValues(ticks).tickSizeOuter(0)
        .tickFormat((tick) => clockText(tick, ticks[1] - ticks[0] || 1)));
    chart.append("g").attr("transform", `translate(${left + 8},0)`)
      .call(d3.axisLeft(y).tickValues(values).tickSize(-(width - left - right - 8)).tickFormat(text))
      .call((axis) => axis.select(".domain").remove());
    chart.append("clipPath").attr("id", `${svg.id}-inside`).append("rect").attr("x", left + 8).attr("y", 0)
      .attr("width", width - right - left - 8).attr("height", low);
    const inside = chart.append("g").attr("clip-path", `url(#${svg.id}-inside)`);
    const curve = column === 1 ? d3.curveStepBefore : d3.curveLinear;
    const there = (point) => point !== null;
    const across = (point) => x(point[0]);
    const up = (point) => y(point[1]);
    const line = d3.line().curve(curve).defined(there).x(across).y(up);
    drawn.sort((a, b) => (a[0] === wanted) - (b[0] === wanted));
    for (const [worker, points] of drawn) {
      if (isTotal) {
        const area = d3.area().curve(curve).defined(there).x(across).y0(low).y1(up);
        inside.append("path").attr("class", "under").attr("d", area(points));
      }
      const kind = isTotal ? "total" : worker === wanted && wanted !== null ? "each picked" : "each";
      inside.append("path").attr("class", kind).attr("d", line(points))
        .append("title").text(isTotal ? name : `worker ${worker}`);
    }
    const greatest = d3.max(lines, ([, all]) => d3.max(all)) || 0;
    svg.setAttribute("aria-label", `${name} over time; the most was ${text(greatest)}${column === 1 ? " CPUs" : ""}`);
  }

  /** Up to five round numbers of bytes up to `most`. */
  memoryTicks(most) {
    let step = 2 ** Math.floor(Math.log2(Math.max(most / 4, 1)));
    if (most / step > 5) step *= 2;
    return d3.range(0, most + step / 1e6, step);
  }
}
