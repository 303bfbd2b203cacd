/** Callers who leave, stall or send too much: at every moment of a request, and on every slot at once. */
import { createConnection, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ExecResponse } from "@svc/contracts";
import { slow, times } from "@svc/test-kit/jail/slowness";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import { describe, expect, test } from "vitest";
import { besiege } from "../support/hostile.ts";
import { attacker, running, system } from "../support/running.ts";

const GONE_MS = slow(5000);
const APPEAR_MS = slow(20_000);
/** Moments of a request at which its caller leaves. */
const MOMENTS = times(40);
const { hostname, port, pathname } = new URL(running.url);

/** A connection to the API; nothing was sent over it. */
async function connected(): Promise<Socket> {
  const socket = createConnection(Number(port), hostname);
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("connect", resolve));
  return socket;
}

const request = (body: string, more = "") =>
  `POST ${pathname}/exec HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${more}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

/** Everything that comes back until the other side closes, or until the time is over. */
function answerOf(socket: Socket, withinMs: number): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    const end = () => resolve(text);
    socket.once("close", end);
    setTimeout(end, withinMs).unref();
  });
}

describe("a caller who leaves", () => {
  test("at every moment of a request with inputs and outputs leaves nothing behind", async () => {
    const inputs = await Promise.all(
      [1, 2, 3, 4].map((n) => attacker.stage(`in-${n}.bin`, "x".repeat(1_000_000))),
    );
    const code =
      "cat in-*.bin | sha256sum; sleep 0.05; for n in $(seq 20); do head -c 200000 /dev/urandom > out-$n.bin; done";
    const whole = await attacker.exec({ lang: "bash", code, files: inputs });
    expect(whole.files).toHaveLength(24);
    const usual = whole.timings.setup_ms + whole.timings.run_ms + whole.timings.collect_ms;
    let left = 0;
    await besiege(async () => {
      for (let moment = 0; moment < MOMENTS; moment++) {
        const caller = new AbortController();
        const call = attacker.exec({ lang: "bash", code, files: inputs }, { signal: caller.signal });
        const settled = call.then(
          () => undefined,
          () => left++,
        );
        await sleep((1.5 * usual * moment) / MOMENTS);
        caller.abort();
        await settled;
      }
    });
    expect(left).toBeGreaterThan(MOMENTS / 4);
  });

  test.each([
    ["before a byte", ""],
    ["within the request line", "POST /v1/ex"],
    ["within the headers", `POST ${pathname}/exec HTTP/1.1\r\nhost: localhost\r\ncontent-le`],
    ["within the body", request(JSON.stringify({ lang: "bash", code: "sleep 60" })).slice(0, -10)],
    [
      "within a piece of a body without length",
      `POST ${pathname}/exec HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n100\r\n{"lang"`,
    ],
  ])("%s, by end and by reset, many times", async (_moment, bytes) => {
    await besiege(async () => {
      for (let n = 0; n < 40; n++) {
        const socket = await connected();
        socket.write(bytes);
        if (n % 2 === 0) socket.end();
        else socket.resetAndDestroy();
        socket.destroy();
      }
      await sleep(100);
    });
    expect(await activeExecutions(system, "running")).toBe(0);
  });

  test("while its program runs, by half a close, a reset and in the middle of a stream of requests", async () => {
    for (const leave of [(s: Socket) => s.destroy(), (s: Socket) => s.resetAndDestroy()]) {
      const marker = newMarker();
      await besiege(async () => {
        const socket = await connected();
        const body = JSON.stringify({
          lang: "bash",
          code: "setsid sleep 60 & bash -c 'sleep 60' $1 & wait",
          args: [marker],
        });
        socket.write(request(body) + request(body));
        await until(() => processesWith(marker).length > 0, APPEAR_MS);
        leave(socket);
        await until(() => processesWith(marker).length === 0, GONE_MS);
      });
    }
  });
});

describe("a caller who stalls", () => {
  test("two hundred connections that send a byte now and then hold nobody up, and are ended", async () => {
    const sockets = await besiege(async () => {
      const all = await Promise.all(Array.from({ length: 200 }, connected));
      for (const letter of request("{}").slice(0, 30)) {
        for (const socket of all) if (socket.writable) socket.write(letter);
        await sleep(20);
      }
      for (const socket of all) socket.destroy();
      return all;
    });
    expect(sockets).toHaveLength(200);
  });

  test("who does not read its answer holds no slot", async () => {
    const code = "head -c 60000 /dev/zero | tr '\\0' x; head -c 60000 /dev/zero | tr '\\0' y >&2";
    const body = JSON.stringify({ lang: "bash", code });
    await besiege(async () => {
      const sockets = await Promise.all(Array.from({ length: 20 }, connected));
      for (const socket of sockets) {
        socket.pause();
        socket.write(request(body));
      }
      await until(async () => (await activeExecutions(system, "running")) > 0, APPEAR_MS);
      await until(async () => (await activeExecutions(system, "running")) === 0, APPEAR_MS);
      for (const socket of sockets) socket.destroy();
    });
  });

  test("who sends a second request at once has two answers, in order", async () => {
    const socket = await connected();
    const [slow, fast] = ["sleep 0.3; echo one", "echo two"].map((code) =>
      JSON.stringify({ lang: "bash", code }),
    );
    socket.write(request(slow ?? "") + request(fast ?? "", "connection: close\r\n"));
    const text = await answerOf(socket, APPEAR_MS);
    expect([...text.matchAll(/"stdout":"(\w+)/g)].map(([, word]) => word)).toEqual(["one", "two"]);
  });

  test.each([
    ["two lengths", "content-length: 5\r\ncontent-length: 6\r\n"],
    ["a length and pieces", "content-length: 5\r\ntransfer-encoding: chunked\r\n"],
    ["a length that is no number", "content-length: 0x10\r\n"],
    ["a negative length", "content-length: -1\r\n"],
    ["an unknown way of transfer", "transfer-encoding: gzip\r\n"],
    ["a header without a name", ": x\r\n"],
    ["a header with a NUL", "x: a\0b\r\n"],
    ["headers without end", `${"x: y\r\n".repeat(20_000)}`],
  ])("whose request has %s is refused, and its connection closed", async (_name, headers) => {
    const socket = await connected();
    socket.write(
      `POST ${pathname}/exec HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${headers}\r\n{"lang":"bash","code":"true"}`,
    );
    const text = await answerOf(socket, 10_000);
    socket.destroy();
    expect(text).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(text).not.toMatch(/ 200 |session_id/);
  });
});

describe("more requests than there are slots", () => {
  test("wait their turn: all are answered, in time, and the slots are free again", async () => {
    const programs = Array.from({ length: 36 }, (_, n) => ({ lang: n % 3 === 0 ? "bash" : "py", n }));
    const answers = await besiege(() =>
      Promise.all(
        programs.map(({ lang, n }) =>
          attacker.exec({
            lang,
            code: lang === "bash" ? `sleep 0.2; echo ${n}` : `import time\ntime.sleep(0.2)\nprint(${n})`,
          }),
        ),
      ),
    );
    expect(answers.map(({ stdout }) => stdout)).toEqual(programs.map(({ n }) => `${n}\n`));
  });

  test("of programs that never end, all end at their limit, those that waited too", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        attacker.exec({ lang: "py", code: "import time\ntime.sleep(60)", run_timeout: 700 }),
      ),
    );
    for (const answer of answers) expect(answer).toMatchObject({ status: "TO" });
    const after = await besiege(() => attacker.exec({ lang: "py", code: "print('next')" }));
    expect(after.stdout).toBe("next\n");
  });

  test("whose callers all leave at once: none of them starts any more", async () => {
    const marker = newMarker();
    const caller = new AbortController();
    const calls = Array.from({ length: 40 }, () =>
      attacker.exec(
        { lang: "py", code: "import time\ntime.sleep(60)", args: [marker] },
        { signal: caller.signal },
      ),
    );
    for (const call of calls) call.catch(() => undefined);
    await until(() => processesWith(marker).length > 0, APPEAR_MS);
    caller.abort();
    await until(() => processesWith(marker).length === 0, GONE_MS);
    expect((await Promise.allSettled(calls)).every(({ status }) => status === "rejected")).toBe(true);
    const after: ExecResponse = await besiege(() => attacker.exec({ lang: "py", code: "print('next')" }));
    expect(after.stdout).toBe("next\n");
    expect(processesWith(marker)).toEqual([]);
  });
});
