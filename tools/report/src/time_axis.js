// Charts above each other on one axis of time, in days, that zoom together.

import { axisStyle, ink, narrow } from "./charts.js";
import { button, h } from "./dom.js";
import { time } from "./format.js";

export const day = 86400e3;

// Instants come as differences in ms; the chart's axis is in days.
export function instants(differences) {
  let at = 0;
  return differences.map((d) => (at += d) / day);
}

// A value from each moment to the next.
export const steps = (at, values, end) => [...at.map((t, i) => [t, values[i]]), [end, values.at(-1) ?? 0]];

export const counted = (list, word) => `${list.length.toLocaleString("en")} ${word}${list.length === 1 ? "" : "s"}`;
export const clock = (days) => (days < 2 ? time(days * 86400) : `day ${days.toFixed(2)}`);
export const leftMargin = () => (narrow() ? 62 : 110);

export const timeAxes = (grids, end) => grids.map((_, gridIndex) => axisStyle({
  type: "value", gridIndex, min: 0, max: end, axisPointer: { show: true, snap: false },
  axisLabel: { show: gridIndex === grids.length - 1, color: ink().faint, hideOverlap: true, formatter: (v) => (end < 2 ? time(v * 86400) : `${+v.toFixed(3)} d`) },
  splitLine: { show: false },
}));

export const valueAxis = (gridIndex, name, more = {}) => axisStyle({
  type: "value", gridIndex, name, nameLocation: "end", nameGap: 13, splitNumber: 2,
  nameTextStyle: { color: ink().text, align: "left", padding: [0, 0, 0, narrow() ? -56 : -100], fontSize: 12 }, ...more,
});

export const linkedPointer = () => ({ link: [{ xAxisIndex: "all" }], label: { show: false }, lineStyle: { color: ink().line } });

// Null when the simulation gave again what the database says.
export const sameOutcome = (raw) => (raw.same ? null
  : h("p", { class: "note" }, "This railyard simulates the replica differently from the one that filled the database: the timeline is not of the same outcome."));

export function sliders(grids) {
  const { faint, line } = ink();
  const all = { xAxisIndex: grids.map((_, i) => i), filterMode: "none", minSpan: 0.001 };
  return [
    { ...all, type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true },
    { ...all, type: "slider", bottom: 4, height: 22, left: leftMargin(), right: 16, textStyle: { color: faint }, borderColor: line, labelFormatter: (v) => clock(v) },
  ];
}

export function zoomControls(chart) {
  const span = () => {
    const zoom = chart.instance?.getOption().dataZoom[0];
    return zoom ? [zoom.start, zoom.end] : [0, 100];
  };
  const show = (start, end) => {
    const width = Math.min(100, Math.max(0.05, end - start));
    const from = Math.min(100 - width, Math.max(0, start));
    chart.dispatch({ type: "dataZoom", dataZoomIndex: 0, start: from, end: from + width });
    chart.dispatch({ type: "dataZoom", dataZoomIndex: 1, start: from, end: from + width });
  };
  const scaled = (factor) => {
    const [a, b] = span();
    const middle = (a + b) / 2;
    show(middle - ((b - a) * factor) / 2, middle + ((b - a) * factor) / 2);
  };
  const moved = (share) => {
    const [a, b] = span();
    show(a + share * (b - a), b + share * (b - a));
  };
  return [
    button("Zoom in", () => scaled(0.5), { "data-zoom": "in" }),
    button("Zoom out", () => scaled(2), { "data-zoom": "out" }),
    button("←", () => moved(-0.4), { "aria-label": "Earlier" }),
    button("→", () => moved(0.4), { "aria-label": "Later" }),
    button("Whole", () => show(0, 100)),
  ];
}
