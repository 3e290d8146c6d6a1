// Makes FOLDER/page.html: src/page.html with its style and its script in it, nothing beside it.
// usage: node build.mjs FOLDER   (FOLDER/node_modules has the packages of package-lock.json)

import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const source = join(dirname(fileURLToPath(import.meta.url)), "src");
const folder = process.argv[2];
const { buildSync } = createRequire(join(folder, "package.json"))("esbuild");

function bundle(entry) {
  const result = buildSync({
    entryPoints: [join(source, entry)],
    nodePaths: [join(folder, "node_modules")],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    define: { "process.env.NODE_ENV": '"production"' },
    write: false,
  });
  return result.outputFiles[0].text;
}

// Text for an element of HTML: nothing in it may end the element.
const within = (text) => text.replaceAll("</script", "<\\/script").replaceAll("</style", "<\\/style");

// The page runs this script and no other: what else gets into it, browsers refuse.
const script = within(bundle("main.js"));
const page = readFileSync(join(source, "page.html"), "utf8")
  .replace("__SCRIPT_DIGEST__", `sha256-${createHash("sha256").update(script).digest("base64")}`)
  .replace("__STYLE__", () => within(bundle("style.css")))
  .replace("__SCRIPT__", () => script);
writeFileSync(join(folder, "page.html.part"), page);
renameSync(join(folder, "page.html.part"), join(folder, "page.html"));
