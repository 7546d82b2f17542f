// The data embedded in the page (page_data() in run_page.h describes the format), unpacked into arrays.

/** The bytes of a base64 text. */
function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** Attempts by worker and start: {count, task, begin, end, outcome, attempt, row}, times in seconds, and rows of
    [{worker, from, to}]. */
function unpackAttempts(count, base64) {
  const bytes = bytesOf(base64);
  let at = 0;
  const next = () => {
    let number = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = bytes[at++];
      number += (byte & 127) * unit;
      if (byte < 128) return number;
    }
  };
  const all = {
    count, rows: [],
    task: new Float64Array(count), begin: new Float64Array(count), end: new Float64Array(count),
    outcome: new Uint8Array(count), attempt: new Uint32Array(count), row: new Uint32Array(count),
  };
  for (let i = 0; i < count; ) {
    const row = {worker: next(), from: i, to: i + next()};
    let task = 0;
    let begin = 0;
    for (; i < row.to; ++i) {
      const step = next();
      task += step % 2 ? -(step + 1) / 2 : step / 2;
      begin += next();
      all.task[i] = task;
      all.begin[i] = begin / 1e6;
      all.end[i] = (begin + next()) / 1e6;
      const packed = next();
      all.attempt[i] = Math.floor(packed / 4);
      all.outcome[i] = packed % 4;
      all.row[i] = all.rows.length;
    }
    all.rows.push(row);
  }
  return all;
}

/** Adds `phases` ([{begin, end, text}], ascending) to each row, and rows of hosts and of workers without attempts. */
function addPhases(attempts, list) {
  const rows = new Map(attempts.rows.map((row) => [row.worker, row]));
  for (const [worker] of list) if (!rows.has(worker)) rows.set(worker, {worker, from: 0, to: 0});
  for (const row of rows.values()) row.phases = [];
  for (const [worker, begin, took, text] of list) {
    rows.get(worker).phases.push({begin: begin / 1e6, end: (begin + took) / 1e6, text});
  }
  attempts.rows = [...rows.values()].sort((a, b) => a.worker - b.worker);
  attempts.rows.forEach((row, number) => {
    row.phases.sort((a, b) => a.begin - b.begin);
    attempts.row.fill(number, row.from, row.to);
  });
}

/** How long each worker waited before each attempt: since its previous one ended, or since mprun began. Seconds. */
function queueTimes(attempts, sessions) {
  const waits = new Float64Array(attempts.count);
  for (const row of attempts.rows) {
    let free = -Infinity;
    for (let i = row.from; i < row.to; ++i) {
      const begin = attempts.begin[i];
      for (const session of sessions) {
        if (session <= begin) free = Math.max(free, session);
      }
      waits[i] = Number.isFinite(free) ? Math.max(0, begin - free) : 0;
      free = Math.max(free, attempts.end[i]);
    }
  }
  return waits;
}

/** The first index in [from, to) whose value is greater than `value`, in an ascending array. */
function firstAfter(values, value, from, to) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] > value) to = middle;
    else from = middle + 1;
  }
  return from;
}
