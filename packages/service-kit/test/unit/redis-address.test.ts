import { expect, it } from "vitest";
import { sentinelAddress } from "../../src/config/redis-address.ts";

it("has the sentinels with their ports, and what the server asks for", () => {
  expect(sentinelAddress("rediss+sentinel://app:p%40ss%3A@one,two:5,[::1]:6/main.1/3")).toEqual({
    isTls: true,
    username: "app",
    password: "p@ss:",
    sentinels: [
      { host: "one", port: 26_379 },
      { host: "two", port: 5 },
      { host: "::1", port: 6 },
    ],
    name: "main.1",
    database: 3,
  });
});

it("without user, password, database and TLS", () => {
  expect(sentinelAddress("redis+sentinel://one/main")).toEqual({
    isTls: false,
    username: undefined,
    password: undefined,
    sentinels: [{ host: "one", port: 26_379 }],
    name: "main",
    database: 0,
  });
});

it.each(["", "redis://one/0", "redis+sentinel:one/main", "redis+sentinel://a@b@one/main"])(
  "%j is another form",
  (text) => expect(sentinelAddress(text)).toBeUndefined(),
);
