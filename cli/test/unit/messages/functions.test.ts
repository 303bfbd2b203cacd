/** What functions of ./svc tell of a state that a test cannot bring about on every machine: cli/messages. `-u` renews them. */
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { capacityOf, fitted } from "@svc/cli/capacity";
import { jaildCommand, rootImage } from "@svc/cli/components";
import { adviceFor } from "@svc/cli/credentials/advice";
import { keyPairOf } from "@svc/cli/credentials/key-pair";
import { lendApiKeys } from "@svc/cli/credentials/lend";
import { apiKeysPath } from "@svc/cli/credentials/place";
import { groupLimits, guestLimits, procEntries, userFinding } from "@svc/cli/doctor/copy";
import type { Finding } from "@svc/cli/doctor/finding";
import * as host from "@svc/cli/doctor/host";
import { packagesFinding } from "@svc/cli/doctor/image";
import { jailFinding } from "@svc/cli/doctor/jail";
import { runtimeNames } from "@svc/cli/install/image";
import { type Instance, resolveInstance } from "@svc/cli/instance";
import { httpAnswers, redisAnswers, socketExists } from "@svc/cli/probes";
import { waitReady } from "@svc/cli/readiness";
import { settingsWarnings } from "@svc/cli/settings/check";
import { parseSettings } from "@svc/cli/settings/file";
import { readSettings } from "@svc/cli/settings/sources";
import { componentIn, requestRestart, serveControl } from "@svc/cli/supervisor/control";
import { demandFreePorts, makeFolders } from "@svc/cli/supervisor/ground";
import { holdSocket } from "@svc/cli/supervisor/held-socket";
import { restartPlan } from "@svc/cli/supervisor/rolling";
import { demandWritable, makeFolder } from "@svc/cli/system/folders";
import { mustRun } from "@svc/cli/system/run";
import { problemOf } from "@svc/cli/unexpected";
import { Transcript } from "@svc/test-kit/messages/transcript";
import { afterEach, beforeEach, it, vi } from "vitest";

let folder: string;
let instance: Instance;
let told: Transcript;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-messages-")));
  instance = resolveInstance({ "data-dir": folder }, {});
  told = new Transcript({ [folder]: "DATA" });
});
afterEach(() => rmSync(folder, { recursive: true }));

const GIB = 2 ** 30;
const shown = ({ grade, subject, note, fix }: Finding) =>
  `${grade}  ${subject}: ${note}${fix === undefined ? "" : `\nfix: ${fix}`}`;
const finding = (when: string, work: () => Finding) => told.add(when, () => shown(work()));

it("system calls", async () => {
  const codes = [
    "EACCES EPERM ENOENT ENOTDIR EEXIST EISDIR ELOOP ENAMETOOLONG ENOSPC EDQUOT EROFS EIO",
    "EMFILE ENFILE ENOMEM EAGAIN",
  ].flatMap((line) => line.split(" "));
  for (const code of codes) {
    await told.add(code, () => {
      throw problemOf(Object.assign(new Error(code), { code, syscall: "open", path: "/a/file" }));
    });
  }
  for (const code of ["EADDRINUSE", "EADDRNOTAVAIL"]) {
    const place = { code, syscall: "listen", address: "127.0.0.1", port: 3112 };
    await told.add(code, () => {
      throw problemOf(Object.assign(new Error(code), place));
    });
  }
  await told.expectAs("system-calls");
});

it("bugs", async () => {
  const details = /svc-error-\w+/g;
  vi.stubEnv("TMPDIR", folder);
  for (const thrown of [new TypeError("x is not a function"), undefined]) {
    await told.add(`a bug throws ${thrown}`, () => {
      const { message, advice = "" } = problemOf(thrown);
      return `error: ${message}\n${advice.replaceAll(details, "svc-error-X").replaceAll(tmpdir(), "TMP")}`;
    });
  }
  vi.stubEnv("TMPDIR", join(folder, "missing"));
  await told.add("a bug, and no folder for its details", () => {
    throw problemOf(new Error("x"));
  });
  vi.unstubAllEnvs();
  await told.expectAs("bugs");
});

it("doctor: the host", async () => {
  await finding("room for jails", () => host.namespaceCounts(() => "100000", 40));
  await finding("no room for jails", () => host.namespaceCounts(() => "3", 40));
  await finding("a profile of AppArmor", () => host.appArmor("1", "docker-default (enforce)"));
  await finding("a restriction of AppArmor", () => host.appArmor("1", "unconfined"));
  await finding("no AppArmor", () => host.appArmor(undefined, undefined));
  const files = (most: string) => () =>
    host.openFiles(`Max open files            1024        ${most}         files`, {
      needed: 1024,
      processFiles: 2048,
    });
  for (const most of ["256", "1500", "unlimited"]) await finding(`open files: ${most}`, files(most));
  await finding("processes", () => host.processNumbers("4194304", "100000", 1000));
  await finding("few processes", () => host.processNumbers("1000", "100000", 1000));
  const proc = (options: string) => () =>
    host.procMount(`1 2 0:3 / /proc rw shared:4 - proc proc ${options}`);
  await finding("no /proc", () => host.procMount(""));
  for (const options of ["rw", "rw,hidepid=invisible", "rw,subset=pid"])
    await finding(options, proc(options));
  const at = Date.UTC(2026, 10, 25);
  const clock = (reading: Partial<host.ClockReading>) => () =>
    host.clock({ beforeMs: at, fileMs: at, tookMs: 20, afterMs: at + 20, ...reading });
  await finding("a clock", clock({}));
  await finding("a clock of 1970", clock({ afterMs: 0 }));
  await finding("a clock that jumps", clock({ afterMs: at + 5000 }));
  await finding("files of another clock", clock({ fileMs: at - 1000 }));
  await finding("files of a wrong clock", clock({ fileMs: at - 100_000 }));
  await finding("files of all runs", () => host.fileNumbers("100", 1000));
  await finding("core dumps", () => host.corePattern("|/usr/bin/handler %p"));
  await finding("a processor that shares", () => host.speculation("1", { mds: "Vulnerable" }));
  await finding("a full disk", () => host.disk(0, true));
  await finding("no inodes", () => host.inodes({ total: 10, free: 0 }, true));
  await finding("inodes without a limit", () => host.inodes({ total: 0, free: 0 }, true));
  await finding("no memory", () => host.memory(0));
  await told.expectAs("doctor-host");
});

it("doctor: the copy", async () => {
  await finding("components as root", () => userFinding({ unprivileged: false }));
  await finding("components as users", () => userFinding({ unprivileged: true }));
  await finding("limits", () => groupLimits({ memory: "1000000", pids: "5000" }));
  await finding("no limits", () => groupLimits({ memory: "max" }));
  await finding("limits of microVMs", () => guestLimits([{ memory: "1000000", pids: "200" }]));
  await finding("no limits of a microVM", () => guestLimits([{ memory: "max" }]));
  await finding("no microVM", () => guestLimits([]));
  await finding("/proc as before", () => procEntries(["stat"], ["stat"]));
  await finding("/proc with more", () => procEntries(["stat"], ["stat", "new"]));
  await finding("an image of the manifest", () => packagesFinding("a 1 all x", "a 1 all x"));
  await finding("an image of other packages", () => packagesFinding("a 2 all y", "a 1 all x"));
  await finding("an image without a list", () => packagesFinding("", ""));
  await finding("a feature of jails", () => jailFinding("ok namespaces user mnt"));
  await finding("a feature that is weaker", () => jailFinding("warn seccomp no notifications"));
  await finding("a feature that is missing", () => jailFinding("fail mounts"));
  await told.expectAs("doctor-copy");
});

it("sizes", async () => {
  const machine = (memoryBytes: number) => ({ cores: 4, memoryBytes });
  const fit =
    (bytes: number, settings: Record<string, string> = {}) =>
    () =>
      fitted(capacityOf(machine(bytes), settings, [{ language: "python" }]));
  await told.add("fewer than the processors allow", () => fit(4 * GIB)().notice);
  await told.add("more than fits was asked for", fit(4 * GIB, { SANDBOX_MAX_CONCURRENT_JOBS: "50" }));
  await told.add("not even one fits", fit(GIB));
  await told.add("a language that nobody knows", () => runtimeNames("go,cobol"));
  const image = join(folder, "image");
  mkdirSync(join(image, "rootfs"), { recursive: true });
  const runtimes = [{ env: {}, zygotes: [{ name: "python", script: "/warm.py", argv: ["python3"] }] }];
  writeFileSync(join(image, "runtimes.json"), JSON.stringify({ runtimes }));
  const caller = { SANDBOX_MAX_CONCURRENT_JOBS: "500", SANDBOX_WARM_POOL: "512" };
  await told.add("more jails than there can be", () => {
    jaildCommand({ instance: { ...instance, image }, caller, view: undefined });
  });
  await told.expectAs("sizes");
});

it("credentials", async () => {
  const situation = {
    settingsFile: join(folder, "svc.env"),
    url: "http://127.0.0.1:3112",
    variable: "SVC_API_KEYS_FILE",
    value: "/keys",
    reloadMs: 3000,
  } as const;
  for (const verdict of ["accepted", "refused", "open", "unreachable"] as const) {
    await told.add(`the API, asked with it: ${verdict}`, () =>
      adviceFor({ ...situation, verdict, configured: "/keys" }),
    );
  }
  await told.add("a relative path", () => apiKeysPath({ dataDir: folder }, { SVC_API_KEYS_FILE: "keys" }));
  const rsa = "-----BEGIN PRIVATE KEY-----\nno key\n-----END PRIVATE KEY-----\n";
  writeFileSync(join(folder, "token-key.pem"), rsa, { mode: 0o600 });
  await told.add("a private key that is broken", () => keyPairOf({ dataDir: folder }, "token"));
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  writeFileSync(join(folder, "token-key.pem"), privateKey.export({ type: "pkcs8", format: "pem" }));
  await told.add("a private key of another kind", () => keyPairOf({ dataDir: folder }, "token"));
  const keys = join(folder, "keys.jsonl");
  const lend = () => lendApiKeys(instance, { SVC_API_KEYS_FILE: keys }, false, () => undefined);
  await told.add("the file of API keys is gone at the start", lend);
  writeFileSync(keys, "");
  chmodSync(keys, 0o644);
  await told.add("others may read the file of API keys", lend);
  rmSync(keys);
  mkdirSync(keys, { mode: 0o700 });
  await told.add("a folder in the place of the file of API keys", lend);
  await told.expectAs("credentials");
});

it("a settings file", async () => {
  const parse = (text: string) => () => void parseSettings(text, "svc.env");
  for (const line of [
    "\uFEFFA=1",
    "A=\0",
    "A",
    "export A=1",
    "1A=1",
    "A=1\nA=2",
    "A='x",
    'A="x',
    "A='x' y",
    "A=x\\",
  ]) {
    await told.add(JSON.stringify(line), parse(line));
  }
  const settings = join(folder, "own.env");
  writeFileSync(
    settings,
    "S3_SECRET_KEY=x\nMAX_REQEUSTS=1\nEDITOR=vi\nREDIS_TLS=true\nFILE_SERVER_URL=http://other\n",
  );
  chmodSync(settings, 0o644);
  const read = readSettings({ settings }, {});
  await told.add("what has no effect", () => settingsWarnings(read, {}, instance).join("\n"));
  const unreadable = { ...read, unreadable: settings, fromFile: new Set<string>(), foreign: [] };
  await told.add("a file of root", () => settingsWarnings(unreadable, {}, instance)[0]);
  await told.expectAs("settings-file");
});

it("probes", async () => {
  await told.add("nothing listens", () => httpAnswers("http://127.0.0.1:1/health"));
  await told.add("a socket of Redis that is not there", () => redisAnswers(join(folder, "redis.sock")));
  await told.add("a socket that is not there", () => socketExists(join(folder, "jaild.sock")));
  writeFileSync(join(folder, "jaild.sock"), "");
  await told.add("a file in its place", () => socketExists(join(folder, "jaild.sock")));
  const path = join(folder, "loading.sock");
  const loading = createServer((socket) => socket.end("-LOADING\r\n"));
  await new Promise<void>((resolve) => loading.listen(path, resolve));
  await told.add("a Redis that reads its file", () => redisAnswers(path));
  loading.close();
  const broken = createServer((socket) => {
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"));
  });
  await new Promise<void>((resolve) => broken.listen(0, "127.0.0.1", resolve));
  const { port } = broken.address() as { port: number };
  await told.add("half an answer", () => httpAnswers(`http://127.0.0.1:${port}/health`));
  broken.close();
  await told.expectAs("probes");
});

it("the supervisor's answers", async () => {
  const path = join(folder, "control.sock");
  const ask = () => requestRestart(path, undefined, () => undefined);
  await told.add("nobody answers", ask);
  const server = serveControl(path, async () => {
    throw problemOf(Object.assign(new Error("x"), { code: "ENOSPC", syscall: "write", path: "/log" }));
  });
  await told.add("the disk is full", ask);
  server.close();
  const asked = async (request: string) => {
    const own = serveControl(path, async () => undefined);
    const socket = createConnection({ path, allowHalfOpen: true });
    socket.write(request);
    const said = await text(socket);
    own.close();
    return said;
  };
  await told.add("a request that is too long", () => asked("x".repeat(5000)));
  const leaving = createServer((socket) => socket.end());
  rmSync(path, { force: true });
  await new Promise<void>((resolve) => leaving.listen(path, resolve));
  await told.add("it ends meanwhile", ask);
  leaving.close();
  await told.add("another version asks", () => componentIn('{"command":"stop"}'));
  const running = ["redis", "jaild", "runner", "combined"] as const;
  await told.add("restart jaild", () => restartPlan(running, "jaild"));
  await told.add("restart supervisor", () => restartPlan(running, "supervisor"));
  await told.add("restart wroker", () => restartPlan(running, "wroker"));
  await told.expectAs("supervisor");
});

it("places and ports", async () => {
  writeFileSync(join(folder, "file"), "");
  await told.add("a file in the place of a folder", () => makeFolder(join(folder, "file")));
  await told.add("a folder that cannot be made", () => makeFolder("/proc/svc"));
  await told.add("a folder that cannot be written to", () => demandWritable("/proc/sys/nothing"));
  const open = join(folder, "open");
  mkdirSync(open);
  chmodSync(open, 0o777);
  await told.add("a data folder that everybody can write to", () =>
    makeFolders({ ...instance, dataDir: open }),
  );
  await told.add("an address of another machine", () => holdSocket("192.0.2.1", 3112));
  await told.add("SERVICE_HOST is of another machine", () =>
    demandFreePorts(instance, { SERVICE_HOST: "192.0.2.1" }),
  );
  const squatter = createServer();
  await new Promise<void>((resolve) => squatter.listen(0, "127.0.0.1", resolve));
  const api = (squatter.address() as { port: number }).port;
  // A copy of this machine may have the others.
  const { api: _, ...others } = instance.ports;
  const taken = { ...instance, ports: { ...others, api } };
  await told.add("a port is taken", () => demandFreePorts(taken, {}, others));
  squatter.close();
  await told.add("a tool fails", () => mustRun(["sh", "-c", "echo no; exit 3"], "building it"));
  await told.expectAs("places");
});

it("a start that does not get ready", async () => {
  const notes: string[] = [];
  const wait = async (seconds: string, signal?: AbortSignal) => {
    vi.stubEnv("SVC_READY_TIMEOUT", seconds);
    const note = (line: string) => void notes.push(line);
    await waitReady(instance, { note, isEnding: () => signal?.aborted === true }).finally(() =>
      vi.unstubAllEnvs(),
    );
  };
  // Nothing listens there.
  instance = { ...instance, url: "http://127.0.0.1:1" };
  await told.add("SVC_READY_TIMEOUT=soon", () => wait("soon"));
  await told.add("nothing listens in time", () => wait("4"));
  await told.add("what is told meanwhile", () => notes.join("\n"));
  await told.add("it is ended meanwhile", () => wait("60", AbortSignal.abort()));
  await told.add("no image is built", () => rootImage({ ...instance, image: folder }));
  await told.expectAs("readiness");
});
