/** What is told of a session's state, before clients that take their time. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdir, readlink } from "node:fs/promises";
import { ServerResponse } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { WrittenMember } from "@svc/session-archive";
import { expect, type TestContext, test, vi } from "vitest";
import { type SessionApi, startSessionApi } from "../../support/session-api.ts";

const MIB = 2 ** 20;
const CONTENT = randomBytes(25 * MIB);

async function* largeFile(): AsyncGenerator<WrittenMember> {
  const body = async function* () {
    yield CONTENT;
  };
  yield { type: "file", path: "large.bin", mode: 0o644, size: CONTENT.length, body: body() };
}

/** As many files as a state may have, of names that are as long as they may be. */
const LONG = `${"d".repeat(250)}/`.repeat(16);
const longNames = Array.from({ length: 10_000 }, (_unused, at) => `${LONG}${10_000 + at}`);
async function* longNamed(): AsyncGenerator<WrittenMember> {
  for (const path of longNames) yield { type: "file", path, mode: 0o644, size: 0 };
}

/** What an answer waits for comes a hundred times sooner. */
function hurry({ onTestFinished }: TestContext): void {
  const { setTimeout: wait } = ServerResponse.prototype;
  const spy = vi.spyOn(ServerResponse.prototype, "setTimeout");
  spy.mockImplementation(function (this: ServerResponse, ms: number, done?: () => void) {
    return wait.call(this, ms / 100, done);
  });
  onTestFinished(() => spy.mockRestore());
}

/** Asks, and reads no more than the first bytes of the answer. */
async function askOnly({ onTestFinished }: TestContext, { url }: SessionApi, path: string): Promise<void> {
  const { port, pathname } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.write(`GET ${pathname}${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await once(socket, "data");
  socket.pause();
}

/** How often the file server has the state open. */
async function readersOf({ fileServerPid, stateFile }: SessionApi): Promise<number> {
  const folder = `/proc/${fileServerPid}/fd`;
  const links = (await readdir(folder)).map((fd) => readlink(`${folder}/${fd}`).catch(() => ""));
  return (await Promise.all(links)).filter((link) => link === stateFile).length;
}

test("a client that reads slowly gets all of a file", async (context) => {
  hurry(context);
  const { url } = await startSessionApi(context, largeFile());
  const { body } = await fetch(`${url}/file?name=large.bin`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body ?? []) if (chunks.push(chunk) % 100 === 0) await sleep(20);
  expect(Buffer.concat(chunks).equals(CONTENT)).toBe(true);
});

test("a client that stops reading a file is left, and holds nothing any more", async (context) => {
  hurry(context);
  const api = await startSessionApi(context, largeFile());
  await askOnly(context, api, "/file?name=large.bin");
  expect(await readersOf(api)).toBe(1);
  await expect.poll(() => readersOf(api)).toBe(0);
});

test("a list of the longest names is whole, and clients that do not read it cost little", async (context) => {
  const api = await startSessionApi(context, longNamed());
  const { files } = (await (await fetch(`${api.url}/files`)).json()) as { files: { name: string }[] };
  expect(files.map(({ name }) => name)).toEqual(longNames);
  const before = process.memoryUsage.rss();
  await Promise.all(Array.from({ length: 20 }, () => askOnly(context, api, "/files")));
  expect((process.memoryUsage.rss() - before) / MIB).toBeLessThan(300);
});
