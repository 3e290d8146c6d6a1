// A sweep: any axis and any metric against each other.

import { axisStyle, figure, ink, narrow } from "./charts.js";
import { cellScale, lineScale } from "./colours.js";
import { bold, choice, csvButton, h, lines, section } from "./dom.js";
import { metricTitle, percent, value } from "./format.js";
import { nameOf, ranked } from "./summary.js";

const cells = 40; // an axis with more values is drawn as points, not as cells

// What may lie on an axis of a chart: the sweep's own axes, and metrics. `number` is of a position in the run.
function quantities(data, run) {
  const axes = run.axes.map((axis) => ({
    id: `axis:${axis.key}`, title: axis.key, axis, numeric: axis.numeric,
    number: (at) => (axis.numeric ? axis.value(at) : axis.at[at]),
    text: (at) => axis.text(at),
    show: (v) => (axis.numeric ? value({ name: "", unit: axis.unit }, v) : axis.texts[Math.round(v)] ?? ""),
  }));
  const metrics = [...data.metrics.values()]
    .filter((m) => run.points.some((p) => m.mean(p) !== null))
    .map((metric) => ({
      id: `metric:${metric.name}`, title: metricTitle(metric.name), metric, numeric: true,
      number: (at) => metric.mean(run.points[at]),
      text: (at) => value(metric, metric.mean(run.points[at])),
      show: (v) => value(metric, v),
    }));
  return { axes, metrics, all: new Map([...axes, ...metrics].map((q) => [q.id, q])) };
}

const options = (list) => list.map((q) => [q.id, q.title]);

function range(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    if (v === null || !Number.isFinite(v)) continue;
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  return low <= high ? [low, high] : [0, 1];
}

function colourScale(quantity, values, dimension, color = lineScale) {
  const [min, max] = range(values);
  return {
    type: "continuous", dimension, min, max: max > min ? max : min + 1, calculable: !narrow(), orient: "horizontal", left: "center", bottom: 0, itemHeight: narrow() ? 90 : 160, itemWidth: 12,
    inRange: { color }, textStyle: { color: ink().faint }, formatter: (v) => quantity.show(v), text: [quantity.title, ""],
  };
}

// Mean over all other axes, by cell.
function gathered(run, x, y, z) {
  const sums = new Map();
  run.points.forEach((_, at) => {
    const v = z.number(at);
    if (v === null) return;
    const key = x.axis.at[at] * 100000 + y.axis.at[at];
    const cell = sums.get(key) ?? [x.axis.at[at], y.axis.at[at], 0, 0];
    cell[2] += v;
    cell[3] += 1;
    sums.set(key, cell);
  });
  return [...sums.values()].map(([i, k, sum, n]) => [i, k, sum / n, n]);
}

// Texts of an axis in the order of its numbers.
function sortedTexts(axis) {
  const order = axis.texts.map((_, i) => i);
  if (axis.numeric) order.sort((a, b) => axis.numbers[a] - axis.numbers[b]);
  const place = new Map(order.map((i, k) => [i, k]));
  return { texts: order.map((i) => axis.texts[i]), place };
}

function heatOptions(run, x, y, z) {
  const [sx, sy] = [sortedTexts(x.axis), sortedTexts(y.axis)];
  const drawn = gathered(run, x, y, z).map(([i, k, v, n]) => [sx.place.get(i), sy.place.get(k), v, n]);
  const few = drawn.length <= 120 && !narrow();
  const [low, high] = range(drawn.map((d) => d[2]));
  const onCell = (v) => (v - low > 0.55 * (high - low) ? "#17202c" : "#ffffff"); // the scale's upper half is light
  return {
    grid: { left: 16, right: 20, top: 28, bottom: 92, containLabel: true },
    tooltip: { formatter: ({ value: [i, k, v, n] }) => lines(`${x.title} ${sx.texts[i]}`, `${y.title} ${sy.texts[k]}`, bold(`${z.title} ${z.show(v)}`), n > 1 && `mean of ${n} points`) },
    visualMap: colourScale(z, drawn.map((d) => d[2]), 2, cellScale),
    xAxis: axisStyle({ type: "category", data: sx.texts, name: x.title, nameLocation: "middle", nameGap: 30, splitLine: { show: false } }),
    yAxis: axisStyle({ type: "category", data: sy.texts, name: y.title, nameLocation: "end", splitLine: { show: false }, nameTextStyle: { align: "left", color: ink().faint } }),
    series: [{ type: "heatmap", data: drawn.map((value) => ({ value, label: { color: onCell(value[2]) } })), label: { show: few, formatter: ({ value }) => z.show(value[2]), fontSize: 11 }, itemStyle: { borderColor: ink().panel, borderWidth: 1 } }],
  };
}

// Values over more than this factor are told apart on a logarithmic axis only.
const linearMax = 20;

function scaleOf(quantity) {
  const [low, high] = quantity.axis?.numeric ? range(quantity.axis.numbers) : [0, 0];
  return low > 0 && high / low > linearMax ? { type: "log", min: low / 1.2, max: high * 1.2 } : { type: "value", scale: true };
}

function axisFor(quantity, more) {
  return axisStyle({ ...scaleOf(quantity), axisLabel: { color: ink().faint, formatter: (v) => quantity.show(v), hideOverlap: true }, name: quantity.title, nameLocation: "middle", ...more });
}

const details = (data, run, at) => [nameOf(run, at), `goodput ${percent(data.mean("goodput", run.points[at]))}`];

function scatterOptions(data, run, x, y, z) {
  const drawn = run.points.map((_, at) => [x.number(at), y.number(at), z.number(at), at]).filter((d) => d[0] !== null && d[1] !== null && d[2] !== null);
  return {
    grid: { left: 24, right: 20, top: 20, bottom: 96, containLabel: true },
    tooltip: { formatter: ({ value: v }) => lines(...details(data, run, v[3]), bold(`${z.title} ${z.show(v[2])}`)) },
    visualMap: colourScale(z, drawn.map((d) => d[2]), 2),
    xAxis: axisFor(x, { nameGap: 30 }),
    yAxis: axisFor(y, { nameGap: narrow() ? 44 : 58 }),
    series: [{ type: "scatter", data: drawn, symbolSize: drawn.length > 2000 ? 4 : 8, itemStyle: { opacity: 0.8 } }],
  };
}

// Those that no other point beats in both; `down`: less is better.
export function paretoFront(points, xDown, yDown) {
  const sx = xDown ? 1 : -1;
  const sy = yDown ? 1 : -1;
  const order = [...points].sort((a, b) => sx * (a[0] - b[0]) || sy * (a[1] - b[1]));
  const front = [];
  let best = Infinity;
  for (const p of order) {
    if (sy * p[1] < best) {
      front.push(p);
      best = sy * p[1];
    }
  }
  return front;
}

function paretoOptions(data, run, x, y, front, all) {
  const tooltip = { formatter: ({ value: v }) => lines(...details(data, run, v[2]), `${x.title} ${x.show(v[0])}`, bold(`${y.title} ${y.show(v[1])}`)) };
  return {
    grid: { left: 24, right: 24, top: 34, bottom: 50, containLabel: true },
    legend: { top: 0, textStyle: { color: ink().text } },
    tooltip,
    xAxis: axisFor(x, { nameGap: 30 }),
    yAxis: axisFor(y, { nameGap: narrow() ? 44 : 58 }),
    series: [
      { type: "scatter", name: "points", data: all, symbolSize: all.length > 2000 ? 3 : 6, itemStyle: { color: ink().faint, opacity: 0.4 } },
      { type: "line", name: "Pareto front", step: false, data: front, symbol: "circle", symbolSize: 9, lineStyle: { width: 2, color: "#d64545" }, itemStyle: { color: "#d64545" } },
    ],
  };
}

function parallelOptions(run, chosen, colour) {
  const drawn = run.points.map((_, at) => [...chosen.map((q) => q.number(at)), colour.number(at)]).filter((d) => d.every((v) => v !== null));
  const compact = narrow();
  const { text, faint, line, panel } = ink();
  const halo = { textBorderColor: panel, textBorderWidth: 3 }; // lines cross the labels
  return {
    tooltip: { show: false },
    parallel: { left: compact ? 30 : 70, right: compact ? 40 : 90, top: 42, bottom: 84, parallelAxisDefault: {
      axisLine: { lineStyle: { color: line, width: 1.5 } }, axisLabel: { color: faint, hideOverlap: true }, nameTextStyle: { color: text, fontSize: compact ? 10 : 12, width: compact ? 70 : 150, overflow: "truncate" }, nameTruncate: { maxWidth: compact ? 70 : 150 },
    } },
    parallelAxis: chosen.map((q, dim) => ({
      dim, name: q.title, ...scaleOf(q), ...(q.numeric ? {} : { min: 0, max: q.axis.texts.length - 1, interval: 1 }),
      axisLabel: { color: faint, ...halo, formatter: (v) => q.show(v) },
    })),
    visualMap: colourScale(colour, drawn.map((d) => d.at(-1)), chosen.length),
    series: [{ type: "parallel", data: drawn, progressive: 500, lineStyle: { width: drawn.length > 2000 ? 0.5 : 1.2, opacity: drawn.length > 2000 ? 0.12 : 0.5 }, inactiveOpacity: 0.01, activeOpacity: 0.7 }],
  };
}

const lessIsBetter = (q) => !q.metric?.higherIsBetter;

function heatPart(data, run, { axes, metrics, all }) {
  const at = { x: axes[0].id, y: (axes[1] ?? metrics[0]).id, z: "metric:goodput" };
  const redraw = () => chart.draw();
  const isHeat = () => {
    const [x, y] = [all.get(at.x), all.get(at.y)];
    return x.axis && y.axis && x !== y && x.axis.texts.length <= cells && y.axis.texts.length <= cells;
  };
  const { element, chart } = figure(
    "Two axes of the sweep give a heat map, mean over the other axes; anything else, or axes of many values, give points.",
    440, () => (isHeat() ? heatOptions(run, all.get(at.x), all.get(at.y), all.get(at.z)) : scatterOptions(data, run, all.get(at.x), all.get(at.y), all.get(at.z))));
  const pick = (label, key, list) => choice(label, options(list), at[key], (id) => { at[key] = id; redraw(); });
  return h("div", {}, h("h3", {}, "Map"),
    h("div", { class: "controls" }, pick("x", "x", [...axes, ...metrics]), pick("y", "y", [...axes, ...metrics]), pick("colour", "z", metrics)), element);
}

function paretoPart(data, run, { axes, metrics, all }) {
  const cost = metrics.find((q) => q.metric.unit.startsWith("USD") && range(run.points.map((_, i) => q.number(i)))[1] > 0);
  const first = cost ?? axes.find((q) => q.numeric) ?? metrics[1];
  const at = { x: first.id, y: "metric:goodput", xDown: String(lessIsBetter(first)), yDown: "false" };
  let front = [];
  const compute = () => {
    const [x, y] = [all.get(at.x), all.get(at.y)];
    const points = run.points.map((_, i) => [x.number(i), y.number(i), i]).filter((p) => p[0] !== null && p[1] !== null);
    front = paretoFront(points, at.xDown === "true", at.yDown === "true");
    said.textContent = `${front.length} of ${points.length.toLocaleString("en")} points ${front.length === 1 ? "is" : "are"} on the front: each of the others is beaten in both.`;
    return points;
  };
  const said = h("p", { class: "meta", "aria-live": "polite" });
  const { element, chart } = figure("Cost against gain: only points on the line are worth a second look.", 400, () => {
    const points = compute();
    return paretoOptions(data, run, all.get(at.x), all.get(at.y), front, points);
  });
  compute();
  const change = (key) => (v) => {
    at[key] = v;
    compute();
    chart.draw();
  };
  const direction = [["true", "less is better"], ["false", "more is better"]];
  const csv = csvButton("pareto_front", () => ({
    header: [...run.axes.map((a) => a.key), all.get(at.x).title, all.get(at.y).title],
    rows: front.map(([x, y, i]) => [...run.axes.map((a) => a.text(i)), x, y]),
  }));
  return h("div", {}, h("h3", {}, "Pareto front"),
    h("div", { class: "controls" },
      choice("x", options([...axes.filter((q) => q.numeric), ...metrics]), at.x, change("x")), choice("of x", direction, at.xDown, change("xDown")),
      choice("y", options(metrics), at.y, change("y")), choice("of y", direction, at.yDown, change("yDown")), csv),
    said, element);
}

function parallelPart(data, run, { axes, metrics, all }) {
  const at = { gain: "metric:goodput", second: (metrics.find((q) => q.metric.unit.startsWith("USD")) ?? metrics[1] ?? metrics[0]).id };
  const { element, chart } = figure("Every point is a line through its values. Drag along an axis to keep the lines that cross it there.", 400, () =>
    parallelOptions(run, [...axes.slice(0, narrow() ? 3 : 8), all.get(at.second), all.get(at.gain)].filter((q, i, list) => list.indexOf(q) === i), all.get(at.gain)));
  const change = (key) => (id) => {
    at[key] = id;
    chart.draw();
  };
  return h("div", {}, h("h3", {}, "Parallel coordinates"),
    h("div", { class: "controls" }, choice("last axis and colour", options(metrics), at.gain, change("gain")), choice("beside it", options(metrics), at.second, change("second"))), element);
}

export function explorer(data, run) {
  if (run.axes.length === 0 || run.points.length < 2) return null;
  const [best] = ranked(data, run);
  if (!best) return null; // the metrics are of other runs
  const known = quantities(data, run);
  return section("explorer", ["Sweep explorer", "Explorer"], `${run.points.length.toLocaleString("en")} points over ${run.axes.map((a) => a.key).join(", ")}. Best by ${metricTitle(run.decided_by?.metric ?? "goodput")}: ${nameOf(run, best.at)}.`,
    heatPart(data, run, known), paretoPart(data, run, known), parallelPart(data, run, known));
}
