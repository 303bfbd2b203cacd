import { newId, type RegisteredGrant } from "@svc/contracts";
import { describe, expect, it } from "vitest";
import { KeptGrants } from "../../src/kept-grants.ts";

function make() {
  const givenUp: string[] = [];
  const kept = new KeptGrants(({ grant }) => givenUp.push(grant.grant_id));
  const keep = (executionId: string, endsMs: number, nowMs = 0) => {
    const grant = { grant_id: newId() } as RegisteredGrant;
    kept.keep(executionId, { grant, endsMs, requestId: "r" }, nowMs);
    return grant.grant_id;
  };
  return { kept, keep, givenUp };
}

describe("the grant of a paused program", () => {
  it("is taken once, by its own execution", () => {
    const { kept, keep, givenUp } = make();
    const [a, b] = [keep("a", 1000), keep("b", 1000)];
    expect(kept.take("b", 1000)?.grant.grant_id).toBe(b);
    expect(kept.take("b", 0)).toBeUndefined();
    expect(kept.take("a", 0)?.grant.grant_id).toBe(a);
    expect(givenUp).toEqual([]);
  });

  it("that lapses before the next round could end is given up", () => {
    const { kept, keep, givenUp } = make();
    const id = keep("a", 1000);
    expect(kept.take("a", 1001)).toBeUndefined();
    expect(kept.take("a", 0)).toBeUndefined();
    expect(givenUp).toEqual([id]);
  });

  it("gives way to a newer one of its execution, and to the end of its program", () => {
    const { kept, keep, givenUp } = make();
    const ids = [keep("a", 1000), keep("a", 1000)];
    kept.drop("a");
    kept.drop("a");
    expect(givenUp).toEqual(ids);
  });

  it("is one of 1024 at most: lapsed ones go, then the oldest", () => {
    const { kept, keep, givenUp } = make();
    const first = Array.from({ length: 1024 }, (_, n) => keep(`${n}`, n < 2 ? 10 : 1000));
    keep("new", 1000, 20);
    expect(givenUp).toEqual(first.slice(0, 2));
    keep("newer", 1000, 20);
    expect(givenUp).toEqual(first.slice(0, 2));
    keep("newest", 1000, 20);
    expect(givenUp).toEqual(first.slice(0, 3));
    expect(kept.take("3", 1000)?.grant.grant_id).toBe(first[3]);
  });
});
