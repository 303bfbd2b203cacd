// Preloaded into every JavaScript and TypeScript run. Guarantees that a file which Node runs as an ES module
// also finds `require`, `module`, `exports`, `__filename` and `__dirname`, each for the file that asks.
// CommonJS files have these names in their own scope and never see the ones defined here; a module that
// declares one of the names itself shadows it. Nothing is computed before a program uses one of the names.
"use strict";

const { createRequire } = require("node:module");
const { dirname, isAbsolute, join } = require("node:path");
const { fileURLToPath } = require("node:url");
const { getCallSites } = require("node:util");

const modules = new Map();

/** The entry file, or a name in the working directory for code that has no file (`node -e`, a worker started from a string). */
function mainFile() {
  const file = process.argv[1];
  return file !== undefined && isAbsolute(file) ? file : join(process.cwd(), "[eval]");
}

/** The path of the file whose code read the global: the first frame above this file. */
function callingFile() {
  for (const { scriptName } of getCallSites(8)) {
    if (scriptName === __filename || scriptName.startsWith("node:")) continue;
    if (scriptName.startsWith("file:")) return fileURLToPath(scriptName);
    if (scriptName.startsWith("/")) return scriptName;
  }
  return mainFile();
}

/** The CommonJS view of one ES module file; the same object at every access, so `require.main === module` holds. */
function commonJsView(file) {
  let view = modules.get(file);
  if (view === undefined) {
    const load = createRequire(file);
    const isMain = file === mainFile();
    view = {
      id: isMain ? "." : file,
      filename: file,
      path: dirname(file),
      exports: {},
      children: [],
      require: load,
    };
    modules.set(file, view);
    if (load.main === undefined) load.main = isMain ? view : commonJsView(mainFile());
  }
  return view;
}

function define(name, read) {
  Object.defineProperty(globalThis, name, {
    configurable: true,
    enumerable: false,
    get: () => read(callingFile()),
    set: (value) =>
      Object.defineProperty(globalThis, name, {
        value,
        writable: true,
        configurable: true,
        enumerable: false,
      }),
  });
}

define("require", (file) => commonJsView(file).require);
define("module", (file) => commonJsView(file));
define("exports", (file) => commonJsView(file).exports);
define("__filename", (file) => file);
define("__dirname", dirname);
