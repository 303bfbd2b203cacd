/**
 * deploy/compose.yaml from nothing by one command, as an operator has it: keys, programs, files, sessions and tools work; no container has
 * more rights than docs/containers.md says, and no secret that it may not hold; each can be started anew and killed under load; and
 * nothing of it is left.
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import type { PublicJob } from "@svc/contracts";
import type { Compose } from "@svc/test-kit/containers/compose";
import { Api, output, refTo } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { drive } from "@svc/test-kit/system/programmatic";
import { startContainers } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callingDuring } from "./support/calling.ts";
import { inInit, KeyApi, keyIn } from "./support/first-key.ts";
import { processOf, setOf } from "./support/processes.ts";
import { givenTo, secretsOf } from "./support/secrets.ts";

const NONE = "0000000000000000";
const READY_MS = 120_000;
/** It passes through its file alone. */
const OWN_SECRET = randomBytes(32).toString("hex");
const RUNNING = [
  "redis",
  "api",
  "worker",
  "file-server",
  "egress-gateway",
  "tool-call-server",
  "runner",
  "jaild",
];
const SERVICES = ["init", ...RUNNING];
/** jaild's is the only one with a root user. */
const USERS: Record<string, [string, string]> = {
  redis: ["10002", "10002"],
  runner: ["199999", "199999"],
  jaild: ["0", "0"],
};

let compose: Compose;
let api: KeyApi;

beforeAll(async () => {
  compose = await startContainers({
    ...OPEN_LIMITS,
    SVC_PERSIST_SESSIONS: "true",
    SVC_METRICS_TOKEN: OWN_SECRET,
  });
  const lines = await inInit(compose, "key", "add", "laptop");
  api = new KeyApi(compose.url, keyIn(lines));
  await until(async () => (await api.tryExec({ lang: "bash", code: "true" })).status === 200, READY_MS);
});

afterAll(async () => {
  expect(await compose?.stop()).toEqual([]);
});

test("the compose file has the containers that are looked at here", () => {
  expect([...compose.services].sort()).toEqual([...SERVICES].sort());
});

describe("keys", () => {
  test("nobody is served without one, and each command of keys works in the first container", async () => {
    expect((await new Api(compose.url).tryExec({ lang: "py", code: "1" })).status).toBe(401);
    const added = await inInit(compose, "key", "add", "other");
    expect(keyIn(added)).not.toBe("");
    // Some versions of podman-compose say more on the same output, before it and after it.
    const filter = /key add laptop \| (.*)\)$/m.exec(
      readFileSync(join(ROOT, "docs/containers.md"), "utf8"),
    )?.[1];
    const found = execFileSync("bash", ["-c", filter ?? ""], { input: added.join("\n"), encoding: "utf8" });
    expect(found.trim()).toBe(keyIn(added));
    expect((await inInit(compose, "key", "list")).join("\n")).toMatch(/laptop[\s\S]*other/);
  });

  test("what a command advises can be typed where the containers are", async () => {
    for (const words of [
      ["key", "add", "third"],
      ["key", "list"],
      ["key", "--help"],
      ["key", "add", "--help"],
    ])
      expect((await inInit(compose, ...words)).join("\n")).not.toContain("./svc");
    // podman-compose before 1.1 says nothing by its exit code.
    const said = await inInit(compose, "key", "revoke").catch((error: Error) => [error.message]);
    expect(said.join("\n")).toContain("See: podman-compose run --rm --no-deps -T init key revoke --help");
  });
});

describe("what callers have", () => {
  test.each([
    ["py", "print(6 * 7)"],
    ["js", "console.log(6 * 7)"],
    ["ts", "const n: number = 42; console.log(n)"],
    ["bash", "echo $((6 * 7))"],
  ])("programs in %s", async (lang, code) => {
    expect(await api.exec({ lang, code })).toMatchObject({ code: 0, stdout: "42\n" });
  });

  test("files in and out", async () => {
    const input = await api.stage("in.txt", "words");
    const answer = await api.exec({ lang: "bash", code: "tr a-z A-Z <in.txt >out.txt", files: [input] });
    expect((await api.bytes(output(answer, "out.txt"))).toString()).toBe("WORDS");
  });

  test("sessions", async () => {
    const session = { lang: "py", runtime_session_hint: "kept" };
    await api.exec({ ...session, code: "open('kept.txt', 'w').write('kept')" });
    expect(await api.exec({ ...session, code: "print(open('kept.txt').read())" })).toMatchObject({
      stdout: "kept\n",
      session_state_persisted: true,
    });
  });

  test("tools", async () => {
    const tools = { add: ({ a, b }: { a: number; b: number }) => a + b };
    const { answer, batches } = await drive(api, { code: "print(await add(a=40, b=2))" }, tools);
    expect(answer).toMatchObject({ status: "completed", stdout: "42\n" });
    expect(batches).toEqual([["add"]]);
  });

  test("limits of time and memory", async () => {
    const late = await api.exec({ lang: "py", code: "while True: pass", timeout: 1500 });
    expect(late.stderr).toContain("Time limit exceeded");
    const large = await api.exec({ lang: "py", code: "x = bytearray(4 << 30)" });
    expect(large.code).not.toBe(0);
  });
});

describe("rights", () => {
  test.each(RUNNING)("%s: its user, a root that is read only, and no way to more", (service) => {
    const { uids, gids, noNewPrivileges, seccomp, rootOptions } = processOf(compose, service);
    const [uid, gid] = USERS[service] ?? ["10001", "10001"];
    expect(new Set(uids)).toEqual(new Set([uid]));
    expect(new Set(gids)).toEqual(new Set([gid]));
    expect({ noNewPrivileges, seccomp }).toEqual({ noNewPrivileges: "1", seccomp: "2" });
    expect(rootOptions).toContain("ro");
  });

  test.each(RUNNING.filter((service) => service !== "jaild"))("%s has no capability", (service) => {
    const { effective, permitted, bounding } = processOf(compose, service);
    expect({ effective, permitted, bounding }).toEqual({ effective: NONE, permitted: NONE, bounding: NONE });
  });

  test("jaild keeps the capabilities that its page names, and has no address that reaches the others", () => {
    const { effective, permitted } = processOf(compose, "jaild");
    const kept = setOf("CHOWN", "DAC_OVERRIDE", "FOWNER");
    expect({ effective, permitted }).toEqual({ effective: kept, permitted: kept });
    const networks = (service: string) =>
      compose.podman("inspect", "--format", "{{json .NetworkSettings.Networks}}", compose.nameOf(service));
    expect(Object.keys(JSON.parse(networks("jaild")))).toEqual([`${compose.project}_jaild`]);
  });

  test("only the API has a port outside, on the loopback address", () => {
    const ports = (service: string) => compose.podman("port", compose.nameOf(service));
    for (const service of RUNNING)
      expect([service, ports(service)]).toEqual([
        service,
        service === "api" ? expect.stringMatching(/^3112\/tcp -> 127\.0\.0\.1:\d+$/) : "",
      ]);
  });

  test("each health check is green", async () => {
    for (const service of RUNNING) await expectHealthy(service);
  });
});

describe("secrets", () => {
  const given = RUNNING.filter((service) => service !== "redis");

  test("podman shows none of a container", () => {
    const secrets = Object.values(secretsOf(compose));
    expect(secrets.length).toBeGreaterThan(0);
    for (const service of RUNNING) {
      const shown = compose.podman("inspect", compose.nameOf(service));
      for (const secret of [...secrets, OWN_SECRET]) expect(shown.includes(secret), service).toBe(false);
    }
  });

  test("each file is for its own user alone, and has no more than its component may hold", () => {
    expect(given.map((service) => [service, givenTo(compose, service).owner])).toEqual(
      given.map((service) => [
        service,
        service === "runner" ? "10001:199999 640" : expect.stringMatching(/^10001:\d+ 600$/),
      ]),
    );
    const secrets = secretsOf(compose);
    const holders = (name: string) =>
      given.filter((service) => givenTo(compose, service).text.includes(secrets[name] ?? "missing"));
    expect(holders("SVC_CONTINUATION_SECRET")).toEqual(["api"]);
    // Each pair of components has a token of its own in its place.
    const names = Object.keys(secrets).filter((name) => name !== "SVC_INTERNAL_SERVICE_TOKEN");
    expect(holders("SVC_INTERNAL_SERVICE_TOKEN")).toEqual([]);
    for (const name of names) {
      expect([name, holders(name)]).not.toEqual([name, []]);
      expect(holders(name)).not.toContain("jaild");
    }
  });
});

describe("under load", () => {
  const isBack = async (service: string) => {
    await expectHealthy(service);
    await until(
      async () => (await api.send("GET", "/ready").catch(() => undefined))?.status === 200,
      READY_MS,
    );
  };
  const restarted = async (service: string) => {
    compose.podman("restart", compose.nameOf(service));
    await isBack(service);
  };
  /** podman's restart policy brings it back. */
  const killed = async (service: string) => {
    const before = compose.pid(service);
    process.kill(before, "SIGKILL");
    await until(() => ![0, before].includes(compose.pid(service)), READY_MS);
    await isBack(service);
  };

  test.each(RUNNING)(
    "%s is started anew and killed: callers are answered, jobs end, data stays",
    async (service) => {
      const session = { lang: "bash", runtime_session_hint: `restart-${service}` };
      const [file] = await api.upload({ "kept.txt": service });
      if (file === undefined) throw new Error("no file was stored");
      await api.exec({ ...session, code: `echo ${service} >kept` });
      for (const change of [restarted, killed]) {
        const { answered, wrong, jobs } = await callingDuring(api, () => change(service));
        expect(wrong).toEqual([]);
        expect(answered).toBeGreaterThan(0);
        // Redis forgets at most the last second or two, with the jobs in it (docs/capabilities.md).
        if (service !== "redis") expect(await unended(jobs)).toEqual([]);
      }
      expect((await api.bytes(refTo({ ...file, name: "kept.txt" }))).toString()).toBe(service);
      expect((await api.exec({ ...session, code: "cat kept" })).stdout).toBe(`${service}\n`);
    },
  );
});

/** Accepted jobs that did not end in a result or an error of their own. */
async function unended(jobs: readonly string[]): Promise<unknown[]> {
  const left: unknown[] = [];
  for (const id of jobs) {
    let job: PublicJob | undefined;
    await until(
      async () => {
        job = (await api.send("GET", `/jobs/${id}?wait_ms=10000`)).ok<PublicJob>();
        return job.ended_at !== undefined;
      },
      READY_MS,
      () => [id, job],
    );
    if (job?.status !== "completed" && job?.error === undefined) left.push(job);
  }
  return left;
}

async function expectHealthy(service: string): Promise<void> {
  const check = () => compose.tryPodman("healthcheck", "run", compose.nameOf(service));
  await until(
    () => check().status === 0,
    READY_MS,
    () => [service, check().stdout, compose.tryPodman("logs", "--tail", "5", compose.nameOf(service)).stderr],
  );
}
