// Preloaded into every TypeScript run. Guarantees that TypeScript files run as they are: each is transformed by
// esbuild when it is loaded (enums, namespaces, decorators, parameter properties; a tsconfig.json beside the
// program is respected), imports find their file with or without an extension, stack traces show the lines of the source.
// Type errors do not stop a program; a syntax error is printed with its line and ends the run with exit code 1.
"use strict";

require("./interop.cjs");
const { spawnSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { registerHooks, setSourceMapsSupport } = require("node:module");
const { fileURLToPath } = require("node:url");
const vm = require("node:vm");

const ESBUILD = "/usr/bin/esbuild";
const OPTIONS = ["--target=node24", "--sourcemap=inline", "--log-level=error", "--color=false"];
const MAX_OUTPUT_BYTES = 1 << 28;
const SOURCE_FILE = /\.[cm]?tsx?$/;
const RELATIVE = /^(\.{1,2}(\/|$)|\/|file:)/;
const WRAPPER = ["exports", "require", "module", "__filename", "__dirname"];

setSourceMapsSupport(true, { nodeModules: false, generatedCode: false });

/** The spellings to try, in order, when a relative import names no file as it stands. */
function candidates(specifier) {
  const script = /^(.*)\.([cm]?)js(x?)$/.exec(specifier);
  const renamed = script ? [`${script[1]}.${script[2]}ts${script[3]}`] : [];
  const directory = specifier.replace(/\/$/, "");
  return [
    ...renamed,
    ...[".ts", ".tsx", ".mts", ".cts", ".js", ".json"].map((extension) => specifier + extension),
    ...["/index.ts", "/index.tsx", "/index.js"].map((index) => directory + index),
  ];
}

const isMissing = (error) =>
  ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND", "ERR_UNSUPPORTED_DIR_IMPORT"].includes(error?.code);

function resolve(specifier, context, nextResolve) {
  try {
    return nextResolve(specifier, context);
  } catch (error) {
    if (!isMissing(error) || !RELATIVE.test(specifier)) throw error;
    for (const candidate of candidates(specifier)) {
      try {
        return nextResolve(candidate, context);
      } catch (next) {
        if (!isMissing(next)) throw next;
      }
    }
    throw error;
  }
}

/** CommonJS when it compiles as the body of a CommonJS function, as Node itself decides for JavaScript. */
function formatOf(file, source) {
  if (file.endsWith(".cts")) return "commonjs";
  if (file.endsWith(".mts")) return "module";
  try {
    vm.compileFunction(source, WRAPPER);
    return "commonjs";
  } catch {
    return "module";
  }
}

/** `import data from "./data.json"` without the import attribute that JavaScript asks for; TypeScript programs leave it out. */
function isPlainJsonImport(url, { conditions, importAttributes }) {
  return url.endsWith(".json") && conditions.includes("import") && importAttributes?.type === undefined;
}

/** Ends the run when the file is not TypeScript, after esbuild has said where and why. */
function transform(file) {
  const { error, status, signal, stdout, stderr } = spawnSync(ESBUILD, [...OPTIONS, file], {
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  if (error) throw error;
  process.stderr.write(stderr);
  if (status !== 0) {
    if (signal) process.stderr.write(`${file}: the TypeScript compiler ended by ${signal}\n`);
    process.exit(1);
  }
  return stdout.toString("utf8");
}

function load(url, context, nextLoad) {
  if (!url.startsWith("file:")) return nextLoad(url, context);
  if (SOURCE_FILE.test(url)) {
    const file = fileURLToPath(url);
    const source = transform(file);
    return { format: formatOf(file, source), source, shortCircuit: true };
  }
  if (isPlainJsonImport(url, context)) {
    const source = `export default ${readFileSync(fileURLToPath(url), "utf8")}`;
    return { format: "module", source, shortCircuit: true };
  }
  return nextLoad(url, context);
}

registerHooks({ resolve, load });
require("./warm/wait.cjs").waitForProgram();
