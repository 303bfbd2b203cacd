/** Uploads and downloads of one caller, whose client sends or reads nothing of them, before a file server that takes few connections. */
import { newId } from "@svc/contracts";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { afterEach, expect, it } from "vitest";
import { type Replicas, startReplicas } from "../../support/replicas.ts";

const AT_ONCE = 16;
const IN_LINE = 100;
/** More than what is on its way of a download takes that nobody reads. */
const CONTENT = Buffer.alloc(16 * 2 ** 20);
const signer = newSigner();
let made: Replicas;
afterEach(() => made.stop());

async function start() {
  const keys = { LOCAL_MODE: "false", SVC_JWT_PUBLIC_KEY: signer.pem, SVC_JWT_KID: KID };
  made = await startReplicas(
    1,
    { ...keys, DOWNLOAD_MAX_REQUESTS: "1000", DOWNLOAD_LIMIT_WINDOW: "600000" },
    AT_ONCE + 1,
  );
}

const call = (sub: string, path: string, init: RequestInit = {}, headers: Record<string, string> = {}) =>
  fetch(`${made.urls[0]}${path}`, {
    ...init,
    headers: { ...headers, authorization: `Bearer ${signer.mint({ claims: { sub } })}` },
  });

async function uploaded(sub: string, content: Buffer<ArrayBuffer>): Promise<string> {
  const body = new FormData();
  body.append("file", new Blob([content]), "a.bin");
  const answer = await call(sub, "/upload", { method: "POST", body });
  const { files, storage_session_id } = (await answer.json()) as {
    files: { id: string }[];
    storage_session_id: string;
  };
  return `/download/${storage_session_id}/${files[0]?.id}`;
}

/** Requests in the windows of all callers. */
async function counted(scope: "uploads" | "downloads"): Promise<number> {
  const keys = await made.redis.keys(`svc:limit:${scope}:*`);
  const counts = keys.length === 0 ? [] : await made.redis.mget(keys);
  return counts.reduce((sum, count) => sum + Number(count), 0);
}

/** The beginning of a form, and nothing more until the signal. */
async function slowUpload(sub: string, left: AbortSignal): Promise<void> {
  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\nx';
  const body = new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from(head)) });
  const init = { method: "POST", body, duplex: "half", signal: left };
  const type = { "content-type": "multipart/form-data; boundary=b" };
  await call(sub, "/upload", init as RequestInit, type).catch(() => undefined);
}

/** As many as one caller may have. */
async function openAll(path: string): Promise<Response[]> {
  const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => call("slow", path)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  return answers;
}

it("hold up nobody else, and no question of their caller", async () => {
  await start();
  const small = await uploaded("other", Buffer.from("small"));
  const large = await uploaded("slow", CONTENT);
  const open = await openAll(large);
  const waiting = Array.from({ length: AT_ONCE }, () => call("slow", large));
  for (const sub of ["other", "slow"]) expect((await call(sub, `/files/${newId()}`)).status).toBe(404);
  expect(await (await call("other", small)).text()).toBe("small");
  const { checks } = (await (await call("other", "/ready")).json()) as { checks: Record<string, boolean> };
  expect(checks.file_server).toBe(true);
  for (const answer of open) await answer.body?.cancel();
  for (const answer of await Promise.all(waiting)) await answer.body?.cancel();
});

it("are refused beyond their number, by every route and method, until one is closed", async () => {
  await start();
  const small = await uploaded("slow", Buffer.from("small"));
  const open = await openAll(await uploaded("slow", CONTENT));
  const line = Array.from({ length: IN_LINE }, () => call("slow", small));
  await expect.poll(() => counted("downloads")).toBe(AT_ONCE + IN_LINE);
  const refused = await Promise.all([
    call("slow", small),
    call("slow", small, { method: "HEAD" }),
    call("slow", `/sessions/${newId()}/file?name=a`),
    call("slow", `/sessions/${newId()}/files`),
  ]);
  for (const answer of refused) {
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "1"]);
  }
  expect(await refused[0].json()).toMatchObject({
    error: "rate_limited",
    message: expect.stringContaining("16"),
  });
  expect(await made.replicas[0]?.registry.metrics()).toContain(
    'svc_rate_limited_total{scope="open_transfers"} 4',
  );

  // Each that was read to its end makes place for the next one.
  await open[0]?.body?.cancel();
  const texts = await Promise.all(line.map(async (answer) => (await answer).text()));
  expect(texts).toEqual(line.map(() => "small"));
  for (const answer of open.slice(1)) await answer.body?.cancel();
});

it("are uploads, too, as long as their client sends", async () => {
  await start();
  const small = await uploaded("other", Buffer.from("small"));
  const left = new AbortController();
  const sent = Array.from({ length: AT_ONCE }, () => slowUpload("slow", left.signal));
  await expect.poll(() => counted("uploads")).toBe(AT_ONCE + 1);
  const waiting = call("slow", small);
  expect(await (await call("other", small)).text()).toBe("small");
  expect(
    await Promise.race([
      waiting.then(() => "answered"),
      call("slow", `/files/${newId()}`).then(() => "waits"),
    ]),
  ).toBe("waits");
  left.abort();
  await Promise.all(sent);
  expect((await waiting).status).toBe(404);
});
