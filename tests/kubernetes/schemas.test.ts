/** Every object is one that an API server of Kubernetes, with KEDA's resources, would take. */
import { describe, expect, it } from "vitest";
import { OVERLAYS } from "./support/kubectl.ts";
import { type KubeObject, objectsOf, type Workload } from "./support/objects.ts";
import { unknownFields, wrongValues } from "./support/schemas.ts";

const title = ({ kind, metadata }: KubeObject) => `${kind} ${metadata.namespace}/${metadata.name}`;

describe.each(OVERLAYS)("the overlay %s", (overlay) => {
  it("has values that the published schemas take", async () => {
    const problems: string[] = [];
    for (const object of objectsOf(overlay)) {
      const problem = await wrongValues(object);
      if (problem !== undefined) problems.push(`${title(object)}: ${problem}`);
    }
    expect(problems).toEqual([]);
  });

  it("has no field that Kubernetes does not know", () => {
    expect(unknownFields(objectsOf(overlay))).toBe("");
  });

  it("names each object once, each in a namespace that it makes", () => {
    const objects = objectsOf(overlay);
    expect(new Set(objects.map(title)).size).toBe(objects.length);
    const namespaces = objects
      .filter(({ kind }) => kind === "Namespace")
      .map(({ metadata }) => metadata.name);
    const used = objects.filter(({ kind }) => kind !== "Namespace").map(({ metadata }) => metadata.namespace);
    expect([...new Set(used)].sort()).toEqual(namespaces.sort());
  });
});

describe("the check itself", () => {
  const api = () => {
    const found = objectsOf("large").find(
      ({ kind, metadata }) => kind === "Deployment" && metadata.name === "api",
    );
    return structuredClone(found) as Workload;
  };

  it("refuses a value of the wrong type", async () => {
    const wrong = api();
    Object.assign(wrong.spec.template.spec, { terminationGracePeriodSeconds: "120" });
    expect(await wrongValues(wrong)).toContain("terminationGracePeriodSeconds");
  });

  it("refuses a misspelt field deep in a pod", () => {
    const wrong = api();
    Object.assign(wrong.spec.template.spec.containers[0] ?? {}, { readynessProbe: {} });
    expect(unknownFields([wrong])).toContain("readynessProbe");
  });

  it("refuses a kind that nobody publishes", async () => {
    await expect(wrongValues({ ...api(), kind: "Deploiment" })).rejects.toThrow("there is no schema");
  });

  it("refuses a KEDA object without triggers", async () => {
    const found = objectsOf("large").find(({ kind }) => kind === "ScaledObject");
    const wrong = structuredClone(found) as KubeObject & { spec: { triggers?: unknown } };
    delete wrong.spec.triggers;
    expect(await wrongValues(wrong)).toContain("triggers");
  });
});
