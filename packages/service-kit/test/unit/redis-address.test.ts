import { newSecret } from "@svc/test-kit/credentials/secrets";
import { expect, it } from "vitest";
import { redisProblems, sentinelAddress } from "../../src/config/redis-address.ts";
import { valueProblems } from "../../src/index.ts";

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

const PLAIN = { REDIS_USERNAME: "", REDIS_PASSWORD: "", REDIS_TLS: false };
const TLS = { ...PLAIN, REDIS_TLS: true };
const LOGIN = { ...PLAIN, REDIS_USERNAME: "app", REDIS_PASSWORD: newSecret() };

it.each([
  ["", { ...LOGIN, REDIS_TLS: true }],
  ["redis://one", PLAIN],
  ["rediss://one", TLS],
  ["rediss+sentinel://one/main", TLS],
  ["redis://app:pass@one", LOGIN],
  ["redis+sentinel://app:pass@one/main", LOGIN],
  // Of the Redis that ./svc starts.
  ["unix:///run/redis.sock", { ...LOGIN, REDIS_TLS: true }],
])("%j goes with these parts", (address, parts) => {
  expect(redisProblems({ ...parts, REDIS_URL: address })).toEqual([]);
});

it.each(["redis://one", "redis+sentinel://one/main"])("%j with parts that say more is refused", (address) => {
  expect(redisProblems({ ...LOGIN, REDIS_TLS: true, REDIS_URL: address })).toEqual([
    "REDIS_TLS has no effect on REDIS_URL: begin its address with rediss",
    "REDIS_USERNAME has no effect beside REDIS_URL: put it into the address",
    "REDIS_PASSWORD has no effect beside REDIS_URL: put it into the address",
  ]);
});

it.each(["redis://one/0?tls=true", "unix:/run/redis.sock?db=2", "redis://one#two"])(
  "%j has parts that nothing reads",
  (address) => expect(valueProblems({ REDIS_URL: address })).toHaveLength(1),
);
