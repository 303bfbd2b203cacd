/** A state that has no room beside the files of a request: neither is at fault. */
import { randomBytes } from "node:crypto";
import type { UploadedFile } from "@svc/contracts";
import { refTo } from "@svc/test-kit/system/api";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newSession, type SessionSystem, startSessionSystem } from "./support/session-system.ts";

const MIB = 2 ** 20;
const WORKSPACE_MIB = 8;

let made: SessionSystem;
beforeAll(async () => {
  made = await startSessionSystem({ SANDBOX_WORKSPACE_MAX_BYTES: `${WORKSPACE_MIB}mb` });
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
