/** Programs of Node whose behaviour must not depend on how they started. What they print must be the same every time. */
import type { PrestartedJob } from "./prestarted.ts";

const script = (source: string, job: Omit<PrestartedJob, "files"> = {}): PrestartedJob => ({
  files: { "index.js": source },
  ...job,
});

export const SCRIPTS: Record<string, PrestartedJob> = {
  "its arguments and paths": script(`
console.log(process.argv, process.argv0, process.execArgv, process.execPath, process.title, process.cwd(), __filename, __dirname);
console.log(require.main === module, module.id, module.filename, module.paths, module.parent, module.children, module.loaded, require.resolve("./index.js"));
console.log(require.resolve.paths("x"), Object.keys(require.cache).filter((path) => path.startsWith("/mnt")), require("module").globalPaths);
`),
  "its globals": script(`
console.log(Object.keys(globalThis), Object.getOwnPropertyNames(globalThis).sort(), this === module.exports, arguments.length);
console.log(Object.getOwnPropertyNames(process).sort(), process.config.variables.napi_build_version, process.versions, process.release, process.features);
console.log(process.eventNames(), process.listenerCount("exit"), process.getMaxListeners(), Object.keys(process.env));
`),
  "its environment": script(
    `
const { execFileSync } = require("child_process");
console.log(process.env, Object.keys(process.env), process.env.GREETING, "GREETING" in process.env);
console.log(execFileSync("/usr/bin/env").toString());
process.env.LATER = 1; delete process.env.GREETING;
console.log(execFileSync("/bin/sh", ["-c", "echo $LATER $GREETING"]).toString(), typeof process.env.LATER);
`,
    { env: { GREETING: "hello", UMLAUT: "ü ☃", API_KEY: "x=y", EMPTY: "" } },
  ),
  "what the kernel shows of it": script(`
const fs = require("fs");
console.log(fs.readFileSync("/proc/self/status", "utf8").match(/^(?:Name|Umask|Pid|PPid|NSpid|Uid|Gid|Groups|Sig\\w+|Shd\\w+|Cap\\w+|NoNewPrivs|Seccomp\\w*|CoreDumping|Tgid):.*/gm));
console.log(fs.readFileSync("/proc/self/limits", "utf8"), fs.readFileSync("/proc/self/environ", "utf8").split("\\0"), fs.readFileSync("/proc/self/cmdline", "utf8").split("\\0"));
console.log(process.pid, process.ppid, process.getuid(), process.getgroups(), process.umask(), fs.readlinkSync("/proc/self/exe"));
console.log(fs.readdirSync("/proc/self/fd").map((fd) => { try { return fd + fs.readlinkSync("/proc/self/fd/" + fd).replace(/\\d+/g, "") } catch { return fd } }));
console.log(fs.readdirSync("/proc/self/task").length, fs.readdirSync("/proc").filter((name) => /^\\d/.test(name)), fs.readFileSync("/proc/net/unix", "utf8").split("\\n").length);
console.log(fs.readFileSync("/proc/self/mountinfo", "utf8").split("\\n").length, fs.readFileSync("/proc/self/oom_score_adj", "utf8"), fs.readFileSync("/proc/meminfo", "utf8"));
`),
  "the next descriptor": script(
    `const fs = require("fs"); console.log(fs.openSync("/etc/passwd"), fs.openSync("/etc/group"));`,
  ),
  "its streams": script(
    `
for (const stream of [process.stdin, process.stdout, process.stderr])
  console.log(stream.constructor.name, stream.fd, stream.isTTY, stream._type, stream.writableHighWaterMark, stream.readableHighWaterMark, stream.columns);
let text = ""; process.stdin.setEncoding("utf8").on("data", (chunk) => { text += chunk }).on("end", () => console.error(JSON.stringify(text)));
`,
    { stdin: "first\nsecönd\nthird" },
  ),
  "standard input, at once and line by line": script(
    `
const fs = require("fs");
const b = Buffer.alloc(6); console.log(fs.readSync(0, b), b.toString());
require("readline").createInterface({ input: process.stdin }).on("line", (line) => console.log("line", line)).on("close", () => console.log("end"));
`,
    { stdin: "first\nsecond\nthird" },
  ),
  "readFileSync of standard input": script(
    `console.log(require("fs").readFileSync(0, "utf8").split("\\n"))`,
    { stdin: "a\nb\n" },
  ),
  "no standard input": script(
    `console.log(JSON.stringify(require("fs").readFileSync(0, "utf8")), require("fs").readlinkSync("/proc/self/fd/0")); process.stdin.on("end", () => console.log("end")).resume()`,
  ),
  "much output": script(
    `for (let i = 0; i < 3000; i++) console.log("line " + i); process.stdout.write("x".repeat(20000)); console.error("done")`,
  ),
  "output and an exit at once": script(`process.stdout.write("y".repeat(60000)); process.exit(3)`),
  "an uncaught exception": script(`console.log("before");\nfunction f() { null.x }\nf();\n`),
  "an uncaught exception with a cause": script(
    `try { JSON.parse("{") } catch (cause) { throw new Error("not parsed", { cause, }) }`,
  ),
  "an uncaught value": script(`throw { a: 1, b: [2] }`),
  "an uncaught AggregateError": script(
    `throw new AggregateError([new Error("a"), new TypeError("b")], "several")`,
  ),
  "an exception in another file": {
    files: {
      "index.js": "require('./helper').divide(0)",
      "helper.js": "exports.divide = (n) => {\n  throw new RangeError('by ' + n)\n}",
    },
  },
  "stack frames: nothing of the start is in them": script(`
console.log(new Error("here").stack);
Error.stackTraceLimit = 50;
function f() { console.log(new Error("deep").stack) }
f(); setImmediate(f); setImmediate(() => setTimeout(f, 1)); process.nextTick(f); Promise.resolve().then(f); queueMicrotask(f);
process.on("exit", f);
console.trace("trace"); console.log(require("util").getCallSites().map(({ scriptName, functionName }) => [scriptName, functionName]));
`),
  "stack depth": script(`
let n = 0; const depth = () => { n++; depth() };
try { depth() } catch (error) { console.log(error.constructor.name, error.message, n > 5000) }
const forever = () => forever(); forever();
`),
  "a syntax error": script("const x = 1;\nif x {\n}\n"),
  "a syntax error in an import": { files: { "index.js": "require('./helper')", "helper.js": "let let = 1" } },
  "a missing module": script("require('./nothing')"),
  "a missing package": script("require('left-pad')"),
  "an unhandled rejection": script(
    `console.log(1); Promise.reject(new Error("nobody listens")); setTimeout(() => console.log("never"), 1000)`,
  ),
  "a rejection with a value": script(`Promise.reject(42)`),
  "a handled rejection": script(
    `process.on("unhandledRejection", (reason) => console.log("caught", reason)); Promise.reject(1)`,
  ),
  "uncaughtException handled": script(
    `process.on("uncaughtException", (error, origin) => { console.log(error.message, origin); process.exitCode = 9 }); setTimeout(() => console.log("later"), 5); throw new Error("x")`,
  ),
  "exit codes: process.exit": script(
    `process.on("exit", (code) => console.log("exit", code, process.exitCode)); process.exit(7)`,
  ),
  "exit codes: process.exitCode": script(
    `process.exitCode = 5; process.on("exit", () => { process.exitCode = 6 }); process.on("beforeExit", (code) => console.log("before", code))`,
  ),
  "exit codes: 256 and 137": script(`process.exit(256 + 137)`),
  "exit in a timer, with work left": script(
    `setInterval(() => {}, 1000); setTimeout(() => process.exit(2), 10)`,
  ),
  "beforeExit that goes on": script(
    `let n = 0; process.on("beforeExit", () => { if (n++ < 3) setTimeout(() => console.log(n), 1) })`,
  ),
  "process.abort": script(`process.abort()`),
  "its own SIGTERM": script(`process.kill(process.pid, "SIGTERM"); setTimeout(() => {}, 1000)`),
  "its own SIGKILL": script(`process.kill(process.pid, "SIGKILL")`),
  "its own SIGINT, handled": script(
    `process.on("SIGINT", (signal, number) => { console.log(signal, number); process.exit(4) }); process.kill(process.pid, "SIGINT"); setTimeout(() => {}, 1000)`,
  ),
  "a process without signal handlers": script(
    `process.kill(process.pid, "SIGHUP"); setTimeout(() => {}, 1000)`,
  ),
  "timers wait as long as they should": script(`
const t = Date.now(), m = performance.now(), order = [];
setTimeout(() => order.push(2, Date.now() - t >= 49, performance.now() - m >= 49), 50); setTimeout(() => order.push(1), 10);
setTimeout(() => console.log(order), 80);
`),
  "clocks agree": script(`
console.log(Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000, Math.abs(process.uptime() * 1000 - performance.now()) < 2000, process.hrtime().length, Math.abs(Date.now() / 1000 - Number(new Date()) / 1000) < 1);
`),
  "dates, locales and time zones": script(`
console.log(new Date(0).toString(), new Date(0).toLocaleString(), Intl.DateTimeFormat().resolvedOptions(), (1234.5).toLocaleString(), ["ä", "z", "a"].sort(Intl.Collator().compare));
process.env.TZ = "Asia/Tokyo"; console.log(new Date(0).toString());
`),
  "memory: its limits": script(`
const v8 = require("v8"), os = require("os");
console.log(v8.getHeapStatistics().heap_size_limit, os.totalmem(), os.availableParallelism(), process.constrainedMemory(), process.availableMemory() > 0, Object.keys(process.memoryUsage()), process.memoryUsage().rss > 1e7);
`),
  "too much memory for the heap": script(`const all = []; for (;;) all.push(new Array(1e6).fill(1))`, {
    limits: { memoryBytes: 512 << 20 },
  }),
  "buffers, zlib, crypto": script(`
const zlib = require("zlib"), crypto = require("crypto");
console.log(zlib.gunzipSync(zlib.gzipSync("hello")).toString(), crypto.createHash("sha256").update("a").digest("hex"), crypto.randomBytes(4).length);
crypto.pbkdf2("p", "s", 10, 8, "sha1", (error, key) => console.log(error, key.toString("hex")));
zlib.deflate("x".repeat(100), (error, data) => console.log(error, data.length));
`),
  "worker threads": script(`
const { Worker, isMainThread, parentPort, workerData, threadId } = require("worker_threads");
if (isMainThread) { const worker = new Worker(__filename, { workerData: { a: 1 } }); worker.on("message", (m) => console.log(m, threadId)).on("exit", (code) => console.log("exit", code)) }
else { parentPort.postMessage([workerData, threadId, process.argv, require.main === module, process.env.PATH]); process.exit(3) }
`),
  "a worker from a string that fails": script(`
const { Worker } = require("worker_threads");
new Worker("console.log(__filename, typeof require); throw new Error('w')", { eval: true }).on("error", (error) => console.log(error.message)).on("exit", (code) => console.log(code));
`),
  "child_process.fork": script(`
const { fork } = require("child_process");
if (process.send) { process.on("message", (m) => { process.send([m, process.argv, process.execArgv]); process.disconnect() }) }
else { const child = fork(__filename, ["x"]); child.on("message", (m) => console.log(m)).on("exit", (code, signal) => console.log(code, signal)); child.send({ a: 1 }) }
`),
  "children: spawn, exec, inherited streams": script(
    `
const { spawnSync, exec } = require("child_process");
console.log(spawnSync("cat", { stdio: [0, "pipe", "inherit"] }).stdout.toString(), spawnSync("/bin/sh", ["-c", "echo out; echo err >&2; exit 3"], { stdio: "inherit" }).status);
exec("ls /proc/self/fd; echo $$; ulimit -n -u", (error, out) => console.log(error, out));
console.log(spawnSync(process.execPath, ["-e", "console.log(process.argv.length, process.execArgv, 1)"]).stdout.toString());
`,
    { stdin: "for the child" },
  ),
  "a server and a client": script(`
const net = require("net"), http = require("http");
http.createServer((request, response) => response.end("for " + request.url)).listen("/tmp/s", function () {
  http.get({ socketPath: "/tmp/s", path: "/a" }, (response) => response.on("data", (d) => console.log(d.toString())).on("end", () => this.close()));
});
`),
  "files, as they are listed": script(`
const fs = require("fs"); console.log(fs.readdirSync("."), fs.statSync("index.js").mode.toString(8));
fs.writeFileSync("out.txt", "x"); fs.mkdirSync("d/e", { recursive: true }); fs.writeFileSync("d/e/f.json", "{}"); fs.appendFileSync("index.js", "// changed");
fs.promises.readFile("out.txt", "utf8").then(console.log);
`),
  "JSON, builtin and deep requires": {
    files: {
      "index.js":
        "console.log(require('./data'), require('./data.json').a, require('node:path') === require('path'), require('./lib').b, require('pkg'), require('module').builtinModules.length)",
      "data.json": '{"a": [1]}',
      "lib/index.js": "exports.b = require('../data.json') === require.main.require('./data.json')",
      "node_modules/pkg/package.json": '{"main": "./m.js"}',
      "node_modules/pkg/m.js": "module.exports = __filename",
    },
  },
  "names that its preload has used": {
    files: {
      "index.js": "console.log(require('./warm/wait.cjs'), require('rehearsal'), require('./javascript'))",
      "warm/wait.cjs": "module.exports = 'mine'",
      "javascript.js": "module.exports = 'mine too'",
      "node_modules/rehearsal/index.js": "module.exports = 'a package'",
    },
  },
  "hooks and patches of modules": script(`
const Module = require("module"), load = Module._load; Module._load = function (name, ...rest) { return name === "x" ? "patched" : load.call(this, name, ...rest) };
console.log(require("x")); require.extensions[".txt"] = (module, file) => { module.exports = file }; require("fs").writeFileSync("a.txt", ""); console.log(require("./a"));
process.emit = ((emit) => function (name, ...rest) { if (name === "exit") console.log("emit", rest); return emit.call(this, name, ...rest) })(process.emit);
`),
  "async hooks, streams and iteration": script(`
const { AsyncLocalStorage, executionAsyncId } = require("async_hooks"), { pipeline } = require("stream/promises"), { Readable } = require("stream");
console.log(executionAsyncId()); const store = new AsyncLocalStorage();
store.run(5, async () => { await null; for await (const x of Readable.from([1, 2])) console.log(x, store.getStore()) });
`),
  warnings: script(
    `process.emitWarning("careful", "Custom", "C1"); new Buffer(1); process.on("warning", (w) => console.log(w.name)); const e = new (require("events"))(); for (let i = 0; i < 12; i++) e.on("x", () => {})`,
  ),
  "console: tables, groups, counts": script(
    `console.table([{ a: 1 }]); console.group("g"); console.log("in"); console.groupEnd(); console.count(); console.assert(false, "no"); console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 }); console.log("%s %c %i", "a", "css", 3.9)`,
  ),
  "a hashbang and a byte order mark": script("\ufeff#!/usr/bin/env node\nconsole.log('bom')"),
  "a hashbang": script("#!/usr/bin/env node\nconsole.log('here')"),
  "an empty file": script(""),
  "a strict script": script(`"use strict"; console.log(this === module.exports); undeclared = 1`),
  "return at the top": script("console.log(1); return; console.log(2)"),
  "SharedArrayBuffer, WebAssembly, eval": script(`
console.log(new SharedArrayBuffer(8).byteLength, eval("1+1"), new Function("return this === globalThis")(), require("vm").runInNewContext("typeof require"));
WebAssembly.instantiate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(({ instance }) => console.log(Object.keys(instance.exports)));
`),
};

export const MODULES: Record<string, PrestartedJob> = {
  "import and import.meta": script(`
import fs, { readFileSync } from "node:fs"; import * as self from "./index.js";
console.log(import.meta.url, import.meta.filename, import.meta.dirname, import.meta.main, import.meta.resolve("./x.js"), typeof readFileSync, fs.constants.O_RDONLY, Object.keys(self), this);
export const a = 1;
`),
  "the names of CommonJS in a module": script(
    `import "fs"; console.log(__filename, __dirname, require("path").sep, typeof module, require.main === module, typeof exports)`,
  ),
  "await at the top": script(
    `const { a } = await import("./a.mjs"); console.log(a, await new Promise((r) => setTimeout(r, 5, "late")))`,
    {},
  ),
  "await that never ends": script(`console.log(1); await new Promise(() => {})`),
  "await that never ends, with an exit code": script(`process.exitCode = 4; await new Promise(() => {})`),
  "an error after await": script(`await null; throw new Error("in a module")`),
  "an error in an imported module": {
    files: {
      "index.js": `import { f } from "./f.mjs"; f()`,
      "f.mjs": "export const f = () => { throw new TypeError('f') }",
    },
  },
  "a name that is not exported": {
    files: { "index.js": `import { g } from "./f.mjs"`, "f.mjs": "export const f = 1" },
  },
  "a module that is missing": script(`import "./nothing.js"`),
  "a syntax error in a module": script(`import "fs";\nlet a = ;`),
  "package.json: type module": {
    files: {
      "index.js": "console.log(typeof require, import.meta.filename)",
      "package.json": '{"type": "module", "imports": {"#x": "./x.js"}}',
      "x.js": "",
    },
  },
  "package.json: type commonjs": {
    files: {
      "index.js": "console.log(module.id); import('./m.mjs').then(console.log)",
      "package.json": '{"type": "commonjs"}',
      "m.mjs": "export default import.meta.url",
    },
  },
  "imports of all kinds": {
    files: {
      "index.js": `import data from "./d.json" with { type: "json" }; import c from "./c.cjs"; import * as m from "./m.mjs"; import p from "p"; console.log(data, c, m, p, await import("data:text/javascript,export default 3"))`,
      "d.json": "[1]",
      "c.cjs": "module.exports = { c: require('./m.mjs').m }",
      "m.mjs": "export const m = import.meta.url",
      "node_modules/p/package.json": '{"exports": "./p.js", "type": "module"}',
      "node_modules/p/p.js": "export default 'p'",
    },
  },
  "module hooks":
    script(`import { registerHooks } from "node:module"; registerHooks({ resolve: (s, c, n) => s === "virtual:x" ? { url: "virtual:x", shortCircuit: true } : n(s, c), load: (u, c, n) => u === "virtual:x" ? { format: "module", source: "export default 'v'", shortCircuit: true } : n(u, c) });
console.log((await import("virtual:x")).default)`),
};

const typed = (source: string, job: Omit<PrestartedJob, "files"> = {}): PrestartedJob => ({
  files: { "main.ts": source },
  language: "typescript",
  ...job,
});

export const TYPED: Record<string, PrestartedJob> = {
  "types, enums, decorators, namespaces": typed(`
enum Colour { Red, Green } namespace N { export const x = 1 } abstract class A<T> { constructor(private readonly a: T, public b = 2) {} get(): T { return this.a } }
class B extends A<string> {} function log(value: unknown, context: { name: string | symbol }) { console.log("decorated", context.name) }
class C { @log method() {} } console.log(Colour[1], N.x, new B("a").get(), Colour, process.argv, process.execArgv, require.main === module, <any>5 satisfies number);
`),
  "a module with types": {
    files: {
      "main.ts": `import { f, type T } from "./lib"; import data from "./d.json"; const t: T = f(2); console.log(t, data, import.meta.filename, await Promise.resolve(3))`,
      "lib.ts": "export type T = number; export const f = (n: T): T => n * 2",
      "d.json": '{"a": 1}',
    },
    language: "typescript",
  },
  "an uncaught exception shows the line of the source": typed(
    `interface I { a: number }\n\nconst f = (i: I): never => {\n  throw new Error("at " + i.a);\n};\nf({ a: 1 });\n`,
  ),
  "a TypeScript syntax error": typed("const a: = 1"),
  "a type error does not matter": typed(`const a: number = "text"; console.log(a)`),
  "standard input and an exit code": typed(
    `const text: string = require("fs").readFileSync(0, "utf8"); console.log(text.length); process.exit(text.length)`,
    { stdin: "12345" },
  ),
  "tsconfig.json": {
    files: {
      "main.ts":
        "class A { a = 1 } console.log(Object.keys(new A())); const x = <const>['a']; console.log(x)",
      "tsconfig.json":
        '{"compilerOptions": {"experimentalDecorators": true, "useDefineForClassFields": false}}',
    },
    language: "typescript",
  },
  "a worker and a child in TypeScript": typed(`
import { Worker, isMainThread, parentPort } from "node:worker_threads"; import { execFileSync } from "node:child_process";
if (isMainThread) { new Worker(new URL(import.meta.url)).on("message", (m: string) => console.log(m)); console.log(execFileSync(process.execPath, ["-p", "1 as number"].slice(0, 1).concat("2")).toString()) } else parentPort!.postMessage("from the worker" as string);
`),
};

/** What a pre-started Node cannot be. */
export const COLD: Record<string, PrestartedJob> = {
  arguments: script("console.log(process.argv)", { argv: ["index.js", "a", "b"] }),
  "another entry": { files: { "other.js": "console.log(__filename, process.argv)" }, argv: ["other.js"] },
  "no entry file": { files: { "a.txt": "" } },
  options: script("console.log(process.execArgv, typeof gc)", { argv: ["--expose-gc", "index.js"] }),
  NODE_OPTIONS: script(
    "console.log(process.execArgv, process.env.NODE_OPTIONS, process.allowedNodeEnvironmentFlags.size > 1, Error.stackTraceLimit)",
    { env: { NODE_OPTIONS: "--stack-trace-limit=3" } },
  ),
  NODE_PATH: {
    files: { "index.js": "console.log(require('p'))", "lib/p.js": "module.exports = 'found'" },
    env: { NODE_PATH: "/mnt/data/lib" },
  },
  "a time zone": script("console.log(new Date(0).toString())", { env: { TZ: "Asia/Tokyo" } }),
  "a broken package.json": { files: { "index.js": "console.log(1)", "package.json": "{" } },
  "less memory": script(
    "console.log(require('v8').getHeapStatistics().heap_size_limit, require('os').totalmem())",
    { limits: { memoryBytes: 256 << 20 } },
  ),
  "a language": script("console.log(Intl.NumberFormat().resolvedOptions().locale, (1.5).toLocaleString())", {
    env: { LC_ALL: "de_DE.UTF-8" },
  }),
};
