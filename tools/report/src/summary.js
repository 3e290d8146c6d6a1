// The top of the page: verdicts in sentences, then the figures that people ask for.

import { h, section } from "./dom.js";
import { difference, metricTitle, percent, spelled, value } from "./format.js";

// The run's points that have a result, the best first: by what decides between them.
export function ranked(data, run) {
  const by = run.decided_by ?? { metric: "goodput", better: "higher" };
  return run.points
    .map((point, at) => ({ point, at, goodput: data.mean("goodput", point), judged: data.mean(by.metric, point) }))
    .filter((p) => p.goodput !== null)
    .sort((a, b) => (by.better === "higher" ? b.judged - a.judged : a.judged - b.judged));
}

// "servers 8, interval 30 min", or the point's label.
export function nameOf(run, at) {
  if (run.axes.length === 0) return run.labels[at] || run.title || run.file;
  return run.axes.map((axis) => `${axis.short} ${axis.text(at)}`).join(", ");
}

const confidence = (c) => `${Number((100 * c.confidence).toFixed(2))} %`;

const metricOf = (data, c) => data.metrics.get(c.metric) ?? { name: c.metric, unit: c.unit };

function compared(data, run, c, decides) {
  const metric = metricOf(data, c);
  const [a, b] = [nameOf(run, c.a), nameOf(run, c.b)];
  // A verdict for the first design is told as its gain, with the interval turned round likewise.
  const [change, low, high] = c.verdict === "a" ? [-c.difference, -c.high, -c.low] : [c.difference, c.low, c.high];
  const size = difference(metric, change);
  const interval = c.low === null ? "" : `${confidence(c)} interval ${difference(metric, low)} to ${difference(metric, high)}, `;
  const pairs = `${interval}${c.pairs} pairs of replicas on the same random numbers`;
  const what = metricTitle(c.metric);
  if (c.verdict === "undecided") {
    const more = c.pairs_to_settle ? `; about ${c.pairs_to_settle.toLocaleString("en")} pairs would settle it` : "";
    return h("li", { class: "open" }, `${what}: undecided between “${a}” and “${b}”${more}.`, h("small", {}, `${size}, ${pairs}`));
  }
  if (c.verdict === "equal") {
    return h("li", {}, `${what}: “${a}” and “${b}” give the same.`, h("small", {}, pairs));
  }
  const [winner, loser] = c.verdict === "b" ? [b, a] : [a, b];
  const said = decides ? `choose “${winner}”, ${size} against “${loser}”.` : `“${winner}” is better, ${size} against “${loser}”.`;
  return h("li", { class: decides ? "good" : "" }, `${what}: ${said}`, h("small", {}, `difference ${size}, ${pairs}`));
}

const listed = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);

// One sentence for each pair of three designs or more is a riddle: the best of all, or those that nothing beats.
function amongAll(data, run, pairs, decides) {
  const metric = metricOf(data, pairs[0]);
  const what = metricTitle(metric.name);
  const name = (at) => `“${nameOf(run, at)}”`;
  const beaten = new Map(); // by whom, in which comparison
  for (const c of pairs) {
    if (c.verdict === "a") beaten.set(c.b, [...(beaten.get(c.b) ?? []), { by: c.a, gain: -c.difference, low: -c.high, high: -c.low }]);
    if (c.verdict === "b") beaten.set(c.a, [...(beaten.get(c.a) ?? []), { by: c.b, gain: c.difference, low: c.low, high: c.high }]);
  }
  const all = run.points.map((_, at) => at);
  const best = all.find((at) => all.every((other) => other === at || beaten.get(other)?.some((l) => l.by === at)));
  const unbeaten = all.filter((at) => !beaten.has(at));
  if (best === undefined) {
    const equal = pairs.every((c) => c.verdict === "equal");
    if (equal) return h("li", {}, `${what}: all ${all.length} designs give the same.`);
    return h("li", { class: "open" }, `${what}: none beats all others; ${unbeaten.length ? `undecided between ${listed(unbeaten.map(name))}` : "each is beaten by another"}.`);
  }
  const gains = all.filter((at) => at !== best)
    .map((at) => ({ at, ...beaten.get(at).find((l) => l.by === best) }))
    .sort((x, y) => Math.abs(x.gain) - Math.abs(y.gain));
  const shown = gains.slice(0, 3);
  const more = gains.length > shown.length ? ` and ${gains.length - shown.length} more` : "";
  const said = shown.map((g) => `${difference(metric, g.gain)} against ${name(g.at)}`);
  return h("li", { class: decides ? "good" : "" }, `${what}: ${decides ? `choose ${name(best)}` : `${name(best)} is best`}, ${listed(said)}${more}.`,
    h("small", {}, `${confidence(pairs[0])} intervals ${listed(shown.map((g) => `${difference(metric, g.low)} to ${difference(metric, g.high)}`))}, ${pairs[0].pairs} pairs of replicas on the same random numbers`));
}

// What decides, what may say otherwise (goodput is a share of the GPU time, and GPUs differ), and money.
const outcomes = ["goodput", "tokens", "wall_time", "jct_mean", "jobs_completed"];
function comparisons(data, run) {
  const names = [...new Set(run.comparisons.map((c) => c.metric))];
  if (names.length === 0) return [];
  const decided = run.decided_by?.metric;
  const first = names.includes(decided) ? decided : names.includes("goodput") ? "goodput" : names[0];
  const of = (name) => run.comparisons.filter((c) => c.metric === name);
  const told = outcomes.filter((name) => of(name).some((c) => ["a", "b"].includes(c.verdict)));
  const money = names.filter((name) => of(name)[0].unit === "USD");
  return [...new Set([first, ...told, ...money])].slice(0, 8)
    .map((name) => (run.points.length > 2 ? amongAll(data, run, of(name), name === first) : compared(data, run, of(name)[0], name === first)));
}

function losses(data, point, count) {
  return data.ledger
    .filter((c) => c.name !== "productive" && c.fraction(point) > 0)
    .sort((a, b) => b.fraction(point) - a.fraction(point))
    .slice(0, count)
    .map((c) => `${spelled(c.name)} ${percent(c.fraction(point))}`)
    .join(", ");
}

function single(data, run, { point, at, goodput }) {
  const interval = data.interval("goodput", point)?.map((v) => Math.min(1, Math.max(0, v)));
  const range = interval ? `, 95 % interval ${percent(interval[0])} to ${percent(interval[1])}` : "";
  const name = run.points.length > 1 ? `“${nameOf(run, at)}”: ` : "";
  return h("li", {}, `${name}${percent(goodput)} of the GPU time is productive${range}.`,
    h("small", {}, `The rest, most first: ${losses(data, point, 5) || "nothing"}.`));
}

function swept(data, run, order) {
  const best = order[0];
  const worst = order.at(-1);
  return [
    h("li", { class: "good" },
      `The best of ${order.length.toLocaleString("en")} points, by ${metricTitle(run.decided_by?.metric ?? "goodput")}, reaches ${percent(best.goodput)} goodput: ${nameOf(run, best.at)}.`,
      h("small", {}, `It loses most to ${losses(data, best.point, 3)}.`)),
    h("li", { class: "bad" },
      `The worst reaches ${percent(worst.goodput)}: ${nameOf(run, worst.at)}.`,
      h("small", {}, `It loses most to ${losses(data, worst.point, 3)}.`)),
  ];
}

// Whether the verdict stands at both ends of each estimate's range.
function survival(data, run) {
  const of = data.verdict_estimates;
  if (!of || of.run !== run.run) return [];
  const turning = of.moving.filter((e) => e.turns).map((e) => e.name);
  const undecided = of.moving.filter((e) => e.undecided).map((e) => e.name);
  const [best, second] = [nameOf(run, of.best), nameOf(run, of.second)];
  const read = `${of.estimates_read} estimates were read, ${of.moving.length} of them move the difference; one without a range is tried at ${of.default_range[0]} and ${of.default_range[1]} times its value.`;
  const said = turning.length === 0
    ? undecided.length > 0
      ? `“${second}” is better than “${best}” at no end of an estimate that was read, but at an end of ${listed(undecided)} too few replicas tell the two apart.`
      : `“${best}” stays better than “${second}” at both ends of each estimate that was read${of.decided ? "" : ", by a mean that is not settled"}.`
    : `At an end of ${listed(turning)} “${second}” is better than “${best}”: the verdict does not survive ${turning.length === 1 ? "it" : "them"}.`;
  return [h("li", { class: turning.length === 0 ? "good" : "open" }, said, h("small", {}, read))];
}

// How far an unfinished run has come: points that are done, and those of which some replicas are.
function progressOf(data, run) {
  const open = run.points.filter((p) => data.points.status[p] === "open");
  const begun = open.filter((p) => data.points.replicas(p) > 0);
  const done = `${run.points.length - open.length} of ${run.points.length} points are done`;
  if (begun.length === 0) return open.length === run.points.length ? `${done}. The same command goes on with it.` : `${done}, and what follows is of those.`;
  const replicas = begun.reduce((sum, p) => sum + data.points.replicas(p), 0);
  const wanted = begun.length * run.replicas_wanted;
  const part = `${replicas.toLocaleString("en")} of ${wanted.toLocaleString("en")} replicas`;
  if (run.points.length === 1) return `${part} are done, and what follows is of those.`;
  return `${done}, ${begun.length} more in part (${part}), and what follows is of those.`;
}

export function verdicts(data, run) {
  const order = ranked(data, run);
  const items = run.kind === "sweep" ? [] : comparisons(data, run); // a sweep has the best point against the next alone
  if (items.length === 0 && order.length > 4) items.push(...swept(data, run, order));
  else if (items.length === 0) items.push(...order.map((p) => single(data, run, p)));
  if (run.kind === "sweep") items.push(...run.comparisons.map((c) => compared(data, run, c, true)));
  items.push(...survival(data, run));
  const impossible = run.points.filter((p) => data.points.status[p] === "impossible").length;
  if (impossible > 0) items.push(h("li", { class: "bad" }, `${impossible} of ${run.points.length} points are impossible designs; the table of points says why.`));
  if (!["complete", "impossible"].includes(run.status)) {
    items.push(h("li", { class: "open" }, `This run is ${run.status === "running" ? "not finished" : run.status}: ${progressOf(data, run)}`));
  }
  return h("ul", { class: "verdicts" }, items);
}

// A mean within its interval, on a scale from 0 to 1 or around it.
function whisker(metric, mean, interval) {
  const [low, high] = interval;
  const span = metric.share ? [0, 1] : [Math.min(0, low), Math.max(high, mean) * 1.15 || 1];
  const x = (v) => 2 + (96 * (v - span[0])) / (span[1] - span[0]);
  const at = (tag, attributes) => {
    const shape = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, v] of Object.entries(attributes)) shape.setAttribute(name, v);
    return shape;
  };
  const svg = at("svg", { class: "whisker", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(
    at("line", { class: "track", x1: 2, x2: 98, y1: 5, y2: 5, "stroke-width": 2 }),
    at("line", { class: "interval", x1: x(low), x2: Math.max(x(high), x(low) + 0.5), y1: 5, y2: 5, "stroke-width": 5 }),
    at("rect", { class: "mean", x: x(mean) - 0.5, y: 0, width: 1, height: 10 }),
  );
  return svg;
}

// A symmetric interval may reach beyond what can be.
const possible = (metric, v) => Math.min(Math.max(v, 0), metric.share ? 1 : Infinity);

function card(data, name, point) {
  const metric = data.metrics.get(name);
  const mean = data.mean(name, point);
  if (!metric || mean === null) return null;
  const interval = data.interval(name, point)?.map((v) => possible(metric, v)) ?? null;
  const alone = data.points.replicas(point) === 1 ? "one replica, no interval" : "";
  return h("div", { class: "card" },
    h("div", { class: "name" }, metricTitle(name)),
    h("div", { class: "value" }, value(metric, mean)),
    interval ? whisker(metric, mean, interval) : null,
    h("div", { class: "range" }, interval ? `${value(metric, interval[0])} to ${value(metric, interval[1])}` : alone));
}

const asked = ["goodput", "ettr", "mfu", "tokens", "wall_time", "interruptions", "mean_time_between_interruptions", "recovery_per_interruption",
  "utilisation", "jobs_completed", "wait_mean", "wait_p95", "jct_mean"]; // the last five: of many jobs

export function summary(data, run) {
  const order = ranked(data, run);
  const best = order[0];
  const costs = [...data.metrics.values()]
    .filter((m) => m.unit.startsWith("USD") && best && data.mean(m.name, best.point) > 0)
    .slice(0, 4)
    .map((m) => m.name);
  const of = run.points.length > 1 && best ? `Figures of “${nameOf(run, best.at)}”, the best by ${metricTitle(run.decided_by?.metric ?? "goodput")}; 95 % intervals of the mean, of money the middle 95 % of what prices and failures make of it.` : "95 % intervals of the mean over replicas.";
  return section("summary", run.title || run.file, null,
    verdicts(data, run),
    best ? h("p", { class: "about" }, of) : null,
    best ? h("div", { class: "cards" }, [...asked, ...costs].map((name) => card(data, name, best.point))) : null);
}
