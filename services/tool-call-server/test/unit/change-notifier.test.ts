import { newId } from "@svc/contracts";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { ChangeNotifier, type Subscription } from "../../src/change-notifier.ts";

const notifier = (revision: () => string | null = () => null) =>
  new ChangeNotifier(async (executions) => executions.map(revision), pino({ level: "silent" }));
/** Longer than two sweeps. */
const SWEEPS_MS = 2500;

describe("subscriptions", () => {
  it("are bounded, and an ended one makes room", () => {
    const made = notifier();
    const execution = newId();
    const subscriptions = Array.from({ length: 10_000 }, (_, index) =>
      made.subscribe(execution, `${execution}/${index}`),
    );
    const more = () => made.subscribe(newId(), "another");
    expect(more).toThrow("Too many");
    made.unsubscribe(subscriptions.pop() as Subscription);
    const subscription = more();
    expect(more).toThrow("Too many");
    for (const each of [...subscriptions, subscription]) made.unsubscribe(each);
  });

  it("are notified by a sweep when their exchange is gone and the message was lost", async () => {
    const made = notifier();
    const execution = newId();
    const subscription = made.subscribe(execution, `${execution}/a`);
    const began = performance.now();
    await subscription.changed.wait({ ms: 30_000 });
    await subscription.changed.wait({ ms: 30_000 });
    expect(performance.now() - began).toBeLessThan(10_000);
    made.unsubscribe(subscription);
  });
});

describe("a sweep", () => {
  it("notifies of another revision than the oldest that a subscriber has read, and of no other", async () => {
    let revision = "5";
    const made = notifier(() => revision);
    const execution = newId();
    const subscriptions = ["a", "b"].map((id) => made.subscribe(execution, `${execution}/${id}`));
    made.saw(execution, "5");
    const waits = () =>
      Promise.all(
        subscriptions.map(async ({ changed }) => {
          const began = performance.now();
          await changed.wait({ ms: SWEEPS_MS });
          return performance.now() - began < SWEEPS_MS - 100;
        }),
      );
    expect(await waits()).toEqual([false, false]);
    revision = "6";
    made.saw(execution, "6");
    expect(await waits()).toEqual([true, true]);
    expect(await waits()).toEqual([false, false]);
    for (const each of subscriptions) made.unsubscribe(each);
  });

  it("notifies a subscriber that has not told what it read", async () => {
    const made = notifier(() => "5");
    const subscription = made.subscribe(newId(), "a");
    const began = performance.now();
    await subscription.changed.wait({ ms: 30_000 });
    expect(performance.now() - began).toBeLessThan(10_000);
    made.unsubscribe(subscription);
  });
});

describe("a result that this process has stored", () => {
  it("comes with the notification, to subscriptions of its topic alone", async () => {
    const made = notifier();
    const execution = newId();
    const [a, b] = [made.subscribe(execution, `${execution}/a`), made.subscribe(execution, `${execution}/b`)];
    made.publish(`${execution}/a`, "first");
    made.publish(`${execution}/a`, "second");
    await a.changed.wait({ ms: 30_000 });
    expect([a.text, b.text]).toEqual(["first", undefined]);
    for (const subscription of [a, b]) made.unsubscribe(subscription);
  });
});
