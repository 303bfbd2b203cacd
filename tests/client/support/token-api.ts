/**
 * A second replica of a running system's API that asks for access tokens, for tests: the same Redis, queue and files, and
 * callers who prove who they are as LibreChat's users do.
 */

import { spawn } from "node:child_process";
import { NODE } from "@svc/cli/components";
import { componentEnvironment } from "@svc/cli/environment";
import { loadSecrets } from "@svc/cli/secrets";
import { builtBundle } from "@svc/test-kit/components/component";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { freePort } from "@svc/test-kit/system/free-ports";
import { until } from "@svc/test-kit/system/processes";
import type { System } from "@svc/test-kit/system/system";

export interface TokenApi {
  /** Address of the API, with /v1. */
  url: string;
  /** An access token of this user, as LibreChat mints one for each call of its tools. */
  token: (user: string, claims?: Readonly<Record<string, unknown>>) => string;
  stop: () => Promise<void>;
}

export async function startTokenApi(
  { instance }: System,
  env: Readonly<Record<string, string>> = {},
): Promise<TokenApi> {
  const signer = newSigner();
  const port = String(await freePort());
  const child = spawn(NODE, [await builtBundle("api")], {
    env: {
      ...componentEnvironment("api", instance, loadSecrets(instance.dataDir), env),
      LOCAL_MODE: "false",
      SVC_JWT_PUBLIC_KEY: signer.pem,
      SVC_JWT_KID: KID,
      SERVICE_PORT: port,
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const origin = `http://127.0.0.1:${port}`;
  const answers = async () => {
    if (child.exitCode !== null) throw new Error(`the API ended with exit code ${child.exitCode}`);
    const health = await fetch(`${origin}/v1/health`).catch(() => undefined);
    return health?.status === 200;
  };
  await until(answers, 30_000);
  return {
    url: `${origin}/v1`,
    token: (user, claims) => signer.mint({ claims: { sub: user, ...claims } }),
    stop: () => {
      child.kill("SIGTERM");
      return ended;
    },
  };
}
