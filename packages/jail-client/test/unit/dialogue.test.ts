import { describe, expect, it } from "vitest";
import { Dialogue } from "../../src/dialogue.ts";
import { type Frame, ProtocolError, u32, u64 } from "../../src/frames.ts";

const received = (tag: string, ...parts: Uint8Array[]): Frame => ({ tag, payload: Buffer.concat(parts) });
const state = (value: number) => received("q", Buffer.from([value]));
const pause = (...extra: Uint8Array[]) => received("p", ...[5, 6, 7, 8, 9].map(u64), ...extra);
const text = (tag: "1" | "2", bytes: string) => received(tag, Buffer.from(bytes));
const ended = [
  received("x", Buffer.from([0]), ...[3, 0, 0].map(u32), ...[1, 1, 1, 1, 1].map(u64), u32(0)),
  text("1", "b"),
  received("z", u32(0), u64(0)),
];

/** A dialogue with a jaild that says what `say` is given, when it is given. */
function dialogue() {
  const frames: Frame[] = [];
  let wake: (() => void) | undefined;
  const next = async () => {
    while (frames.length === 0) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return frames.shift() as Frame;
  };
  const caps = { stdout: 4, stderr: 4 };
  return {
    talk: new Dialogue(next, caps, async (error) => error),
    say: (...more: Frame[]) => {
      frames.push(...more);
      wake?.();
    },
  };
}
const nothing = () => undefined;

describe("a dialogue with jaild", () => {
  it("answers questions, keeps output across a pause, and ends with the outcome", async () => {
    const { talk, say } = dialogue();
    for (const [value, name] of [
      [0, "running"],
      [1, "waiting"],
      [2, "blocked"],
    ] as const) {
      const answer = talk.ask("q", () => say(state(value)));
      expect(await answer).toBe(name);
    }
    expect(await talk.ask("p", () => say(text("1", "a"), text("2", "e"), pause()))).toEqual({
      wallUs: 5,
      cpuUs: 6,
      memory: 7,
      stdoutTotal: 8,
      stderrTotal: 9,
      stdout: Buffer.from("a"),
      stderr: Buffer.from("e"),
    });
    expect(await talk.ask("qp", () => say(state(1)))).toBe("waiting");
    expect(await talk.ask("qp", () => say(pause()))).toMatchObject({ wallUs: 5 });
    say(...ended);
    const outcome = await talk.outcome;
    expect([outcome.end.exitCode, outcome.stdout.toString(), outcome.stderr.toString()]).toEqual([
      3,
      "ab",
      "e",
    ]);
    expect(await talk.ask("q", nothing)).toBeUndefined();
  });

  it("answers what is open when the program ends", async () => {
    for (const tag of ["q", "p"] as const) {
      const { talk, say } = dialogue();
      expect(await talk.ask(tag as "q", () => say(...ended))).toBeUndefined();
      expect((await talk.outcome).stdout.toString()).toBe("b");
    }
  });

  it("takes one question at a time", async () => {
    const { talk, say } = dialogue();
    const first = talk.ask("q", nothing);
    await expect(talk.ask("p", nothing)).rejects.toThrow("another question is open");
    say(state(1));
    expect(await first).toBe("waiting");
  });

  it.each<[string, Frame[]]>([
    ["an answer to another question", [pause()]],
    ["an unknown state", [state(3)]],
    ["a state that is too long", [received("q", Buffer.from([1, 1]))]],
    ["a frame of the listing", [received("z", u32(0), u64(0))]],
    ["more output than the cap", [text("1", "abc"), text("1", "de")]],
  ])("fails a waiting caller on %s", async (_name, frames) => {
    const { talk, say } = dialogue();
    await expect(talk.ask("q", () => say(...frames))).rejects.toBeInstanceOf(ProtocolError);
    await expect(talk.outcome).rejects.toBeInstanceOf(ProtocolError);
    await expect(talk.ask("q", nothing)).rejects.toBeInstanceOf(ProtocolError);
  });

  it("fails on a pause that says too much, and on an answer that nobody asked for", async () => {
    const long = dialogue();
    await expect(long.talk.ask("p", () => long.say(pause(u32(1))))).rejects.toBeInstanceOf(ProtocolError);
    const unasked = dialogue();
    unasked.say(state(0));
    await expect(unasked.talk.outcome).rejects.toBeInstanceOf(ProtocolError);
  });

  it("tells a waiting caller an error of jaild's", async () => {
    const { talk, say } = dialogue();
    const told = received("e", Buffer.from([4]), u32(110), Buffer.from("the run cannot be stopped"));
    await expect(talk.ask("p", () => say(told))).rejects.toMatchObject({ kind: "internal", started: true });
    await expect(talk.outcome).rejects.toMatchObject({ kind: "internal" });
  });
});
