/** A runner that is started before its jaild: it is alive, admits nothing, and begins by itself. */
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningComponent, startComponent } from "@svc/test-kit/components/component";
import { IMAGE, Jaild } from "@svc/test-kit/jail/jaild";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { newKeys } from "../support/runner.ts";

const WITHIN = { timeout: 60_000 };
const folder = mkdtempSync(join(tmpdir(), "svc-runner-"));
let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 2 });
});
afterAll(async () => {
  await jaild.stop();
  rmSync(folder, { recursive: true, force: true });
});

let runner: RunningComponent;
afterEach(() => runner.kill());

const start = async (socket: string) => {
  const env = {
    PORT: "0",
    SANDBOX_FORWARD_TARGET: "127.0.0.1:1",
    SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: "1",
    SANDBOX_JAIL_SOCKET: socket,
    SANDBOX_PACKAGES_DIRECTORY: join(IMAGE, ".."),
    SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newKeys().publicKey,
    SANDBOX_WARM_START: "off",
  };
  runner = await startComponent("runner", env, "listening");
};
const ask = async (path: string) => {
  const answer = await fetch(runner.url + path);
  // biome-ignore lint/suspicious/noExplicitAny: the tests look at single fields
  return { status: answer.status, body: (await answer.json()) as any };
};

describe("a runner without a jail", () => {
  it("is alive and not ready where there is no jaild, and begins when there is one", async () => {
    const socket = join(folder, "later");
    await start(socket);
    expect((await ask("/health")).status).toBe(200);
    const health = await ask("/api/v2/health");
    expect(health).toMatchObject({
      status: 503,
      body: {
        status: "unhealthy",
        error: "sandbox_setup_failed",
        message: expect.stringContaining("jaild cannot be reached"),
        checks: { jail: false, gateway: false, running: false, descriptors: true },
        reasons: { gateway: "the gateway cannot be reached", running: "it is starting" },
      },
    });
    expect(await ask("/api/v2/runtimes")).toMatchObject({ status: 503, body: { error: "starting_up" } });
    symlinkSync(jaild.socket, socket);
    await expect.poll(async () => (await ask("/api/v2/runtimes")).status, WITHIN).toBe(200);
    // It has no gateway here.
    const { jail, running } = (await ask("/api/v2/health")).body.checks;
    expect({ jail, running }).toEqual({ jail: true, running: true });
  });

  it("is not ready where jaild answers nothing good", async () => {
    const path = join(folder, "nonsense");
    const server = createServer((socket) => socket.on("error", () => undefined).end("nonsense"));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    try {
      await start(path);
      expect((await ask("/health")).status).toBe(200);
      expect(await ask("/api/v2/health")).toMatchObject({ status: 503, body: { checks: { jail: false } } });
      expect(await ask("/api/v2/runtimes")).toMatchObject({ status: 503, body: { error: "starting_up" } });
    } finally {
      server.close();
    }
  });
});
