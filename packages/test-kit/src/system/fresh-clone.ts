/**
 * This repository as a fresh clone: a folder with its entries, no data, and ports of its own.
 * Commands of a page run in it as they stand there. Needs root where they do.
 */
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Instance, ROOT, resolveInstance } from "@svc/cli/instance";
import { freePorts } from "./free-ports.ts";

/** Where pages say that the API is. */
const USUAL_ADDRESS = "http://127.0.0.1:3112";
const NOT_CLONED = ["data", ".git"];

export interface Said {
  code: number;
  stdout: string;
  stderr: string;
}

export interface FreshClone {
  folder: string;
  dataDir: string;
  instance: Instance;
  /** The variables that give the copy its ports and its data folder. */
  environment: Readonly<Record<string, string>>;
  /** Runs commands by bash up to the first that fails, in the folder; `data` in them is the data folder. Never throws for an exit code. */
  run: (script: string, env?: Readonly<Record<string, string>>) => Promise<Said>;
  /** Ends what runs here, removes the folder, and answers what ./svc down said. */
  remove: () => Promise<Said>;
}

export async function freshClone(): Promise<FreshClone> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-clone-")));
  chmodSync(folder, 0o711);
  for (const name of readdirSync(ROOT).filter((entry) => !NOT_CLONED.includes(entry)))
    symlinkSync(join(ROOT, name), join(folder, name));
  const dataDir = join(folder, "data");
  const environment = { ...(await freePorts()), SVC_DATA_DIR: dataDir };
  const none = { "data-dir": undefined, "port-offset": undefined };
  const instance = resolveInstance(none, environment);
  const run: FreshClone["run"] = (script, env = {}) =>
    inBash(script.replaceAll(USUAL_ADDRESS, instance.url), folder, { ...environment, ...env });
  const remove = async () => {
    const said = await run("./svc down");
    rmSync(folder, { recursive: true, force: true });
    return said;
  };
  return { folder, dataDir, instance, environment, run, remove };
}

function inBash(script: string, cwd: string, env: Readonly<Record<string, string>>): Promise<Said> {
  const options = { cwd, env: { ...process.env, ...env }, maxBuffer: 64 * 2 ** 20 };
  return new Promise((resolve) => {
    execFile("bash", ["--norc", "-euo", "pipefail", "-c", script], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ code, stdout, stderr });
    });
  });
}
