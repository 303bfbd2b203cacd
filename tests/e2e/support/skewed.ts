/** A further component beside those of a running system, whose clock can be moved. Its owner ends it. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { NODE } from "@svc/cli/components";
import { componentEnvironment } from "@svc/cli/environment";
import { PORTS, type Service } from "@svc/cli/instance";
import { loadSecrets } from "@svc/cli/secrets";
import { builtBundle } from "@svc/test-kit/components/component";
import { freePort } from "@svc/test-kit/system/free-ports";
import type { System } from "@svc/test-kit/system/system";

export interface SkewedComponent {
  url: string;
  /** Its clock is a minute ahead from now on, or right again. */
  skew: () => void;
  stop: () => Promise<void>;
}

/** Another clock for the whole process. Each signal moves it there or back. */
const CLOCK = `
let ahead = 0;
const now = Date.now;
Date.now = () => now() + ahead;
process.on("SIGUSR2", () => { ahead = 60000 - ahead; });
`;

export async function startSkewed(
  name: Service,
  { instance }: Pick<System, "instance">,
  env: Readonly<Record<string, string>>,
): Promise<SkewedComponent> {
  const port = String(await freePort());
  const variables = componentEnvironment(name, instance, loadSecrets(instance.dataDir), env);
  const clock = `data:text/javascript,${encodeURIComponent(CLOCK)}`;
  const bundle = await builtBundle(name);
  const log = openSync(join(instance.logsDir, `skewed-${name}.log`), "a", 0o600);
  const child = spawn(NODE, ["--import", clock, bundle], {
    env: { ...variables, [PORTS[name][0]]: port },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  return {
    url: `http://127.0.0.1:${port}`,
    skew: () => void child.kill("SIGUSR2"),
    stop: async () => {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
    },
  };
}
