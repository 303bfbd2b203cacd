/** The service in containers as tests know a system: by its address. What only a copy of ./svc has throws when it is asked for. */
import type { PrivateCopy } from "../system/private-copy.ts";
import { type Compose, startCompose } from "./compose.ts";

/** As a copy of ./svc is without settings: everybody may call. */
const OPEN = { LOCAL_MODE: "true", SVC_ALLOW_AUTH_PROVIDER_NONE: "true" };

type Attached = Omit<PrivateCopy, "stop">;

const running = new WeakMap<object, Compose>();

/** Whether the systems of this test run are in containers: TEST_SYSTEM=containers. */
export const areInContainers = () => process.env.TEST_SYSTEM === "containers";

/** The containers of a system that this process started; undefined where it is a copy of ./svc. */
export const composeOf = (system: object): Compose | undefined => running.get(system);

export async function startContainers(
  env: Readonly<Record<string, string>> = {},
): Promise<Attached & { stop: () => Promise<string[]> }> {
  // Tests are told by these; they are no settings.
  const settings = Object.entries({ ...OPEN, ...env }).filter(([name]) => !name.startsWith("SVC_TEST_"));
  const compose = await startCompose(Object.fromEntries(settings));
  let stopped: Promise<string[]> | undefined;
  const stop = () => {
    stopped ??= compose.stop();
    return stopped;
  };
  const system = Object.assign(attachContainers(compose.url), { stop });
  running.set(system, compose);
  return system;
}

/** A system that somebody else started and will end. */
export function attachContainers(url: string): Attached {
  const missing = (what: string) => {
    throw new Error(`${what} is known of ./svc up alone, and this system runs in containers`);
  };
  return {
    url,
    state: () => missing("state"),
    pid: () => missing("pid"),
    output: () => missing("output"),
    get instance() {
      return missing("instance");
    },
    get supervisorPid() {
      return missing("supervisorPid");
    },
    get environment() {
      return missing("environment");
    },
  };
}
