/** Runs ./svc as a command, and makes folders and ports for a copy of its own. */
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Instance, ROOT, resolveInstance } from "@svc/cli/instance";
import { freePorts } from "@svc/test-kit/system/free-ports";

export interface CommandResult {
  code: number;
  stdout: string;
  stderr: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Never throws for an exit code. `input` is its standard input; without one it is empty. */
export function svc(
  args: readonly string[],
  environment: Environment = {},
  { input = "", cwd = ROOT }: { input?: string; cwd?: string } = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...environment }, cwd, maxBuffer: 64 * 2 ** 20 };
    const child = execFile(join(ROOT, "svc"), args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ code, stdout, stderr });
    });
    child.stdin?.end(input);
  });
}

export interface PrivateFolder {
  environment: Environment;
  instance: Instance;
  remove: () => void;
}

/** A data folder and ports for one copy; nothing is started. */
export async function privateFolder(): Promise<PrivateFolder> {
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), "svc-e2e-")));
  chmodSync(dataDir, 0o711);
  const environment = { ...(await freePorts()), SVC_DATA_DIR: dataDir };
  const none = { "data-dir": undefined, "port-offset": undefined };
  const instance = resolveInstance(none, { ...process.env, ...environment });
  return { environment, instance, remove: () => rmSync(dataDir, { recursive: true, force: true }) };
}
