// Connects the parts: reads the data, draws, and sets up buttons, links and keys.

function addContents() {
  const nav = document.getElementById("contents");
  for (const section of document.querySelectorAll("main section:not([hidden])")) {
    const heading = section.querySelector("h2");
    const count = heading.querySelector(".count");
    const link = element("a", {href: `#${section.id}`}, heading.firstChild.textContent.trim());
    if (count) link.append(element("span", {class: "count"}, ` ${count.textContent}`));
    nav.append(link);
  }
}

function connectTheme(restyle) {
  const themes = ["automatic", "light", "dark"];
  const button = document.getElementById("theme");
  let chosen = 0;
  const show = (theme) => {
    if (theme) document.documentElement.dataset.theme = themes[theme];
    else delete document.documentElement.dataset.theme;
    restyle();
  };
  button.addEventListener("click", () => {
    chosen = (chosen + 1) % themes.length;
    button.textContent = `Theme: ${themes[chosen]}`;
    show(chosen);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  window.addEventListener("beforeprint", () => show(1));  // paper is white
  window.addEventListener("afterprint", () => show(chosen));
}

function connectSearch(timeline) {
  const field = document.getElementById("task");
  let last = {task: -1, at: -1};
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const words = field.value.trim();
    const found = /^\d+$/.test(words) ? timeline.find(Number(words)) : [];
    if (!found.length) {
      document.getElementById("found").textContent =
        /^\d+$/.test(words) ? `Task ${words} has no attempt here.` : "A task is found by its number, from 0 in input order.";
      return;
    }
    last = {task: words, at: last.task === words ? (last.at + 1) % found.length : found.length - 1};
    timeline.mark(found[last.at]);
    if (found.length > 1) document.getElementById("found").textContent += ` (${found.length} attempts: Find shows the next)`;
  });
}

/** Turns the names of tasks elsewhere into buttons that show them in the timeline. */
function connectTasks(timeline) {
  for (const place of document.querySelectorAll("[data-task]")) {
    const {task, attempt} = place.dataset;
    const label = `Show task ${task} in the timeline`;
    const button = element("button", {type: "button", class: "task", "aria-label": label}, task);
    place.textContent = "";
    place.append(button);
    button.addEventListener("click", () => {
      const found = timeline.find(Number(task));
      const index = found.find((one) => timeline.attempts.attempt[one] === Number(attempt));
      if (index === undefined) return;
      document.getElementById("timeline").scrollIntoView();
      timeline.mark(index);
      timeline.box.focus({preventScroll: true});
    });
  }
}

function addLegend(timeline) {
  const legend = document.getElementById("legend");
  legend.textContent = "";
  const names = ["ok", "failed (✗)", "cancelled", "tried again (↻)", "start of a worker or host"];
  const there = new Set(timeline.attempts.outcome);
  if (timeline.attempts.rows.some((row) => row.phases.length)) there.add(kPhase);
  names.forEach((name, kind) => {
    if (!there.has(kind)) return;
    const item = element("li");
    const ratio = window.devicePixelRatio || 1;
    const canvas = element("canvas", {width: 26 * ratio, height: 12 * ratio, "aria-hidden": "true"});
    canvas.style.width = "26px";
    canvas.style.height = "12px";
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    new Blocks(context).block(kind, 0, 0, 26, 12);
    item.append(canvas, name);
    legend.append(item);
  });
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  document.getElementById("data").textContent = "";  // the unpacked data is enough
  const attempts = unpackAttempts(data.count, data.attempts);
  addPhases(attempts, data.phases);
  for (const part of document.querySelectorAll(".drawn")) part.hidden = false;
  document.getElementById("timeline").hidden = !attempts.rows.length;
  document.getElementById("distributions").hidden = !attempts.count;
  const body = document.getElementById("usage-body");
  const usage = data.usage ? new UsageCharts(data.usage, body) : null;
  if (!usage) body.append(element("p", {class: "note"}, "Not recorded in this run."));
  const failures = new Map(data.failures.map(([task, attempt, text]) => [`${task}/${attempt}`, text]));
  const onMove = (range) => usage && usage.show(range);
  const timeline = attempts.rows.length ? new Timeline(attempts, data.span, failures, onMove) : null;
  if (!timeline) onMove([0, data.usage ? data.usage.steps[data.usage.steps.length - 1][1] : 1]);
  const draw = () => {
    if (!timeline) return;
    addLegend(timeline);
    if (!attempts.count) return;
    const durations = attempts.end.map((end, i) => end - attempts.begin[i]);
    const waits = queueTimes(attempts, data.sessions.map((at) => at / 1e6));
    drawHistogram(document.getElementById("durations"), durations, "how long they took");
    drawHistogram(document.getElementById("queue"), waits, "how long workers waited");
  };
  draw();
  document.querySelectorAll("[data-hang]").forEach((figure) => {
    const report = data.hangs[figure.dataset.hang];
    if (report) drawHang(figure, report, Number(figure.dataset.hang));
  });
  addContents();
  connectTheme(() => {
    if (timeline) timeline.restyle();
    draw();
  });
  if (timeline) {
    connectSearch(timeline);
    connectTasks(timeline);
    const click = (id, act) => document.getElementById(id).addEventListener("click", act);
    click("zoom-in", () => timeline.zoomBy(2));
    click("zoom-out", () => timeline.zoomBy(0.5));
    click("zoom-all", () => timeline.show(0, timeline.span));
    click("next-bad", () => timeline.nextBad());
    document.getElementById("next-bad").disabled = !timeline.bad.length;
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (window.innerWidth !== width) draw();
      width = window.innerWidth;
    });
  }
  document.documentElement.dataset.ready = "true";
}

start();
