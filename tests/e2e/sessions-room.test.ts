/** A state that has no room beside the files of a request, or that was saved when it could be larger: neither is at fault. */
import { randomBytes } from "node:crypto";
import { snapshotNamespaceOf, type UploadedFile } from "@svc/contracts";
import { compress, writeArchive } from "@svc/session-archive";
import { refTo } from "@svc/test-kit/system/api";
import { SandboxSide } from "@svc/test-kit/system/sandbox-side";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newSession, type SessionSystem, startSessionSystem } from "./support/session-system.ts";

const MIB = 2 ** 20;
const WORKSPACE_MIB = 8;
const STATE_MIB = 2;

let made: SessionSystem;
beforeAll(async () => {
  made = await startSessionSystem({
    SANDBOX_WORKSPACE_MAX_BYTES: `${WORKSPACE_MIB}mb`,
    SVC_SESSION_STATE_MAX_BYTES: `${STATE_MIB}mb`,
  });
});
afterAll(async () => expect(await made?.stop()).toEqual([]));

const uploaded = async (bytes: number) =>
  refTo((await made.api.upload({ "large.bin": randomBytes(bytes) }))[0] as UploadedFile);

test("costs a run the state, which never ends the session", async () => {
  const session = await newSession(made);
  const large = await uploaded(WORKSPACE_MIB * MIB - 100_000);
  const answer = await session.run({ lang: "bash", code: "ls; stat -c %s large.bin", files: [large] });
  expect(answer).toMatchObject({
    code: 0,
    stdout: `large.bin\nscript.sh\n${WORKSPACE_MIB * MIB - 100_000}\n`,
    session_state_persisted: false,
    session_state_restore_failed: true,
  });
  expect(await session.record()).not.toHaveProperty("failures");
  expect(await session.step()).toBe(1);
});

test("files that have no room alone are refused, also for a session", async () => {
  const session = await newSession(made);
  const [one, other] = [await uploaded(5 * MIB), await uploaded(5 * MIB)];
  const files = [one, { ...other, name: "other.bin" }];
  const refused = await made.api.tryExec({
    lang: "bash",
    code: "ls",
    runtime_session_hint: session.hint,
    files,
  });
  expect([refused.status, refused.refusal.error]).toEqual([400, "invalid_file_reference"]);
  expect(await session.record()).not.toHaveProperty("failures");
  expect(await session.step()).toBe(1);
});

/** A state of one file, as a runner that may keep so much saves it. */
async function archiveOf(bytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const body = async function* () {
    yield Buffer.alloc(bytes);
  };
  const members = async function* () {
    yield { type: "file" as const, path: "large.bin", mode: 0o644, size: bytes, body: body() };
  };
  const chunks: Buffer[] = [];
  await compress(writeArchive(members()), async (chunk) => void chunks.push(chunk));
  return Uint8Array.from(Buffer.concat(chunks));
}

test("a state that was saved under a higher limit costs a run the state, and never ends the session", async () => {
  const session = await newSession(made);
  const before = await session.record();
  const key = await session.key();
  const namespace = key.slice("sessionstate:".length, -session.hint.length - 1);
  const archive = await archiveOf(STATE_MIB * MIB + 1);
  const stored = await new SandboxSide(made.system).store(snapshotNamespaceOf(namespace), "a.tar", archive);
  await made.redis.hset(key, { snapshot_id: stored.id, snapshot_session: stored.session_id });
  expect(await session.tryStep()).toMatchObject({
    code: 0,
    stdout: "0 before\n",
    session_state_persisted: false,
    session_state_restore_failed: true,
  });
  expect(await session.record()).toMatchObject({ snapshot_id: stored.id });
  expect(await session.record()).not.toHaveProperty("failures");
  const { status, refusal } = await made.api.send("GET", `/sessions/${before.id}/files`);
  const message = "The state of the session is larger than the 2 MiB that are allowed now.";
  expect([status, refusal]).toMatchObject([502, { error: "input_unavailable", message }]);
  await made.redis.hset(key, {
    snapshot_id: String(before.snapshot_id),
    snapshot_session: String(before.snapshot_session),
  });
  expect(await session.step()).toBe(1);
});
