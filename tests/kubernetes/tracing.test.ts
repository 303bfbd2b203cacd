/** The component `tracing`, in a folder as an operator has it: spans of every component reach the collector, and nothing else is opened. */
import { loadConfig } from "@svc/service-kit/config/load";
import type { Component } from "@svc/service-kit/config/types";
import { expect, it } from "vitest";
import { arrowsOf, plannedArrows } from "./support/arrows.ts";
import { livingEnvironment } from "./support/living.ts";
import { objectsOf, ownWorkloads } from "./support/objects.ts";
import { type End, policiesOf, reaches } from "./support/policies.ts";

const podOf = (namespace: string, labels = {}): End => ({ pod: { namespace, labels }, address: "10.1.2.3" });

it("every component traces, to an address that it reaches", () => {
  const objects = objectsOf("own");
  const policies = policiesOf(objects);
  for (const workload of ownWorkloads(objects)) {
    const { name, namespace } = workload.metadata;
    const config = loadConfig(name as Component, livingEnvironment(workload, objects));
    expect(config.OTEL_TRACING_ENABLED, name).toBe(true);
    const { hostname, port } = new URL(config.OTEL_EXPORTER_OTLP_ENDPOINT);
    const collector = podOf(hostname.split(".")[1] ?? "");
    const own = podOf(namespace, workload.spec.template.metadata.labels);
    expect(reaches(policies, own, collector, Number(port)), name).toBe(true);
    expect(reaches(policies, podOf(namespace), collector, Number(port)), "another pod").toBe(false);
  }
});

it("the other arrows are those of before", () => {
  const objects = objectsOf("own");
  expect(arrowsOf(objects, policiesOf(objects), "small")).toEqual(plannedArrows("small"));
});
