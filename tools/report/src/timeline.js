// One replica from its first to its last moment: one job's phases, interruptions, checkpoints, stores, links,
// nodes; or many jobs.

import { axisStyle, clipToGrid, figure, ink, narrow } from "./charts.js";
import { phaseColours, series } from "./colours.js";
import { bold, choice, csvButton, h, lines, section } from "./dom.js";
import { drawnWorld } from "./world_timeline.js";
import { metricTitle, spelled, time, value } from "./format.js";
import { nameOf } from "./summary.js";
import { clock, counted, day, instants, leftMargin, linkedPointer, sameOutcome, sliders, steps, timeAxes, valueAxis, zoomControls } from "./time_axis.js";

function open(raw) {
  const at = instants(raw.phases.at_ms);
  const phases = [];
  for (let i = 0; i + 1 < at.length; ++i) {
    if (at[i + 1] > at[i]) phases.push([at[i], at[i + 1], raw.phases.phase[i]]);
  }
  const when = instants(raw.events.at_ms);
  const of = (...kinds) => when
    .map((t, i) => ({ t, kind: raw.events.kind[i], cause: raw.events.cause[i], slot: raw.events.slot[i], steps: raw.events.steps[i] }))
    .filter((e) => kinds.includes(e.kind));
  const end = raw.end_ms / day;
  const stores = raw.stores.map((store) => ({ ...store, at: instants(store.at_ms) }));
  const edges = raw.absences.flatMap(([, from, until]) => [[from / day, 1], [until / day, -1]]).sort((a, b) => a[0] - b[0]);
  let away = 0;
  const absent = [[0, 0], ...edges.map(([t, change]) => [t, (away += change)]), [end, away]];
  return { phases, names: raw.phases.names, interruptions: of("interruption", "storm", "data_lost"), checkpoints: of("checkpoint_safe"), stores, absent, end };
}

// The share of the job's own path to the stores that is in use, in the fuller direction.
function linkLoad(raw, store, end) {
  const load = store.at.map((_, i) => Math.max(store.read_MBps[i] / (raw.links_read_MBps || Infinity), store.write_MBps[i] / (raw.links_write_MBps || Infinity)));
  return steps(store.at, load, end);
}

function options(raw, data) {
  const { text, faint } = ink();
  const left = leftMargin();
  const grids = [
    { left, right: 16, top: 34, height: 92 },
    { left, right: 16, top: 172, height: 90 },
    { left, right: 16, top: 300, height: 66 },
    { left, right: 16, top: 404, height: 54 },
  ];
  const rows = ["phase", "interruptions", "checkpoints"];
  const step = (gridIndex, name, points, colour, area) => ({
    type: "line", step: "end", xAxisIndex: gridIndex, yAxisIndex: gridIndex, name, data: points, showSymbol: false, sampling: "minmax",
    lineStyle: { width: 1.2, color: colour }, itemStyle: { color: colour }, areaStyle: area ? { color: colour, opacity: 0.25 } : undefined,
  });
  const marks = (name, row, events, colour, symbol) => ({
    type: "scatter", name, data: events.map((e) => ({ value: [e.t, row], e })), symbol, symbolSize: symbol === "diamond" ? 11 : [2, 14],
    itemStyle: { color: colour }, cursor: "default", progressive: 0,
    tooltip: { formatter: ({ data: d }) => lines([bold(spelled(d.e.cause || d.e.kind)), ` at ${clock(d.e.t)}`],
      d.e.kind === "checkpoint_safe" ? `${d.e.steps} steps are safe` : `${d.e.steps} steps lost${d.e.slot >= 0 ? `, node slot ${d.e.slot}` : ""}`) },
  });
  const drawPhase = (params, api) => {
    const [from, y] = api.coord([api.value(0), 0]);
    const [until] = api.coord([api.value(1), 0]);
    const shape = clipToGrid({ x: from, y: y - 11, width: Math.max(until - from, 0.6), height: 22 }, params.coordSys);
    return shape && { type: "rect", shape, style: { fill: phaseColours[data.names[api.value(2)]] ?? "#999" } };
  };
  return {
    legend: { type: "scroll", top: 0, textStyle: { color: text }, pageTextStyle: { color: text }, icon: "roundRect", itemWidth: 12, itemHeight: 10, selectedMode: false,
      data: Object.keys(phaseColours).filter((p) => data.phases.some((d) => data.names[d[2]] === p)).map((p) => ({ name: spelled(p), itemStyle: { color: phaseColours[p] } })) },
    axisPointer: linkedPointer(),
    tooltip: { trigger: "item" },
    grid: grids,
    xAxis: timeAxes(grids, data.end),
    yAxis: [
      axisStyle({ type: "category", gridIndex: 0, inverse: true, data: rows, axisLabel: { color: text, fontSize: narrow() ? 9 : 12 }, splitLine: { show: false } }),
      valueAxis(1, "storage, GB/s"),
      valueAxis(2, "load of the job's storage links", { axisLabel: { color: faint, formatter: (v) => `${+(100 * v).toFixed(1)} %` } }),
      valueAxis(3, "nodes out of service", { minInterval: 1 }),
    ],
    dataZoom: sliders(grids),
    series: [
      { type: "custom", name: "phase", renderItem: drawPhase, data: data.phases.map((p) => ({ value: p })), encode: { x: [0, 1], y: -1 }, clip: true, progressive: 0,
        tooltip: { formatter: ({ value: [from, until, phase] }) => lines([bold(spelled(data.names[phase])), ` for ${time((until - from) * 86400)}`], `from ${clock(from)}`) } },
      ...Object.entries(phaseColours).map(([p, color]) => ({ type: "scatter", name: spelled(p), data: [], itemStyle: { color } })),
      marks("interruptions", 1, data.interruptions, "#d64545", "diamond"),
      marks("checkpoints", 2, data.checkpoints, "#4f83e0", "rect"),
      ...data.stores.flatMap((store, i) => [
        step(1, `${store.name}: write`, steps(store.at, store.write_MBps.map((v) => v / 1000), data.end), series[(2 * i) % 8], true),
        step(1, `${store.name}: read`, steps(store.at, store.read_MBps.map((v) => v / 1000), data.end), series[(2 * i + 1) % 8], false),
        step(2, `${store.name}: load`, linkLoad(raw, store, data.end), series[(2 * i) % 8], true),
      ]),
      step(3, "nodes out of service", data.absent, "#76808c", true),
    ].map((s) => (s.type === "line" ? { ...s, tooltip: { formatter: () => s.name } } : s)),
  };
}

// Names of series in the storage charts, in words: their legend is this line.
function rateKey(data) {
  return h("p", { class: "meta" }, data.stores.flatMap((store, i) => [["write", 2 * i], ["read", 2 * i + 1]].map(([what, c]) =>
    h("span", {}, h("span", { style: `color:${series[c % 8]}`, "aria-hidden": "true" }, "■ "), `${store.name}, ${what}   `))));
}

function drawn(raw) {
  if (raw.problem) return h("p", { class: "note" }, `This point could not be simulated again here: ${raw.problem}`);
  const data = open(raw);
  const { element, chart } = figure(
    `Replica 0, ${time(raw.end_ms / 1000)} of simulated time on ${raw.nodes} nodes, ${raw.job_nodes} of them in the job: ${counted(data.interruptions, "interruption")}, ${counted(data.checkpoints, "checkpoint")}. Drag or Ctrl and wheel to zoom.`,
    510, () => options(raw, data));
  const csv = csvButton("phases", () => ({
    header: ["from_s", "to_s", "phase"],
    rows: data.phases.map(([from, until, phase]) => [(from * 86400).toFixed(3), (until * 86400).toFixed(3), data.names[phase]]),
  }));
  const notes = [
    sameOutcome(raw),
    raw.stores.some((s) => s.thinned) ? h("p", { class: "meta" }, "Storage: the highest rates of each of 4,000 equal stretches.") : null,
  ];
  return h("div", {}, h("div", { class: "controls" }, zoomControls(chart), csv), ...notes, element, rateKey(data));
}

// What is there from which day on, what it costs and what it has done, in the mean.
function changing(data, raw) {
  const told = ["goodput", "utilisation", "tokens_per_day", "jobs_completed", "work_done", "interruptions", "energy", "gpus_replaced"];
  const of = (k, name) => data.metrics.get(`phase_${k + 1}_${name}`);
  const names = told.filter((name) => of(0, name) && data.mean(of(0, name).name, raw.point) !== null);
  const money = raw.cluster.some((line) => line.bought !== undefined);
  const usd = (v) => value({ name: "cost_capital", unit: "USD" }, v);
  const header = ["from", "nodes", ...(money ? ["bought that day", "kept, a year"] : []), ...names.map(metricTitle)];
  const rows = raw.cluster.map((line, k) => [
    line.from, line.nodes, ...(money ? [usd(line.bought), usd(line.a_year)] : []),
    ...names.map((name) => value(of(k, name), data.mean(of(k, name).name, raw.point))),
  ]);
  const cell = (tag) => (text, i) => h(tag, i < 2 ? { class: "words" } : {}, text);
  return h("div", {},
    h("div", { class: "controls" }, csvButton("cluster", () => ({ header, rows }))),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: the cluster from day to day" },
      h("table", {}, h("thead", {}, h("tr", {}, header.map(cell("th")))), h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell("td"))))))),
    money ? h("p", { class: "meta" }, "At typical prices; kept: support, place and what else is paid by the year, without energy.") : null);
}

export function timeline(data, run) {
  const of = data.timelines.filter((t) => run.points.includes(t.point) && (t.problem || t.curves || t.cluster || t.phases.at_ms.length > 1));
  if (of.length === 0) return null;
  const draw = (raw) => (raw.cluster ? changing(data, raw) : raw.curves ? drawnWorld(raw) : drawn(raw));
  const holder = h("div", {}, draw(of[0]));
  const name = (t) => nameOf(run, run.points.indexOf(t.point));
  const pick = choice("Point", of.map((t, i) => [String(i), name(t)]), "0", (i) => holder.replaceChildren(draw(of[Number(i)])));
  if (of[0].cluster) {
    return section("timeline", ["The cluster's phases", "Phases"], "What is there from which day on, and what it has done.",
      of.length > 1 ? h("div", { class: "controls" }, pick) : null, holder);
  }
  const what = of[0].curves ? "What the jobs held and what they waited for" : "What the job did and what it waited for";
  return section("timeline", ["A replica's timeline", "Timeline"], `${what}, simulated again from the database: the same seed gives the same bytes.`,
    of.length > 1 ? h("div", { class: "controls" }, pick) : null, holder);
}
