/** Many large transfers at once through the public API: memory stays flat, and a killed file server leaves no half file. */
import { createHash, randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { Agent, get, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { killProcess } from "@svc/test-kit/jail/host";
import { downloadPath, type StoredFile, type UploadAnswer } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { uploadForm } from "@svc/tools/bench/load-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { watchPeak } from "./support/memory.ts";

const MIB = 2 ** 20;
const AT_ONCE = 50;
/** A caller has 16 transfers at once: each of these has five of the 50 of each kind. */
const CALLERS = Array.from({ length: 10 }, (_, at) => `caller-${at}`);
const CONTENT = randomBytes(20 * MIB);
const ETAG = createHash("sha256").update(CONTENT).digest("hex");
const FORM = uploadForm([{ name: "data.bin", content: CONTENT }]);
const TRANSFERS_MS = 400_000;
/** One process sends and reads all transfers, so how fast each of them comes says nothing. */
const SLOW_CLIENTS = { BODY_TIMEOUT_MS: "300000", UPLOAD_PART_TIMEOUT_MS: "300000" };

let system: System;
const signer = newSigner();
/** A file of each caller. */
let stored: StoredFile[];
const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });

async function start(topology: string): Promise<void> {
  const tokens = { LOCAL_MODE: "false", SVC_JWT_PUBLIC_KEY: signer.pem, SVC_JWT_KID: KID };
  system = await startSystem({ env: { ...OPEN_LIMITS, ...SLOW_CLIENTS, ...tokens, SVC_TOPOLOGY: topology } });
  stored = [];
  for (let at = 0; at < CALLERS.length; at++)
    stored.push(((await upload(at)).answer as UploadAnswer).files[0] as StoredFile);
}

afterAll(() => agent.destroy());

interface Uploaded {
  status: number;
  answer: UploadAnswer | { error: string };
}

const callerOf = (at: number) => CALLERS[at % CALLERS.length] as string;
const fileOf = (at: number) => stored[at % CALLERS.length] as StoredFile;
const as = (at: number) => ({ authorization: `Bearer ${signer.mint({ claims: { sub: callerOf(at) } })}` });

/** All uploads send the one body that there is in memory; with `half`, the second half of it when that has resolved. */
function upload(at: number, half?: Promise<void>): Promise<Uploaded> {
  return new Promise((resolve, reject) => {
    const headers = { ...as(at), "content-type": FORM.type, "content-length": FORM.body.length };
    const sent = request(`${system.url}/upload`, { method: "POST", headers, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk) => {
        text += chunk;
      });
      response.once("end", () => resolve({ status: response.statusCode ?? 0, answer: JSON.parse(text) }));
      response.once("error", reject);
    });
    sent.once("error", reject);
    if (half === undefined) sent.end(FORM.body);
    else {
      const middle = FORM.body.length / 2;
      sent.write(FORM.body.subarray(0, middle));
      void half.then(() => sent.end(FORM.body.subarray(middle)));
    }
  });
}

/** Starts a download; its bytes come when somebody takes them. */
function open(at: number, file: StoredFile): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(`${system.url}${downloadPath(file)}`, { headers: as(at), agent }, resolve).once("error", reject);
  });
}

async function hashOf(response: IncomingMessage): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of response) hash.update(chunk);
  return hash.digest("hex");
}

const times = <T>(count: number, work: (at: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, at) => work(at)));

/** Downloads a file of whichever caller has it. */
async function openAsOwner(file: StoredFile): Promise<IncomingMessage | undefined> {
  for (let at = 0; at < CALLERS.length; at++) {
    const response = await open(at, file);
    if (response.statusCode === 200) return response;
    response.resume();
  }
  return undefined;
}

/**
 * In flight are 50 x 20 MiB up, as much down, and as much towards clients that do not read: 3000 MiB. A component may
 * hold for each transfer what lies in its streams (in the file server two gathered writes of 1 MiB), and what waits for the
 * next collection (V8 lets about 64 MiB of buffers pile up, and the heap grows with 150 requests).
 */
const BOUND_MIB = 300;

/** Paths of visible objects below the store, whatever their owner. */
function visibleObjects(): string[] {
  const sessions = join(system.instance.dataDir, "objects/sessions");
  return readdirSync(sessions, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

describe.each(["combined", "separate"])("in the topology %s", (topology) => {
  beforeAll(() => start(topology));
  afterAll(async () => expect(await system.stop()).toEqual([]));

  test(
    "50 uploads, 50 downloads and 50 downloads that nobody reads at once: all succeed, memory stays flat",
    async () => {
      const peaks = (["api", "file-server", "egress-gateway"] as const).map(
        (name) => [name, watchPeak(system.pid(name))] as const,
      );
      const unread = await times(AT_ONCE, (at) => open(at, fileOf(at)));
      const [uploads, downloads] = await Promise.all([
        times(AT_ONCE, upload),
        times(AT_ONCE, async (at) => hashOf(await open(at, fileOf(at)))),
      ]);
      const grown = Object.fromEntries(peaks.map(([name, peak]) => [name, Math.round(peak())]));
      console.log("peak growth in MiB:", grown);
      expect(uploads.map(({ status }) => status)).toEqual(new Array(AT_ONCE).fill(200));
      expect(new Set(uploads.map(({ answer }) => (answer as UploadAnswer).files[0]?.etag))).toEqual(
        new Set([ETAG]),
      );
      expect(new Set(downloads)).toEqual(new Set([ETAG]));
      expect(unread.map(({ statusCode }) => statusCode)).toEqual(new Array(AT_ONCE).fill(200));
      for (const growth of Object.values(grown)) expect(growth).toBeLessThan(BOUND_MIB);
      // Those that nobody read are as good as ever.
      const [first, ...others] = unread;
      for (const response of others) response.destroy();
      expect(await hashOf(first as IncomingMessage)).toBe(ETAG);
    },
    TRANSFERS_MS,
  );

  test.runIf(topology === "separate")(
    "kill -9 of the file server under 30 uploads: each is stored whole or refused, nothing in between is visible",
    async () => {
      const before = new Set(visibleObjects());
      const { promise: isKilled, resolve: killed } = Promise.withResolvers<void>();
      const running = Array.from({ length: 30 }, async (_, at) => {
        await sleep(at * 20);
        // What is on its way is lost; a commit is asked for again.
        return upload(at, at % 6 === 0 ? isKilled : undefined);
      });
      await until(() => visibleObjects().length >= before.size + 3, 20_000);
      const pid = system.pid("file-server");
      killProcess(pid);
      killed();
      const ended = await Promise.all(running);
      await until(async () => (await upload(0)).status === 200, 20_000);

      const good = ended.filter(({ status }) => status === 200);
      const refused = ended.filter(({ status }) => status !== 200);
      console.log(`${good.length} stored, ${refused.length} refused`);
      expect(refused.length).toBeGreaterThan(0);
      for (const { status, answer } of refused) {
        expect([status, (answer as { error: string }).error]).toEqual([503, "storage_unavailable"]);
      }
      for (const [at, { status, answer }] of ended.entries()) {
        if (status !== 200) continue;
        const [file] = (answer as UploadAnswer).files;
        expect(await hashOf(await open(at, file as StoredFile))).toBe(ETAG);
      }
      // A commit that was done when its answer was lost may have left a whole file that nobody knows of, never half of one.
      for (const path of visibleObjects().filter((found) => !before.has(found))) {
        const [session = "", id = ""] = path.split("/").slice(-2);
        const response = await openAsOwner({ storage_session_id: session, id });
        expect(response && (await hashOf(response))).toBe(ETAG);
      }
      expect(await hashOf(await open(0, fileOf(0)))).toBe(ETAG);
    },
    TRANSFERS_MS,
  );
});
