// The page: the newest run first, another by choice; light or dark as the system has it, until chosen.

import { forgetAll, redrawAll } from "./charts.js";
import { openData } from "./data.js";
import { button, choice, h } from "./dom.js";
import { explorer } from "./explorer.js";
import { interruptions, ledger } from "./ledger.js";
import { estimates, provenance, topologies } from "./provenance.js";
import { summary } from "./summary.js";
import { tables } from "./tables.js";
import { timeline } from "./timeline.js";

const data = openData(document.getElementById("data").textContent);
const root = document.documentElement;
const systemDark = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;

function applyTheme() {
  root.dataset.theme = chosenTheme ?? (systemDark.matches ? "dark" : "light");
  themeButton.setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
  redrawAll();
}

const themeButton = button("Dark", () => {
  chosenTheme = root.dataset.theme === "dark" ? "light" : "dark";
  applyTheme();
}, { "data-theme-button": true });
systemDark.addEventListener("change", applyTheme);

const links = h("ul");
const main = h("main");

function show(run) {
  forgetAll();
  document.title = `railyard: ${run.title || run.file}`;
  const sections = [summary, ledger, explorer, interruptions, timeline, topologies, tables, estimates, provenance]
    .map((part) => part(data, run))
    .filter(Boolean);
  main.replaceChildren(...sections);
  links.replaceChildren(...sections.map((s, i) => h("li", {}, h("a", { href: `#${s.id}` }, i === 0 ? "Summary" : s.dataset.link))));
}

const newest = data.runs.at(-1);
const runChoice = data.runs.length > 1
  ? choice("Run", data.runs.map((r) => [String(r.run), `${r.run}: ${r.kind}, ${r.title || r.file}`]).reverse(), String(newest.run),
    (number) => show(data.runs.find((r) => String(r.run) === number)))
  : null;

document.getElementById("page").replaceChildren(
  h("header", { class: "top" },
    h("div", { class: "line" }, h("h1", {}, "railyard report"), h("div", { class: "controls" }, runChoice, themeButton)),
    h("p", { class: "meta" }, `${data.database}: ${data.runs.length} ${data.runs.length === 1 ? "run" : "runs"}, ${data.points.count.toLocaleString("en")} ${data.points.count === 1 ? "point" : "points"}, railyard ${data.version}`)),
  h("nav", { "aria-label": "Sections" }, links),
  main);
applyTheme();
show(newest);
root.dataset.ready = "true";
