// Where the GPU time goes, and what interruptions cost.

import { axisStyle, figure, ink, narrow } from "./charts.js";
import { ledgerColours, series } from "./colours.js";
import { bold, csvButton, h, lines, section } from "./dom.js";
import { percent, spelled, time, timeTicks } from "./format.js";
import { nameOf, ranked } from "./summary.js";

const bars = 12;

// Of few points all, in their order; of many the best, the worst and what lies between.
export function chosenPoints(data, run) {
  if (run.points.length <= bars) return run.points.map((point, at) => ({ point, at })).filter((p) => data.mean("goodput", p.point) !== null);
  const order = ranked(data, run);
  if (order.length <= bars) return order; // the others have no result, or none yet
  return Array.from({ length: bars }, (_, i) => order[Math.round((i * (order.length - 1)) / (bars - 1))]);
}

const short = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

// Pixels that a legend of these parts takes: all of it is shown, in as many lines as that needs.
function legendHeight(parts) {
  const wide = narrow() ? window.innerWidth - 50 : Math.min(1180, window.innerWidth) / 2 - 70;
  let count = 1;
  let used = 0;
  for (const part of parts) {
    const width = 7 * part.name.length + 32;
    if (used > 0 && used + width > wide) {
      count += 1;
      used = 0;
    }
    used += width;
  }
  return 22 * count;
}
const stackedHeight = (rows, parts) => Math.max(120, 42 * rows.length + 40) + legendHeight(parts) + 40;

// The series that a bar is of, after a spot of its colour.
const marked = (item) => [h("span", { style: `color:${item.color}` }, "● "), bold(item.seriesName)];

function stacked(rows, parts, formatter, axisName) {
  const { text } = ink();
  const compact = narrow();
  return {
    legend: { bottom: 0, textStyle: { color: text }, icon: "roundRect", itemWidth: 12, itemHeight: 10 },
    grid: { left: compact ? 8 : 12, right: 20, top: compact ? 4 : 8, bottom: legendHeight(parts) + 14, containLabel: true },
    tooltip: { trigger: "item", formatter },
    xAxis: axisStyle({ type: "value", max: axisName.max, interval: axisName.interval, name: axisName.name, nameLocation: "middle", nameGap: 26, axisLabel: { color: ink().faint, formatter: axisName.label, hideOverlap: true } }),
    yAxis: axisStyle({ type: "category", inverse: true, data: rows, axisLabel: { color: text, width: compact ? 96 : 260, overflow: "truncate" }, splitLine: { show: false } }),
    series: parts.map((part) => ({
      type: "bar", stack: "all", name: part.name, data: part.values, barMaxWidth: 34, barCategoryGap: "28%",
      itemStyle: { color: part.colour, borderColor: ink().panel, borderWidth: 0.5 },
      emphasis: { focus: "series" },
    })),
  };
}

// Of a single point a bar for each loss, with its share in digits.
function losses(parts) {
  const lost = parts.filter((p) => p.name !== "productive").sort((a, b) => b.values[0] - a.values[0]);
  return figure("What is not productive, largest first.", 50 + 27 * lost.length, () => ({
    grid: { left: 12, right: 70, top: 4, bottom: 10, containLabel: true },
    tooltip: { formatter: (item) => lines([bold(item.name), ` ${percent(item.value, 3)}`], lost[item.dataIndex].doc) },
    xAxis: axisStyle({ type: "value", axisLabel: { show: false }, splitLine: { show: false }, axisLine: { show: false } }),
    yAxis: axisStyle({ type: "category", inverse: true, data: lost.map((p) => p.name), axisLabel: { color: ink().text, interval: 0 }, splitLine: { show: false } }),
    series: [{ type: "bar", barMaxWidth: 16, data: lost.map((p) => ({ value: p.values[0], itemStyle: { color: p.colour, borderRadius: 2 } })),
      label: { show: true, position: "right", color: ink().text, formatter: (item) => percent(item.value) } }],
  }));
}

export function ledger(data, run) {
  const shown = chosenPoints(data, run);
  if (shown.length === 0) return null;
  const rows = shown.map((p) => (run.points.length === 1 ? "all GPUs" : nameOf(run, p.at)));
  const parts = data.ledger
    .filter((c) => shown.some((p) => c.fraction(p.point) > 0))
    .map((c) => ({ name: spelled(c.name), doc: c.doc, colour: ledgerColours[c.name] ?? "#999", values: shown.map((p) => c.fraction(p.point)) }));
  const alone = rows.length === 1 ? losses(parts) : null;
  const lost = figure(
    "Every GPU second is booked once; a bar is all of them.",
    stackedHeight(rows, parts),
    () => stacked(rows, parts, (item) => lines(short(rows[item.dataIndex], 60), [...marked(item), ` ${percent(item.value, 3)}`], parts[item.seriesIndex].doc),
      { max: 1, label: (v) => `${Math.round(100 * v)} %` }),
  );
  const zoomed = alone ?? figure(
    "The same without the productive part, so that small losses can be told apart.",
    stackedHeight(rows, parts),
    () => stacked(rows, parts.filter((p) => p.name !== "productive"), (item) => lines(short(rows[item.dataIndex], 60), [...marked(item), ` ${percent(item.value, 3)}`]),
      { label: (v) => `${+(100 * v).toFixed(1)} %` }),
  );
  const csv = csvButton("ledger", () => ({
    header: ["point", ...data.ledger.map((c) => c.name)],
    rows: run.points.map((point, at) => [nameOf(run, at), ...data.ledger.map((c) => c.fraction(point))]),
  }));
  const some = run.points.length > bars ? ` Shown: ${shown.length} of ${run.points.length.toLocaleString("en")} points, from the best to the worst.` : "";
  return section("ledger", ["Where the GPU time goes", "GPU time"], `All GPU time of the cluster, spares and repair included.${some}`,
    h("div", { class: "controls" }, csv),
    h("div", { class: "pair" }, lost.element, zoomed.element));
}

const phases = ["lost_work", "detection", "replacement", "requeue_wait", "restart", "restore"];

export function interruptions(data, run) {
  const shown = chosenPoints(data, run);
  const rows = shown.map((p) => (run.points.length === 1 ? "mean" : nameOf(run, p.at)));
  const causes = data.interruptions
    .filter((c) => shown.some((p) => c.count(p.point) > 0))
    .sort((a, b) => b.count(shown[0].point) - a.count(shown[0].point));
  if (causes.length === 0) return null;
  const label = (v) => (v >= 10 ? v.toFixed(0) : v.toFixed(2));
  const { text } = ink();
  const named = shown.length > 1 ? 22 * Math.min(shown.length, 4) : 0; // a line each
  const counts = figure("Unexpected interruptions by cause, mean over replicas.", Math.max(180, Math.min(620, 26 * causes.length + 70)) + named, () => ({
    grid: { left: 12, right: 50, top: 8, bottom: named + 14, containLabel: true },
    legend: named ? { bottom: 0, left: 0, orient: "vertical", textStyle: { color: text } } : { show: false },
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (v) => label(v) },
    xAxis: axisStyle({ type: "value" }),
    yAxis: axisStyle({ type: "category", inverse: true, data: causes.map((c) => spelled(c.cause)), axisLabel: { color: ink().text, width: narrow() ? 110 : 190, overflow: "truncate", interval: 0 }, splitLine: { show: false } }),
    series: shown.slice(0, 4).map((p, i) => ({
      type: "bar", name: short(rows[i], narrow() ? 44 : 70), barMaxWidth: 18, data: causes.map((c) => c.count(p.point)), itemStyle: { color: series[i], borderRadius: 2 },
      label: { show: shown.length === 1, position: "right", color: ink().faint, formatter: (item) => label(item.value) },
    })),
  }));
  const waits = phases.filter((phase) => shown.some((p) => data.mean(`${phase}_per_interruption`, p.point) > 0)); // none: of many jobs
  const costs = waits.map((phase) => ({ name: spelled(phase), colour: ledgerColours[phase], values: shown.map((p) => data.mean(`${phase}_per_interruption`, p.point) ?? 0) }));
  const longest = Math.max(...shown.map((_, i) => costs.reduce((sum, part) => sum + part.values[i], 0)));
  const cost = waits.length > 0 && figure("What one interruption costs on average, by what the job waits for.", stackedHeight(rows, costs), () =>
    stacked(rows, costs, (item) => [...marked(item), ` ${time(item.value)}`], { label: (v) => time(v), interval: timeTicks(longest) }));
  const csv = csvButton("interruptions", () => ({
    header: ["point", ...data.interruptions.map((c) => c.cause)],
    rows: run.points.map((point, at) => [nameOf(run, at), ...data.interruptions.map((c) => c.count(point))]),
  }));
  return section("interruptions", ["Interruptions and recovery", "Interruptions"], "What stops the job, how often, and where the time goes until it steps again.",
    h("div", { class: "controls" }, csv),
    h("div", { class: "pair" }, counts.element, cost ? cost.element : null));
}
