/**
 * Runs a supervisor in the foreground, and shows warnings of all components as they come. The first Ctrl-C stops everything
 * in order, the second one kills everything at once.
 */
import type { Instance } from "../instance.ts";
import { LogFollower } from "../logs/follower.ts";
import { waitReady } from "../readiness.ts";
import { END_SIGNALS } from "../system/process.ts";
import { type Note, paint, printable } from "../terminal.ts";
import { logsOf } from "../topology.ts";
import { logPath, readLine } from "./logs.ts";
import { Supervisor } from "./supervisor.ts";

const FOLLOW_EVERY_MS = 250;
const WARN = 40;
/** The same message of a component is shown once in this time; the log has all of them. */
const REPEAT_AFTER_MS = 10_000;
const MAX_REMEMBERED = 1000;

/** `whenStarted` prints what comes before the wait. Its argument is the step that waits until the system is ready. */
export async function runInForeground(
  instance: Instance,
  whenStarted: (ready: (note: Note) => Promise<void>) => Promise<void>,
): Promise<number> {
  // The service keeps running when the reader of its messages goes away (`./svc up | head -1`).
  process.stdout.removeAllListeners("error").on("error", () => undefined);
  const ending = new AbortController();
  // Installed before the first component starts, so that everything that was started is stopped in order.
  const signalled = new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of END_SIGNALS) process.on(signal, () => resolve(signal));
  });
  const supervisor = await Supervisor.start(instance, process.env, false);
  const stopped = signalled.then(async (signal) => {
    for (const further of END_SIGNALS) process.on(further, () => supervisor.kill());
    ending.abort();
    console.error("\nEnding everything …");
    await supervisor.stop();
    return signal === "SIGINT" ? 130 : 0;
  });
  const follow = followWarnings(instance, supervisor);
  try {
    const started = whenStarted((note) =>
      waitReady(instance, { note, isEnding: () => ending.signal.aborted }),
    );
    started.catch(() => undefined);
    const outcome = await Promise.race([started, stopped]);
    if (typeof outcome === "number") return outcome;
    return await stopped;
  } catch (error) {
    if (ending.signal.aborted) return await stopped;
    throw error;
  } finally {
    ending.abort();
    clearInterval(follow);
    await supervisor.stop();
  }
}

/** From now on, prints log lines of the components that are warnings or worse. */
function followWarnings(instance: Instance, supervisor: Supervisor): NodeJS.Timeout {
  const names = [...supervisor.state.components.flatMap(({ name }) => logsOf(name)), "supervisor"];
  const followed = names.map((name) => ({ name, log: new LogFollower(logPath(instance.logsDir, name)) }));
  const lastShown = new Map<string, number>();
  const isNews = (key: string): boolean => {
    const now = performance.now();
    if (now - (lastShown.get(key) ?? Number.NEGATIVE_INFINITY) < REPEAT_AFTER_MS) return false;
    if (lastShown.size >= MAX_REMEMBERED) lastShown.clear();
    lastShown.set(key, now);
    return true;
  };
  return setInterval(() => {
    for (const { name, log } of followed) {
      for (const line of log.read()) {
        const { level, message, text } = readLine(line);
        if (level < WARN || !isNews(`${name} ${message}`)) continue;
        const label = paint(process.stderr, level > WARN ? "red" : "yellow", name);
        console.error(`${label} ${printable(text)}`);
      }
    }
  }, FOLLOW_EVERY_MS);
}
