/** docs/troubleshooting.md, "It does not start": each symptom is made, seen with its cause, and gone after what the page advises. */

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { NODE } from "@svc/cli/components";
import type { Finding } from "@svc/cli/doctor/finding";
import { ROOT } from "@svc/cli/instance";
import { builtBundle } from "@svc/test-kit/components/component";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { freePort } from "@svc/test-kit/system/free-ports";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, expect } from "vitest";
import { apart } from "../support/apart.ts";
import {
  type CommandResult,
  type Environment,
  type PrivateFolder,
  privateFolder,
  svc,
} from "../support/svc.ts";
import { expectSaid, provokeEachRow } from "../support/troubleshooting.ts";

const shared = sharedSystem();
let copy: PrivateFolder;
let extra: string;

beforeAll(async () => {
  copy = await privateFolder();
  extra = realpathSync(mkdtempSync(join(tmpdir(), "svc-trouble-")));
  chmodSync(extra, 0o755);
});
afterAll(async () => {
  await svc(["down"], copy.environment);
  copy.remove();
  rmSync(extra, { recursive: true });
});

const up = (settings: Environment = {}, args: readonly string[] = []): Promise<CommandResult> =>
  svc(["up", "-d", "--no-example", ...args], { ...copy.environment, ...settings });

/** Starts and ends the copy. */
async function expectToStart(settings: Environment = {}): Promise<void> {
  const { code, stdout, stderr } = await up(settings);
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^Ready: /m);
  expect((await svc(["down"], { ...copy.environment, ...settings })).code).toBe(0);
}

/** Without any setting: what many rows come back to. */
let plainStart: Promise<void> | undefined;
function expectPlainStart(): Promise<void> {
  plainStart ??= expectToStart();
  return plainStart;
}

/** The start is refused with the messages of the symptom; answers what it said. */
async function refused(
  symptom: string,
  settings: Environment = {},
  args: readonly string[] = [],
): Promise<string> {
  const { code, stdout, stderr } = await up(settings, args);
  expect([code, stdout]).toEqual([1, expect.not.stringContaining("Ready:")]);
  expectSaid(stderr, symptom);
  return stderr;
}

/** What `./svc doctor` says on this machine after `before`, and then after `after`. */
const doctorAround = (before: string, after: string) =>
  parted(`${before}; $SVC doctor || true; echo ---; ${after}; $SVC doctor`);

/** What a script prints before and after a line `---`. */
async function parted(script: string): Promise<{ broken: string; mended: string }> {
  const [broken = "", mended = ""] = (await apart(script, copy.environment)).split("---\n");
  return { broken, mended };
}

function run(command: string): void {
  execFileSync("/bin/sh", ["-ec", command], { stdio: "pipe" });
}

/** A folder of packages as the tree's own, whose image is a folder that a test may change. */
function ownPackages(): { folder: string; image: string } {
  const whole = realpathSync(process.env.SANDBOX_PACKAGES_DIRECTORY || join(ROOT, ".pkgs"));
  const folder = mkdtempSync(join(extra, "packages-"));
  chmodSync(folder, 0o755);
  const image = join(folder, basename(readlinkSync(join(whole, "current"))));
  mkdirSync(image, { mode: 0o755 });
  for (const name of readdirSync(join(whole, "current"))) {
    const path = realpathSync(join(whole, "current", name));
    // Of what microVMs start from, which is there when somebody tried them, the image has a folder, too.
    if (statSync(path).isDirectory()) symlinkSync(path, join(image, name));
    else copyFileSync(path, join(image, name));
  }
  for (const name of ["current", "rootfs", "runtimes.json"])
    symlinkSync(readlinkSync(join(whole, name)), join(folder, name));
  return { folder, image };
}

provokeEachRow(
  "It does not start",
  {
    "`port … of the … is taken`": async () => {
      const other = createServer();
      await new Promise<void>((resolve) => other.listen(copy.instance.ports.runner, "127.0.0.1", resolve));
      try {
        const said = await refused("`port … of the … is taken`");
        expect(said).toMatch(
          new RegExp(`port ${copy.instance.ports.runner} of the runner .*pid ${process.pid}.*\\(PORT\\)`),
        );
        await expectToStart({ PORT: String(await freePort()) });
      } finally {
        other.close();
      }
    },

    "`port … of the … is for root alone`": async () => {
      const said = await refused("`port … of the … is for root alone`", { SERVICE_PORT: "81" });
      expect(said).toContain("port 81 of the api");
      await expectPlainStart();
    },

    "`needs root rights, and sudo is not installed`": async () => {
      const asNobody = "setpriv --reuid=65534 --regid=65534 --clear-groups /srv/svc up -d --no-example";
      const said = await apart(
        `mount --bind "$(dirname "$SVC")" /srv; hide sudo; ${asNobody} || echo "exit code $?"`,
        copy.environment,
      );
      expectSaid(said, "`needs root rights, and sudo is not installed`");
      expect(said).toMatch(/As root, run: \/srv\/svc up -d --no-example\n[\s\S]*exit code 1\n/);
      await expectPlainStart();
    },

    "`programs are missing, and this system has no apt-get to install them`": async () => {
      const start = "$SVC up -d --no-example || true";
      const said = await apart(`hide make apt-get; ${start}`, copy.environment);
      expectSaid(said, "`programs are missing, and this system has no apt-get to install them`");
      expect(said).toContain("make: builds the jail");
      expect(await apart(`hide apt-get; ${start}; $SVC down`, copy.environment)).toMatch(/^Ready: /m);
    },

    "`user-namespace` `does not work on this machine`": async () => {
      const off = "mount -t proc proc /proc; echo 0 >/proc/sys/user/max_user_namespaces";
      const fix = "sysctl -q user.max_user_namespaces=20000";
      const said = await apart(
        `contained '${off}; $SVC doctor || true; echo ---; ${fix}; $SVC doctor || true'`,
        copy.environment,
      );
      const [broken = "", mended = ""] = said.split("---\n");
      expect(broken).toMatch(/^fail +jail +user-namespace does not work/m);
      expect(broken).toMatch(/fix: sysctl user\.max_user_namespaces > 0/);
      expect(mended).not.toContain("user-namespace does not work");
      const readOnly = await doctorAround("mount -o bind,ro /proc/sys /proc/sys", "umount /proc/sys");
      expect(readOnly.broken).toMatch(/^fail +jail +user-namespace does not work/m);
      expect(readOnly.mended).toMatch(/^Fit to run\.$/m);
      const start = await apart(
        "mount -o bind,ro /proc/sys /proc/sys; $SVC up -d --no-example || true",
        copy.environment,
      );
      expectSaid(start, "`user-namespace` `does not work on this machine`");
    },

    "`no control groups with freezer, memory, pids and cpu`": async () => {
      const without = "unshare --mount /bin/sh -c 'umount -R /sys/fs/cgroup; $SVC doctor || true'";
      const { broken, mended } = await parted(`${without}; echo ---; $SVC doctor`);
      expectSaid(broken, "`no control groups with freezer, memory, pids and cpu`");
      expect(broken).toMatch(/^fail +jail +cgroups does not work/m);
      expect(mended).toMatch(/^Fit to run\.$/m);
    },

    "`mount /proc whole: a container's masked or read-only /proc is not enough`": async () => {
      const doctor = "$SVC doctor || true";
      const said = await apart(
        `contained 'mount -t proc proc /proc; ${doctor}'; echo ---; mount --bind /dev/null /proc/uptime; contained '${doctor}'`,
        copy.environment,
      );
      const [whole = "", masked = ""] = said.split("---\n");
      expectSaid(masked, "`mount /proc whole: a container's masked or read-only /proc is not enough`");
      expect(whole).not.toContain("mount /proc whole");
    },

    "`crashes in jails would be dumped into a socket of the host`": async () => {
      const { broken, mended } = await doctorAround(
        "mount -t tmpfs apart /mnt; echo @/run/crash.sock >/mnt/pattern; mount --bind /mnt/pattern /proc/sys/kernel/core_pattern",
        "sysctl -q kernel.core_pattern=core",
      );
      expectSaid(broken, "`crashes in jails would be dumped into a socket of the host`");
      expect(broken).toMatch(/^fail +jail +core-pattern/m);
      expect(mended).toMatch(/^Fit to run\.$/m);
    },

    "`programs at once may take … each with its files), and jails get`": async () => {
      const said = await refused("`programs at once may take … each with its files), and jails get`", {
        SANDBOX_WORKSPACE_MAX_BYTES: "1000gb",
      });
      expect(said).toMatch(/docs\/configuration\.md/);
      await expectToStart({ SANDBOX_WORKSPACE_MAX_BYTES: "100mb", SANDBOX_MAX_CONCURRENT_JOBS: "1" });
    },

    "`the components cannot run as users of their own`": async () => {
      const { folder, image } = ownPackages();
      chmodSync(join(image, "runtimes.json"), 0o600);
      const settings = { SANDBOX_PACKAGES_DIRECTORY: folder };
      const said = await refused("`the components cannot run as users of their own`", settings);
      const [, command] = /Let others read the code: (cd .*)$/m.exec(said) ?? [];
      expect(command).toMatch(/ && chmod -R go\+rX /);
      run(command as string);
      await expectToStart(settings);
    },

    "`can be read by others`": async () => {
      await expectPlainStart();
      const path = join(copy.instance.dataDir, "secrets.env");
      chmodSync(path, 0o644);
      const said = await refused("`can be read by others`");
      expect(said).toContain(`chmod 600 ${path}`);
      run(`chmod 600 ${path}`);
      await expectToStart();
    },

    "`does not belong to the user of the file server`": async () => {
      const STORAGE_DIR = join(extra, "storage");
      mkdirSync(STORAGE_DIR, { mode: 0o755 });
      writeFileSync(join(STORAGE_DIR, "file"), "of somebody else");
      const said = await refused("`does not belong to the user of the file server`", { STORAGE_DIR });
      const [, command] = /alone, run: (chown .*)$/m.exec(said) ?? [];
      run(command as string);
      await expectToStart({ STORAGE_DIR });
    },

    "`does not belong to the user of …, …, as its folder does`": async () => {
      await expectPlainStart();
      mkdirSync(join(copy.instance.dataDir, "objects/copied"));
      const said = await refused("`does not belong to the user of …, …, as its folder does`");
      const [, command] = /as after a restore, run: (chown .*)$/m.exec(said) ?? [];
      run(command as string);
      await expectToStart();
    },

    "`the data folder's path is too long for a unix socket`": async () => {
      const long = join(extra, "x".repeat(100));
      await refused("`the data folder's path is too long for a unix socket`", { SVC_DATA_DIR: long });
      await expectPlainStart();
    },

    "`already running on`": async () => {
      const { code, stderr } = await svc(["supervise"], shared.environment);
      expect(code).toBe(1);
      expectSaid(stderr, "`already running on`");
      expect(stderr).toContain(shared.instance.dataDir);
      await expectPlainStart();
    },

    "`the … does not start`": async () => {
      await expectPlainStart();
      const folder = join(copy.instance.dataDir, "redis/appendonlydir");
      const log = readdirSync(folder).find((name) => name.endsWith(".incr.aof")) as string;
      renameSync(join(folder, log), join(extra, log));
      writeFileSync(join(folder, log), "no log of Redis\n");
      chownSync(join(folder, log), statSync(folder).uid, statSync(folder).gid);
      const said = await refused("`the … does not start`");
      expect(said).toContain("the redis does not start");
      expect(said).toMatch(/Bad file format reading the append only file/);
      const whole = readFileSync(join(copy.instance.logsDir, "redis.log"), "utf8");
      expect(whole).toContain("Bad file format reading the append only file");
      renameSync(join(extra, log), join(folder, log));
      await expectToStart();
    },

    "`KVM_ENABLED asks for microVMs, which a runner does not make`": async () => {
      const child = spawn(NODE, [await builtBundle("runner")], {
        env: { KVM_ENABLED: "true" },
        stdio: ["ignore", "ignore", "pipe"],
      });
      const [said, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
      expect(code).toBe(78);
      expectSaid(said, "`KVM_ENABLED asks for microVMs, which a runner does not make`");
    },

    "`is required by the`": async () => {
      const start = async (env: Record<string, string>) => {
        const port = String(await freePort());
        const child = spawn(NODE, [await builtBundle("tool-call-server")], {
          env: {
            TOOL_CALL_SERVER_PORT: port,
            REDIS_URL: `unix://${shared.instance.redisSocket}`,
            ...env,
          },
          stdio: ["ignore", "pipe", "pipe"],
        });
        return {
          child,
          port,
          said: Promise.all([text(child.stdout), text(child.stderr)]),
          exited: once(child, "exit"),
        };
      };
      const without = await start({ LOCAL_MODE: "true" });
      const [code] = await without.exited;
      expect(code).toBe(78);
      const said = (await without.said).join("");
      expectSaid(said, "`is required by the`");
      expect(said).toContain("SVC_INTERNAL_SERVICE_TOKEN");
      const page = readFileSync(join(ROOT, "docs/secrets.md"), "utf8");
      expect(page).toContain("`SVC_INTERNAL_SERVICE_TOKEN`");
      const complete = await start({ LOCAL_MODE: "true", SVC_INTERNAL_SERVICE_TOKEN: newSecret() });
      const health = `http://127.0.0.1:${complete.port}/health`;
      const isThere = () =>
        fetch(health).then(
          ({ ok }) => ok,
          () => false,
        );
      await expect.poll(isThere).toBe(true);
      complete.child.kill("SIGTERM");
      expect(await complete.exited).toEqual([0, null]);
      expect((await complete.said).join("")).toMatch(/"msg":"running"/);
    },

    "`can be guessed`": async () => {
      const said = await refused("`can be guessed`", { SVC_METRICS_TOKEN: "a".repeat(64) });
      const [, command] = /`(openssl rand -hex 32)`/.exec(said) ?? [];
      expect(command).toBeDefined();
      const made = newSecret();
      await expectToStart({ SVC_METRICS_TOKEN: made });
    },

    "`is in use by a copy that systemd does not know`": async () => {
      const empty = "mount -t tmpfs apart /etc/systemd/system";
      const said = await apart(`${empty}; $SVC install || echo "exit code $?"`, shared.environment);
      expectSaid(said, "`is in use by a copy that systemd does not know`");
      expect(said).toMatch(/End it with \.\/svc down[\s\S]*exit code 1\n/);
      // This one does not run.
      expect(await apart(`${empty}; $SVC install`, copy.environment)).toContain("Written: ");
    },

    "`the service does not get what this shell sets`": async () => {
      const print = async (env: Environment) => {
        const { code, stderr } = await svc(["install", "--print"], { ...copy.environment, ...env });
        expect(code).toBe(0);
        return stderr;
      };
      expectSaid(await print({ MAX_REQUESTS: "5" }), "`the service does not get what this shell sets`");
      writeFileSync(join(copy.instance.dataDir, "svc.env"), "MAX_REQUESTS=5\n");
      expect(await print({})).not.toContain("MAX_REQUESTS");
      const { stdout } = await svc(["config"], copy.environment);
      expect(stdout).toMatch(/MAX_REQUESTS.*5/);
      rmSync(join(copy.instance.dataDir, "svc.env"));
    },

    "`image differs from the repository's manifest`": async () => {
      const { image } = ownPackages();
      const dataDir = mkdtempSync(join(extra, "data-"));
      symlinkSync(image, join(dataDir, "image"));
      const list = join(image, "packages");
      const before = readFileSync(list, "utf8");
      writeFileSync(list, before.replace(/^(\S+ )\S+/, "$1999.0"));
      const packages = async () => {
        const { stdout } = await svc(["doctor", "--json"], { ...copy.environment, SVC_DATA_DIR: dataDir });
        const { checks } = JSON.parse(stdout) as { checks: Finding[] };
        return checks.find(({ subject }) => subject === "image packages");
      };
      const found = await packages();
      expect(found?.grade).toBe("warn");
      expectSaid(found?.note ?? "", "`image differs from the repository's manifest`");
      expect(found?.note).toContain("999.0");
      writeFileSync(list, before);
      expect((await packages())?.note).not.toContain("999.0");
    },
  },
  {
    "`holds other processes; start jaild in a group of its own`":
      "needs cgroup v2, which this machine may not have: tests/v2/groups.test.ts",
    "`LAUNCHER_ACCEL=kvm, and KVM is not usable`":
      "depends on what this machine has: cli/test/unit/microvm.test.ts",
    "`no microVM gets ready; the launcher's log says why`":
      "needs QEMU: services/launcher/test/unit/pool.test.ts",
    "`the service did not get ready`": "needs a machine on which systemd runs as the first process",
  },
);
