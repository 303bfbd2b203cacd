/**
 * Runs one program of a runtime in the real jail with the built image: the only place of these tests that knows how.
 *
 * Needs root, `make -C jail`, and an image in SANDBOX_PACKAGES_DIRECTORY (default: .pkgs of the repository). Each test file has a jaild of
 * its own, started by its first run and stopped at its end.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import type { EndCause } from "@svc/jail-client";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { runOpen } from "@svc/test-kit/jail/run";
import { afterAll } from "vitest";

export interface Runtime {
  language: string;
  command: string[];
  env: Record<string, string>;
  version: string;
  entry: string;
  packages: { name: string; version: string }[];
}

export interface Program {
  /** Content of the entry file. */
  code: string;
  files?: Record<string, string>;
  args?: string[];
  stdin?: string;
  /** Wall time in milliseconds. */
  limit?: number;
}

export interface Outcome {
  cause: EndCause;
  exitCode: number;
  stdout: string;
  stderr: string;
  /** New and changed files, by path. */
  files: Map<string, Buffer>;
}

const repository = resolve(import.meta.dirname, "../../../..");
export const packagesDirectory = process.env.SANDBOX_PACKAGES_DIRECTORY ?? join(repository, ".pkgs");
export const rootfs = join(packagesDirectory, "rootfs");

const manifest: { image: string; commands: string[]; runtimes: Runtime[] } = JSON.parse(
  readFileSync(join(packagesDirectory, "runtimes.json"), "utf8"),
);
export const { commands, image, runtimes } = manifest;

let jaild: Promise<Jaild> | undefined;
afterAll(async () => (await jaild)?.stop());

export function runtimeOf(language: string): Runtime {
  const found = runtimes.find((runtime) => runtime.language === language);
  if (found === undefined) throw new Error(`${language} is not in the image`);
  return found;
}

export async function run(language: string, program: Program): Promise<Outcome> {
  const { command, env, entry } = runtimeOf(language);
  jaild ??= Jaild.start({ slots: 2, args: ["--root", rootfs] });
  const finished = await runOpen(await jaild, {
    argv: [...command.map((part) => part.replace("{entry}", entry)), ...(program.args ?? [])],
    env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    files: { [entry]: program.code, ...program.files },
    ...(program.stdin === undefined ? {} : { stdin: program.stdin }),
    limits: { wallMs: program.limit ?? 30_000, memoryBytes: 1024 << 20 },
  });
  try {
    const files = new Map<string, Buffer>();
    for (const { path, number, state } of finished.listing.files) {
      if (state === "unchanged") continue;
      const fetched = await finished.run.fetch(number);
      if (fetched === undefined) throw new Error(`${path} cannot be read`);
      files.set(path.toString(), await buffer(fetched.body));
    }
    const { cause, exitCode } = finished.end;
    return { cause, exitCode, stdout: finished.out, stderr: finished.err, files };
  } finally {
    finished.run.close();
  }
}
