/**
 * A real S3 server for tests: Ceph in a temporary folder, with one monitor, one storage daemon that keeps everything in memory,
 * and no authentication between them. Everything listens on loopback, on free ports, and dies with this process. The S3
 * gateways (gateway.ts) are processes of their own in front of it.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../../system/free-ports.ts";

const run = promisify(execFile);
const TOOL_MS = 60_000;
const START_ATTEMPTS = 3;
const MEMORY_BYTES = 8 * 2 ** 30;

/** The one user of the cluster. */
export const ACCESS_KEY = "access-key-of-tests";
export const SECRET_KEY = "secret-key-of-tests-0123456789";

export interface Cluster {
  /** Holds ceph.conf, all data and the logs. */
  directory: string;
  stop: () => Promise<void>;
}

export async function startCluster(): Promise<Cluster> {
  const directory = await mkdtemp(join(tmpdir(), "svc-test-s3-"));
  const children: ChildProcess[] = [];
  const stop = async () => {
    for (const child of children.reverse()) await end(child);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const [fsid, osd] = [randomUUID(), randomUUID()];
    const monitor = `[v1:127.0.0.1:${await freePort()}]`;
    for (const name of ["mon", "osd", "run"]) await mkdir(join(directory, name));
    await writeFile(join(directory, "ceph.conf"), configuration(directory, fsid, monitor));
    const tool = (name: string, ...args: string[]) =>
      run(name, ["-c", "ceph.conf", ...args], { cwd: directory, timeout: TOOL_MS });
    await run("monmaptool", ["--create", "--clobber", "--fsid", fsid, "--addv", "a", monitor, "monmap"], {
      cwd: directory,
    });
    await tool("ceph-mon", "-i", "a", "--mkfs", "--monmap", "monmap");
    children.push(startDaemon(directory, "mon", ["ceph-mon", "-i", "a", "-c", "ceph.conf", "-f"]));
    await tool("ceph", "osd", "new", osd, "0");
    await tool("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd);
    await startStorage(directory, children);
    const user = [
      "--uid=tests",
      "--display-name=tests",
      `--access-key=${ACCESS_KEY}`,
      `--secret-key=${SECRET_KEY}`,
    ];
    await tool("radosgw-admin", "user", "create", ...user);
    return { directory, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The storage daemon can end at its first start with "wrong fsid". `children` holds every daemon that was started. */
async function startStorage(directory: string, children: ChildProcess[]): Promise<void> {
  for (let attempt = 1; attempt <= START_ATTEMPTS; attempt++) {
    const child = startDaemon(directory, "osd", ["ceph-osd", "-i", "0", "-c", "ceph.conf", "-f"]);
    children.push(child);
    while (child.exitCode === null && child.signalCode === null) {
      if (await isUp(directory)) return;
      await delay(200);
    }
  }
  throw new Error(`ceph-osd did not start: ${await readFile(join(directory, "osd.log"), "utf8")}`);
}

/** A monitor that is busy may refuse to say. */
async function isUp(directory: string): Promise<boolean> {
  const command = ["-c", "ceph.conf", "osd", "stat"];
  const asked = await run("ceph", command, { cwd: directory, timeout: TOOL_MS }).catch(() => undefined);
  return asked?.stdout.includes("1 up") ?? false;
}

/** Starts a program that dies with this process and writes to `<name>.log`. */
export function startDaemon(directory: string, name: string, command: readonly string[]): ChildProcess {
  const log = openSync(join(directory, `${name}.log`), "a");
  try {
    return spawn("/usr/bin/setpriv", ["--pdeathsig", "KILL", "--", ...command], {
      cwd: directory,
      stdio: ["ignore", log, log],
    });
  } finally {
    closeSync(log);
  }
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

function configuration(directory: string, fsid: string, monitor: string): string {
  return `[global]
fsid = ${fsid}
mon_initial_members = a
mon_host = ${monitor}
mon_data = ${directory}/mon
osd_data = ${directory}/osd
rgw_data = ${directory}/run
run_dir = ${directory}/run
admin_socket =
keyring = /dev/null
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_ipv6 = false
osd_objectstore = memstore
memstore_device_bytes = ${MEMORY_BYTES}
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
log_file =
mon_cluster_log_file =
log_to_stderr = true
err_to_stderr = true
debug_rocksdb = 0
rgw_cache_enabled = false
rgw_dns_name = localhost
`;
}
