import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { buffer } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { gatewayConnector } from "../../src/guests/gateway.ts";

test.each(["127.0.0.1", "::1", "localhost"])("the gateway of guests may be at %s", async (host) => {
  const server = createServer((connection) => connection.end("here")).listen(0, host);
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const connection = gatewayConnector(`${host.includes(":") ? `[${host}]` : host}:${port}`, undefined)();
  expect((await buffer(connection)).toString()).toBe("here");
});
