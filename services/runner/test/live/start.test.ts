/** What a runner needs to start: a jail that was really made. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NODE } from "@svc/cli/components";
import { builtBundle } from "@svc/test-kit/components/component";
import { IMAGE } from "@svc/test-kit/jail/jaild";
import { afterAll, describe, expect, it } from "vitest";
import { newKeys } from "../support/runner.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-runner-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a runner that is expected to end by itself; answers its exit code and its log. */
async function start(socket: string): Promise<{ code: number; log: string }> {
  const env = {
    PATH: process.env.PATH ?? "",
    PORT: "0",
    SANDBOX_FORWARD_TARGET: "127.0.0.1:1",
    SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: "1",
    SANDBOX_JAIL_SOCKET: socket,
    SANDBOX_PACKAGES_DIRECTORY: join(IMAGE, ".."),
    SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newKeys().publicKey,
  };
  const child = spawn(NODE, [await builtBundle("runner")], { env, stdio: ["ignore", "pipe", "inherit"] });
  let log = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const [code] = (await once(child, "close")) as [number];
  return { code, log };
}

/** Each is waited for as long as the first jail may take. */
describe.concurrent("a runner without a jail", () => {
  it("ends where there is no jaild", async () => {
    const { code, log } = await start(join(folder, "none"));
    expect(code).toBe(1);
    expect(log).toContain("no jail can be made");
    expect(log).not.toContain("Server listening");
  });

  it("ends where jaild answers nothing good", async () => {
    const path = join(folder, "socket");
    const server = createServer((socket) => socket.end("nonsense"));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    try {
      const { code, log } = await start(path);
      expect(code).toBe(1);
      expect(log).toContain("no jail can be made");
    } finally {
      server.close();
    }
  });
});
