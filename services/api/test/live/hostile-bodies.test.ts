/** Bodies that would keep the process busy, or busy waiting: they cost little, end in time, and disturb nobody else. */
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { OK } from "../support/consumer.ts";
import { FORM_TYPE } from "../support/file-api.ts";
import { type Replicas, startReplicas } from "../support/replicas.ts";

const BODY_MS = 1200;
const SEATS = 3;
const MIB = 2 ** 20;
const CANCEL = "/exec/programmatic/cancel";
const JSON_TYPE = { "content-type": "application/json" };
let made: Replicas;
const start = async (env: Record<string, string>) => {
  made = await startReplicas(1, {
    ...OPEN_LIMITS,
    UPLOAD_PART_TIMEOUT_MS: "600",
    SVC_MAX_CONCURRENT_EXECUTIONS: String(SEATS),
    ...env,
  });
  await made.consume({ work: async () => OK });
};

const post = (path: string, body: string, headers: Record<string, string> = JSON_TYPE) =>
  fetch(`${made.urls[0]}${path}`, { method: "POST", headers, body });
const refusalOf = async (answer: Response) => {
  const { error } = (await answer.clone().json()) as { error: string };
  return [answer.status, error];
};

/** Time of the processor that this process, the API in it, spends on a request. */
async function cpuMs(work: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

describe("a body that is much work for its size", () => {
  beforeAll(() => start({}));
  afterAll(() => made.stop());

  test("forms with blanks in every header are refused or read in no time", async () => {
    const blanks = " ".repeat(7000);
    const heads = [
      `Content-Disposition: form-data; name="f"\r\nX-A: b${blanks}c`,
      `Content-Disposition: form-data; name="f"; filename="a"\r\nContent-Type: a${blanks}b`,
      `Content-Disposition:${blanks}form-data${blanks.slice(900)}; name="f"`,
      `Content-Disposition: form-data;${blanks}name="f"`,
      `Content-Disposition: form-data; name="f"; filename="a${blanks}b"`,
    ];
    for (const head of heads) {
      const body = `${`--test-boundary\r\n${head}\r\n\r\nv\r\n`.repeat(24)}--test-boundary--\r\n`;
      let answer: Response | undefined;
      const ms = await cpuMs(async () => {
        answer = await post("/upload", body, { "content-type": FORM_TYPE });
      });
      expect([200, 400], head.slice(0, 80)).toContain(answer?.status);
      expect(ms, head.slice(0, 80)).toBeLessThan(700);
    }
  });

  test.each([
    ["plain", JSON_TYPE],
    ["with a key", { ...JSON_TYPE, "idempotency-key": "k" }],
  ])("four MiB of empty objects are refused unread, %s", async (_what, headers) => {
    const body = `{"lang":"py","code":"1","x":[${"{},".repeat((4 * MIB) / 3)}0]}`;
    let answer: Response | undefined;
    const ms = await cpuMs(async () => {
      answer = await post("/exec", body, headers);
    });
    expect(await refusalOf(answer as Response)).toEqual([400, "invalid_json"]);
    expect(ms).toBeLessThan(700);
  });

  test("two hundred thousand values are read, and one more is not", async () => {
    const body = (values: number) => `{"lang":"py","code":"1","x":[${"0,".repeat(values - 1)}0]}`;
    expect((await post("/exec", body(199_996))).status).toBe(200);
    expect((await post("/exec", body(199_997))).status).toBe(400);
  });
});

describe("a body of a start", () => {
  beforeAll(() => start({}));
  afterAll(() => made.stop());

  const program = (bytes: number, more = "") => {
    const frame = `{"lang":"py","code":""${more}}`;
    return `{"lang":"py","code":"${"#".repeat(bytes - frame.length)}"${more}}`;
  };

  test("has eight MiB at most on /exec", async () => {
    expect((await post("/exec", program(8 * MIB))).status).toBe(200);
    expect(await refusalOf(await post("/exec", program(8 * MIB + 1)))).toEqual([422, "request_too_large"]);
  });

  test("has eight MiB at most on /exec/programmatic, a resume may have more", async () => {
    const tools = ',"tools":[{}]';
    expect(await refusalOf(await post("/exec/programmatic", program(8 * MIB, tools)))).toEqual([
      400,
      "invalid_request",
    ]);
    const tooLarge = await post("/exec/programmatic", program(8 * MIB + 1, tools));
    expect(await refusalOf(tooLarge)).toEqual([422, "request_too_large"]);
    const results = [{ call_id: "call_001", result: "r".repeat(9 * MIB) }];
    const resume = JSON.stringify({ tool_results: results, continuation_token: "nonsense" });
    expect(await refusalOf(await post("/exec/programmatic", resume))).toEqual([
      400,
      "invalid_continuation_token",
    ]);
  });
});

test("the body of a cancel has 64 KiB at most, as nothing bounds how many are read at once", async () => {
  await start({});
  onTestFinished(() => made.stop());
  const labelled = (bytes: number) => JSON.stringify({ request_id: "r".repeat(bytes) });
  expect((await post(CANCEL, labelled(65_536 - labelled(0).length))).status).not.toBe(422);
  expect(await refusalOf(await post(CANCEL, labelled(65_536)))).toEqual([422, "request_too_large"]);
});

interface Sending {
  socket: Socket;
  answered: Promise<string>;
}

/** A request whose body is sent by hand. With `expect: 100-continue` the first answer says that it is in work. */
function send(path: string, type: string, first: string, headers = ""): Sending {
  const { port, pathname } = new URL(made.urls[0] ?? "");
  const socket = connect(Number(port), "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(
    `POST ${pathname}${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\ncontent-length: ${path === CANCEL ? 60_000 : 8_000_000}\r\n${headers}\r\n${first}`,
  );
  const answered = new Promise<string>((resolve) => {
    socket.once("data", (bytes) => resolve(String(bytes)));
    socket.once("close", () => resolve(""));
  });
  return { socket, answered };
}

const FORM_HEAD = '--test-boundary\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';
const SENT = [
  ["/exec", "application/json", '{"code":"', "invalid_request"],
  ["/exec/programmatic", "application/json", '{"code":"', "invalid_request"],
  [CANCEL, "application/json", '{"request_id":"', "invalid_request"],
  ["/upload", FORM_TYPE, FORM_HEAD, "upload_timeout"],
  ["/upload/batch", FORM_TYPE, FORM_HEAD, "upload_timeout"],
] as const;

describe("a body that comes too slowly", () => {
  beforeAll(() => start({ BODY_TIMEOUT_MS: String(BODY_MS) }));
  afterAll(() => made.stop());

  test.each(SENT)(
    "on %s is 408 after BODY_TIMEOUT_MS, though bytes keep coming",
    async (path, type, first, code) => {
      const start = performance.now();
      const { socket, answered } = send(path, type, first);
      const drip = setInterval(() => socket.write("x"), 100);
      const answer = await answered;
      clearInterval(drip);
      socket.destroy();
      expect(answer).toMatch(/^HTTP\/1\.1 408 /);
      expect(answer).toContain(`"error":"${code}"`);
      expect(performance.now() - start).toBeGreaterThanOrEqual(BODY_MS - 50);
    },
  );

  test("is given a second more for each MiB that has come", async () => {
    const { socket, answered } = send("/exec", "application/json", '{"code":"');
    socket.write("a".repeat(2 * MIB));
    expect(await Promise.race([answered, delay(BODY_MS + 1000, "still reading")])).toBe("still reading");
    expect(await answered).toMatch(/^HTTP\/1\.1 408 /);
    socket.destroy();
  });
});

describe("bodies that do not end", () => {
  beforeAll(() => start({}));
  afterAll(() => made.stop());

  test("take the seats of their caller on /exec, until they do", async () => {
    const open = Array.from({ length: SEATS }, () => send("/exec", "application/json", '{"code":"'));
    await expect.poll(async () => (await post("/exec", "{}")).status, { interval: 20 }).toBe(429);
    for (const { socket } of open) socket.destroy();
    await expect.poll(async () => (await post("/exec", "{}")).status, { interval: 20 }).toBe(400);
  });

  test("let further ones of their caller wait on /exec/programmatic, and hinder no other route", async () => {
    const open = Array.from({ length: 8 }, () =>
      send("/exec/programmatic", "application/json", '{"code":"', "expect: 100-continue\r\n"),
    );
    for (const { answered } of open) expect(await answered).toContain(" 100 ");
    let isAnswered = false;
    const waiting = post("/exec/programmatic", "{}").finally(() => {
      isAnswered = true;
    });
    expect((await post("/exec", '{"lang":"py","code":"1"}')).status).toBe(200);
    expect((await post(CANCEL, '{"request_id":"r"}')).status).toBe(200);
    expect(isAnswered).toBe(false);
    for (const { socket } of open) socket.destroy();
    expect((await waiting).status).toBe(400);
  });
});

describe("bodies that do not end, of a caller without a limit of seats", () => {
  beforeAll(() => start({ SVC_MAX_CONCURRENT_EXECUTIONS: "0", PTC_RESUME_MAX_REQUESTS: "1" }));
  afterAll(() => made.stop());

  const pending = async (answers: Promise<Response>[]) =>
    Promise.race([Promise.race(answers).then(({ status }) => status), delay(500, "waiting")]);

  test.each([
    ["/exec", 20, "/exec/programmatic"],
    ["/exec/programmatic", 8, "/exec"],
  ])("let further ones wait on %s, whatever the limit of resumes is", async (path, atOnce, other) => {
    const open = Array.from({ length: atOnce }, () =>
      send(path, "application/json", '{"code":"', "expect: 100-continue\r\n"),
    );
    for (const { answered } of open) expect(await answered).toContain(" 100 ");
    const further = Array.from({ length: 3 }, () => post(path, "{}"));
    expect(await pending(further)).toBe("waiting");
    expect((await post(other, "{}")).status).toBe(400);
    for (const { socket } of open) socket.destroy();
    expect((await Promise.all(further)).map(({ status }) => status)).toEqual([400, 400, 400]);
  });
});
