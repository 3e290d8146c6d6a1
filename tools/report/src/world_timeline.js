// One replica of many jobs: the GPUs that jobs of each size hold, how many run and wait, what went wrong.

import { axisStyle, figure, ink, narrow } from "./charts.js";
import { lineScale } from "./colours.js";
import { bold, csvButton, h, lines } from "./dom.js";
import { spelled, time } from "./format.js";
import { clock, counted, day, instants, leftMargin, linkedPointer, sameOutcome, sliders, steps, timeAxes, valueAxis, zoomControls } from "./time_axis.js";

const running = "#2a9d74";
const waiting = "#d64545";
const failures = ["interruption", "not_ready", "pod_failed", "leaves_slow_node", "corruption_found"];

function open(raw) {
  const when = instants(raw.events.at_ms);
  const events = when.map((t, i) => ({ t, kind: raw.events.kind[i], cause: raw.events.cause[i], node: raw.events.slot[i] }));
  return {
    at: instants(raw.curves.at_ms),
    end: raw.end_ms / day,
    sizes: Object.entries(raw.curves.gpus).filter(([, held]) => held.some((v) => v > 0)),
    failures: events.filter((e) => failures.includes(e.kind)),
    others: events.filter((e) => !failures.includes(e.kind)),
  };
}

const told = ({ t, kind, cause, node }) => lines([bold(spelled(kind)), ` at ${clock(t)}`], cause, node >= 0 && `node ${node}`);

// Areas in front of each other, each as high as it and all before it: areas that ECharts stacks leave slits.
function stacked(sizes) {
  const sum = sizes[0]?.[1].map(() => 0);
  return sizes.map(([name, held], i) => ({ name, i, heights: held.map((v, k) => (sum[k] += v)) })).reverse();
}

function options(raw, data) {
  const { text } = ink();
  const left = leftMargin();
  const grids = [
    { left, right: 16, top: 54, height: 150 },
    { left, right: 16, top: 244, height: 90 },
    { left, right: 16, top: 354, height: 56 },
  ];
  const line = (gridIndex, name, values, color, more) => ({
    type: "line", step: "end", xAxisIndex: gridIndex, yAxisIndex: gridIndex, name, data: steps(data.at, values, data.end), showSymbol: false,
    lineStyle: { width: 1.2, color }, itemStyle: { color }, ...more,
  });
  const marks = (name, row, events, color) => ({
    type: "scatter", xAxisIndex: 2, yAxisIndex: 2, name, data: events.map((e) => ({ value: [e.t, row], e })), symbol: "diamond", symbolSize: 10,
    itemStyle: { color }, cursor: "default", tooltip: { trigger: "item", formatter: ({ data: d }) => told(d.e) },
  });
  const values = [...data.sizes, ["running", raw.curves.running], ["waiting", raw.curves.waiting]];
  const tellAll = (t, i) => lines(bold(clock(t)), ...values.map(([name, of]) => `${name}: ${of[Math.min(i, of.length - 1)].toLocaleString("en", { maximumFractionDigits: 1 })}`));
  const colour = (i) => lineScale[data.sizes.length < 2 ? 1 : i];
  return {
    legend: { type: "scroll", top: 0, textStyle: { color: text }, pageTextStyle: { color: text }, icon: "roundRect", itemWidth: 12, itemHeight: 10, selectedMode: false,
      data: [...data.sizes.map(([name]) => name), "running", "waiting"] },
    axisPointer: linkedPointer(),
    tooltip: { trigger: "axis", formatter: ([{ axisValue, dataIndex }]) => tellAll(axisValue, dataIndex) },
    grid: grids,
    xAxis: timeAxes(grids, data.end),
    yAxis: [
      valueAxis(0, "GPUs held, by the job's GPUs", { max: raw.gpus }),
      valueAxis(1, "jobs", { minInterval: 1 }),
      axisStyle({ type: "category", gridIndex: 2, inverse: true, data: ["failures", "scheduler"], axisLabel: { color: text, fontSize: narrow() ? 9 : 12 }, splitLine: { show: false } }),
    ],
    dataZoom: sliders(grids),
    series: [
      ...stacked(data.sizes).map(({ name, i, heights }) => line(0, name, heights, colour(i), { areaStyle: { color: colour(i), opacity: 1 }, lineStyle: { width: 0 } })),
      line(1, "running", raw.curves.running, running, { sampling: "minmax" }),
      line(1, "waiting", raw.curves.waiting, waiting, { sampling: "minmax", areaStyle: { color: waiting, opacity: 0.2 } }),
      marks("failures", 0, data.failures, waiting),
      marks("scheduler", 1, data.others, "#4f83e0"),
    ],
  };
}

export function drawnWorld(raw) {
  const data = open(raw);
  const { element, chart } = figure(
    `Replica 0, ${time(raw.end_ms / 1000)} of simulated time, ${raw.jobs.toLocaleString("en")} jobs on ${raw.gpus.toLocaleString("en")} GPUs: ${counted(data.failures, "failure")}, ${counted(data.others, "other act")} of the scheduler beside starts and ends. Drag or Ctrl and wheel to zoom.`,
    460, () => options(raw, data));
  const csv = csvButton("jobs over time", () => ({
    header: ["from_s", ...data.sizes.map(([name]) => `gpus_held_by_jobs_of_${name.replaceAll(" ", "_")}`), "running", "waiting"],
    rows: data.at.map((t, i) => [(t * 86400).toFixed(3), ...data.sizes.map(([, held]) => held[i]), raw.curves.running[i], raw.curves.waiting[i]]),
  }));
  const notes = [
    sameOutcome(raw),
    raw.curves.thinned ? h("p", { class: "meta" }, `Curves: means of each of ${data.at.length.toLocaleString("en")} equal stretches.`) : null,
    raw.events.left_out > 0 ? h("p", { class: "meta" }, `Marks: the first ${raw.events.at_ms.length.toLocaleString("en")}; ${raw.events.left_out.toLocaleString("en")} later ones are in the database only.`) : null,
  ];
  return h("div", {}, h("div", { class: "controls" }, zoomControls(chart), csv), ...notes, element);
}
