// Bundles src/ into src/edgeveil/report/page.js, with the licences of what went in.
//
//     npm ci && npm run check && npm run build
//
// `node build.mjs FILE` writes somewhere else (the tests compare it with the committed file).

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../src/edgeveil/report/page.js");

/** SHA-256 of everything the bundle depends on; tests/browser computes the same. */
function stamp() {
  const files = ["build.mjs", "package-lock.json", "package.json"];
  files.push(...readdirSync(join(here, "src")).map((file) => `src/${file}`));
  const hash = createHash("sha256");
  for (const file of files.sort()) hash.update(`${file}\0`).update(readFileSync(join(here, file))).update("\0");
  return hash.digest("hex");
}

/** The licence texts of the packages in the bundle, each text once. */
function licences(inputs) {
  const packages = new Set();
  for (const path of inputs) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (found) packages.add(found[1]);
  }
  const byText = new Map();
  for (const name of [...packages].sort()) {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].find((one) => existsSync(join(folder, one)));
    if (!file) throw new Error(`${name} has no licence file`);
    const text = readFileSync(join(folder, file), "utf8").trim().replaceAll("\r", "").replaceAll("*/", "* /");
    byText.set(text, [...(byText.get(text) ?? []), `${name} ${version}`]);
  }
  return [...byText].map(([text, names]) => `${names.join(", ")}\n\n${text}`).join("\n\n----\n\n");
}

const result = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.ts"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  metafile: true,
  write: false,
});
const inputs = Object.values(result.metafile.outputs)[0].inputs;
const used = Object.keys(inputs).filter((path) => inputs[path].bytesInOutput > 0);
const code = result.outputFiles[0].text;
const text = `/*! edgeveil report page, source ${stamp()}\n\nThird-party code in this bundle:\n\n${licences(used)}\n*/\n${code}`;
if (/<\/script|<!--|\r/i.test(text)) throw new Error("the bundle would break out of its script element");
writeFileSync(target, text);
