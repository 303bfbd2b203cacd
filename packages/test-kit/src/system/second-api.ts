/** A further API process in front of a running system: another replica, or one that demands tokens. Its owner ends it. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { NODE } from "@svc/cli/components";
import { componentEnvironment } from "@svc/cli/environment";
import { loadSecrets } from "@svc/cli/secrets";
import { builtBundle } from "../components/component.ts";
import { freePort } from "./free-ports.ts";
import { until } from "./processes.ts";
import type { System } from "./system.ts";

const READY_MS = 60_000;

export interface SecondApi {
  /** With /v1. */
  url: string;
  pid: number;
  /** As if its machine lost power. */
  kill: () => Promise<void>;
  /** Ends it in order and answers the exit code. */
  stop: () => Promise<number | null>;
}

/** `env`: the variables that the system was started with, and what is different here. It writes into the log of the system's API. */
export async function startSecondApi(
  { instance }: Pick<System, "instance">,
  env: Readonly<Record<string, string>>,
): Promise<SecondApi> {
  const SERVICE_PORT = String(await freePort());
  const variables = componentEnvironment("api", instance, loadSecrets(instance.dataDir), env);
  const bundle = await builtBundle("api");
  const log = openSync(join(instance.logsDir, "api.log"), "a", 0o600);
  const api = spawn(NODE, [bundle], {
    env: { ...variables, SERVICE_PORT },
    stdio: ["ignore", log, "inherit"],
  });
  closeSync(log);
  const exited = once(api, "exit");
  const end = async (signal: "SIGTERM" | "SIGKILL") => {
    api.kill(signal);
    return (await exited)[0] as number | null;
  };
  const url = `http://127.0.0.1:${SERVICE_PORT}/v1`;
  try {
    await until(() => answers(api, url), READY_MS);
  } catch (error) {
    await end("SIGKILL");
    throw error;
  }
  return {
    url,
    pid: api.pid as number,
    kill: async () => {
      await end("SIGKILL");
    },
    stop: () => end("SIGTERM"),
  };
}

async function answers(api: ChildProcess, url: string): Promise<boolean> {
  if (api.exitCode !== null) throw new Error(`the API ended with exit code ${api.exitCode}`);
  return fetch(`${url}/health`).then(
    ({ ok }) => ok,
    () => false,
  );
}
