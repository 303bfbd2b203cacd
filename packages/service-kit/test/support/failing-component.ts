/** A component that throws what it was told to, where it was told to: `failing-component.ts PLACE`. */
import { EventEmitter } from "node:events";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { runComponent } from "../../src/component.ts";

/** Stands for what a program has sent. */
export const QUOTED = "quoted from a program";

const places: Record<string, () => void> = {
  timer: () => void setTimeout(throwing, 0),
  rejection: () => void Promise.resolve().then(throwing),
  // No error: the component goes on.
  warning: () => {
    const emitter = new EventEmitter();
    for (let n = 0; n <= EventEmitter.defaultMaxListeners; n++) emitter.on("example", () => undefined);
  },
  abort: () => {
    const one = new AbortController();
    one.signal.addEventListener("abort", throwing);
    one.abort();
  },
};

function throwing(): never {
  throw Object.assign(new TypeError(`${QUOTED}\n    on two lines`), { code: "E_EXAMPLE" });
}

if (import.meta.main) {
  await runComponent("tool-call-server", async ({ log }) => {
    const server = createServer(async (request, response) => {
      const place = places[String(request.url).slice(1)];
      if (place !== undefined) {
        place();
        // A request that is in work meanwhile.
        await delay(200);
      }
      response.end("answered");
    }).listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      log.info(`Server listening at http://127.0.0.1:${port}`);
    });
    return { stop: () => new Promise((resolve) => server.close(() => resolve())) };
  });
}
