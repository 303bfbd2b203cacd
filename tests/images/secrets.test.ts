/** That no secret is in an image or in what podman shows of a container, and who may read those that containers are given. */
import { type Compose, startCompose } from "@svc/test-kit/containers/compose";
import { afterAll, beforeAll, expect, test } from "vitest";
import { givenTo, secretsOf, suspiciousFiles } from "./support/secrets.ts";

const GIVEN = ["api", "worker", "file-server", "egress-gateway", "tool-call-server", "runner", "jaild"];
/** It passes through its file alone. */
const OWN_SECRET = "a-secret-of-an-operator-7f3c1b";

let compose: Compose;

beforeAll(async () => {
  compose = await startCompose({ SVC_METRICS_TOKEN: OWN_SECRET });
});

afterAll(async () => {
  expect(await compose?.stop()).toEqual([]);
});

const images = () =>
  [...new Set(compose.services.map((service) => imageOf(service)))].filter((image) => image !== "");
const imageOf = (service: string) =>
  compose.podman("inspect", "--format", "{{.ImageName}}", compose.nameOf(service));

test("images hold no keys, and their history names no secret", () => {
  expect(images().length).toBe(3);
  for (const image of images()) {
    expect([image, suspiciousFiles(compose, image)]).toEqual([image, []]);
    const history = compose.podman("history", "--no-trunc", "--format", "{{.CreatedBy}}", image);
    const config = compose.podman("image", "inspect", "--format", "{{json .Config}}", image);
    expect(`${history}${config}`).not.toMatch(/SECRET|TOKEN|PRIVATE_KEY|PASSWORD/);
    // What a later layer removed would still be there.
    expect(history).not.toMatch(/\brm /);
  }
});

test("podman shows no secret of a container", () => {
  const secrets = Object.values(secretsOf(compose));
  expect(secrets.length).toBe(4);
  for (const service of compose.services.filter((name) => name !== "init")) {
    const shown = compose.podman("inspect", compose.nameOf(service));
    for (const secret of [...secrets, OWN_SECRET]) expect(shown.includes(secret), service).toBe(false);
  }
});

test("each container's file is for its own user alone, and has no more secrets than its component may hold", () => {
  const secrets = secretsOf(compose);
  const holders = (name: string) =>
    GIVEN.filter((service) => givenTo(compose, service).text.includes(secrets[name] ?? "missing"));
  expect(GIVEN.map((service) => [service, givenTo(compose, service).owner])).toEqual(
    GIVEN.map((service) => [
      service,
      service === "runner" ? "10001:199999 640" : expect.stringMatching(/^10001:\d+ 600$/),
    ]),
  );
  expect(holders("SVC_CONTINUATION_SECRET")).toEqual(["api"]);
  for (const name of Object.keys(secrets)) {
    expect([name, holders(name)]).not.toEqual([name, []]);
    expect(holders(name)).not.toContain("jaild");
  }
});
