/** The client's end of jaild's socket, against a listener that reads when it is told to. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Connection } from "../../src/connection.ts";

it("many senders wait for room with one listener, and all go on when there is some", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-connection-"));
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on("warning", note);
  const server = createServer({ pauseOnConnect: true }).listen(join(folder, "socket"));
  try {
    await once(server, "listening");
    const accepted = once(server, "connection") as Promise<[Socket]>;
    const connection = new Connection(join(folder, "socket"));
    const [peer] = await accepted;
    const piece = Buffer.alloc(1024 * 1024);
    for (let round = 0; round < 2; round++) {
      const waiting = Array.from({ length: 30 }, () => connection.send(piece));
      expect(waiting.filter((room) => room === undefined)).toHaveLength(0);
      peer.resume();
      await Promise.all(waiting);
      peer.pause();
    }
    const last = [connection.send(piece), connection.send(piece)];
    connection.destroy(new Error("over"));
    await expect(Promise.all(last)).rejects.toThrow("over");
    expect(warnings).toEqual([]);
  } finally {
    process.off("warning", note);
    server.close();
    rmSync(folder, { recursive: true });
  }
});
