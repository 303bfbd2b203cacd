/**
 * A real launcher with guests on an emulated processor, a real gateway, file server and Redis, and a worker's signature. The guest's files
 * lie in .microvm, where guest/build makes what has changed, or where SVC_TEST_MICROVM says.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { canonicalJson, signManifest } from "@svc/capabilities";
import { NODE } from "@svc/cli/components";
import { buildBundles } from "@svc/cli/install/bundles";
import { ROOT } from "@svc/cli/instance";
import type { RegisteredGrant } from "@svc/contracts";
import { InnerClient } from "@svc/service-kit";
import { type Answer, startGateway } from "@svc/test-kit/components/gateway";
import { newKeys } from "../../../services/runner/test/support/runner.ts";

const IMAGE = process.env.SVC_TEST_MICROVM ?? join(ROOT, ".microvm");
/** Of guests, and of no other test. */
const UID_BASE = 230_000;

export async function startLauncherSystem(env: Record<string, string> = {}) {
  await buildBundles();
  execFileSync(join(ROOT, "services/launcher/guest/build"), [IMAGE, join(ROOT, ".pkgs/current")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const keys = newKeys();
  const gateway = await startGateway();
  const to = new URL(gateway.gateway.url);
  const child = spawn(NODE, [join(ROOT, "services/launcher/src/main.ts")], {
    env: {
      PATH: process.env.PATH,
      PORT: "0",
      LAUNCHER_ROOTFS: IMAGE,
      LAUNCHER_ACCEL: "tcg",
      LAUNCHER_RAM_MIB: "1024",
      LAUNCHER_POOL_SIZE: "1",
      SANDBOX_JOB_UID_BASE: String(UID_BASE),
      SANDBOX_JOB_GID_BASE: String(UID_BASE),
      SANDBOX_PACKAGES_DIRECTORY: join(ROOT, ".pkgs"),
      SANDBOX_FORWARD_TARGET: to.host,
      SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: to.port,
      SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: keys.publicKey,
      SANDBOX_QUEUE_WAIT_MS: "240000",
      SANDBOX_WARM_START: "off",
      ...env,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const log: Record<string, unknown>[] = [];
  const client = new InnerClient({
    baseUrl: await addressOf(child, log),
    unreachable: "upstream_unavailable",
    timeoutMs: 0,
  });
  return {
    gateway,
    log,
    pid: child.pid as number,
    ...requests(client, keys.signing),
    kill: async (signal: NodeJS.Signals) => {
      child.kill(signal);
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
    stop: async () => {
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      await client.close();
      await gateway.stop();
    },
  };
}

/** Its address, once it takes runs. */
async function addressOf(child: ChildProcess, log: Record<string, unknown>[]): Promise<string> {
  const lines = createInterface({ input: child.stdout as NonNullable<ChildProcess["stdout"]> });
  const found = Promise.withResolvers<string>();
  let url: string | undefined;
  lines.on("line", (line) => {
    const entry = JSON.parse(line) as Record<string, unknown>;
    log.push(entry);
    url ??= /Server listening at (\S+)/.exec(String(entry.msg))?.[1];
    if (entry.msg === "running") found.resolve(url ?? "");
  });
  child.once("exit", (code) => found.reject(new Error(`the launcher ended with ${code}`)));
  return found.promise;
}

function requests(client: InnerClient, key: ReturnType<typeof newKeys>["signing"]) {
  const send = async (call: Parameters<InnerClient["send"]>[0]): Promise<Answer> => {
    const { statusCode, headers, body } = await client.send(call);
    const bytes = Buffer.from(await body.arrayBuffer());
    return { status: statusCode, headers, bytes, json: () => JSON.parse(bytes.toString("utf8")) };
  };
  const signed = (grant: RegisteredGrant, request: object, toolSocket = false) => {
    const manifest = signManifest(
      key,
      grant.executionManifestClaims,
      { body: canonicalJson(request), grant: grant.egressGrantToken },
      { now: Math.floor(Date.now() / 1000), ttl: 300, toolSocket },
    );
    return JSON.stringify({ ...request, egress_grant: grant.egressGrantToken, execution_manifest: manifest });
  };
  const post = (path: string, body: string, signal?: AbortSignal) =>
    send({ method: "POST", path, headers: { "content-type": "application/json" }, body, signal });
  return { send, signed, post };
}

export interface HostProcess {
  pid: number;
  uid: number;
  name: string;
}

/** Processes on this machine that belong to guests. */
export function guestProcesses(): HostProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const status = readFileSync(`/proc/${name}/status`, "utf8");
        const uid = Number(/^Uid:\t(\d+)/m.exec(status)?.[1]);
        const isOne = uid >= UID_BASE && uid < UID_BASE + 1000 && !/^State:\tZ/m.test(status);
        return isOne ? [{ pid: Number(name), uid, name: /^Name:\t(.*)$/m.exec(status)?.[1] ?? "" }] : [];
      } catch {
        return [];
      }
    });
}

/** Files of guests and launchers that have a name in memory file systems. */
export function namedFiles(): string[] {
  return readdirSync("/dev/shm").filter((name) => name.startsWith("svc-launcher"));
}

export function namespacesOf(pid: number | "self"): Record<string, string> {
  const kinds = ["net", "mnt", "ipc", "uts"];
  return Object.fromEntries(kinds.map((kind) => [kind, readlinkSync(`/proc/${pid}/ns/${kind}`)]));
}
