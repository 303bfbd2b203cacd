/**
 * Three components in one process, each told of its life by log lines. `several-components.ts [PLACE]`: one of them throws
 * after its start where it was told to.
 */
import { runComponents } from "../../src/component.ts";
import type { Component } from "../../src/config/types.ts";

export const NAMES = ["api", "worker", "tool-call-server"] as const satisfies readonly Component[];
const SLOW_STOP_MS = 50;

if (import.meta.main) {
  await runComponents(
    NAMES.map((name) => ({
      name,
      start: async ({ config, log, lifecycle, registry }) => {
        log.info(
          {
            signing: config.SVC_EXECUTION_MANIFEST_PRIVATE_KEY !== "",
            continuation: config.SVC_CONTINUATION_SECRET !== "",
            metrics: registry.getMetricsAsArray().length,
          },
          "given",
        );
        const alive = setInterval(() => undefined, 60_000);
        if (name === "worker" && process.argv[2] === "throw") setTimeout(throwing, 200);
        return {
          stop: async () => {
            log.info({ state: lifecycle.state }, "stop began");
            await new Promise((resolve) => setTimeout(resolve, SLOW_STOP_MS));
            clearInterval(alive);
          },
        };
      },
    })),
  );
}

function throwing(): never {
  throw new TypeError("nobody catches this");
}
