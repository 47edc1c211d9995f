// Builds web/dist from web/src. The output depends only on the sources and on the versions in package-lock.json,
// so that a check can rebuild it and compare. Names carry no hash: the server sends an ETag with each file.
import { build } from "esbuild";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.resolve(process.argv[2] ?? path.join(here, "dist"));

const result = await build({
    entryPoints: [path.join(here, "src/main.tsx")],
    absWorkingDir: here,
    bundle: true,
    minify: true,
    write: false,
    outdir: "out",
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    charset: "utf8",
});

await rm(out, { recursive: true, force: true });
await mkdir(path.join(out, "assets"), { recursive: true });
for (const file of result.outputFiles) await writeFile(path.join(out, "assets", "app" + path.extname(file.path)), file.contents);
const page = await readFile(path.join(here, "src/index.html"), "utf8");
for (const [file, product] of [["index.html", "broker"], ["platform.html", "platform"]]) await writeFile(path.join(out, file), page.replace("%product%", product));
