import { newId } from "@svc/contracts";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { Bell, News } from "../../src/news.ts";

const news = () => new News(async (executions) => executions.map(() => null), pino({ level: "silent" }));
const never = new AbortController().signal;

describe("waits", () => {
  it("are bounded, and room that is given back is used again", () => {
    const made = news();
    const execution = newId();
    const bells = Array.from({ length: 10_000 }, (_, index) => made.wait(execution, `${execution}/${index}`));
    const more = () => made.wait(newId(), "another");
    expect(more).toThrow("Too many");
    made.giveBack(bells.pop() as Bell);
    const bell = more();
    expect(more).toThrow("Too many");
    for (const each of [...bells, bell]) made.giveBack(each);
  });

  it("end with a sweep when their session is gone and nobody said so", async () => {
    const made = news();
    const execution = newId();
    const bell = made.wait(execution, `${execution}/a`);
    const began = performance.now();
    await bell.heard(30_000, never);
    await bell.heard(30_000, never);
    expect(performance.now() - began).toBeLessThan(10_000);
    made.giveBack(bell);
  });
});

describe("a result that this process has stored", () => {
  it("comes with the ring, to those who wait for it alone", async () => {
    const made = news();
    const execution = newId();
    const [a, b] = [made.wait(execution, `${execution}/a`), made.wait(execution, `${execution}/b`)];
    made.tell(`${execution}/a`, "first");
    made.tell(`${execution}/a`, "second");
    await a.heard(30_000, never);
    expect([a.text, b.text]).toEqual(["first", undefined]);
    for (const bell of [a, b]) made.giveBack(bell);
  });
});

describe("a bell", () => {
  it("that rang before anybody listened is heard once", async () => {
    const bell = new Bell("e", ["t"]);
    bell.ring();
    bell.ring();
    await bell.heard(30_000, never);
    let heard = false;
    const next = bell.heard(30_000, never).then(() => {
      heard = true;
    });
    await Promise.resolve();
    expect(heard).toBe(false);
    bell.ring();
    await next;
  });

  it("stops waiting after its time and when it is told to", async () => {
    const bell = new Bell("e", ["t"]);
    await bell.heard(1, never);
    const stop = new AbortController();
    const heard = bell.heard(30_000, stop.signal);
    stop.abort();
    await heard;
    await bell.heard(30_000, stop.signal);
  });
});
