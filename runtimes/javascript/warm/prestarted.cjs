// A Node that was started before its program was known, in the program's own jail, with the command and the environment that most
// programs of its language have. Guarantees that it goes on as if it had been started for the program, or is executed anew for it.
// Runs before Node looks for the program: what that finds, and how it runs it, is Node's own affair. Nothing of a program is here
// before wait() answers.
"use strict";

const { closeSync, openSync, readFileSync, readlinkSync, readSync } = require("node:fs");
const { totalmem } = require("node:os");

// Variables that Node or a library reads while it starts, which was before this program came.
const STEERING =
  /^(NODE_|UV_|V8_|LD_|LC_|LANG|ICU_|SSL_|OPENSSL|MALLOC_|GLIBC_|GCONV|LOCPATH|NLSPATH|TZ$|TZDIR$|HOME$|PATH$)/;

/** More than clocks differ by themselves while it waits. */
const CLOCK_STEP_MS = 2000;

/** What was slow the first time is not slow when the program does it. Leaves loaded modules and nothing else. */
function rehearse() {
  const { Console } = require("node:console");
  const { Socket } = require("node:net");
  const { Writable } = require("node:stream");
  const { format } = require("node:util");
  require("node:tty");
  require("node:timers/promises");
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  // A console that shows more than a text asks the real streams for colours, and so would open them.
  new Console(nowhere, nowhere).log("text");
  format("%s %d %o", "a", 1, { b: [2, "c"] }, new Map([[1, new Set("d")]]), new Error("e"));
  new Socket({ handle: undefined }).destroy();
  for (const file of ["./rehearsal/module.mjs", "./rehearsal/script.cjs"]) {
    const path = require.resolve(file);
    require(path);
    delete require.cache[path];
    module.children.pop();
  }
  // Nothing of this is left for the program's first turn.
  process._tickCallback();
}

const wordsOf = (bytes) => bytes.toString().split("\0").slice(0, -1);

/** Node reads it when it looks for a preload, so a broken one ends a cold start. */
function isWholePackage() {
  try {
    JSON.parse(readFileSync("package.json", "utf8"));
  } catch (error) {
    return error.code === "ENOENT";
  }
  return true;
}

/** A job as its list of items: kind, then text. */
function readJob(items) {
  const words = wordsOf(items);
  const of = (kind) => words.filter((word) => word[0] === kind).map((word) => word.slice(1));
  const variables = of("E").map((text) => [
    text.slice(0, text.indexOf("=")),
    text.slice(text.indexOf("=") + 1),
  ]);
  return { arguments: of("A"), variables, isText: Buffer.from(items.toString()).equals(items) };
}

const isSame = (some, others) => some.length === others.length && some.every((one, at) => one === others[at]);

/** False when a variable is missing, changed or has come too late. */
function setEnvironment(variables) {
  const own = Object.entries(process.env);
  const given = new Map(variables);
  if (given.size !== variables.length || own.some(([name, value]) => given.get(name) !== value)) return false;
  if (
    variables.length === own.length &&
    isSame(
      [...given.keys()],
      own.map(([name]) => name),
    )
  )
    return true;
  const isOwn = new Set(own.map(([name]) => name));
  if (variables.some(([name]) => !isOwn.has(name) && STEERING.test(name))) return false;
  for (const [name] of own) delete process.env[name];
  for (const [name, value] of variables) process.env[name] = value;
  return true;
}

/** How much further the time of day is than the time since the start, in ms. */
const clockLead = () => Date.now() - Number(process.hrtime.bigint() / 1_000_000n);

/**
 * Math.random would be the same in all microVMs that go on from one saved state. It takes its seed, of 31 bits, at its first call; as many
 * numbers are left out as 12 further bits say.
 */
function renewRandom() {
  const { setFlagsFromString } = require("node:v8");
  const bytes = Buffer.alloc(8);
  const device = openSync("/dev/urandom");
  readSync(device, bytes);
  closeSync(device);
  setFlagsFromString(`--random-seed=${bytes.readUInt32LE() >>> 1 || 1}`);
  for (let left = bytes.readUInt16LE(4) & 0xfff; left >= 0; left--) Math.random();
  // Those of threads and contexts that the program makes are not to repeat it.
  setFlagsFromString("--random-seed=0");
}

/** Node reads the time of day once, at its start, and counts on from there. */
function moveTimeOrigin(byMs) {
  const { prototype } = Performance;
  const { get: origin, ...how } = Object.getOwnPropertyDescriptor(prototype, "timeOrigin");
  Object.defineProperty(prototype, "timeOrigin", {
    ...how,
    get() {
      return origin.call(this) + byMs;
    },
  });
}

exports.becomeProgram = (object, shared) => {
  if (readlinkSync(object) !== shared) return;
  const { exports: jail } = loadObject(object);
  const command = wordsOf(readFileSync("/proc/self/cmdline"));
  const memory = totalmem();
  rehearse();
  const lead = clockLead();
  const job = readJob(jail.wait());
  const step = clockLead() - lead;
  if (Math.abs(step) > CLOCK_STEP_MS) {
    renewRandom();
    moveTimeOrigin(step);
  }
  // Node has computed the heap limit from the size of the memory.
  const canBe = job.isText && isSame(job.arguments, command) && totalmem() === memory && isWholePackage();
  if (canBe && setEnvironment(job.variables)) jail.begin();
  else jail.execute();
};

function loadObject(object) {
  const loaded = { exports: {} };
  process.dlopen(loaded, object);
  return loaded;
}
