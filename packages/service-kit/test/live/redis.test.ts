import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createLog, createRedis, loadConfig } from "@svc/service-kit";
import { startRedis } from "@svc/test-kit/components/redis";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { expect, it } from "vitest";

/** Passes everything on, until it is told to swallow what subscribes. */
async function relayTo(socket: string) {
  let swallows = false;
  let cut = () => {};
  const server = createServer((client) => {
    const redis = connect(socket);
    client.on("data", (data) => {
      if (!(swallows && /subscribe/i.test(data.toString("latin1")))) redis.write(data);
    });
    redis.on("data", (data) => client.write(data));
    for (const [one, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      one.on("error", () => undefined);
      one.once("close", () => other.destroy());
    }
    cut = () => client.destroy();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => cut(),
    swallowSubscriptions: () => {
      swallows = true;
    },
    close: () => server.close(),
  };
}

it.each(["", "app:"])(
  "a server at a socket gets the login that is given (%s)",
  async (user) => {
    const password = newSecret();
    const further = ["--requirepass", password, "--user", "app", "on", `>${password}`, "~*", "&*", "+@all"];
    const server = await startRedis({ further });
    const inAddress = server.url.replace("unix://", `unix://${user || ":"}${password}@localhost`);
    const inParts = { REDIS_URL: server.url, REDIS_USERNAME: user.slice(0, -1), REDIS_PASSWORD: password };
    try {
      for (const given of [{ REDIS_URL: inAddress }, inParts]) {
        const config = loadConfig("api", {
          LOCAL_MODE: "true",
          LOG_LEVEL: "fatal",
          SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
          ...given,
        });
        const redis = createRedis(config, createLog("api", config), { use: "blocking" });
        expect(await redis.acl("WHOAMI")).toBe(user.slice(0, -1) || "default");
        redis.disconnect();
      }
    } finally {
      await server.stop();
    }
  },
  20_000,
);

it("a subscriber that is ended while it comes back leaves no error that nobody handles", async () => {
  const server = await startRedis();
  const relay = await relayTo(server.socket);
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on("unhandledRejection", note);
  try {
    const config = loadConfig("api", {
      LOCAL_MODE: "true",
      LOG_LEVEL: "fatal",
      SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
      REDIS_URL: relay.url,
    });
    const subscriber = createRedis(config, createLog("api", config), { use: "blocking" });
    await subscriber.subscribe("news");
    relay.swallowSubscriptions();
    const back = once(subscriber, "ready");
    relay.cut();
    await back;
    const own = subscriber.subscribe("more");
    subscriber.disconnect();
    await expect(own).rejects.toThrow("Connection is closed");
    await sleep(100);
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
    relay.close();
    await server.stop();
  }
});
