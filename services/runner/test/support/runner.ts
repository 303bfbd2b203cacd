/** A real runner with its own jaild, gateway, file server and Redis, and what a worker needs to call it. */
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseSigningKey } from "@svc/capabilities";
import type { RegisteredGrant } from "@svc/contracts";
import { InnerClient } from "@svc/service-kit";
import { startComponent } from "@svc/test-kit/components/component";
import { type Answer, type Call, startGateway } from "@svc/test-kit/components/gateway";
import { IMAGE, Jaild, type JaildOptions } from "@svc/test-kit/jail/jaild";

/** A packages directory of a test's own: the image with other runtimes. */
export function packagesWith(
  directory: string,
  change: (runtimes: Record<string, unknown>[]) => object[],
): string {
  const { runtimes, ...rest } = JSON.parse(readFileSync(join(IMAGE, "../runtimes.json"), "utf8"));
  writeFileSync(join(directory, "runtimes.json"), JSON.stringify({ ...rest, runtimes: change(runtimes) }));
  symlinkSync(IMAGE, join(directory, "rootfs"));
  return directory;
}

export const newKeys = () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  return { signing: parseSigningKey(privateKey), publicKey };
};

export type Runner = ((call: Call) => Promise<Answer>) & { pid: number };

export async function startSystemOfRunner(jail: JaildOptions = { slots: 2 }) {
  const keys = newKeys();
  const jaild = await Jaild.start(jail);
  const gateway = await startGateway();
  const clients: InnerClient[] = [];
  const runners: { kill: () => Promise<void> }[] = [];

  /** Starts one more runner; answers how to call it, and its process. */
  const startRunner = async (env: Record<string, string>): Promise<Runner> => {
    const runner = await startComponent("runner", {
      PORT: "0",
      SANDBOX_FORWARD_TARGET: new URL(gateway.gateway.url).host,
      SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: new URL(gateway.gateway.url).port,
      SANDBOX_JAIL_SOCKET: jaild.socket,
      SANDBOX_PACKAGES_DIRECTORY: join(IMAGE, ".."),
      LOG_LEVEL: "info",
      // Runners share the slots here: what waited in one would be missing in another.
      SANDBOX_WARM_START: "off",
      ...env,
    });
    runners.push(runner);
    const client = new InnerClient({ baseUrl: runner.url, unreachable: "upstream_unavailable" });
    clients.push(client);
    const send = async (call: Call): Promise<Answer> => {
      const { statusCode, headers, body } = await client.send(call);
      const bytes = Buffer.from(await body.arrayBuffer());
      return { status: statusCode, headers, bytes, json: () => JSON.parse(bytes.toString("utf8")) };
    };
    return Object.assign(send, { pid: runner.pid });
  };

  return {
    keys,
    gateway,
    jaild,
    startRunner,
    stop: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await Promise.all(runners.map((runner) => runner.kill()));
      await gateway.stop();
      await jaild.stop();
    },
  };
}

/** The request of a worker, before it is signed. */
export function requestOf({ payload }: RegisteredGrant, code: string, language = "bash") {
  return {
    language,
    version: "*",
    files: [{ name: "main.sh", content: code }, ...payload.files],
    session_id: payload.session_id,
    output_session_id: payload.output_session_id,
  };
}
