// The report in a real Chromium (Debian's, by playwright-core).
//
// usage: node run.mjs RAILYARD FOLDER    FOLDER/../../report has the page and its npm packages
//
// Charts are drawn, controls work, numbers are the database's, nothing is fetched, no error is logged, it can
// be read on a phone and in the dark, and used by keyboard alone. Screenshots go into FOLDER/screens.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "..", "..");
const [railyard, folder] = process.argv.slice(2).map((p) => resolve(p));
const { chromium } = createRequire(join(folder, "..", "..", "report", "package.json"))("playwright-core");
const screens = join(folder, "screens");
const db = join(folder, "out.sqlite");

let passed = 0;
const failures = [];
function check(condition, message) {
  if (condition) passed += 1;
  else failures.push(message);
}

// ---- what is looked at ----

const run = (program, ...args) => execFileSync(program, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const sql = (query, from = db) => JSON.parse(run("sqlite3", "-json", from, query) || "[]");

function makePages() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(screens, { recursive: true });
  run(railyard, "run", "scenarios/hello/first.toml", "--db", db, "--replicas", "6", "--no-estimates");
  // By its whole path: a long word to break on a phone.
  run(railyard, "run", join(root, "scenarios/clusters/h100_64_gpu.toml"), "--db", db, "--replicas", "4", "--no-estimates");
  run(railyard, "report", db, "-o", join(folder, "run.html"));
  run(railyard, "compare", "scenarios/studies/async_or_not.toml", "--set", "job.checkpoint.mode=sync", "--replicas", "8", "--db", join(folder, "compare.sqlite"));
  run(railyard, "report", join(folder, "compare.sqlite"), "-o", join(folder, "compare.html"));
  run(railyard, "run", "scenarios/studies/slurm_vs_kubernetes.toml", "--replicas", "4", "--db", join(folder, "world.sqlite"));
  run(railyard, "report", join(folder, "world.sqlite"), "-o", join(folder, "world.html"), "--no-estimates");
  run(railyard, "compare", "scenarios/studies/h100_or_a100.toml", "--arm", "A100: cluster.node=dgx_a100", "--arm", "H200: cluster.node=dgx_h200", "--replicas", "4", "--db", join(folder, "three.sqlite"));
  run(railyard, "report", join(folder, "three.sqlite"), "-o", join(folder, "three.html"), "--no-estimates");
  writeFileSync(join(folder, "impossible.toml"), `[sweep]\nscenario = "${join(root, "scenarios/hello/first.toml")}"\nreplicas = 1\n[[sweep.axis]]\nkey = "cluster.nodes"\nfrom = 1\nto = 14\nsteps = 14\n`);
  run(railyard, "run", "scenarios/hello/first.toml", "--db", join(folder, "impossible.sqlite"), "--replicas", "1", "--no-estimates");
  try {
    run(railyard, "sweep", join(folder, "impossible.toml"), "--db", join(folder, "impossible.sqlite"));
  } catch (error) {
    check(error.status === 2, `a sweep of impossible points: exit ${error.status}`);
  }
  run(railyard, "report", join(folder, "impossible.sqlite"), "-o", join(folder, "impossible.html"));
  const few = join(folder, "few.sqlite");
  copyFileSync(db, few);
  run("/usr/bin/python3", join(here, "make_sweep.py"), few, "20");
  run(railyard, "report", few, "-o", join(folder, "few.html"), "--no-estimates");
  run("/usr/bin/python3", join(here, "make_sweep.py"), db, "10000");
  run(railyard, "report", db, "-o", join(folder, "sweep.html"), "--no-estimates");
}

// Whatever somebody has written into titles, causes, labels and axes.
const hostile = (where) => `<img src=x onerror="window.hacked = '${where}'">`;
function makeHostilePage() {
  const text = (s) => `"""${s.replaceAll('"', '\\"')}"""`;
  writeFileSync(join(folder, "hostile.toml"), `title = ${text(hostile("title"))}
[run]
duration = "10 day"
[cluster]
nodes = 4
[job]
step.time = "1 s"
checkpoint = { mode = "sync", size = "10 GB", interval = "20 min" }
[[failures.cause]]
name = ${text(hostile("cause"))}
mtbf_job = "6 h"
remedy = "restart"
detection = "1 min"
[sweep]
replicas = 2
[[sweep.axis]]
key = "job.checkpoint.interval"
values = ["10 min", "20 min", "1 h"]
[[sweep.axis]]
key = "cluster.nodes"
values = [4, 5]
`);
  const file = join(folder, "hostile.sqlite");
  run(railyard, "sweep", join(folder, "hostile.toml"), "--db", file);
  const quoted = (where) => `'${hostile(where).replaceAll("'", "''")}'`;
  run("sqlite3", file, `UPDATE run_points SET label = ${quoted("label")} || position; UPDATE axes SET key = ${quoted("axis")} || axis;
    UPDATE axis_values SET text = ${quoted("value")} || text; UPDATE runs SET file = ${quoted("file")}; UPDATE points SET problem = ${quoted("problem")};`);
  run(railyard, "report", file, "-o", join(folder, "hostile.html"));
}

// Without npm there is no page, and the program says so.
function pageMissing() {
  const page = join(folder, "..", "..", "report", "page.html");
  renameSync(page, `${page}.away`);
  try {
    run(railyard, "report", db, "-o", join(folder, "none.html"));
    check(false, "a report without its page");
  } catch (error) {
    check(error.status === 2 && /page\.html was not built[^]*npm/.test(error.stderr), `without its page: exit ${error.status}, ${error.stderr}`);
  } finally {
    renameSync(`${page}.away`, page);
  }
}

// ---- the browser ----

async function open(browser, file, options = {}, beforehand = async () => {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const url = pathToFileURL(join(folder, file)).href;
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) failures.push(`${file}: console: ${message.text()}`);
  });
  page.on("pageerror", (error) => failures.push(`${file}: ${error.stack}`));
  page.on("request", (request) => {
    const asked = request.url().split("#")[0];
    if (asked !== url && !/^(data|blob):/.test(asked)) failures.push(`${file}: asked for ${asked}`);
  });
  await beforehand(page);
  await page.goto(url, { waitUntil: "load" });
  await page.waitForSelector("html[data-ready=true]");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, context };
}

// Colours on the canvas of each chart: a blank one has one.
async function drawn(page, where) {
  const charts = await page.locator(".chart").all();
  check(charts.length > 0, `${where}: there are no charts`);
  for (const [i, chart] of charts.entries()) {
    await chart.scrollIntoViewIfNeeded();
    await chart.locator("canvas").first().waitFor({ timeout: 5000 });
    const colours = await chart.evaluate(async (holder) => {
      await new Promise((done) => setTimeout(done, 60));
      const seen = new Set();
      for (const canvas of holder.querySelectorAll("canvas")) {
        const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        for (let k = 0; k < pixels.length; k += 3) seen.add(pixels[k]);
      }
      return seen.size;
    });
    check(colours > 12, `${where}: chart ${i} is blank (${colours} colours)`);
  }
}

async function fingerprint(chart) {
  await chart.scrollIntoViewIfNeeded();
  await chart.page().waitForTimeout(250);
  return chart.evaluate((holder) => [...holder.querySelectorAll("canvas")].map((c) => c.toDataURL()).join(""));
}

// Does what it is told, and the chart looks different afterwards.
async function changes(chart, act, message) {
  const before = await fingerprint(chart);
  await act();
  check((await fingerprint(chart)) !== before, message);
}

async function csvOf(page, name) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(`[data-csv="${name}"]`).click()]);
  check(download.suggestedFilename() === `${name}.csv`, `${name}: saved as ${download.suggestedFilename()}`);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n");
  return lines.map((line) => line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).slice(0, -1).map((cell) => cell.replace(/,$/, "").replace(/^"|"$/g, "")));
}

const shoot = (page, name, fullPage = false) => page.screenshot({ path: join(screens, `${name}.png`), fullPage });

// ---- the tests ----

async function executiveSummary(browser) {
  const { page, context } = await open(browser, "run.html");
  const [told] = sql("SELECT m.mean, m.low, m.high FROM run_points r JOIN point_metrics m USING (point) WHERE run = 2 AND name = 'goodput'");
  const text = await page.locator("#summary").innerText();
  for (const v of [told.mean, told.low, told.high]) check(text.includes(`${(100 * v).toFixed(2)} %`), `summary: ${v} is not in "${text}"`);
  for (const id of ["summary", "ledger", "interruptions", "timeline", "networks", "tables", "estimates", "provenance"]) {
    check((await page.locator(`#${id}`).count()) === 1, `there is no section ${id}`);
  }
  const [points] = sql("SELECT digest FROM points WHERE point = 2");
  check((await page.locator("#provenance").innerText()).includes(points.digest), "the digest is missing");
  check((await page.locator(".note").count()) === 0, `a note: ${await page.locator(".note").allInnerTexts()}`);
  await drawn(page, "run.html");
  check((await page.locator("#networks svg line").count()) > 0, "no cable is drawn");
  await shoot(page, "run", true);
  await page.evaluate(() => window.scrollTo(0, 0));
  await shoot(page, "run_top");
  await context.close();
}

async function otherRun(browser) {
  const { page, context } = await open(browser, "run.html");
  const before = await page.locator("#summary h2").innerText();
  await page.getByLabel("Run").selectOption("1");
  check((await page.locator("#summary h2").innerText()) !== before, "another run has the same title");
  await drawn(page, "run 1");
  await context.close();
}

async function timelineZooms(browser) {
  const { page, context } = await open(browser, "run.html");
  const chart = page.locator("#timeline .chart");
  for (const name of ["Zoom in", "Zoom in", "Later", "Earlier", "Zoom out", "Whole"]) {
    await changes(chart, () => page.locator("#timeline").getByRole("button", { name, exact: true }).click(), `timeline: ${name} changes nothing`);
  }
  const rows = await csvOf(page, "phases");
  const [told] = sql("SELECT simulated_ns FROM replicas WHERE point = 2 AND replica = 0");
  check(Math.abs(Number(rows.at(-1)[1]) - told.simulated_ns * 1e-9) < 0.01, `phases end at ${rows.at(-1)[1]} s`);
  check(rows.slice(2).every((row, i) => row[0] === rows[i + 1][1]), "phases have gaps");
  await shoot(page, "timeline");
  await context.close();
}

function bruteFront(points) {
  return points.filter((p) => !points.some((q) => q !== p && q.cost <= p.cost && q.good >= p.good && (q.cost < p.cost || q.good > p.good)));
}

async function sweepExplorer(browser) {
  const { page, context } = await open(browser, "sweep.html");
  await page.getByLabel("Run").selectOption({ index: 1 });
  await drawn(page, "sweep.html");
  const map = page.locator("#explorer .chart").nth(0);
  await map.scrollIntoViewIfNeeded();
  await shoot(page, "explorer_map");
  const explorer = page.locator("#explorer");
  await changes(map, () => explorer.getByLabel("colour", { exact: true }).selectOption("metric:ettr"), "another colour changes nothing");
  await changes(map, () => explorer.getByLabel("x", { exact: true }).first().selectOption("axis:cluster.nodes"), "another axis changes nothing");
  const pareto = page.locator("#explorer .chart").nth(1);
  const points = sql(`SELECT c.mean AS cost, g.mean AS good FROM point_metrics c JOIN point_metrics g USING (point) JOIN run_points r USING (point)
    WHERE c.name = 'cost' AND g.name = 'goodput' AND r.run = 3`).map((p) => ({ cost: Math.fround(p.cost), good: Math.fround(p.good) }));
  const front = new Set(bruteFront(points).map((p) => `${p.cost}/${p.good}`));
  const rows = await csvOf(page, "pareto_front");
  check(rows.length - 1 === front.size, `${rows.length - 1} points on the front, not ${front.size}`);
  check(rows.slice(1).every((row) => front.has(`${row.at(-2)}/${row.at(-1)}`)), "the front has points that are beaten");
  await shoot(page, "explorer_pareto");
  await changes(pareto, () => explorer.getByLabel("of y").selectOption("true"), "the other direction changes nothing");
  await page.locator("#explorer .chart").nth(2).scrollIntoViewIfNeeded();
  await page.waitForTimeout(1500);
  await shoot(page, "explorer_parallel");
  await changes(page.locator("#explorer .chart").nth(2), () => explorer.getByLabel("beside it").selectOption("metric:mfu"), "another metric changes nothing");
  await context.close();
}

async function tablesWork(browser) {
  const { page, context } = await open(browser, "sweep.html");
  await page.getByLabel("Run").selectOption({ index: 1 });
  const table = page.locator("#tables table").first();
  await page.locator("#tables").getByRole("button", { name: "Sort by goodput" }).first().click();
  const [best] = sql("SELECT max(m.mean) AS best FROM point_metrics m JOIN run_points r USING (point) WHERE r.run = 3 AND m.name = 'goodput'");
  check((await table.locator("tbody tr").first().innerText()).includes(`${(100 * best.best).toFixed(2)} %`), "the best point is not first");
  const first = await table.locator("tbody tr").first().innerText();
  await page.locator("#tables").getByRole("button", { name: "Next" }).first().click();
  check((await table.locator("tbody tr").first().innerText()) !== first, "Next shows the same rows");
  const rows = await csvOf(page, "points");
  check(rows.length === 10001, `points.csv has ${rows.length} lines`);
  await page.locator("#tables").scrollIntoViewIfNeeded();
  await shoot(page, "tables");
  await context.close();
}

// async_or_not.toml gives the step's time and no model.
async function noModelNoMfu(browser) {
  const { page, context } = await open(browser, "compare.html");
  const [header] = await csvOf(page, "points");
  check(header.includes("goodput") && !header.includes("mfu"), `columns of points without a model: ${header}`);
  await context.close();
}

async function verdicts(browser) {
  const { page, context } = await open(browser, "sweep.html");
  const text = await page.locator(".verdicts").innerText();
  check(text.includes("choose “thirty-two <b>servers</b>”, +1.23 points"), `verdict: ${text}`);
  check((await page.locator(".verdicts b").count()) === 0, "a label is taken for HTML");
  await page.locator("#tables").scrollIntoViewIfNeeded();
  check((await page.locator("#tables").innerText()).includes("undecided"), "the undecided metric is missing");
  await page.evaluate(() => window.scrollTo(0, 0));
  await shoot(page, "compare", true);
  await context.close();
}

// Standing still for a checkpoint costs what its store takes: the verdict is the database's, in words.
async function realComparison(browser) {
  const { page, context } = await open(browser, "compare.html");
  const [told] = sql("SELECT verdict, difference FROM comparisons WHERE metric = 'goodput'", join(folder, "compare.sqlite"));
  const text = await page.locator(".verdicts li").first().innerText();
  const words = `choose “A: as it is”, +${(-100 * told.difference).toFixed(2)} points against “B: job.checkpoint.mode=sync”`;
  check(told.verdict === "a" && text.includes(words), `comparison: ${told.verdict}, "${text}"`);
  const hangs = await page.locator(".verdicts").innerText();
  check(/(stays better than|does not survive|too few replicas)/.test(hangs) && /\d+ estimates were read, \d+ of them move the difference/.test(hangs), `does the verdict survive its estimates? "${hangs}"`);
  check((await page.locator("#timeline .note").count()) === 0, "a timeline is not the database's");
  await page.locator("#timeline").getByLabel("Point", { exact: true }).selectOption("1");
  await drawn(page, "compare.html");
  await shoot(page, "compare_real", true);
  await context.close();
}

// Three designs are one sentence a metric; what has less goodput and trains more is not passed over.
async function threeDesigns(browser) {
  const { page, context } = await open(browser, "three.html");
  const said = (await page.locator(".verdicts li").allInnerTexts()).map((text) => text.split("\n")[0]);
  const of = (name) => said.find((text) => text.startsWith(`${name}:`)) ?? "";
  check(/“B \(A100\)” is best, \+[\d.]+ points against “A: as it is” and \+[\d.]+ points against “C \(H200\)”/.test(of("goodput")), `three designs: ${said}`);
  check(/“C \(H200\)” is best/.test(of("tokens")), `three designs, tokens: ${of("tokens")}`);
  check(new Set(said.map((text) => text.split(":")[0])).size === said.length, `a metric is told twice: ${said}`);
  await context.close();
}

async function nothingPossible(browser) {
  const { page, context } = await open(browser, "impossible.html");
  check((await page.locator(".verdicts").innerText()).includes("14 of 14 points are impossible"), "impossible points are not told");
  check((await page.locator(".chart").count()) === 0, "charts of nothing");
  check((await page.locator("#tables").innerText()).includes("the job wants 16 nodes"), "the table does not say what is impossible");
  await context.close();
}

// Many jobs have waits and completion times, and a timeline of what they hold, whose curves are the database's events.
async function manyJobs(browser) {
  const { page, context } = await open(browser, "world.html");
  const cards = await page.locator("#summary .cards").innerText();
  for (const name of ["utilisation", "jobs completed", "wait in the queue", "completion time of ended jobs"]) check(cards.includes(name), `many jobs: no ${name} in "${cards}"`);
  const chart = page.locator("#timeline .chart");
  for (const name of ["Zoom in", "Later", "Whole"]) {
    await changes(chart, () => page.locator("#timeline").getByRole("button", { name, exact: true }).click(), `many jobs: ${name} changes nothing`);
  }
  check((await page.locator("#timeline .note").count()) === 0, "many jobs: the timeline is not the database's");
  const curves = await csvOf(page, "jobs over time");
  const starts = sql("SELECT DISTINCT time_ns FROM events WHERE point = 1 AND replica = 0 AND kind = 'started'", join(folder, "world.sqlite"));
  check(starts.length > 0, "many jobs: none starts");
  const named = (name) => curves[0].indexOf(name);
  for (const { time_ns } of starts) {
    const row = curves.slice(1).findLast((r) => Number(r[0]) <= time_ns * 1e-9 + 0.001);
    check(Number(row[named("running")]) > 0, `many jobs: nothing runs at ${row[0]} s, when a job starts`);
    check(curves[0].some((c, i) => c.startsWith("gpus_held") && Number(row[i]) > 0), `many jobs: no GPU is held at ${row[0]} s`);
  }
  const colours = readFileSync(join(root, "tools/report/src/colours.js"), "utf8");
  for (const { category } of sql("SELECT category FROM categories", join(folder, "world.sqlite"))) {
    check(colours.includes(`  ${category}: "#`), `the ledger's ${category} has no colour`);
  }
  await drawn(page, "world.html");
  await shoot(page, "many_jobs", true);
  await context.close();
}

// Nothing that stands in a database is run, wherever the pointer goes; and were it inserted, the page's policy
// would have browsers refuse it.
async function hostileTexts(browser) {
  const { page, context } = await open(browser, "hostile.html");
  const policy = await page.locator("meta[http-equiv=Content-Security-Policy]").getAttribute("content");
  check(/script-src 'sha256-[A-Za-z0-9+/]+=*';/.test(policy), `the page's policy: ${policy}`);
  const told = [];
  for (const chart of await page.locator(".chart").all()) {
    await chart.scrollIntoViewIfNeeded();
    await chart.locator("canvas").first().waitFor({ timeout: 5000 });
    const { x, y, width, height } = await chart.boundingBox();
    for (let i = 1; i < 10; ++i) {
      for (let k = 1; k < 6; ++k) {
        await page.mouse.move(x + (width * i) / 10, y + (height * k) / 6);
        const tip = await chart.evaluate((e) => e.innerText);
        if (tip && told.at(-1) !== tip) told.push(tip);
      }
    }
  }
  for (const where of ["value", "cause", "axis"]) {
    check(told.some((tip) => tip.includes(`'${where}'`)), `no tooltip tells the hostile ${where} as text, of ${told.length}: ${told.slice(0, 3)}`);
  }
  check((await page.locator("img").count()) === 0, "a text has become an element");
  check((await page.evaluate(() => window.hacked)) === undefined, `a text was run: ${await page.evaluate(() => window.hacked)}`);
  await context.close();
  // The same page with such a text in it as HTML.
  const html = readFileSync(join(folder, "hostile.html"), "utf8");
  writeFileSync(join(folder, "injected.html"), html.replace("<body>", () => `<body><script>window.hacked = "script"</script>${hostile("image")}`));
  const injected = await browser.newPage();
  await injected.goto(pathToFileURL(join(folder, "injected.html")).href, { waitUntil: "load" });
  await injected.waitForSelector("html[data-ready=true]");
  check((await injected.evaluate(() => window.hacked)) === undefined, "the page's policy lets other scripts run");
  await injected.close();
}

function luminance(colour) {
  const [r, g, b] = colour.match(/[\d.]+/g).map((v) => {
    const s = Number(v) / 255;
    return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

async function readable(page, where) {
  const pairs = await page.evaluate(() => {
    const background = (e) => {
      for (; e; e = e.parentElement) {
        const c = getComputedStyle(e).backgroundColor;
        if (!/, 0\)$|transparent/.test(c)) return c;
      }
      return "rgb(255, 255, 255)";
    };
    return [...document.querySelectorAll("h1, h2, p, .name, .value, .range, figcaption, td, th, label, button, small, summary")]
      .filter((e) => e.offsetParent && e.innerText.trim() && !e.closest(".drawing") && !e.disabled)
      .map((e) => [getComputedStyle(e).color, background(e), e.className || e.tagName]);
  });
  const low = pairs.filter(([a, b]) => !/color\(/.test(a + b)).filter(([a, b]) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05) < 4.5;
  });
  check(pairs.length > 20 && low.length === 0, `${where}: too little contrast: ${JSON.stringify(low.slice(0, 4))}`);
}

async function dark(browser) {
  const { page, context } = await open(browser, "run.html", { colorScheme: "dark" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  check(luminance(await ground()) < 0.05, "a dark system gets a light page");
  await readable(page, "dark");
  await drawn(page, "dark");
  await shoot(page, "dark", true);
  const chart = page.locator("#ledger .chart").first();
  await changes(chart, () => page.locator("[data-theme-button]").click(), "charts keep the dark theme");
  check(luminance(await ground()) > 0.8, "the button does not make it light");
  await readable(page, "light");
  await context.close();
}

async function phone(browser) {
  for (const file of ["run.html", "sweep.html"]) {
    const { page, context } = await open(browser, file, { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true });
    if (file === "sweep.html") await page.getByLabel("Run").selectOption({ index: 1 });
    await drawn(page, `${file} on a phone`);
    // Not innerWidth: a phone makes that as wide as what does not fit.
    const wide = await page.evaluate(() => document.scrollingElement.scrollWidth);
    check(wide <= 390, `${file}: ${wide} px wide on a phone of 390`);
    await shoot(page, `phone_${file.split(".")[0]}`, true);
    await context.close();
  }
}

async function keyboard(browser) {
  const { page, context } = await open(browser, "run.html");
  await page.keyboard.press("Tab");
  check((await page.evaluate(() => document.activeElement.className)) === "skip", "the first stop is not the skip link");
  const wanted = await page.evaluate(() => [...document.querySelectorAll("a[href], button:not([disabled]), select, input, summary, [tabindex='0']")].length);
  const stops = [];
  for (let i = 0; i < wanted + 5; ++i) {
    const stop = await page.evaluate(() => {
      const e = document.activeElement;
      if (e === document.body) return null;
      const name = e.getAttribute("aria-label") || e.innerText || e.labels?.[0]?.innerText || (e.tagName === "PRE" ? e.textContent : "");
      const box = e.getBoundingClientRect();
      const all = [...document.querySelectorAll("*")];
      return { place: all.indexOf(e), name: name.trim().slice(0, 40), visible: box.width > 0 && getComputedStyle(e).outlineStyle !== "none" };
    });
    if (stop === null) break;
    stops.push(stop);
    await page.keyboard.press("Tab");
  }
  check(stops.length >= wanted - 2, `Tab reaches ${stops.length} of ${wanted} controls`);
  check(stops.every((s) => s.name), `controls without a name: ${JSON.stringify(stops.filter((s) => !s.name))}`);
  check(stops.every((s) => s.visible), `focus is not seen on ${JSON.stringify(stops.filter((s) => !s.visible).slice(0, 3))}`);
  check(stops.every((s, i) => i === 0 || s.place > stops[i - 1].place), "Tab does not follow the page");
  await page.locator("[data-theme-button]").focus();
  await page.keyboard.press("Enter");
  check((await page.evaluate(() => document.documentElement.dataset.theme)) === "dark", "Enter does not press a button");
  const figures = await page.locator(".chart").evaluateAll((all) => all.every((c) => c.getAttribute("role") === "img" && document.getElementById(c.getAttribute("aria-labelledby")).innerText));
  check(figures, "a chart says nothing to who can't see it");
  await context.close();
}

// CPU time of the page's own thread, from an empty page to the sweep on the screen.
async function openedAndShown(browser, file) {
  const { page, context } = await open(browser, file, {}, async (page) => {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.setTimeDomain", { timeDomain: "threadTicks" });
    await session.send("Performance.enable");
    page.cpuSeconds = async () => (await session.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value;
  });
  await page.getByLabel("Run").selectOption({ index: 1 }); // from the comparison to the sweep
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const seconds = await page.cpuSeconds();
  await context.close();
  return seconds;
}

// A page of many rows costs little more than one of few: a ratio, since machines differ, and the median of several,
// since one machine does from minute to minute.
async function tenThousandRows(browser) {
  const megabytes = statSync(join(folder, "sweep.html")).size / 1e6;
  check(megabytes < 5, `a report of 10,000 rows has ${megabytes.toFixed(2)} MB`);
  const ratios = [];
  for (let i = 0; i < 7; ++i) ratios.push(await openedAndShown(browser, "sweep.html") / await openedAndShown(browser, "few.html"));
  ratios.sort((a, b) => a - b);
  const shown = `10,000 rows: ${megabytes.toFixed(2)} MB, opened and shown in ${ratios[3].toFixed(2)} times the CPU time of a page of 20 rows (${ratios[0].toFixed(2)} to ${ratios[6].toFixed(2)})`;
  console.log(shown);
  check(ratios[3] < 1.8, shown);
}

const tests = [executiveSummary, otherRun, timelineZooms, sweepExplorer, tablesWork, noModelNoMfu, verdicts, realComparison, threeDesigns, nothingPossible, manyJobs, hostileTexts, dark, phone, keyboard, tenThousandRows];

makePages();
makeHostilePage();
pageMissing();
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
try {
  for (const test of tests) {
    const before = failures.length;
    const begun = performance.now();
    try {
      await test(browser);
    } catch (error) {
      failures.push(`${test.name}: ${error.stack}`);
    }
    console.log(`${failures.length === before ? "ok  " : "FAIL"} ${test.name} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  }
} finally {
  await browser.close();
}
for (const failure of failures) console.log(failure);
console.log(`${passed} passed, ${failures.length} failed`);
process.exit(failures.length === 0 && passed > 0 ? 0 : 1);
