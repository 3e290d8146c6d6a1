// Numbers as people read them: three or four digits, a unit that fits.

const nothing = "–";

function digits(value, count = 4) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) {
    const [front, power] = value.toExponential(Math.max(0, count - 2)).split("e");
    return `${front}·10${[...String(Number(power))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")}`;
  }
  const places = size >= 1000 ? 0 : Math.max(0, count - 1 - Math.floor(Math.log10(Math.max(size, 1e-3))));
  const text = value.toFixed(Math.min(places, 6));
  const [whole, part] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  const trimmed = part?.replace(/0+$/, "");
  return trimmed ? `${grouped}.${trimmed}` : grouped;
}

const lengths = [
  [86400, "days"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "us"],
];

export function time(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return nothing;
  if (seconds === 0) return "0 s";
  const size = Math.abs(seconds);
  const [scale, unit] = lengths.find(([s]) => size >= s * (s > 1 ? 2 : 1)) ?? lengths.at(-1);
  return `${digits(seconds / scale, 3)} ${unit}`;
}

// Ticks of an axis from 0 to `longest` seconds that clocks have; none below a second.
const ticks = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
export function timeTicks(longest) {
  if (!(longest > 5)) return undefined;
  return ticks.find((t) => t >= longest / 5) ?? 86400 * Math.ceil(longest / 5 / 86400);
}

export function bytes(count) {
  const steps = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  let i = 0;
  for (; Math.abs(count) >= 1000 && i < steps.length - 1; ++i) count /= 1000;
  return `${digits(count, 3)} ${steps[i]}`;
}

function money(v) {
  const [scale, unit] = [[1e9, " billion"], [1e6, " million"], [1, ""]].find(([s]) => Math.abs(v) >= s) ?? [1, ""];
  return `$${digits(v / scale, 3)}${unit}`;
}

export function percent(fraction, places = 2) {
  if (fraction === null) return nothing;
  return `${(100 * fraction).toFixed(places)} %`;
}

// A metric's value with its unit; of a share in per cent.
export function value(metric, v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return nothing;
  if (metric.share) return percent(v);
  if (metric.unit === "s") return time(v);
  if (metric.unit === "B") return bytes(v);
  if (metric.unit === "1" || metric.unit === "") return digits(v);
  if (metric.unit === metric.name) return digits(v);
  if (metric.unit === "USD") return money(v);
  return `${digits(v)} ${metric.unit}`;
}

// A difference: of shares in points of a hundred.
export function difference(metric, v) {
  if (v === null) return nothing;
  const sign = v > 0 ? "+" : v < 0 ? "−" : "±";
  const size = Math.abs(v);
  if (metric.share) return `${sign}${(100 * size).toFixed(2)} points`;
  return `${sign}${value(metric, size)}`;
}

// "lost_work" as people write it.
export const spelled = (name) => name.replaceAll("_", " ");
const known = {
  ettr: "ETTR", mfu: "MFU (of the bf16 peak)", mfu_step: "MFU of a step (of the bf16 peak)",
  // Waits of jobs that have not started count to the end of the campaign; jobs that have not ended have no completion time.
  wait_mean: "wait in the queue, so far if it goes on", wait_p95: "wait so far, 95 % of jobs", jct_mean: "completion time of ended jobs",
};
export const metricTitle = (name) => known[name] ?? spelled(name);
