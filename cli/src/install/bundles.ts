/**
 * Bundles the components for `./svc up`: each becomes a single file, and its compiled code goes into Node's compile cache.
 * Loading some hundred modules instead would take a fifth more memory and twice the time at the start. Functions keep their
 * names for stack traces. The bundles are made again when one of their source files or a dependency has changed.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { getCompileCacheDir } from "node:module";
import { dirname, join, relative } from "node:path";
import type { Plugin } from "esbuild";
import { BUNDLES, bundleOf, NODE, NODE_OPTIONS } from "../components.ts";
import { ROOT } from "../instance.ts";
import { Problem } from "../problem.ts";
import { run } from "../system/run.ts";
import { SERVICE_PROCESSES, type ServiceProcess } from "../topology.ts";

/** Modules that components load only when they use them: the tracing SDK, and the API's MCP server. */
const TRACING_SDK = { in: join(ROOT, "packages/service-kit/src/tracing/sdk.ts"), out: "tracing-sdk" };
const CONSOLE = join(ROOT, "console/src");
const MCP = { in: join(ROOT, "packages/mcp/src/http.ts"), out: "mcp" };
/** The program that runs in a microVM. */
const GUEST = { in: join(ROOT, "services/launcher/src/guest/main.ts"), out: "guest" };
/** Written last. It has a line for each file of this tree that affects the bundles: the file's stamp, and its path relative to the root. */
const COMPLETE = join(BUNDLES, "complete");

/** Files that affect the bundles in addition to the sources: the versions of packages, and this module. */
const DECISIVE = ["package-lock.json", relative(ROOT, import.meta.filename)];

export interface Entry {
  in: string;
  out: string;
}

/**
 * A compile cache that cannot be made only costs time. A bundle that cannot be made is a Problem. `more`: entries that are
 * bundled together with the components.
 */
export async function buildBundles(more: readonly Entry[] = []): Promise<void> {
  if (!isCurrent()) await bundle(more);
  const cache = getCompileCacheDir();
  if (cache !== undefined && modified(join(cache, "complete")) < modified(COMPLETE)) await compile(cache);
}

async function bundle(more: readonly Entry[]): Promise<void> {
  const { build, stop } = await import("esbuild");
  mkdirSync(BUNDLES, { recursive: true });
  // At the same depth as its destination, because bundles refer to the places of sources by relative paths.
  const making = mkdtempSync(`${BUNDLES}.`);
  try {
    const components = await build({
      entryPoints: [
        ...SERVICE_PROCESSES.map((name) => ({ in: sourceOf(name), out: name })),
        TRACING_SDK,
        MCP,
        GUEST,
        ...more,
      ],
      outdir: making,
      absWorkingDir: ROOT,
      metafile: true,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      platform: "node",
      format: "esm",
      target: `node${process.versions.node.split(".")[0]}`,
      // V8 keeps the text in memory, so it is minified. Function names and line breaks are worth their bytes for stack
      // traces.
      minifyWhitespace: true,
      minifySyntax: true,
      lineLimit: 160,
      legalComments: "none",
      // Packages that are not ES modules load Node's modules with `require`.
      banner: {
        js: 'import{createRequire as $createRequire}from"node:module";const require=$createRequire(import.meta.url);',
      },
      plugins: [placesOfSources, loadedApart],
      logLevel: "silent",
    });
    const page = await bundleConsole(build, making);
    for (const name of readdirSync(making)) renameSync(join(making, name), join(BUNDLES, name));
    const inputs = [components, page].flatMap(({ metafile }) => Object.keys(metafile.inputs));
    const files = [...inputs.filter((file) => !file.startsWith("node_modules/")), ...DECISIVE];
    writeFileSync(COMPLETE, files.map((file) => `${stampOf(file)} ${file}\n`).join(""));
  } catch (error) {
    throw new Problem("bundling the components failed", (error as Error).message);
  } finally {
    rmSync(making, { recursive: true });
    await stop();
  }
}

/** The page at /console: a script and a style sheet, which the API serves. */
function bundleConsole(build: typeof import("esbuild").build, outdir: string) {
  return build({
    entryPoints: { console: join(CONSOLE, "main.tsx"), "console-style": join(CONSOLE, "style.css") },
    outdir,
    absWorkingDir: ROOT,
    metafile: true,
    bundle: true,
    platform: "browser",
    format: "esm",
    target: "es2022",
    minify: true,
    jsx: "automatic",
    jsxImportSource: "preact",
    // The client reads files from disk only in Node.
    external: ["node:*"],
    legalComments: "none",
    logLevel: "silent",
  });
}

/** Lets a module that reads files beside itself find them beside its source, wherever this folder is moved. */
const placesOfSources: Plugin = {
  name: "places of sources",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const place = `new URL(${JSON.stringify(relative(BUNDLES, path))},import.meta.url).href`;
      return { loader: "ts", contents: readFileSync(path, "utf8").replaceAll("import.meta.url", place) };
    });
  },
};

/** Not included in bundles: a bundle imports these as bundles of their own beside it. */
const loadedApart: Plugin = {
  name: "loaded apart",
  setup: ({ onResolve }) => {
    const apart = ({ out }: { out: string }) => ({ path: `./${out}.mjs`, external: true });
    onResolve({ filter: /^\.\/sdk\.ts$/ }, ({ resolveDir, path, kind }) =>
      kind === "dynamic-import" && join(resolveDir, path) === TRACING_SDK.in ? apart(TRACING_SDK) : undefined,
    );
    onResolve({ filter: /^@svc\/mcp\/http$/ }, ({ kind }) =>
      kind === "dynamic-import" ? apart(MCP) : undefined,
    );
  },
};

/**
 * A component without configuration loads everything and then refuses to start, which fills the compile cache. Without the
 * cache, each would compile its bundle at every start, and keep the compiler (10 MiB) in memory.
 */
async function compile(cache: string): Promise<void> {
  const env = { PATH: "/usr/bin:/bin", NODE_COMPILE_CACHE: dirname(cache) };
  await Promise.all(SERVICE_PROCESSES.map((name) => run([NODE, ...NODE_OPTIONS, bundleOf(name)], { env })));
  for (const name of readdirSync(cache)) makeReadable(join(cache, name));
  writeFileSync(join(cache, "complete"), "");
}

/** ENOENT is ignored: a process that is ending may just be replacing the file by the same content. */
function makeReadable(file: string): void {
  try {
    chmodSync(file, 0o644);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function sourceOf(process: ServiceProcess): string {
  return join(ROOT, "services", process, "src/main.ts");
}

/**
 * Whether nothing that affects the bundles has changed since they were made: no source, no dependency, and not this module.
 * Times are compared for equality, because an upgrade may bring files that are older than the bundles.
 */
function isCurrent(): boolean {
  if (!existsSync(COMPLETE)) return false;
  const lines = readFileSync(COMPLETE, "utf8").trimEnd().split("\n");
  return lines.every((line) => {
    const [, stamp, file] = /^(\S+) (.+)$/.exec(line) ?? [];
    return file !== undefined && stampOf(file) === stamp;
  });
}

/** A value that differs when a file of this tree has different content. */
function stampOf(file: string): string {
  const found = statSync(join(ROOT, file), { throwIfNoEntry: false });
  return found === undefined ? "none" : `${found.mtimeMs}/${found.size}`;
}

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
