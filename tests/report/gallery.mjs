// The gallery of studies in a real Chromium: pictures are there, text is text, nothing is fetched or run.
//
// usage: node gallery.mjs RAILYARD FOLDER    FOLDER/../../report has the npm packages

import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");
const [railyard, folder] = process.argv.slice(2).map((p) => resolve(p));
const { chromium } = createRequire(join(folder, "..", "..", "report", "package.json"))("playwright-core");
// One with a report, one with a drawing, one whose answer is that nothing can go on.
const studies = ["async_or_not", "ecmp_collisions", "gang_deadlock"];

rmSync(folder, { recursive: true, force: true });
const make = () => execFileSync(join(root, "tools", "gallery"), [railyard, "-o", folder, "--only", ...studies], { encoding: "utf8" });
const failures = [];
const check = (condition, message) => condition || failures.push(message);
check(make().includes(`${studies.length} studies, 0 failed`), "the gallery is made");

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
page.on("console", (message) => check(message.type() !== "error", `console: ${message.text()}`));
page.on("pageerror", (error) => check(false, `error: ${error}`));
page.on("request", (request) => check(request.url().startsWith("file:"), `fetched: ${request.url()}`));
await page.goto(pathToFileURL(join(folder, "index.html")).href);
for (const name of studies) {
  const article = page.locator(`article#${name}`);
  await article.scrollIntoViewIfNeeded();
  const image = article.locator("img");
  await image.evaluate((element) => element.decode());
  check((await image.evaluate((element) => element.naturalWidth)) > 100, `${name}: a picture`);
  check((await article.locator("code").textContent()).startsWith("railyard "), `${name}: a command`);
  check((await article.locator("pre").textContent()).length > 200, `${name}: an answer`);
  check((await article.locator("p").first().textContent()).length > 20, `${name}: a question`);
}
check((await page.locator("#async_or_not pre").textContent()).includes("goodput"), "the answer is the study's");
check((await page.evaluate(() => document.documentElement.scrollWidth)) <= 1200, "nothing sticks out");
await browser.close();
for (const failure of failures) console.log(`failed: ${failure}`);
console.log(failures.length ? `${failures.length} failed` : "passed");
process.exit(failures.length ? 1 : 0);
