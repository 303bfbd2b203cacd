import { newId } from "@svc/contracts";
import { NextRoundGrants } from "@svc/worker/grants/next-round";
import { describe, expect, it } from "vitest";

function make() {
  const givenUp: string[] = [];
  const ready = new NextRoundGrants(({ requestId }) => givenUp.push(requestId));
  const put = (executionId: string, endsMs: number, nowMs = 0) => {
    const requestId = newId();
    ready.put(executionId, { grant: Promise.resolve(undefined), endsMs, requestId }, nowMs);
    return requestId;
  };
  return { ready, put, givenUp };
}

describe("the grant for the next round of a paused program", () => {
  it("is taken once, by its own execution", () => {
    const { ready, put, givenUp } = make();
    const [a, b] = [put("a", 1000), put("b", 1000)];
    expect(ready.take("b", 1000)?.requestId).toBe(b);
    expect(ready.take("b", 0)).toBeUndefined();
    expect(ready.take("a", 0)?.requestId).toBe(a);
    expect(givenUp).toEqual([]);
  });

  it("that lapses before the next round could end is given up", () => {
    const { ready, put, givenUp } = make();
    const id = put("a", 1000);
    expect(ready.take("a", 1001)).toBeUndefined();
    expect(ready.take("a", 0)).toBeUndefined();
    expect(givenUp).toEqual([id]);
  });

  it("gives way to a newer one of its execution, and to the end of its program", () => {
    const { ready, put, givenUp } = make();
    const ids = [put("a", 1000), put("a", 1000)];
    ready.drop("a");
    ready.drop("a");
    expect(givenUp).toEqual(ids);
  });

  it("is one of 1024 at most: lapsed ones go, then the oldest", () => {
    const { ready, put, givenUp } = make();
    const first = Array.from({ length: 1024 }, (_, n) => put(`${n}`, n < 2 ? 10 : 1000));
    put("new", 1000, 20);
    expect(givenUp).toEqual(first.slice(0, 2));
    put("newer", 1000, 20);
    expect(givenUp).toEqual(first.slice(0, 2));
    put("newest", 1000, 20);
    expect(givenUp).toEqual(first.slice(0, 3));
    expect(ready.take("3", 1000)?.requestId).toBe(first[3]);
  });
});
