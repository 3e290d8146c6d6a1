// Charts: made when they come into view, redrawn when the theme or the width changes.

import { BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  ParallelComponent,
  TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { freshId, h } from "./dom.js";

echarts.use([
  BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart, AriaComponent, DataZoomComponent,
  GridComponent, LegendComponent, MarkLineComponent, ParallelComponent, TooltipComponent, VisualMapComponent,
  CanvasRenderer,
]);

export const clipToGrid = (shape, grid) => echarts.graphic.clipRectByRect(shape, grid);
export const narrow = () => window.innerWidth < 640;

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const ink = () => ({
  text: style("--ink"),
  faint: style("--ink-faint"),
  line: style("--line"),
  panel: style("--panel"),
  accent: style("--accent"),
});

const shown = new Set();

function common() {
  const { text, line, panel } = ink();
  return {
    animation: false,
    textStyle: { fontFamily: "inherit", color: text },
    aria: { enabled: true },
    tooltip: {
      confine: true,
      backgroundColor: panel,
      borderColor: line,
      textStyle: { color: text, fontSize: 13 },
    },
  };
}

export function axisStyle(extra = {}) {
  const { faint, line } = ink();
  return {
    axisLine: { lineStyle: { color: line } },
    axisTick: { show: false },
    axisLabel: { color: faint, hideOverlap: true },
    splitLine: { lineStyle: { color: line, opacity: 0.6 } },
    nameTextStyle: { color: faint },
    ...extra,
  };
}

// A tooltip tells texts and elements (lines() of dom.js). A string that is handed to ECharts would be HTML, and
// titles, labels and names are whatever somebody wrote.
const inText = (tooltip) =>
  tooltip?.formatter ? { ...tooltip, formatter: (...of) => h("div", {}, [tooltip.formatter(...of)].flat()) } : tooltip;
const seriesInText = (series) => [series].flat().map((s) => (s.tooltip ? { ...s, tooltip: inText(s.tooltip) } : s));

class Chart {
  constructor(holder, options) {
    this.holder = holder;
    this.options = options;
    this.visible = false;
    this.listeners = [];
  }
  draw() {
    if (!this.visible) return;
    const options = this.options();
    if (!this.instance) {
      this.instance = echarts.init(this.holder, null, { renderer: "canvas" });
      for (const [event, listener] of this.listeners) this.instance.on(event, listener);
    }
    const base = common();
    const tooltip = inText({ ...base.tooltip, ...options.tooltip });
    this.instance.setOption({ ...base, ...options, tooltip, series: seriesInText(options.series) }, true);
  }
  show() {
    if (this.visible) return;
    this.visible = true;
    this.draw();
  }
  on(event, listener) {
    this.listeners.push([event, listener]);
    this.instance?.on(event, listener);
  }
  dispatch(action) {
    this.show();
    this.instance.dispatchAction(action);
  }
  resize() {
    if (!this.visible) return;
    this.instance.resize();
    this.draw();
  }
  dispose() {
    watcher.unobserve(this.holder);
    this.instance?.dispose();
    shown.delete(this);
  }
}

const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting) entry.target.chart.show();
  },
  { rootMargin: "200px" },
);

// A figure: the chart, and in words what it shows. `options()` is asked again at every redraw.
export function figure(caption, height, options) {
  const id = freshId("figure");
  const holder = h("div", { class: "chart", style: `height:${height}px`, role: "img", "aria-labelledby": id });
  const chart = new Chart(holder, options);
  holder.chart = chart;
  shown.add(chart);
  watcher.observe(holder);
  const element = h("figure", {}, holder, h("figcaption", { id }, caption));
  return { element, chart };
}

export function redrawAll() {
  for (const chart of shown) chart.draw();
}
export function forgetAll() {
  for (const chart of [...shown]) chart.dispose();
}

let pending = 0;
window.addEventListener("resize", () => {
  clearTimeout(pending);
  pending = setTimeout(() => shown.forEach((chart) => chart.resize()), 120);
});
window.addEventListener("beforeprint", () => shown.forEach((chart) => chart.show()));
