/** What ./svc tells of machines, images and services that a test does not have: functions that tell it, cli/messages. `-u` renews them. */
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { capacityOf } from "@svc/cli/capacity";
import { lendApiKeys } from "@svc/cli/credentials/lend";
import { underLock } from "@svc/cli/credentials/lock";
import { ask, tryCredential } from "@svc/cli/credentials/trial";
import { capacityFinding, debianFinding } from "@svc/cli/doctor/checks";
import { healthFinding } from "@svc/cli/doctor/copy";
import { address, secretFiles } from "@svc/cli/doctor/exposure";
import type { Finding } from "@svc/cli/doctor/finding";
import * as host from "@svc/cli/doctor/host";
import { silentEnd } from "@svc/cli/doctor/jail";
import { runExample } from "@svc/cli/example";
import { BASE, buildImage, packageNames } from "@svc/cli/install/image";
import { buildJail, buildJailTests, imageNews } from "@svc/cli/install/install";
import { announcement, packagesFor, systemName } from "@svc/cli/install/packages";
import { type Instance, resolveInstance } from "@svc/cli/instance";
import { Child } from "@svc/cli/supervisor/child";
import { takeLock } from "@svc/cli/supervisor/lock";
import { restartAll } from "@svc/cli/supervisor/rolling";
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
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const shown = ({ grade, subject, note, fix }: Finding) =>
  `${grade}  ${subject}: ${note}${fix === undefined ? "" : `\nfix: ${fix}`}`;
const finding = (when: string, work: () => Finding) => told.add(when, () => shown(work()));

it("doctor: the machine", async () => {
  const system = { name: "Debian", architecture: "x64" };
  await finding("a kernel", () => host.kernel({ ...system, release: "6.1.0-40-amd64" }));
  await finding("an old kernel", () => host.kernel({ ...system, release: "5.4.0" }));
  await told.add("a Linux without a name", () => systemName(join(folder, "missing")));
  await finding("root", () => host.rights({ isRoot: true, hasSudo: false }));
  await finding("a user with sudo", () => host.rights({ isRoot: false, hasSudo: true }));
  await finding("a user without sudo", () => host.rights({ isRoot: false, hasSudo: false }));
  const packages = packagesFor("run");
  await finding("all Debian packages", () => debianFinding([]));
  await finding("no Debian package", () => debianFinding(packages));
  await told.add("what is installed for all purposes", () =>
    announcement(packagesFor("test", "test-s3", "test-fuzz", "test-machines")).join("\n"),
  );
  const redis = (says: string) => () => host.redis({ program: "/usr/bin/redis-server", says });
  await finding("Redis", redis("Redis server v=7.0.15 sha=0"));
  await finding("an old Redis", redis("Redis server v=6.2.1 sha=0"));
  await finding("something else", redis("hello"));
  await finding("no Redis", () => host.redis(undefined));
  const machine = { cores: 4, memoryBytes: 4 * 2 ** 30 };
  await finding("more slots than fit", () => capacityFinding(capacityOf(machine, {}, [])));
  await finding("a jail that does not say what is wrong", () => silentEnd(null));
  await finding("a jail that does", () => silentEnd(3, "no cgroup is writable"));
  const log = "/data/logs/api.log";
  await finding("a component", () => healthFinding("api", { reason: undefined, restarts: 0, log }));
  await finding("one that died", () => healthFinding("api", { reason: undefined, restarts: 1, log }));
  await finding("one that is ill", () => healthFinding("api", { reason: "answers 503", restarts: 0, log }));
  await told.expectAs("doctor-machine");
});

it("doctor: who may read and reach it", async () => {
  await finding("no secret", () => secretFiles({ dataDir: folder }));
  writeFileSync(join(folder, "secrets.env"), "");
  chmodSync(join(folder, "secrets.env"), 0o644);
  await finding("a secret that others can read", () => secretFiles({ dataDir: folder }));
  await finding("the address of this machine", () => address({}));
  await finding("an address of others", () => address({ SERVICE_HOST: "0.0.0.0" }));
  await told.expectAs("doctor-exposure");
});

it("images", async () => {
  await told.add("--packages nothing", () => packageNames("nothing"));
  await told.add("--packages dta", () => packageNames("dta"));
  await told.add("a folder without packages", () => packageNames(folder));
  await told.add("SVC_PACKAGES=own/packages", () => packageNames("own/packages"));
  const image = { folder: "one", languages: ["python"], packages: [] };
  await told.add("a new image", () => imageNews(image, { ...image, folder: "two" }));
  await told.add("another image", () =>
    imageNews(image, { folder: "two", languages: ["go", "python"], packages: ["data"] }),
  );
  const says = (work: Promise<void>) =>
    work.catch(({ message }: Error) => {
      throw new Error(message);
    });
  await told.add("the folder of images cannot be made", () =>
    says(buildImage({ packagesDir: "/proc/svc" }, { choice: BASE }, () => undefined)),
  );
  // No make is found there.
  vi.stubEnv("PATH", folder);
  await told.add("make fails", () => says(buildJail(() => undefined)));
  await told.add("make fails for the tests", () => says(buildJailTests(() => undefined)));
  await told.expectAs("install");
});

it("API keys that are being changed, or in a folder that is none", async () => {
  const lock = await takeLock("credentials keys");
  await told.add("another command has the lock", () => underLock("keys", () => undefined, 0));
  lock?.close();
  writeFileSync(join(folder, "file"), "");
  const lend = { SVC_API_KEYS_FILE: join(folder, "file/keys") };
  await told.add("a file in the place of a folder", () =>
    lendApiKeys(instance, lend, false, () => undefined),
  );
  await told.expectAs("api-keys");
});

it("an API that takes requests and answers none", async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(silent.address() as { port: number }).port}`;
  await told.add("it is shown a credential", () => tryCredential(url, () => ({}), 0, 50));
  await told.add("it is to run a program", () => ask(url, "POST", "/exec", {}, "{}", 50));
  silent.closeAllConnections();
  silent.close();
  await told.expectAs("silent-api");
});

it("the example, of a service that answers wrongly", async () => {
  const result = { session_id: "s", storage_session_id: "s", stdout: "no module\n", stderr: "" };
  for (const [when, code] of [
    ["a program that fails", 1],
    ["a program without a plot", 0],
  ] as const) {
    const server = createServer((request, response) => {
      request.resume();
      request.once("end", () => response.end(JSON.stringify({ ...result, code, files: [] })));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    await told.add(when, () => runExample({ ...instance, url }, { words: undefined }));
    server.close();
  }
  await told.expectAs("example");
});

it("a restart that comes to nothing", async () => {
  const component = {
    name: "worker",
    command: ["sleep", "600"],
    env: {},
    oomScore: 0,
    after: [],
    probe: async () => undefined,
  } as const;
  const dirs = { runDir: folder, logsDir: folder };
  const child = new Child(component, dirs, { changed: () => undefined, died: () => undefined });
  const rolling = {
    instance: { ...instance, ports: { ...instance.ports, worker: 1 } },
    graceMs: 5000,
    readyMs: 0,
    tell: () => undefined,
  };
  child.start();
  await told.add("it does not get ready", () => restartAll([child], { ...rolling, isStopping: () => false }));
  await told.add("everything is ended meanwhile", () =>
    restartAll([child], { ...rolling, isStopping: () => true }),
  );
  await child.stop(5000);
  await told.expectAs("rolling");
});
