// A Node that is started in the program's own jail before the program is known, with the command and the environment that most
// programs of its language have. Guarantees that it continues as if it had been started for the program, or is executed anew for
// it. Runs before Node looks for the program, so Node itself finds and runs it. No data of a program is here before wait()
// returns.
"use strict";

const { closeSync, openSync, readFileSync, readlinkSync, readSync } = require("node:fs");
const { totalmem } = require("node:os");

// Variables that Node or a library reads at its start, before the program is known.
const STEERING =
  /^(NODE_|UV_|V8_|LD_|LC_|LANG|ICU_|SSL_|OPENSSL|MALLOC_|GLIBC_|GCONV|LOCPATH|NLSPATH|TZ$|TZDIR$|HOME$|PATH$)/;

/** A larger step than the clocks show by themselves while this process waits. */
const CLOCK_STEP_MS = 2000;

/** Runs what is slow the first time, so that it is fast for the program. Leaves loaded modules and nothing else. */
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
  // Runs what is pending now, so that nothing of it is left for the program's first turn.
  process._tickCallback();
}

const wordsOf = (bytes) => bytes.toString().split("\0").slice(0, -1);

/** False for a broken package.json: Node reads it when it looks for a preload, so it ends a cold start. */
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

/** False when a variable is missing or changed, or when Node would have read it at its start. */
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

/** The time of day minus the monotonic time, in ms. */
const clockLead = () => Date.now() - Number(process.hrtime.bigint() / 1_000_000n);

/**
 * Math.random would be the same in all microVMs that continue from one saved state. It takes a seed of 31 bits at its first
 * call. 12 further random bits say how many of its numbers are skipped.
 */
function renewRandom() {
  const { setFlagsFromString } = require("node:v8");
  const bytes = Buffer.alloc(8);
  const device = openSync("/dev/urandom");
  readSync(device, bytes);
  closeSync(device);
  setFlagsFromString(`--random-seed=${bytes.readUInt32LE() >>> 1 || 1}`);
  for (let left = bytes.readUInt16LE(4) & 0xfff; left >= 0; left--) Math.random();
  // Threads and contexts that the program makes must not repeat this seed.
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
