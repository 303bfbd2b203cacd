/** The rule of streams by generated runs: whatever was read of the events, the joined texts are the answer's fields. */

import { EventEmitter } from "node:events";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { RunStream } from "@svc/api/streams/run-stream";
import { OUTPUT_STREAMS, type OutputStream, type PlacedEvent } from "@svc/contracts";
import type { EventFeed } from "@svc/job-queue";
import type { FastifyReply, FastifyRequest } from "@svc/service-kit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

type Outputs = Record<OutputStream, string>;
const SESSION = "a".repeat(21);
const STARTED: PlacedEvent = { event: "started", session_id: SESSION, language: "python", version: "3" };

interface Told {
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what its events hold
  data: any;
}

/** A stream whose feed gives these events, one list for each job that is followed. */
function streamOf(jobs: PlacedEvent[][]) {
  const waiting = [...jobs];
  const read = async function* () {
    for (const event of waiting.shift() ?? []) yield [event];
  };
  const feed = { read, forget: () => undefined } as unknown as EventFeed;
  const sent = Promise.withResolvers<Readable>();
  const reply = {
    raw: new EventEmitter(),
    headers: () => ({ send: (body: Readable) => sent.resolve(body) }),
  } as unknown as FastifyReply;
  const noLog = { error: () => undefined, debug: () => undefined, warn: () => undefined };
  const request = { id: "r", log: noLog, routeOptions: {}, url: "/" } as unknown as FastifyRequest;
  const told = async (): Promise<Told[]> =>
    (await text(await sent.promise))
      .split("\n\n")
      .filter((block) => block !== "" && block !== ":")
      .map((block) => /^event: (.*)\ndata: (.*)$/s.exec(block) ?? [])
      .map(([, event = "", data = ""]) => ({ event, data: JSON.parse(data) }));
  return { stream: new RunStream(request, reply, feed), told };
}

const joined = (events: Told[], stream: OutputStream) =>
  events.map(({ event, data }) => (event === stream ? data.text : "")).join("");

/** Events of a run that wrote this, in pieces that may be missing, be there twice, or come late. */
const piecesOf = ({ stdout, stderr }: Outputs) =>
  fc
    .array(fc.tuple(fc.constantFrom(...OUTPUT_STREAMS), fc.nat(), fc.nat({ max: 8 })), { maxLength: 12 })
    .map((cuts) =>
      cuts.map(([event, from, length]): PlacedEvent => {
        const whole = event === "stdout" ? stdout : stderr;
        const at = whole === "" ? 0 : from % whole.length;
        return { event, text: whole.slice(at, at + length), at };
      }),
    );

/** All of it in order. */
function whole({ stdout, stderr }: Outputs, size: number): PlacedEvent[] {
  const pieces = (event: OutputStream, written: string) =>
    Array.from({ length: Math.ceil(written.length / size) }, (_, part): PlacedEvent => {
      const at = part * size;
      return { event, text: written.slice(at, at + size), at };
    });
  return [...pieces("stdout", stdout), ...pieces("stderr", stderr)];
}

const written = fc.string({ unit: fc.constantFrom("a", "b", "\n", "é", "日"), maxLength: 20 });
const outputs = fc.record({ stdout: written, stderr: written });
const answerOf = (given: Outputs) => ({
  session_id: SESSION,
  language: "python",
  version: "3",
  status: null,
  wall_time: 0.001,
  ...given,
});

describe("the joined texts are the answer's fields", () => {
  it("whatever of the events is lost, is there twice, or comes in another order", async () => {
    const run = outputs.chain((each) => fc.tuple(fc.constant(each), piecesOf(each), fc.boolean()));
    await fc.assert(
      fc.asyncProperty(run, async ([given, pieces, isStarted]) => {
        const { stream, told } = streamOf([[...(isStarted ? [STARTED] : []), ...pieces]]);
        await stream.follow("job");
        await stream.end(answerOf(given));
        const events = await told();
        expect(joined(events, "stdout")).toBe(given.stdout);
        expect(joined(events, "stderr")).toBe(given.stderr);
        expect(events.filter(({ event }) => event === "started")).toHaveLength(1);
        expect([events[0]?.event, events.at(-1)?.event]).toEqual(["started", "result"]);
      }),
      { numRuns: 300 },
    );
  });

  it("when the run is repeated from its beginning and writes the same", async () => {
    await fc.assert(
      fc.asyncProperty(
        outputs,
        fc.integer({ min: 1, max: 5 }),
        fc.nat({ max: 12 }),
        async (given, size, broken) => {
          const pieces = whole(given, size);
          const { stream, told } = streamOf([[STARTED, ...pieces.slice(0, broken), STARTED, ...pieces]]);
          await stream.follow("job");
          await stream.end(answerOf(given));
          const events = await told();
          expect(joined(events, "stdout")).toBe(given.stdout);
          expect(joined(events, "stderr")).toBe(given.stderr);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("in a further round, of what is new in it: live, and when the program is run again", async () => {
    const rounds = fc.tuple(outputs, outputs, fc.integer({ min: 1, max: 5 }), fc.boolean(), fc.boolean());
    await fc.assert(
      fc.asyncProperty(rounds, async ([before, after, size, isLive, isBroken]) => {
        const all = { stdout: before.stdout + after.stdout, stderr: before.stderr + after.stderr };
        const live = [STARTED, ...whole(after, size)];
        const replay = [STARTED, ...whole(all, size)];
        const { stream, told } = streamOf(isBroken ? [live.slice(0, 3), replay] : [isLive ? live : replay]);
        stream.passOver({ stdout: before.stdout.length, stderr: before.stderr.length });
        await stream.follow("job", { goesOn: isLive || isBroken });
        if (isBroken) await stream.follow("again");
        await stream.end(answerOf(all));
        const events = await told();
        expect(joined(events, "stdout")).toBe(after.stdout);
        expect(joined(events, "stderr")).toBe(after.stderr);
        expect(events.at(-1)?.event).toBe("result");
      }),
      { numRuns: 300 },
    );
  });

  it("with notes behind the program's own text", async () => {
    const { stream, told } = streamOf([[STARTED, { event: "stderr", text: "a", at: 0 }]]);
    await stream.follow("job");
    await stream.end(answerOf({ stdout: "", stderr: "a\n[sandbox] Out of memory\n" }));
    expect(joined(await told(), "stderr")).toBe("a\n[sandbox] Out of memory\n");
  });
});

it("a repeated run that writes something else ends with an error", async () => {
  const { stream, told } = streamOf([[STARTED, { event: "stdout", text: "abc", at: 0 }]]);
  await stream.follow("job");
  await stream.end(answerOf({ stdout: "abd", stderr: "" }));
  const last = (await told()).at(-1);
  expect([last?.event, last?.data.error]).toEqual(["error", "sandbox_execution_failed"]);
});

it.each(["CE", "TO", "ML", "OL", "EL"])("what did not compile has not started: %s", async (status) => {
  const { stream, told } = streamOf([[]]);
  await stream.follow("job");
  await stream.end({ ...answerOf({ stdout: "", stderr: "no\n" }), status, wall_time: 0 });
  expect((await told()).map(({ event }) => event)).toEqual(["stderr", "result"]);
});

it("files that a run left as they were have no events", async () => {
  const { stream, told } = streamOf([[STARTED]]);
  await stream.follow("job");
  const files = [{ name: "old", inherited: true }, { name: "new" }];
  await stream.end({ ...answerOf({ stdout: "", stderr: "" }), files });
  const events = await told();
  expect(events.filter(({ event }) => event === "file").map(({ data }) => data)).toEqual([{ name: "new" }]);
});
