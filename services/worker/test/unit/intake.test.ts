import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { Intake, type Task } from "../../src/intake.ts";
import { Permits } from "../../src/permits.ts";

/** A store with jobs whose ends are the test's. */
function storeOf(jobs: string[]) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  let asked = 0;
  let answer = () => Promise.resolve();
  const take = async (): Promise<Task | undefined> => {
    asked++;
    const job = jobs.shift();
    await answer();
    if (job === undefined) return undefined;
    return () => {
      begun.push(job);
      return new Promise((resolve) => ends.set(job, resolve));
    };
  };
  return {
    begun,
    take,
    asked: () => asked,
    end: (job: string) => ends.get(job)?.(),
    answerLater: (later: Promise<void>) => {
      answer = () => later;
    },
  };
}

describe("an intake", () => {
  it("asks once for each job that it heard of", async () => {
    const store = storeOf(["a", "b"]);
    const intake = new Intake(new Permits(8), store.take);
    expect(store.asked()).toBe(0);
    intake.expect();
    await turn();
    expect([store.begun, store.asked()]).toEqual([["a"], 1]);
    intake.expect();
    await turn();
    expect([store.begun, store.asked()]).toEqual([["a", "b"], 2]);
  });

  it("asks until there is none when it does not know how many there are", async () => {
    const store = storeOf(["a", "b", "c"]);
    new Intake(new Permits(8), store.take).look();
    await turn();
    expect([store.begun, store.asked()]).toEqual([["a", "b", "c"], 4]);
  });

  it("takes none without a permit, and the next when one is free", async () => {
    const store = storeOf(["a", "b"]);
    const intake = new Intake(new Permits(1), store.take);
    intake.expect();
    intake.expect();
    await turn();
    expect([store.begun, store.asked()]).toEqual([["a"], 1]);
    store.end("a");
    await turn();
    expect([store.begun, store.asked()]).toEqual([["a", "b"], 2]);
    store.end("b");
    await turn();
    expect(store.asked()).toBe(2);
  });

  it("asks again for a job that it heard of while the store said that there is none", async () => {
    const jobs: string[] = [];
    const store = storeOf(jobs);
    const { promise, resolve } = Promise.withResolvers<void>();
    store.answerLater(promise);
    const intake = new Intake(new Permits(1), store.take);
    intake.look();
    jobs.push("late");
    intake.expect();
    resolve();
    await turn();
    expect(store.begun).toEqual(["late"]);
  });

  it("keeps no permit of a job that was not there, and gives each back once", async () => {
    const permits = new Permits(1);
    let release = () => {};
    const { promise, resolve } = Promise.withResolvers<void>();
    const tasks: Task[] = [
      (give) => {
        release = give;
        return promise;
      },
    ];
    const intake = new Intake(permits, async () => tasks.shift());
    intake.look();
    await turn();
    expect(permits.tryTake()).toBe(false);
    release();
    resolve();
    await turn();
    expect([permits.tryTake(), permits.tryTake()]).toEqual([true, false]);
  });

  it("that is closed waits for a job that is on its way from the store", async () => {
    const store = storeOf(["a"]);
    const { promise, resolve } = Promise.withResolvers<void>();
    store.answerLater(promise);
    const intake = new Intake(new Permits(8), store.take);
    intake.look();
    let isClosed = false;
    const closed = intake.close().then(() => {
      isClosed = true;
    });
    resolve();
    await turn();
    expect([store.begun, isClosed]).toEqual([["a"], false]);
    store.end("a");
    await closed;
  });

  it("that is closed takes no more, and waits for what is in work", async () => {
    const store = storeOf(["a", "b"]);
    const intake = new Intake(new Permits(8), store.take);
    intake.expect();
    await turn();
    let isClosed = false;
    const closed = intake.close().then(() => {
      isClosed = true;
    });
    intake.expect();
    await turn();
    expect([store.begun, isClosed]).toEqual([["a"], false]);
    store.end("a");
    await closed;
    expect(store.begun).toEqual(["a"]);
  });
});
