/** The files of deploy/ for containers agree with each other, with the configuration and with docs/containers.md. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JAILD, NODE_OPTIONS } from "@svc/cli/components";
import { componentOf } from "@svc/cli/containers/health";
import { CONTAINERS, environmentOf } from "@svc/cli/containers/init";
import { MALLOC } from "@svc/cli/environment";
import { packagesFor } from "@svc/cli/install/packages";
import { ROOT, SERVICES, type Service } from "@svc/cli/instance";
import { loadSecrets, SECRET_NAMES } from "@svc/cli/secrets";
import { userOf } from "@svc/cli/users";
import { CALLS, LISTENS, type Placed } from "@svc/service-kit/config/calls";
import { HOLDERS } from "@svc/service-kit/config/holders";
import { loadConfig } from "@svc/service-kit/config/load";
import { VARIABLES } from "@svc/service-kit/config/variables";
import { expect, test } from "vitest";
import { parse } from "yaml";

const read = (name: string) => readFileSync(join(ROOT, name), "utf8");

interface Container {
  image: string;
  stop_grace_period?: string;
  command?: string[];
  cap_drop?: string[];
  cap_add?: string[];
  read_only?: boolean;
  security_opt: string[];
  user?: string;
  privileged?: boolean;
  env_file?: string[];
  environment?: Record<string, string>;
  networks?: string[];
  volumes?: string[];
}

const compose = parse(read("deploy/compose.yaml"), { merge: true }) as {
  services: Record<string, Container>;
  networks: Record<string, unknown>;
};
const containerfile = read("deploy/images/Containerfile");
const services = Object.entries(compose.services);

test("there is a container for each component, for jaild, for Redis and for the first step", () => {
  expect(Object.keys(compose.services).sort()).toEqual([...CONTAINERS, "init", "redis"].sort());
  for (const name of CONTAINERS) expect(compose.services[name]?.command).toEqual([name]);
});

test("images are targets of the build, of this version", () => {
  const { version } = JSON.parse(read("package.json")) as { version: string };
  const targets = [...containerfile.matchAll(/^FROM \S+ AS (svc\S*)$/gm)].map(([, target]) => target);
  expect([...new Set(services.map(([, { image }]) => image))].sort()).toEqual(
    targets.map((target) => `localhost/${target}:${version}`).sort(),
  );
  for (const target of targets)
    expect(read("deploy/images/build")).toMatch(new RegExp(`^for target in .*\\b${target}\\b`, "m"));
});

test("the page's packages are those that the build asks for", () => {
  const [line = ""] = /^apt-get install .*$/m.exec(read("docs/containers.md")) ?? [];
  const built = packagesFor("run").filter(({ why }) => /build|unpack/.test(why));
  expect(line.split(" ")).toEqual(
    expect.arrayContaining(["mmdebstrap", "buildah", ...built.map(({ name }) => name)]),
  );
});

test("an image's list of contents has what package-lock.json installs on this machine, without tools of development", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-sbom-"));
  try {
    const status = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.41-12\n";
    for (const name of ["svc", "redis"]) writeFileSync(join(folder, `${name}.status`), status);
    writeFileSync(join(folder, "root-image.packages"), "python3 3.13.5-1 amd64 00\n");
    copyFileSync(join(ROOT, "package-lock.json"), join(folder, "package-lock.json"));
    execFileSync(process.execPath, [join(ROOT, "deploy/images/sbom.ts"), folder]);
    const { components } = JSON.parse(readFileSync(join(folder, "svc-runner.cdx.json"), "utf8")) as {
      components: { name: string; hashes?: unknown[] }[];
    };
    const named = (name: string) => components.find((part) => part.name === name);
    for (const name of ["libc6", "python3"]) expect(named(name)).toBeDefined();
    for (const name of ["fastify", "esbuild", `node-linux-${process.arch}`])
      expect(named(name)?.hashes).toHaveLength(1);
    const foreign = process.arch === "x64" ? "arm64" : "x64";
    for (const name of ["vitest", "typescript", "@svc/api", `node-linux-${foreign}`])
      expect(named(name)).toBeUndefined();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each(services)(
  "%s has no capability but those that the page names, and a read-only root",
  (name, service) => {
    expect(service.cap_drop).toEqual(["ALL"]);
    expect(service.read_only).toBe(true);
    expect(service.privileged).toBeUndefined();
    expect(service.security_opt).toContain("no-new-privileges");
    if (name === "jaild") return;
    expect(service.cap_add).toBeUndefined();
    expect(service.security_opt).toEqual(["no-new-privileges"]);
    expect(service.user ?? "").not.toMatch(/^0|root/);
  },
);

test("the page has each privilege of jaild with its reason, and no other", () => {
  const [, table = ""] = read("docs/containers.md").split("## Privileges");
  const rows = [...table.matchAll(/^\| `([^`]+)` \| \S.+ \|$/gm)].map(([, privilege]) => privilege);
  const { cap_add = [], security_opt = [] } = compose.services.jaild ?? {};
  const extra = security_opt.filter((option) => option !== "no-new-privileges");
  expect(rows.sort()).toEqual([...cap_add, ...extra, "/sys/fs/cgroup"].sort());
});

test.each(services)("every variable of %s is documented, and none is a secret", (_, { environment = {} }) => {
  for (const name of Object.keys(environment)) {
    expect(VARIABLES).toHaveProperty(name);
    expect(SECRET_NAMES).not.toContain(name);
  }
});

test("a container has the time to finish its work and 10 s until it is killed, as the page says", () => {
  const seconds = VARIABLES.SHUTDOWN_GRACE_MS.fallback / 1000 + 10;
  for (const [name, service] of services) expect(service.stop_grace_period, name).toBe(`${seconds}s`);
  expect(read("docs/containers.md")).toContain(`\`stop_grace_period\` (${seconds} s)`);
});

test("only the first step reads the settings; each other container sees its own file alone", () => {
  expect(services.filter(([, { env_file }]) => env_file !== undefined).map(([name]) => name)).toEqual([
    "init",
  ]);
  for (const name of CONTAINERS) {
    const secrets = compose.services[name]?.volumes?.filter((volume) => volume.startsWith("secrets-"));
    expect(secrets).toEqual([`secrets-${name}:/run/secrets/svc:ro`]);
    expect(compose.services.init?.volumes).toContain(`secrets-${name}:/secrets/${name}`);
  }
});

test("jaild and the first step reach nobody, and Redis is out of the runner's reach", () => {
  const networks = (name: string) => compose.services[name]?.networks ?? [];
  for (const name of ["init", "jaild"]) {
    const sharing = services.filter(([, service]) => service.networks?.includes(name));
    expect(networks(name)).toEqual([name]);
    expect(sharing.map(([other]) => other)).toEqual([name]);
    expect(compose.networks[name]).toEqual({ internal: true });
  }
  expect(networks("runner").filter((network) => networks("redis").includes(network))).toEqual([]);
});

test("each call of the architecture leads to the container that is meant, in a network that both have", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-test-containers-"));
  const secrets = loadSecrets(folder);
  rmSync(folder, { recursive: true });
  for (const { from, to, by } of CALLS) {
    const caller = compose.services[from];
    // Objects are on a volume of the file server.
    if (by === undefined || to === "objects") continue;
    const given = Object.fromEntries(environmentOf(from as Service, { ...secrets }));
    const config = loadConfig(from as Service, { ...given, ...caller?.environment });
    const port = to === "redis" ? config.REDIS_PORT : VARIABLES[LISTENS[to as Placed].port].fallback;
    const address = to === "redis" ? `${config.REDIS_HOST}:${config.REDIS_PORT}` : String(config[by]);
    expect(address, `${from} ${by}`).toMatch(new RegExp(`^(http://)?${to}:${port}$`));
    const shared = compose.services[to]?.networks?.filter((network) => caller?.networks?.includes(network));
    expect(shared, `${from} ${by}`).not.toEqual([]);
  }
});

test("the image is built for the users and with the settings that ./svc up has", () => {
  for (const [name, value] of Object.entries(MALLOC)) expect(containerfile).toContain(`${name}=${value}`);
  expect(read("deploy/images/svc-component")).toContain(`"$node" ${NODE_OPTIONS.join(" ")} `);
  const bases = {
    jobUidBase: VARIABLES.SANDBOX_JOB_UID_BASE.fallback,
    jobGidBase: VARIABLES.SANDBOX_JOB_GID_BASE.fallback,
  };
  const { uid, gid } = userOf("runner", bases as Parameters<typeof userOf>[1]);
  expect(containerfile).toContain(`USER ${uid}:${gid}`);
  expect(containerfile).toContain(`build.ts 10001 ${uid} `);
});

test("a component is given what it may hold", () => {
  const all = Object.fromEntries(Object.keys(HOLDERS).map((name) => [name, "x"]));
  const given = (name: (typeof CONTAINERS)[number]) => [
    ...environmentOf(name, { ...all, PTC_MODE: "live" }).keys(),
  ];
  for (const service of SERVICES) {
    const held = Object.entries(HOLDERS).filter(([, holders]) => holders.includes(service));
    expect(given(service).sort()).toEqual([...held.map(([name]) => name), "PTC_MODE"].sort());
  }
  expect(given("jaild")).toEqual(["PTC_MODE"]);
});

test("the data folder of the first step stays its own, and names that no shell takes are refused", () => {
  expect(environmentOf("api", { SVC_DATA_DIR: "/secrets/init" }).size).toBe(0);
  expect(() => environmentOf("api", { "SVC_A[$(id)]": "x" })).toThrow("is no name of a setting");
});

test("a container's component is known by its first process", () => {
  for (const service of SERVICES) expect(componentOf(["node", `/opt/${service}.mjs`, ""])).toBe(service);
  expect(componentOf([JAILD, "--root", "/x"])).toBe("jaild");
  expect(componentOf(["node", "/opt/containers.mjs", "health"])).toBeUndefined();
});
