/** Network policies let through what the architecture has (packages/service-kit/src/config/calls.ts), and nothing else. */
import { describe, expect, it } from "vitest";
import { arrowsOf, plannedArrows } from "./support/arrows.ts";
import { OVERLAYS } from "./support/kubectl.ts";
import { objectsOf } from "./support/objects.ts";
import { type Policy, policiesOf, type Rule } from "./support/policies.ts";

const named = ({ metadata }: Policy) => `${metadata.namespace}/${metadata.name}`;

type Way = "ingress" | "egress";
interface Change {
  title: string;
  policies: Policy[];
}

/** Copies of all policies, one of them changed. */
function withRules(policies: readonly Policy[], at: number, way: Way, rules: Rule[]): Change {
  const copies = structuredClone([...policies]);
  const copy = copies[at] as Policy;
  copy.spec[way] = rules;
  return { title: `${way} of ${named(copy)}`, policies: copies };
}

function waysOf({ spec }: Policy): Way[] {
  return spec.policyTypes.map((type) => type.toLowerCase() as Way);
}

/** Each with one peer less, or one rule where it names no peer. */
function removals(policies: readonly Policy[]): Change[] {
  const changes: Change[] = [];
  for (const [at, policy] of policies.entries())
    for (const way of waysOf(policy))
      for (const left of withoutEach(policy.spec[way] ?? []))
        changes.push(withRules(policies, at, way, left));
  return changes;
}

function withoutEach(rules: readonly Rule[]): Rule[][] {
  return rules.flatMap((rule, at) => {
    const side = rule.from === undefined ? "to" : "from";
    const peers = rule[side] ?? [];
    // A rule without peers is one for everybody, so the last one goes with its rule.
    if (peers.length <= 1) return [rules.toSpliced(at, 1)];
    return peers.map((_, which) => rules.with(at, { ...rule, [side]: peers.toSpliced(which, 1) }));
  });
}

/** Each with one rule more, for everybody at every port. */
function additions(policies: readonly Policy[]): Change[] {
  return policies.flatMap((policy, at) =>
    waysOf(policy).map((way) => withRules(policies, at, way, [...(policy.spec[way] ?? []), {}])),
  );
}

describe.each(OVERLAYS)("the network policies of %s", (overlay) => {
  it("draw exactly the arrows of the architecture", () => {
    const objects = objectsOf(overlay);
    expect(arrowsOf(objects, policiesOf(objects), overlay)).toEqual(plannedArrows(overlay));
  });

  it("lose an arrow with each peer that is taken out", () => {
    const objects = objectsOf(overlay);
    const planned = plannedArrows(overlay);
    let tried = 0;
    for (const { title, policies } of removals(policiesOf(objects))) {
      const left = arrowsOf(objects, policies, overlay);
      expect(
        planned.filter((arrow) => !left.includes(arrow)),
        title,
      ).not.toEqual([]);
      tried += 1;
    }
    expect(tried).toBeGreaterThan(20);
  });

  it("deny what no policy allows, also to pods that nobody has planned", () => {
    const objects = objectsOf(overlay);
    const planned = plannedArrows(overlay);
    const denials = policiesOf(objects).filter(({ metadata }) => metadata.name === "default-deny");
    expect(denials.map(named)).toEqual(["svc-control/default-deny", "svc-runners/default-deny"]);
    for (const denial of denials) {
      expect(denial.spec.podSelector).toEqual({});
      const others = policiesOf(objects).filter((policy) => named(policy) !== named(denial));
      const left = arrowsOf(objects, others, overlay);
      expect(
        left.filter((arrow) => !planned.includes(arrow)),
        named(denial),
      ).not.toEqual([]);
    }
  });

  it("have an arrow too many with each door that is opened", () => {
    const objects = objectsOf(overlay);
    const planned = plannedArrows(overlay);
    const opened = additions(policiesOf(objects));
    expect(opened.length).toBeGreaterThan(15);
    for (const { title, policies } of opened) {
      const found = arrowsOf(objects, policies, overlay);
      expect(
        found.filter((arrow) => !planned.includes(arrow)),
        title,
      ).not.toEqual([]);
    }
  });
});
