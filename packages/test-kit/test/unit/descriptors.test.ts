import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { descriptorsOf, total } from "@svc/test-kit/system/descriptors";
import { expect, test } from "vitest";

test("descriptors are counted by what they are: both ends of a connection, servers, files", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-descriptors-"));
  const tcp = createServer().listen(0, "127.0.0.1");
  const unix = createServer().listen(join(folder, "socket"));
  await Promise.all([once(tcp, "listening"), once(unix, "listening")]);
  const { port } = tcp.address() as AddressInfo;
  const accepted = once(tcp, "connection");
  const client = connect(port, "127.0.0.1");
  const [server] = await accepted;
  const file = openSync(join(folder, "file"), "w");
  try {
    const is = descriptorsOf(process.pid);
    expect(is).toMatchObject({
      [`server at ${port}`]: 1,
      [`connection at ${port}`]: 1,
      [`connection to ${port}`]: 1,
      [`unix socket ${join(folder, "socket")}`]: 1,
      [join(folder, "file")]: 1,
    });
    expect(total(is)).toBeGreaterThanOrEqual(5);
  } finally {
    closeSync(file);
    client.destroy();
    server.destroy();
    tcp.close();
    unix.close();
    rmSync(folder, { recursive: true });
  }
});

test("a process that is gone has none", () => {
  expect(descriptorsOf(2 ** 30)).toEqual({});
});
