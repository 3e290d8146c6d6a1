// The data in the page, as tools/report_data.cpp writes it: columns over all points, packed.

function floats(base64) {
  const packed = atob(base64);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; ++i) bytes[i] = packed.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

// The number at a place of a column, null where there is none. A column is { all } (the same everywhere),
// { list } or { f32 } (base64 of little-endian floats, unpacked once one of them is asked for).
function numbers(column) {
  if (!column) return () => null;
  if ("all" in column) return () => column.all;
  if (column.list) return (i) => column.list[i];
  let unpacked = null;
  return (i) => {
    unpacked ??= floats(column.f32);
    return Number.isNaN(unpacked[i]) ? null : unpacked[i];
  };
}

// A column of words is { all } or { words, at }.
function words(column, count) {
  if ("all" in column) return new Array(count).fill(column.all);
  return column.at.map((i) => column.words[i]);
}

// A job whose step time is given has no model: what it would train is written as 0, and is not there.
const modelled = new Set(["mfu", "mfu_step", "tokens"]);

function openMetric(metric) {
  const mean = numbers(metric.mean);
  return {
    name: metric.name,
    unit: metric.unit,
    share: metric.share,
    higherIsBetter: metric.higher_is_better,
    mean: modelled.has(metric.name) ? (point) => mean(point) || null : mean,
    low: numbers(metric.low),
    high: numbers(metric.high),
  };
}

// "storage.servers" as "servers", as long as no other axis would be called the same.
function shortKey(key, axes) {
  const parts = key.split(".");
  for (let n = 1; n < parts.length; ++n) {
    const tail = parts.slice(-n).join(".");
    if (axes.filter((a) => a.key === tail || a.key.endsWith(`.${tail}`)).length === 1) return tail;
  }
  return key;
}

const namedPoints = 60;

// "A" says little: what a point has of its own beside the others, its title or its settings.
function named(label, point, points, all) {
  if (label.length > 2) return label;
  const settings = (p) => JSON.parse(all.settings[p]);
  const own = settings(point).filter((s) => !points.every((p) => settings(p).includes(s)));
  const titles = new Set(points.map((p) => all.title[p]));
  const words = [...(titles.size > 1 ? [all.title[point]] : []), ...own];
  return `${label ? `${label}: ` : ""}${words.join(", ") || "as it is"}`;
}

function openRun(run, all, order) {
  const points = run.points.list ?? Array.from({ length: run.points.count }, (_, i) => run.points.from + i);
  return {
    ...run,
    points,
    labels: points.map((point, i) => {
      if (points.length === 1) return run.title || run.file;
      if (points.length > namedPoints || run.axes.length > 0) return `point ${i + 1}`;
      return named(run.labels?.[i] ?? "", point, points, all);
    }),
    comparisons: run.comparisons.sort((a, b) => a.a - b.a || a.b - b.b || order.indexOf(a.metric) - order.indexOf(b.metric)),
    axes: run.axes.map((axis) => ({
      ...axis,
      short: shortKey(axis.key, run.axes),
      numeric: axis.numbers.every((v) => v !== null),
      text: (i) => axis.texts[axis.at[i]],
      value: (i) => axis.numbers[axis.at[i]],
    })),
  };
}

export function openData(text) {
  const raw = JSON.parse(text);
  const count = raw.points.count;
  const metrics = new Map(raw.metrics.map((m) => [m.name, openMetric(m)]));
  const everywhere = Array.from({ length: count }, (_, point) => point);
  for (const name of modelled) {
    if (everywhere.every((point) => !metrics.get(name)?.mean(point))) metrics.delete(name);
  }
  const points = {
    count,
    title: words(raw.points.title, count),
    settings: words(raw.points.settings, count),
    status: words(raw.points.status, count),
    digest: words(raw.points.digest, count),
    problem: words(raw.points.problem, count),
    replicas: numbers(raw.points.replicas),
    gpus: numbers(raw.points.gpus),
  };
  return {
    ...raw,
    points,
    runs: raw.runs.map((run) => openRun(run, points, [...metrics.keys()])),
    metrics,
    mean: (name, point) => metrics.get(name)?.mean(point) ?? null,
    interval: (name, point) => {
      const metric = metrics.get(name);
      const low = metric?.low(point) ?? null;
      return low === null ? null : [low, metric.high(point)];
    },
    ledger: raw.ledger.map((c) => ({ ...c, fraction: numbers(c.fraction) })),
    interruptions: raw.interruptions.map((c) => ({ ...c, count: numbers(c.count) })),
  };
}
