// What the answer hangs on and where it comes from: networks, estimates, versions, digests, scenarios.

import { axisStyle, figure, ink, narrow } from "./charts.js";
import { csvButton, h, section } from "./dom.js";
import { nameOf } from "./summary.js";

export function topologies(data, run) {
  const of = data.topologies;
  if (!of) return null;
  if (!run.points.includes(of.point)) return null;
  if (of.problem) return section("networks", "Networks", null, h("p", { class: "note" }, `Not drawn: ${of.problem}`));
  if (of.drawings.length === 0) return null;
  const drawings = of.drawings.map((t) => {
    const holder = h("div", { class: "drawing", tabindex: "0", role: "img", "aria-label": `Drawing of the ${t.network} network, ${t.kind}, ${t.nodes} nodes` });
    holder.append(document.importNode(new DOMParser().parseFromString(t.svg, "image/svg+xml").documentElement, true));
    const about = `${t.kind}, ${t.nodes} nodes; load of ${t.flows.toLocaleString("en")} flows ${t.own_traffic ? "of the scenario's window" : "of a ring over the job's nodes"}`;
    return h("div", {}, h("h3", {}, `The ${t.network} network`), h("p", { class: "about" }, about), holder);
  });
  return section("networks", "Networks", "Lines are cables between two parts, wider where there are more, coloured by what the traffic asks of the busiest of them.",
    h("div", { class: "keyline" }, "idle", h("span", { class: "ramp", "aria-hidden": "true" }), "as busy as the busiest link"), drawings);
}

export function estimates(data, run) {
  const of = data.estimates;
  if (!of || !run.points.includes(of.point)) return null;
  const about = "Catalogue values and scenario values that are estimates: goodput at either end of their range, on the same random numbers.";
  if (of.problem) return section("estimates", ["Estimates that matter", "Estimates"], about, h("p", { class: "note" }, of.problem));
  if (of.rows.length === 0) return section("estimates", ["Estimates that matter", "Estimates"], about, h("p", {}, "None of the estimates that were read moves goodput."));
  const rows = of.rows.slice(0, 15);
  const ends = (row) => [row.low, row.high].map((end) => (end ? 100 * end.goodput : null));
  const { element } = figure(
    "Points of goodput that an estimate is worth, largest swing first. Lighter: its low end; darker: its high end.",
    60 + 34 * rows.length, () => ({
      grid: { left: 12, right: 30, top: 6, bottom: 30, containLabel: true },
      tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (v) => (v === null ? "impossible" : `${v > 0 ? "+" : ""}${v.toFixed(3)} points`) },
      xAxis: axisStyle({ type: "value", axisLabel: { color: ink().faint, formatter: (v) => `${v > 0 ? "+" : ""}${+v.toFixed(2)}` } }),
      yAxis: axisStyle({ type: "category", inverse: true, data: rows.map((r) => r.path), splitLine: { show: false }, axisLabel: { color: ink().text, width: narrow() ? 140 : 330, overflow: "truncate", interval: 0 } }),
      series: ["low end", "high end"].map((name, i) => ({ type: "bar", name, stack: "swing", barMaxWidth: 18, data: rows.map((r) => ends(r)[i]), itemStyle: { color: i ? "#2563c9" : "#9dbdf5" } })),
    }));
  const csv = csvButton("estimates", () => ({
    header: ["path", "value", "low_factor", "high_factor", "range_given", "goodput_low", "goodput_high", "source"],
    rows: of.rows.map((r) => [r.path, r.value, r.low_factor, r.high_factor, r.range_given, r.low?.goodput, r.high?.goodput, r.source]),
  }));
  return section("estimates", ["Estimates that matter", "Estimates"], `${about} Of “${nameOf(run, run.points.indexOf(of.point))}”.`, h("div", { class: "controls" }, csv), element);
}

export function provenance(data, run) {
  const fact = (name, text) => (text === null || text === "" || text === undefined ? [] : [h("dt", {}, name), h("dd", {}, text)]);
  // Replicas that an earlier run of the same point left in the database count.
  const most = run.points.reduce((high, p) => Math.max(high, data.points.replicas(p) ?? 0), 0);
  const had = most > run.replicas_wanted ? `; the database had up to ${most.toLocaleString("en")} of one, and all of them count` : "";
  const digest = run.digest || (run.points.length === 1 ? data.points.digest[run.points[0]] : "");
  return section("provenance", ["Where this comes from", "Origin"], "The same scenario, seed and version give the same bytes, at any number of threads.",
    h("dl", { class: "facts" },
      fact("database", `${data.database}, schema version ${data.schema}`),
      fact("run", `${run.run} (${run.kind}, ${run.status}), ${run.file}`),
      fact("simulated by", `railyard ${run.version}; this page by railyard ${data.version}`),
      fact("seed", String(run.seed)),
      fact("replicas wanted", `${run.replicas_wanted} of each of ${run.points_wanted.toLocaleString("en")} points${had}`),
      fact("digest", digest), fact("trajectory", run.trajectory),
      fact("CPU time", run.cpu_s === null ? "" : `${run.cpu_s.toPrecision(3)} s`),
      fact("left out of this page", data.left_out.join(", "))),
    data.scenarios.map((s) => h("details", {}, h("summary", {}, s.file), h("pre", { tabindex: "0" }, s.toml))));
}
