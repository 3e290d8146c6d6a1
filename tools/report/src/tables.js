// Tables: points, comparisons, metrics; each as CSV too.

import { button, choice, csvButton, freshId, h, section } from "./dom.js";
import { difference, metricTitle, value } from "./format.js";
import { nameOf } from "./summary.js";

const pageRows = 50;

// Columns: { title, words, sort(row), show(row), raw(row) }. Sorted by its headers, a page at a time.
function pagedTable(name, rows, columns) {
  let order = [...rows];
  let page = 0;
  let sorted = { column: -1, down: false };
  let filter = "";
  const body = h("tbody");
  const said = h("span", { "aria-live": "polite" });
  const heads = columns.map((column, i) => h("th", { scope: "col", class: column.words ? "words" : null },
    button(column.title, () => sortBy(i), { "aria-label": `Sort by ${column.title}` })));
  const draw = () => {
    const pages = Math.max(1, Math.ceil(order.length / pageRows));
    page = Math.min(Math.max(page, 0), pages - 1);
    const shown = order.slice(page * pageRows, (page + 1) * pageRows);
    body.replaceChildren(...shown.map((row) => h("tr", {}, columns.map((c) => h("td", { class: c.words ? "words" : null }, c.show(row))))));
    said.textContent = order.length > pageRows ? `${page * pageRows + 1} to ${page * pageRows + shown.length} of ${order.length.toLocaleString("en")}` : order.length === 1 ? "1 row" : `${order.length} rows`;
    previous.disabled = page === 0;
    next.disabled = page >= pages - 1;
  };
  const apply = () => {
    order = filter ? rows.filter((row) => columns.some((c) => String(c.raw(row)).toLowerCase().includes(filter))) : [...rows];
    const { column, down } = sorted;
    if (column >= 0) {
      const key = columns[column].raw;
      const sign = down ? -1 : 1;
      order.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (typeof x === "number" && typeof y === "number") return sign * (x - y);
        return sign * String(x ?? "").localeCompare(String(y ?? ""), "en", { numeric: true });
      });
    }
    heads.forEach((head, i) => (i === column ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    draw();
  };
  const sortBy = (column) => {
    sorted = { column, down: sorted.column === column ? !sorted.down : typeof columns[column].raw(rows[0] ?? {}) === "number" };
    page = 0;
    apply();
  };
  const previous = button("Back", () => { page -= 1; draw(); });
  const next = button("Next", () => { page += 1; draw(); });
  const id = freshId("filter");
  const search = h("input", { id, type: "search", oninput: () => { filter = search.value.trim().toLowerCase(); page = 0; apply(); } });
  const csv = csvButton(name, () => ({ header: columns.map((c) => c.title), rows: order.map((row) => columns.map((c) => c.raw(row))) }));
  draw();
  return h("div", {},
    h("div", { class: "controls" }, rows.length > 8 ? h("span", { class: "choice" }, h("label", { for: id }, "Find"), search) : null, csv),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${name}` }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)),
    h("div", { class: "pager" }, rows.length > pageRows ? [previous, next] : null, said));
}

const statusTag = (status) => h("span", { class: `tag ${status === "complete" ? "good" : ["impossible", "stuck", "failed"].includes(status) ? "bad" : "open"}` }, status);

function pointsTable(data, run) {
  const shown = ["goodput", "ettr", "mfu", "interruptions", "checkpoints", "wall_time",
    "utilisation", "jobs_completed", "wait_mean", "jct_mean"].filter((name) => data.metrics.has(name) && run.points.some((p) => data.mean(name, p) !== null));
  const costs = [...data.metrics.values()].filter((m) => m.unit.startsWith("USD")).slice(0, 3).map((m) => m.name);
  const metricColumn = (name) => {
    const metric = data.metrics.get(name);
    return { title: name, raw: (at) => metric.mean(run.points[at]), show: (at) => value(metric, metric.mean(run.points[at])) };
  };
  const columns = [
    ...(run.axes.length ? run.axes.map((axis) => ({ title: axis.key, raw: (at) => (axis.numeric ? axis.value(at) : axis.text(at)), show: (at) => axis.text(at) }))
      : [{ title: "point", words: true, raw: (at) => nameOf(run, at), show: (at) => nameOf(run, at) }]),
    ...[...shown, ...costs].map(metricColumn),
    { title: "replicas", raw: (at) => data.points.replicas(run.points[at]), show: (at) => String(data.points.replicas(run.points[at]) ?? "") },
    { title: "status", raw: (at) => data.points.status[run.points[at]], show: (at) => statusTag(data.points.status[run.points[at]]) },
  ];
  if (run.points.some((p) => data.points.problem[p])) {
    columns.push({ title: "problem", words: true, raw: (at) => data.points.problem[run.points[at]], show: (at) => data.points.problem[run.points[at]] });
  }
  return pagedTable("points", run.points.map((_, at) => at), columns);
}

function comparisonsTable(data, run) {
  const metric = (c) => data.metrics.get(c.metric) ?? { name: c.metric, unit: c.unit };
  const kind = { a: "good", b: "good", equal: "", undecided: "open" };
  return pagedTable("comparisons", run.comparisons, [
    { title: "metric", raw: (c) => c.metric, show: (c) => metricTitle(c.metric) },
    { title: "a", words: true, raw: (c) => nameOf(run, c.a), show: (c) => nameOf(run, c.a) },
    { title: "b", words: true, raw: (c) => nameOf(run, c.b), show: (c) => nameOf(run, c.b) },
    { title: "mean a", raw: (c) => c.mean_a, show: (c) => value(metric(c), c.mean_a) },
    { title: "mean b", raw: (c) => c.mean_b, show: (c) => value(metric(c), c.mean_b) },
    { title: "b − a", raw: (c) => c.difference, show: (c) => difference(metric(c), c.difference) },
    { title: "low", raw: (c) => c.low, show: (c) => difference(metric(c), c.low) },
    { title: "high", raw: (c) => c.high, show: (c) => difference(metric(c), c.high) },
    { title: "verdict", raw: (c) => c.verdict, show: (c) => h("span", { class: `tag ${kind[c.verdict] ?? ""}` }, c.verdict) },
    { title: "pairs", raw: (c) => c.pairs, show: (c) => String(c.pairs) },
  ]);
}

function metricsTable(data, run) {
  const holder = h("div");
  const draw = (at) => {
    const point = run.points[at];
    const rows = [...data.metrics.values()].filter((m) => m.mean(point) !== null);
    holder.replaceChildren(pagedTable("metrics", rows, [
      { title: "metric", raw: (m) => m.name, show: (m) => m.name },
      { title: "mean", raw: (m) => m.mean(point), show: (m) => value(m, m.mean(point)) },
      { title: "low", raw: (m) => data.interval(m.name, point)?.[0] ?? null, show: (m) => value(m, data.interval(m.name, point)?.[0]) },
      { title: "high", raw: (m) => data.interval(m.name, point)?.[1] ?? null, show: (m) => value(m, data.interval(m.name, point)?.[1]) },
      { title: "unit", raw: (m) => m.unit, show: (m) => m.unit },
    ]));
  };
  const first = Math.max(0, run.points.findIndex((p) => data.mean("goodput", p) !== null)); // others are impossible
  draw(first);
  const listed = Math.min(run.points.length, 500);
  const pick = choice("Point", Array.from({ length: listed }, (_, at) => [String(at), nameOf(run, at)]), String(first), (at) => draw(Number(at)));
  return h("div", {}, run.points.length > 1 ? h("div", { class: "controls" }, pick) : null, holder);
}

export function tables(data, run) {
  return section("tables", "Tables", "Sort by a column's name. CSV holds the plain numbers, in the units of the database.",
    h("h3", {}, "Points"), pointsTable(data, run),
    run.comparisons.length ? [h("h3", {}, "Comparisons, pair by pair"), comparisonsTable(data, run)] : [],
    run.points.some((p) => data.mean("goodput", p) !== null) ? [h("h3", {}, "All metrics of a point"), metricsTable(data, run)] : []);
}
