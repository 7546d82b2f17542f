// How numbers are written, and small helpers for what is made of them.

/** A time as mprun writes it: "12µs", "3.5ms", "1.50s", "3m20s". */
function timeText(seconds) {
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)}µs`;
  if (seconds < 0.9995) return `${Number((seconds * 1e3).toPrecision(3))}ms`;
  if (seconds < 60) return `${seconds.toFixed(2)}s`;
  return clockText(seconds, 1);
}

/** A place on a time axis whose ticks are `step` seconds apart. */
function clockText(seconds, step) {
  if (seconds < step / 1e6) return "0s";
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
  if (seconds < 1 && step < 0.1) return smallText(seconds, step);
  if (seconds < 60) return `${seconds.toFixed(digits)}s`;
  const two = (number) => String(number).padStart(2, "0");
  const whole = digits ? Math.floor(seconds) : Math.round(seconds);
  const rest = digits ? (seconds % 1).toFixed(digits).slice(1) : "";
  const parts = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  if (parts[0]) return `${parts[0]}d${two(parts[1])}h` + (step < 3600 ? `${two(parts[2])}m` : "");
  if (parts[1]) return `${parts[1]}h${two(parts[2])}m` + (step < 60 ? `${two(parts[3])}${rest}s` : "");
  return `${parts[2]}m${two(parts[3])}${rest}s`;
}

function smallText(seconds, step) {
  const [unit, name] = seconds >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  const digits = Math.max(0, Math.min(3, -Math.floor(Math.log10(step * unit) + 1e-9)));
  return `${(seconds * unit).toFixed(digits)}${name}`;
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10 + 1e-9));
  const value = bytes / 1024 ** power;
  return `${value >= 100 || power === 0 ? Math.round(value) : Number(value.toPrecision(3))} ${units[power]}`;
}

const countText = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const workerText = (worker) => (worker < 0 ? "host" : `worker ${worker}`);
const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** A new HTML element; `inside` is text, never markup. */
function element(name, attributes = {}, inside = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = inside;
  return made;
}

/** The colours of page.css as they are now, by name. */
function colours() {
  const probe = document.body.appendChild(element("span", {hidden: ""}));
  const found = {};
  for (const name of ["panel", "row", "text", "muted", "line", "ok", "on-ok", "failed", "on-failed", "retried",
    "on-retried", "cancelled", "phase", "on-phase", "mark"]) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}
