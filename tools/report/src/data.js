// The data in the page, as tools/report_data.cpp writes it: columns over all points, packed.

// A column of numbers is { all } (the same everywhere), { list } or { f32 } (base64 of little-endian floats).
function numbers(column, count) {
  if (!column) return null;
  if ("all" in column) return new Array(count).fill(column.all);
  if (column.list) return column.list;
  const bytes = Uint8Array.from(atob(column.f32), (c) => c.charCodeAt(0));
  return Array.from(new Float32Array(bytes.buffer), (v) => (Number.isNaN(v) ? null : v));
}

// A column of words is { all } or { words, at }.
function words(column, count) {
  if ("all" in column) return new Array(count).fill(column.all);
  return column.at.map((i) => column.words[i]);
}

// What is decoded once it is asked for.
function lazily(make) {
  let value;
  return () => (value ??= make());
}

// A job whose step time is given has no model: what it would train is written as 0, and is not there.
const modelled = new Set(["mfu", "mfu_step", "tokens"]);

function openMetric(metric, count) {
  const mean = () => numbers(metric.mean, count);
  return {
    name: metric.name,
    unit: metric.unit,
    share: metric.share,
    higherIsBetter: metric.higher_is_better,
    mean: lazily(modelled.has(metric.name) ? () => mean().map((v) => v || null) : mean),
    low: lazily(() => numbers(metric.low, count)),
    high: lazily(() => numbers(metric.high, count)),
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
  const metrics = new Map(raw.metrics.map((m) => [m.name, openMetric(m, count)]));
  for (const name of modelled) {
    if (!metrics.get(name)?.mean().some((v) => v !== null)) metrics.delete(name);
  }
  const points = {
    count,
    title: words(raw.points.title, count),
    settings: words(raw.points.settings, count),
    status: words(raw.points.status, count),
    digest: words(raw.points.digest, count),
    problem: words(raw.points.problem, count),
    replicas: numbers(raw.points.replicas, count),
    gpus: numbers(raw.points.gpus, count),
  };
  return {
    ...raw,
    points,
    runs: raw.runs.map((run) => openRun(run, points, [...metrics.keys()])),
    metrics,
    mean: (name, point) => metrics.get(name)?.mean()[point] ?? null,
    interval: (name, point) => {
      const metric = metrics.get(name);
      const low = metric?.low()?.[point] ?? null;
      return low === null ? null : [low, metric.high()[point]];
    },
    ledger: raw.ledger.map((c) => ({ ...c, fraction: numbers(c.fraction, count) })),
    interruptions: raw.interruptions.map((c) => ({ ...c, count: numbers(c.count, count) })),
  };
}
