/**
 * The components as `./svc up` runs them: each a single file, bundled from the sources, with its compiled code in Node's
 * compile cache. A component that loaded some hundred modules instead would take a fifth more memory and start in twice the
 * time. Functions keep their names, for stack traces. Made anew when a source or a dependency has changed.
 */
import {
  chmodSync,
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

const SOURCES = ["services", "packages"];
/** What components load when it is used, and not before: the SDK of tracing, and the API's MCP server. */
const TRACING_SDK = { in: join(ROOT, "packages/service-kit/src/tracing/sdk.ts"), out: "tracing-sdk" };
const CONSOLE = join(ROOT, "console/src");
const MCP = { in: join(ROOT, "packages/mcp/src/http.ts"), out: "mcp" };
/** What runs in a microVM. */
const GUEST = { in: join(ROOT, "services/launcher/src/guest/main.ts"), out: "guest" };
const COMPLETE = join(BUNDLES, "complete");

export interface Entry {
  in: string;
  out: string;
}

/**
 * A cache that cannot be made costs only time; a bundle that cannot be made is a Problem. `more`: entries beside those of
 * the components, made with them.
 */
export async function buildBundles(more: readonly Entry[] = []): Promise<void> {
  if (modified(COMPLETE) < newestSource()) await bundle(more);
  const cache = getCompileCacheDir();
  if (cache !== undefined && modified(join(cache, "complete")) < modified(COMPLETE)) await compile(cache);
}

async function bundle(more: readonly Entry[]): Promise<void> {
  const { build, stop } = await import("esbuild");
  mkdirSync(BUNDLES, { recursive: true });
  // As deep as its destination: bundles name the places of sources as seen from themselves.
  const making = mkdtempSync(`${BUNDLES}.`);
  try {
    await build({
      entryPoints: [
        ...SERVICE_PROCESSES.map((name) => ({ in: sourceOf(name), out: name })),
        TRACING_SDK,
        MCP,
        GUEST,
        ...more,
      ],
      outdir: making,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      platform: "node",
      format: "esm",
      target: `node${process.versions.node.split(".")[0]}`,
      // What V8 keeps of the text in memory; the names of functions and the lines of stack traces are worth their bytes.
      minifyWhitespace: true,
      minifySyntax: true,
      lineLimit: 160,
      legalComments: "none",
      // Packages that are not ES modules ask for Node's modules by `require`.
      banner: {
        js: 'import{createRequire as $createRequire}from"node:module";const require=$createRequire(import.meta.url);',
      },
      plugins: [placesOfSources, loadedApart],
      logLevel: "silent",
    });
    await bundleConsole(build, making);
    for (const name of readdirSync(making)) renameSync(join(making, name), join(BUNDLES, name));
  } catch (error) {
    throw new Problem("bundling the components failed", (error as Error).message);
  } finally {
    rmSync(making, { recursive: true });
    await stop();
  }
  writeFileSync(COMPLETE, "");
}

/** The page at /console: a script and a style sheet, which the API serves. */
async function bundleConsole(build: typeof import("esbuild").build, outdir: string): Promise<void> {
  await build({
    entryPoints: { console: join(CONSOLE, "main.tsx"), "console-style": join(CONSOLE, "style.css") },
    outdir,
    bundle: true,
    platform: "browser",
    format: "esm",
    target: "es2022",
    minify: true,
    jsx: "automatic",
    jsxImportSource: "preact",
    // The client reads files from disk in Node alone.
    external: ["node:*"],
    legalComments: "none",
    logLevel: "silent",
  });
}

/** A module that reads files beside itself finds them beside its source, wherever this folder is moved. */
const placesOfSources: Plugin = {
  name: "places of sources",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const place = `new URL(${JSON.stringify(relative(BUNDLES, path))},import.meta.url).href`;
      return { loader: "ts", contents: readFileSync(path, "utf8").replaceAll("import.meta.url", place) };
    });
  },
};

/** Bundles do not contain these: they import bundles of their own beside them. */
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
 * A component that has no configuration refuses to start when everything is loaded: its code is in the cache then. Without
 * it each would compile its bundle at every start, and keep the compiler that does so (10 MiB) in memory.
 */
async function compile(cache: string): Promise<void> {
  const env = { PATH: "/usr/bin:/bin", NODE_COMPILE_CACHE: dirname(cache) };
  await Promise.all(SERVICE_PROCESSES.map((name) => run([NODE, ...NODE_OPTIONS, bundleOf(name)], { env })));
  for (const name of readdirSync(cache)) makeReadable(join(cache, name));
  writeFileSync(join(cache, "complete"), "");
}

/** A process that ends may just be replacing it by the same. */
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

/** When the code of the components, or the way in which it is bundled, was last changed, in milliseconds. */
function newestSource(): number {
  const files = SOURCES.flatMap((folder) =>
    readdirSync(join(ROOT, folder)).flatMap((name) =>
      readdirSync(join(ROOT, folder, name, "src"), { recursive: true, encoding: "utf8" }).map((file) =>
        join(ROOT, folder, name, "src", file),
      ),
    ),
  );
  const page = readdirSync(CONSOLE).map((file) => join(CONSOLE, file));
  return Math.max(
    ...[...files, ...page, join(ROOT, "package-lock.json"), import.meta.filename].map(modified),
  );
}

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
