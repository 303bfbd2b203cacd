import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ServiceError } from "@svc/contracts";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { thrown } from "@svc/test-kit/thrown";
import { ReplyError } from "ioredis";
import { expect, it } from "vitest";
import { z } from "zod";
import { createHttpServer, createLog, innerErrorOf, loadConfig } from "../../src/index.ts";
import { errorText, framesOf } from "../../src/logged-error.ts";

const NAME = "salaries of acme.csv";
const config = loadConfig("file-server", {
  SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
  LOG_LEVEL: "debug",
});

/** What a component's log holds after this. */
async function linesOf(write: (log: ReturnType<typeof createLog>) => unknown): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "svc-log-"));
  const file = openSync(join(folder, "log"), "w");
  try {
    await write(createLog("file-server", config, file));
    return readFileSync(join(folder, "log"), "utf8");
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
}

const refusedByRedis = () =>
  Object.assign(new (ReplyError as new (text: string) => Error)("OOM command not allowed"), {
    command: { name: "evalsha", args: ["svc:session:acme:jane", NAME] },
  });

const input = () =>
  new ServiceError("input_unavailable", `The input ${JSON.stringify(NAME)} is missing or damaged.`, {
    details: [{ path: "files[0].name", problem: `${JSON.stringify(NAME)} is missing` }],
    cause: innerErrorOf(404, { error: "file_not_found", message: `There is no ${NAME}.` }),
  });

const CALLERS: Record<string, () => unknown> = {
  "a refusal of Redis": refusedByRedis,
  "an error that names an input": input,
  "one that was caused by it": () => new Error("a run failed", { cause: input() }),
  "a system error": () => readFile(`/no/${NAME}`).catch((error: unknown) => error),
  "a text that is no JSON": () => thrown(SyntaxError, () => JSON.parse(`${NAME}: "`)),
  "a wrong value": () => thrown(z.ZodError, () => z.strictObject({}).parse({ [NAME]: 1 })),
  "an unknown command": () =>
    new Error(`ERR unknown command 'x', with args beginning with: '${NAME}' 'it's'`),
};

it.each(Object.entries(CALLERS))("no word of a caller is in the line of %s", async (_, make) => {
  const err = await make();
  const text = await linesOf((log) => log.warn({ err }, "something failed"));
  expect(text).toMatch(/"err":\{"type":"\w+"/);
  expect(text).not.toMatch(/salaries|acme|jane/);
  expect(errorText(err)).not.toMatch(/salaries|acme/);
});

it("an operator finds kind, code, message and place, of its causes too", async () => {
  const away = Object.assign(new Error("connect ECONNREFUSED 10.0.0.7:6379"), { code: "ECONNREFUSED" });
  const err = new ServiceError("store_unavailable", undefined, { cause: away });
  const { err: told } = JSON.parse(await linesOf((log) => log.warn({ err }, "something failed")));
  expect(told).toMatchObject({
    type: "ServiceError",
    code: "store_unavailable",
    status: 503,
    message: "The state store is away or full.",
    stack: expect.stringContaining("logged-error.test.ts"),
    cause: { code: "ECONNREFUSED", message: "connect ECONNREFUSED 10.0.0.7:6379" },
  });
  expect(errorText(new Error("the guest's clock is off by 7 ms"))).toBe("the guest's clock is off by 7 ms");
  expect(errorText(await readFile("/no/such").catch((error: unknown) => error))).toBe(
    "ENOENT: no such file or directory, open …",
  );
});

it("a message that looks like a frame is not one", () => {
  expect(framesOf(new Error(`no\n    at ${NAME}`))).not.toContain(NAME);
});

it("the line of a request that failed has the fixed words of its code", async () => {
  const text = await linesOf(async (log) => {
    const lifecycle = { state: "running" } as const;
    const app = createHttpServer({ log, lifecycle, bodyLimit: 1024, alwaysOn: [] });
    app.get("/fails", async () => {
      throw input();
    });
    const answer = await app.inject({ url: "/fails" });
    expect(answer.json().message).toContain(NAME);
    await app.close();
  });
  expect(text).toContain('"msg":"An input file is missing or damaged."');
  expect(text).toContain("inner answer 404: file_not_found");
  expect(text).not.toContain("salaries");
});
